"""`probe`: put the plugin on hosts, ask it how it stands, take it away without a trace."""

from __future__ import annotations

import inspect
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dsv4doctor import __version__, probe_protocol
from dsv4doctor.errors import COULD_NOT_RUN, EXIT_COULD_NOT, EXIT_DONE
from dsv4doctor.flows.checksum import LOCAL, Targets, split_prefix
from dsv4doctor.hosts.fanout import HostResult, fan_out
from dsv4doctor.probe import installer, package

if TYPE_CHECKING:
    from dsv4doctor.hosts.transport import Transport

TIMEOUT_S = 120.0
# A scheduler comes to a command between two of its steps; one that does not is told as such.
ANSWER_S = 15.0
# Any Python 3 can read this; what it then carries out, only those that the probe runs on.
_HEAD = """\
import sys
if sys.version_info < (3, 10):
    sys.exit("%s is Python %d.%d: the probe needs 3.10 or newer; name the Python that serves with "
             "--remote-python" % ((sys.executable,) + tuple(sys.version_info[:2])))
"""
_ROW: dict[str, Any] = {
    "host": "", "folder": None, "python": None, "sglang": None, "installed": None, "current": None,
    "launch": [], "ranks": [], "error": None, "hint": "",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeOutcome:
    """What `probe` prints: `body` is the contract's `probe` object."""

    verdict: str
    exit_code: int
    body: dict[str, Any] = field(default_factory=dict)


def run_probe(
    action: str, targets: Targets, *, folder: str | None = None, answer_s: float = ANSWER_S
) -> ProbeOutcome:
    """`action` (install, status, remove) on every target; a host's failure is its own `error`.
    `answer_s` is how long a rank may take to answer.

    Raises:
        UsageError: if a host, a file of hosts or the prefix cannot be read.
    """
    text = _program({"action": action, "folder": folder, "answer_s": answer_s})
    hosts = [_host_row(result, action) for result in _answers(targets, text)]
    worked = [row for row in hosts if row["error"] is None]
    return ProbeOutcome(
        verdict=_verdict(action, worked) if worked else COULD_NOT_RUN,
        exit_code=EXIT_DONE if worked else EXIT_COULD_NOT,
        body={"action": action, "hosts": hosts},
    )


def _program(asked: dict[str, Any]) -> bytes:
    """The installer with its job, as one ASCII program for a host's Python."""
    files = package.files(__version__)
    job = asked | {"files": files, "protocol": probe_protocol.PROTOCOL}
    source = f"{inspect.getsource(installer)}\n\nmain({json.dumps(job)!r})\n"
    carried = f"exec(compile({json.dumps(source)}, 'dsv4doctor-probe', 'exec'))\n"
    return f"{_HEAD}{carried}".encode("ascii")


def _answers(targets: Targets, text: bytes) -> tuple[HostResult[dict[str, Any]], ...]:
    from dsv4doctor.checksum.remote import Where, here, run_program
    from dsv4doctor.hosts.inventory import read_inventory
    from dsv4doctor.hosts.local import LocalTransport

    where = Where(python=targets.python, prefix=split_prefix(targets.prefix))
    by_name = {
        str(host): host for host in read_inventory(targets.ssh_hosts, targets.ssh_host_files)
    }
    if not by_name:
        local = here() if where == Where() else where
        return fan_out(
            [LOCAL], lambda _: LocalTransport(), lambda t: run_program(t, text, local, TIMEOUT_S)
        )

    def connect(name: str) -> Transport:
        from dsv4doctor.hosts.ssh import SshTransport

        return SshTransport(by_name[name], config_file=targets.ssh_config)

    return fan_out(list(by_name), connect, lambda t: run_program(t, text, where, TIMEOUT_S))


def _host_row(result: HostResult[dict[str, Any]], action: str) -> dict[str, Any]:
    answer = result.answer
    if answer is None:
        return _ROW | {"host": result.host, "error": result.problem, "hint": result.hint}
    if "error" in answer:
        found = f"{result.host}: {answer['error']}"
        return _ROW | {"host": result.host, "python": answer["python"], "error": found}
    row = _ROW | {key: answer[key] for key in answer if key in _ROW}
    row |= {"host": result.host, "ranks": [_rank(one) for one in answer["ranks"]]}
    if action != "remove" and row["installed"]:
        row["launch"] = launch_lines(row["folder"])
    return row


def launch_lines(folder: str) -> list[str]:
    """The two lines that a launch needs, for a POSIX shell or an environment file."""
    return [
        f"export PYTHONPATH={folder}${{PYTHONPATH:+:$PYTHONPATH}}",
        f"export SGLANG_PLUGINS={package.ENTRY}",
    ]


def _rank(told: dict[str, Any]) -> dict[str, Any]:
    """One rank as far as it answered: its status, or why there is none."""
    row = {"name": told["name"], "status": None, "problem": told.get("gone")}
    if row["problem"] is None:
        try:
            answer = probe_protocol.parse_answer(told["answer"])
            probe_protocol.parse_status(answer["status"])
            row["status"] = answer["status"]
        except (probe_protocol.ProtocolError, KeyError) as error:
            row["problem"] = str(error)
    return row


def _verdict(action: str, rows: list[dict[str, Any]]) -> str:
    if action == "install":
        return "installed"
    if action == "remove":
        return "removed"
    if any(rank["status"] is not None for row in rows for rank in row["ranks"]):
        return "loaded"
    return "installed" if any(row["installed"] for row in rows) else "absent"


def lines_of(outcome: ProbeOutcome) -> list[str]:
    """The outcome for a person, host by host."""
    lines: list[str] = []
    for row in outcome.body["hosts"]:
        if row["error"] is not None:
            lines.append(f"{row['error']}" + (f"\n  try: {row['hint']}" if row["hint"] else ""))
            continue
        lines += _host_lines(outcome.body["action"], row)
    return lines


def _host_lines(action: str, row: dict[str, Any]) -> list[str]:
    host, folder, ranks = row["host"], row["folder"], row["ranks"]
    if action == "remove":
        lines = [f"{host}: {folder} is gone; take the two lines out of the launch as well"]
        lines += [
            f"  {rank['name']}: {rank['problem']}" if rank["problem"] else
            f"  {rank['name']}: retired; its hooks stay, and do nothing, until it is restarted"
            for rank in ranks
        ]  # fmt: skip
        return lines
    if not row["installed"]:
        return [f"{host}: no probe at {folder}"]
    state = "" if row["current"] else ", of another version: install it again"
    lines = [f"{host}: the probe is at {folder}{state}"]
    if action == "install":
        lines += ["  add these two lines to the launch, and restart it:"]
        lines += [f"    {line}" for line in row["launch"]]
        lines += ["  (where SGLANG_PLUGINS is set already, add the name to it, after a comma)"]
    for rank in ranks:
        lines += _rank_lines(rank)
    if not ranks and action == "status":
        lines.append("  no rank has loaded it: is the server started with the two lines?")
    return lines


def _rank_lines(rank: dict[str, Any]) -> list[str]:
    if rank["problem"] is not None:
        return [f"  {rank['name']}: gone ({rank['problem']})"]
    status = rank["status"]
    pools = ", ".join(f"{pool['pool']} {pool['layout']}" for pool in status["pools"]) or "no cache"
    state = "observing" if status["armed"] else "off"
    lines = [f"  {rank['name']}: {state}, SGLang {status['version']}, {pools}"]
    unseen = {hop: said for hop, said in status["observes"].items() if said != probe_protocol.YES}
    lines += [f"    {hop}: {said}" for hop, said in unseen.items()]
    lines += [f"    failed: {said}" for said in status["failures"]]
    return lines
