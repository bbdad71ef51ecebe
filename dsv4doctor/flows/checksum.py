"""`checksum` on hosts: one job, this machine or many, and their answers side by side."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dsv4doctor.errors import (
    COULD_NOT_RUN,
    EXIT_COULD_NOT,
    EXIT_DONE,
    EXIT_FINDINGS,
    EXIT_INTERRUPTED,
    UsageError,
)
from dsv4doctor.finding import Finding, Severity
from dsv4doctor.flows.checksum_findings import all_checks, judge
from dsv4doctor.hosts.fanout import FanOutInterrupted, HostResult, fan_out

if TYPE_CHECKING:
    from dsv4doctor.hosts.transport import Transport

LOCAL = "localhost"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What `checksum` prints: `body` is the contract's `checksum` object."""

    verdict: str
    exit_code: int
    findings: tuple[Finding, ...]
    body: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Targets:
    """Where a job runs: SSH hosts (none: here), and how their Python is reached."""

    ssh_hosts: tuple[str, ...] = ()
    ssh_host_files: tuple[Path, ...] = ()
    ssh_config: Path | None = None
    python: str | None = None
    prefix: str = ""


def run_on_hosts(
    job: Mapping[str, Any], targets: Targets, *, fail_on: Severity = Severity.WARNING
) -> Outcome:
    """The outcome of `job` on every target.

    Raises:
        UsageError: if a host, a file of hosts or the prefix cannot be read.
    """
    is_whole = True
    try:
        answers = _answers(job, targets)
    except FanOutInterrupted as stop:
        answers, is_whole = stop.results, False
        if all(result.answer is None for result in answers):
            raise
    rows = [row for result in answers for row in _host_rows(result)]
    body = {"hosts": [_without_details(row) for row in rows], "checks": all_checks(rows)}
    body |= _gathered(rows, str(job["action"]))
    findings = judge(rows)
    worked = any(row["error"] is None for row in rows)
    is_found = any(finding.severity.rank >= fail_on.rank for finding in findings)
    exit_code = EXIT_FINDINGS if is_found else EXIT_DONE if worked else EXIT_COULD_NOT
    verdict = {EXIT_FINDINGS: "failed", EXIT_DONE: "passed"}.get(exit_code, COULD_NOT_RUN)
    if not is_whole and verdict == "passed":
        verdict = "undecided"
    return Outcome(
        verdict=verdict,
        exit_code=exit_code if is_whole else EXIT_INTERRUPTED,
        findings=findings,
        body=body,
    )


def refuse_no_host(targets: Targets) -> None:
    """Hosts were asked for: that none is named must not turn into a test of this machine.

    Raises:
        UsageError: if the files name no host.
    """
    from dsv4doctor.hosts.inventory import read_inventory

    if not read_inventory(targets.ssh_hosts, targets.ssh_host_files):
        files = ", ".join(str(path) for path in targets.ssh_host_files)
        raise UsageError(f"--ssh-hosts {files} names no host", "write one host a line")


def _answers(job: Mapping[str, Any], targets: Targets) -> tuple[HostResult[dict[str, Any]], ...]:
    from dsv4doctor.checksum.remote import Where, here, run_job
    from dsv4doctor.hosts.inventory import read_inventory
    from dsv4doctor.hosts.local import LocalTransport

    where = Where(python=targets.python, prefix=split_prefix(targets.prefix))
    by_name = {
        str(host): host for host in read_inventory(targets.ssh_hosts, targets.ssh_host_files)
    }
    if not by_name:
        local = here() if where == Where() else where
        return fan_out([LOCAL], lambda _: LocalTransport(), lambda t: run_job(t, job, local))

    def connect(name: str) -> Transport:
        from dsv4doctor.hosts.ssh import SshTransport

        return SshTransport(by_name[name], config_file=targets.ssh_config)

    return fan_out(list(by_name), connect, lambda t: run_job(t, job, where))


def split_prefix(text: str) -> tuple[str, ...]:
    """The words of `--remote-prefix`.

    Raises:
        UsageError: if its quotes do not match.
    """
    try:
        return tuple(shlex.split(text))
    except ValueError as error:
        raise UsageError(
            f"--remote-prefix {text!r}: {error}", "for example 'docker exec -i NAME'"
        ) from error


# A row of `checksum.hosts` of which nothing is known yet.
HOST_ROW: dict[str, Any] = {
    "host": "", "device": None, "backend": None, "pages": None, "bytes": None, "seconds": None,
    "gb_per_s": None, "digest": None, "mismatches": [], "error": None,
}  # fmt: skip


def _host_rows(result: HostResult[dict[str, Any]]) -> list[dict[str, Any]]:
    """One row a device of one host; one with its error where the host gave none."""
    answer = result.answer
    if answer is None:
        return [HOST_ROW | {"host": result.host, "error": result.problem, "hint": result.hint}]
    if answer.get("error"):
        return [HOST_ROW | {"host": result.host, "error": f"{result.host}: {answer['error']}"}]
    shared = {"environment": answer.get("environment"), "xid_events": answer.get("xid_events")}
    return [HOST_ROW | shared | device | {"host": result.host} for device in answer["devices"]]


def _without_details(row: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key not in ("checks", "race", "bench")}


def _gathered(rows: Sequence[dict[str, Any]], action: str) -> dict[str, Any]:
    """`race` or `bench`: all hosts' rows in one list, each with its host."""
    if action == "selftest":
        return {}
    return {
        action: [
            {"host": row["host"], "device": row["device"]} | entry
            for row in rows
            for entry in row.get(action, ())
        ]
    }
