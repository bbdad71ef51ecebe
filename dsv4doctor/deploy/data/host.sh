# Shell functions that dsv4doctor runs on a host, for experiments and for putting back. POSIX sh
# with procfs; `setsid` is the one tool beyond POSIX.

nap() { sleep 0.2 2>/dev/null || sleep 1; }

# start_of PID: its start in clock ticks. Tells a process from a later one of the same number.
start_of() {
  sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | awk '$1 != "Z" && $1 != "X" { print $20 }'
}

# is_alive PIDFILE: true while the process noted there runs.
is_alive() {
  [ -r "$1" ] || return 1
  read -r noted_pid noted_start <"$1" || return 1
  [ -n "$noted_start" ] && [ "$(start_of "$noted_pid")" = "$noted_start" ]
}

# note_process PIDFILE PID
note_process() {
  printf '%s %s\n' "$2" "$(start_of "$2")" >"$1.new" && mv "$1.new" "$1"
}

# wait_detached PID: until it leads a session of its own. Whoever runs us ends the session that it
# came from as soon as we are done, and a child that has not left it yet would go with it.
wait_detached() {
  while [ -n "$(start_of "$1")" ] &&
    [ "$(sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -d' ' -f4)" != "$1" ]; do nap; done
}

# tree_of PID: "pid start" of it and all its descendants.
tree_of() {
  cat /proc/[0-9]*/stat 2>/dev/null | sed 's/ (.*) / /' | awk -v root="$1" '
    { parent[$1] = $3; start[$1] = $21 }
    END {
      inside[root] = 1
      do {
        grew = 0
        for (pid in parent)
          if (!(pid in inside) && (parent[pid] in inside)) { inside[pid] = 1; grew = 1 }
      } while (grew)
      for (pid in inside) if (pid in start) print pid, start[pid]
    }'
}

# stop_process PIDFILE SECONDS: TERM, wait, then KILL for it and whatever it left behind. Returns
# when all of them are gone: until then their ports and their GPU memory are not free.
stop_process() {
  is_alive "$1" || return 0
  read -r stop_pid stop_start <"$1"
  stop_tree=$(tree_of "$stop_pid")
  kill -TERM "$stop_pid" 2>/dev/null
  stop_until=$(($(date +%s) + $2))
  while is_alive "$1" && [ "$(date +%s)" -lt "$stop_until" ]; do nap; done
  printf '%s\n' "$stop_tree" | while read -r tree_pid tree_start; do
    while [ -n "$tree_start" ] && [ "$(start_of "$tree_pid")" = "$tree_start" ]; do
      kill -KILL "$tree_pid" 2>/dev/null
      nap
    done
  done
  return 0
}

# start_process PIDFILE SCRIPT LOG whole|added: in a session of its own, so that it outlives us.
start_process() {
  : >"$3" || return 1
  unset TMPDIR
  if [ "$4" = whole ]; then
    setsid env -i sh "$2" </dev/null >>"$3" 2>&1 &
  else
    setsid sh "$2" </dev/null >>"$3" 2>&1 &
  fi
  start_pid=$!
  wait_detached "$start_pid"
  note_process "$1" "$start_pid"
}

# listener_of PORT: the process that listens there; nothing where none does.
listener_of() {
  listen_inode=$(cat /proc/net/tcp /proc/net/tcp6 2>/dev/null |
    awk -v port="$(printf ':%04X' "$1")" \
      '$4 == "0A" && substr($2, length($2) - 4) == port { print $10; exit }')
  [ -n "$listen_inode" ] || return 0
  ls -l /proc/[0-9]*/fd 2>/dev/null | awk -v want="socket:[$listen_inode]" '
    /^\/proc\// { split($1, part, "/"); pid = part[3] }
    $NF == want { print pid; exit }'
}

# wait_until SECONDS ALIVE CHECK: until CHECK succeeds; fails when ALIVE does or the time is over.
wait_until() {
  wait_end=$(($(date +%s) + $1))
  until eval "$3"; do
    eval "$2" || return 1
    [ "$(date +%s)" -lt "$wait_end" ] || return 1
    nap
  done
}
