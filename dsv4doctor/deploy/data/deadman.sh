#!/bin/sh
# Puts the deployment back when its doctor is gone: no new heartbeat for LIMIT seconds.
# Usage: deadman.sh FOLDER LIMIT RUN. Counts its own sleeps, so a clock that jumps does no harm.
# A deployment that was started for the experiment has a stop.sh: it is stopped LEFT_ALONE_S later.
folder=$1 limit=$2 run=$3
LEFT_ALONE_S=600
quiet=0 last=
while [ "$(cat "$folder/lock/run" 2>/dev/null)" = "$run" ]; do
  beat=$(cat "$folder/heartbeat" 2>/dev/null)
  if [ "$beat" = "$last" ]; then quiet=$((quiet + 1)); else quiet=0 last=$beat; fi
  if [ "$quiet" -ge "$limit" ]; then
    sh "$folder/restore.sh" deadman || exit 1
    alone=0
    while [ "$alone" -lt "$LEFT_ALONE_S" ] && [ -e "$folder/stop.sh" ]; do
      [ ! -e "$folder/lock" ] || exit 0
      sleep 1
      alone=$((alone + 1))
    done
    [ ! -e "$folder/stop.sh" ] || exec sh "$folder/stop.sh"
  fi
  sleep 1
done
