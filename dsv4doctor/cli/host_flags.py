"""Flags that name SSH hosts and how their Python is reached -> where a job runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dsv4doctor.cli import options

if TYPE_CHECKING:
    from dsv4doctor.flows.checksum import Targets


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFlags:
    """Where something runs: on this machine where no host is named."""

    ssh_host: Annotated[
        list[str] | None,
        typer.Option(
            "--ssh-host",
            help="Run there instead of here: [USER@]HOST[:PORT] or a name of ~/.ssh/config; "
            "repeatable.",
        ),
    ] = None
    ssh_hosts: Annotated[
        list[Path] | None, typer.Option("--ssh-hosts", help="File of hosts, one a line.")
    ] = None
    ssh_config: options.SshConfig = None
    remote_python: Annotated[
        str | None,
        typer.Option(
            "--remote-python",
            help="Interpreter there; default: that of the running SGLang, else python3.",
        ),
    ] = None
    remote_prefix: Annotated[
        str | None,
        typer.Option(
            "--remote-prefix",
            metavar="CMD",
            help="Enters a container first, e.g. 'docker exec -i NAME' or 'kubectl exec -i POD "
            "--'.",
        ),
    ] = None

    @property
    def names_hosts(self) -> bool:
        """False where the work is this machine's."""
        return bool(self.ssh_host or self.ssh_hosts)

    def targets(self) -> Targets:
        """The hosts.

        Raises:
            UsageError: if hosts were asked for and none is named.
        """
        from dsv4doctor.flows.checksum import Targets, refuse_no_host

        targets = Targets(
            ssh_hosts=tuple(self.ssh_host or ()),
            ssh_host_files=tuple(self.ssh_hosts or ()),
            ssh_config=self.ssh_config,
            python=self.remote_python,
            prefix=self.remote_prefix or "",
        )
        if self.names_hosts:
            refuse_no_host(targets)
        return targets
