"""The deployment of a plan: its file or the lab's, its hosts, and what the run keeps of it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dsv4doctor.artifacts.store import RunDirectory
from dsv4doctor.codec import to_builtins
from dsv4doctor.deploy.decode import read_deployment
from dsv4doctor.deploy.document import Deployment, HostEntry
from dsv4doctor.deploy.lab import LabBaseline, free_port, lab_deployment
from dsv4doctor.deploy.launch import Launch
from dsv4doctor.deploy.site import Site
from dsv4doctor.flows.ab_setup import AbPlan
from dsv4doctor.hosts.local import LocalTransport
from dsv4doctor.hosts.transport import Transport
from dsv4doctor.redact import redact_argv, redact_value

# What of it the run directory keeps, without secrets.
DEPLOYMENT_FILE = "deployment.json"
BASELINE_FILE = "baseline.json"
# The lab's own host is this machine; its state lies in the run.
HOST_FOLDER = "host"


def open_site(plan: AbPlan, run: RunDirectory, connect: Callable[[HostEntry], Transport]) -> Site:
    """The site of the plan's deployment file, or of the lab.

    Raises:
        UsageError: if the file is wrong.
    """
    return Site(
        deployment=deployment_of(plan, run.path),
        run=run.path.name,
        owner=str(run.path.resolve()),
        connect=connect,
    )


def deployment_of(plan: AbPlan, run_dir: Path) -> Deployment:
    """What is relaunched: the file that the plan names, else the lab, kept under `run_dir`.

    Raises:
        UsageError: if the file cannot be used.
    """
    if plan.deployment is not None:
        return read_deployment(plan.deployment)
    lab = plan.lab
    return lab_deployment(
        python=sys.executable,
        port=free_port(),
        folder=str((run_dir / HOST_FOLDER).resolve()),
        seed=plan.seed,
        baseline=LabBaseline(argv=tuple(lab.behaviour()), index_k=lab.index_k),
    )


def connector(ssh_config: Path | None) -> Callable[[HostEntry], Transport]:
    """Opens a deployment's hosts: over SSH, or here."""

    def connect(entry: HostEntry) -> Transport:
        if entry.ssh is None:
            return LocalTransport(entry.name)
        from dsv4doctor.hosts.inventory import parse_host
        from dsv4doctor.hosts.ssh import SshTransport

        return SshTransport(parse_host(entry.ssh), config_file=ssh_config)

    return connect


def baseline_record(site: Site) -> list[dict[str, Any]]:
    """The baseline as it is kept here: secrets stay on the host."""
    return [
        {
            "role": baseline.role,
            "was_running": baseline.was_running,
            **to_builtins(without_secrets(baseline.launch)),
        }
        for baseline in site.baselines.values()
    ]


def without_secrets(launch: Launch) -> Launch:
    """The launch as it may be written down."""
    return Launch(
        argv=redact_argv(launch.argv),
        environment=redact_value(dict(launch.environment)),
        workdir=launch.workdir,
        is_whole=launch.is_whole,
    )
