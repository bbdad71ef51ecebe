"""Shell text run on one host of a deployment, with the host library before it; reconnects once."""

from __future__ import annotations

import shlex
import threading
from collections.abc import Callable, Mapping
from importlib import resources

from dsv4doctor.deploy.document import HostEntry
from dsv4doctor.hosts.transport import (
    AnswerCut,
    Command,
    CommandResult,
    HostError,
    HostUnreachable,
    Transport,
)

DEFAULT_TIMEOUT_S = 60.0
_LAST_WORDS = 300


def data_file(name: str) -> str:
    """The text of a file shipped in `deploy/data`."""
    return (resources.files(__package__) / "data" / name).read_text(encoding="utf-8")


class HostShell:
    """One host. `folder` holds all that we keep there, private to the user (umask 077)."""

    def __init__(self, entry: HostEntry, connect: Callable[[HostEntry], Transport]) -> None:
        self.entry = entry
        self._connect = connect
        self._transport: Transport | None = None
        self._lock = threading.Lock()
        self._folder = entry.state_dir
        self._library = data_file("host.sh")
        self.holder = ""  # the run that may change things here

    @property
    def name(self) -> str:
        return self.entry.name

    @property
    def folder(self) -> str:
        """Where our files lie on the host."""
        if self._folder is None:
            user = self._send("id -u\n", b"", DEFAULT_TIMEOUT_S).text.strip()
            self._folder = f"/var/tmp/dsv4doctor-{user}"
        return self._folder

    def run(
        self, text: str, *, stdin: bytes = b"", timeout_s: float = DEFAULT_TIMEOUT_S
    ) -> CommandResult:
        """What `text` gives; `$S` is the folder and the host library is at hand.

        A lost connection is opened anew once, so `text` must do no harm when it runs twice.

        Raises:
            HostError: if the host cannot be reached or gives no whole answer.
        """
        head = f"umask 077\nS={shlex.quote(self.folder)}\n{self._library}\n"
        return self._send(head + text + "\n", stdin, timeout_s)

    def do(
        self,
        text: str,
        what: str,
        *,
        stdin: bytes = b"",
        timeout_s: float = DEFAULT_TIMEOUT_S,
    ) -> CommandResult:
        """`run` for text that must succeed; `what` says in words what it was for.

        Raises:
            HostError: with the last words of a command that failed.
        """
        done = self.run(text, stdin=stdin, timeout_s=timeout_s)
        if done.exit_code:
            raise HostError(
                f"{self.name}: {what} failed: {_last_words(done)}",
                f"log in there and look at {self.folder}",
            )
        return done

    def change(
        self, text: str, what: str, *, stdin: bytes = b"", timeout_s: float = DEFAULT_TIMEOUT_S
    ) -> CommandResult:
        """`do` for text that changes the deployment: only while the host is ours. A run that slept
        through its deadman must not change what that put back.

        Raises:
            HostError: as `do`, or because the host is no longer under this experiment.
        """
        guard = (
            f'[ "$(cat "$S/lock/run" 2>/dev/null)" = {shlex.quote(self.holder)} ] && '
            '[ ! -d "$S/restoring" ] || '
            '{ echo "the host is no longer under this experiment" >&2; exit 75; }\n'
        )
        return self.do(guard + text, what, stdin=stdin, timeout_s=timeout_s)

    def put(self, files: Mapping[str, str]) -> None:
        """Write files, each whole or not at all, readable by this user alone.

        Raises:
            HostError: if one cannot be written (a full disk, say).
        """
        lines, start = ['cat >"$TMPDIR/all" || exit 1'], 1
        for path, content in files.items():
            size, quoted = len(content.encode()), shlex.quote(path)
            lines.append(
                f'mkdir -p -- "$(dirname -- {quoted})" && '
                f'tail -c +{start} "$TMPDIR/all" | head -c {size} >{quoted}.new && '
                f'[ "$(wc -c <{quoted}.new)" -eq {size} ] && '
                f"mv -- {quoted}.new {quoted} || exit 1"
            )
            start += size
        sent = "".join(files.values()).encode()
        self.do("\n".join(lines), f"writing {', '.join(files)}", stdin=sent)

    def _send(self, script: str, stdin: bytes, timeout_s: float) -> CommandResult:
        command = Command(script=script, stdin=stdin, timeout_s=timeout_s)
        try:
            return self._open().run(command)
        except (HostUnreachable, AnswerCut):
            self.close()
            return self._open().run(command)

    def _open(self) -> Transport:
        with self._lock:
            if self._transport is None:
                self._transport = self._connect(self.entry)
            return self._transport

    def close(self) -> None:
        with self._lock:
            if self._transport is not None:
                self._transport.close()
                self._transport = None


def _last_words(done: CommandResult) -> str:
    said = done.stderr.decode("utf-8", "replace").strip() or done.text.strip()
    lines = [line for line in said.splitlines() if line.strip()]
    return (lines[-1] if lines else f"exit status {done.exit_code}")[-_LAST_WORDS:]
