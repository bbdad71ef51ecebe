"""The small shell program that runs a command on a host and frames its answer (pure text).

It reads script and input from stdin, runs the script in a session of its own, and keeps reading
stdin: heartbeats say that we are alive. At the end of input, or when heartbeats stop, the whole
session is ended (TERM, then KILL) and its directory removed. An answer is

    NONCE stdout-bytes stderr-bytes sha256 exit-status
    <stdout><stderr>NONCE

so that greetings of a login shell before it are skipped and a cut answer is noticed. The program is
one line without single quotes or `!`, so that every login shell passes it on unharmed. Needs on
the host: sh, head, tail, mktemp, setsid, timeout, sha256sum (coreutils and util-linux, or busybox).
"""

from __future__ import annotations

import hashlib
import re
import shlex

from dsv4doctor.hosts.transport import AnswerCut, Command, CommandResult, HostError

HEARTBEAT = b"h"
HEARTBEAT_S = 5.0
SILENCE_S = 30  # heartbeats missing this long: the other end is gone, though no one closed the line
GRACE_S = 1  # between TERM and KILL; with it, all is over well within five seconds

_RUNNER = (
    "umask 077; "
    'd=$(mktemp -d "${{TMPDIR:-/tmp}}/dsv4doctor.XXXXXXXX" || '
    "mktemp -d /dev/shm/dsv4doctor.XXXXXXXX) || exit 97; "
    # Handlers, not ignored signals: a command must not inherit deafness.
    "trap : PIPE HUP; exec 3<&0; "
    # One head for both parts: some read ahead of what they print, and then only eat heartbeats.
    'head -c {total} <&3 >"$d/all"; '
    'head -c {script} "$d/all" >"$d/script"; tail -c +{input_at} "$d/all" >"$d/in"; rm "$d/all"; '
    'TMPDIR="$d" setsid sh "$d/script" <"$d/in" >"$d/out" 2>"$d/err" 3<&- & p=$!; '
    '( while b=$(timeout {silence} head -c 1 <&3) && [ -n "$b" ]; do :; done; '
    'kill -TERM -$p; sleep {grace}; kill -KILL -$p; rm -rf "$d" ) >/dev/null 2>&1 & w=$!; '
    "wait $p; s=$?; kill $w 2>/dev/null; kill -KILL -$p 2>/dev/null; "
    'o=$(wc -c <"$d/out"); e=$(wc -c <"$d/err"); '
    'h=$(cat "$d/out" "$d/err" | sha256sum); '
    'printf "\\n%s %d %d %s %d\\n" {nonce} $o $e "${{h%% *}}" $s; '
    'cat "$d/out" "$d/err"; printf "%s\\n" {nonce}; rm -rf "$d"'
)

_HEADER = rb"(?:^|\n)%s (\d+) (\d+) ([0-9a-f]{64}) (\d+)\n"


def command_line(command: Command, nonce: str, *, silence_s: float = SILENCE_S) -> str:
    """What the host's login shell is given: prefix and runner, quoted once."""
    script, data = command.script.encode(), command.stdin
    runner = _RUNNER.format(
        total=len(script) + len(data),
        script=len(script),
        input_at=len(script) + 1,
        silence=silence_s,
        grace=GRACE_S,
        nonce=nonce,
    )
    return shlex.join((*command.prefix, "sh", "-c", runner))


def first_input(command: Command) -> bytes:
    """What is written to the runner before the heartbeats."""
    return command.script.encode() + command.stdin


def read_answer(
    host: str, nonce: str, received: bytes, noise: bytes, seconds: float
) -> CommandResult:
    """The answer framed by `nonce` in what came back; `noise` is the runner's own stderr.

    Raises:
        AnswerCut: if the answer is not complete or not what was sent.
        HostError: if the runner could not start.
    """
    header = re.search(_HEADER % re.escape(nonce.encode()), received)
    if header is None:
        said = _last_line(noise) or _last_line(received)
        problem = f"{host}: no answer came back"
        raise HostError(f"{problem}: {said}" if said else problem, _no_answer_hint(said))
    out_bytes, err_bytes = int(header[1]), int(header[2])
    body = received[header.end() :]
    total = out_bytes + err_bytes
    if len(body) < total:
        raise AnswerCut(
            f"{host}: the answer was cut after {len(body)} of {total} bytes",
            "run it again; if it recurs, look at the connection and the host's free disk",
        )
    payload = body[:total]
    if hashlib.sha256(payload).hexdigest().encode() != header[3]:
        raise AnswerCut(f"{host}: the answer's bytes are not those that were sent", "run it again")
    return CommandResult(
        stdout=payload[:out_bytes],
        stderr=payload[out_bytes:],
        exit_code=int(header[4]),
        seconds=seconds,
    )


def _no_answer_hint(said: str) -> str:
    if "not found" in said or "No such file" in said:
        return (
            "the host needs a POSIX shell, coreutils and util-linux (sh, head, setsid, sha256sum)"
        )
    return "log in by hand: does `sh -c 'echo ok'` answer there, and is there room in /tmp?"


def _last_line(data: bytes) -> str:
    lines = [line for line in data.decode("utf-8", "replace").splitlines() if line.strip()]
    return "".join(c if c.isprintable() else "?" for c in lines[-1])[:200] if lines else ""
