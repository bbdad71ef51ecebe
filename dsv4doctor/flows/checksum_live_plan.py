"""What `checksum live` is to do, and the places where ranks can be asked."""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from dsv4doctor.checksum.probe_sites import DEFAULT_FOLDERS, Site
from dsv4doctor.checksum.remote import Where
from dsv4doctor.errors import DoctorError
from dsv4doctor.flows.checksum import Targets, split_prefix
from dsv4doctor.flows.live_target import LabOptions
from dsv4doctor.flows.repro_plan import ReproPlan
from dsv4doctor.hosts.inventory import read_inventory
from dsv4doctor.probe_protocol import DEFAULT_MAX_SHARE
from dsv4doctor.target import Endpoint

# The lab observes where this names a folder for its sockets.
FOLDER_VARIABLE = "DSV4DOCTOR_PROBE_DIR"
DEFAULT_WATCH_S = 60.0
INSTALL_HINT = (
    "put the probe there with `dsv4doctor probe install --ssh-host HOST` and relaunch with the two "
    "lines that it prints"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LivePlan:
    """One observation. `load` says which server and, with `drives`, what is sent meanwhile.

    `perturbs` None: only where every rank is a lab's, since no live byte is touched unasked.
    `hops` limits the self-test; empty: every hop that can be tested. `pools` empty: index-K, and
    between a prefill and a decode side the c4 latents too, which are sent first. `has_server` is
    False where neither a server nor the lab is part of it: the ranks of `targets` are observed as
    they serve.
    """

    load: ReproPlan
    targets: Targets
    has_server: bool = True
    drives: bool = True
    watch_s: float = DEFAULT_WATCH_S
    perturbs: bool | None = None
    hops: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    pools: tuple[str, ...] = ()
    max_bytes_per_step: int | None = None
    max_share: float = DEFAULT_MAX_SHARE

    @property
    def has_hosts(self) -> bool:
        return bool(self.targets.ssh_hosts or self.targets.ssh_host_files)

    @property
    def is_lab(self) -> bool:
        """The lab is started for it."""
        return self.has_server and self.load.endpoint is None


@contextmanager
def with_probes(plan: LivePlan) -> Iterator[LivePlan]:
    """The plan with a folder for the lab's probes, where the lab is started; it is gone after."""
    if not plan.is_lab:
        yield plan
        return
    # Short, since a socket's path may have 107 characters.
    with tempfile.TemporaryDirectory(prefix="dsv4doctor-") as folder:
        lab = plan.load.lab or LabOptions()
        environment = {**lab.environment, FOLDER_VARIABLE: folder}
        load = replace(plan.load, lab=replace(lab, environment=environment))
        yield replace(plan, load=load, folders=(folder,))


@contextmanager
def sites_of(plan: LivePlan, endpoint: Endpoint | None) -> Iterator[list[Site]]:
    """The machines whose probes are asked.

    Raises:
        DoctorError: if the server has no probe, or one that cannot be asked from here.
    """
    with ExitStack() as stack:
        if plan.has_hosts:
            yield [stack.enter_context(_closing(site)) for site in _remote_sites(plan)]
        elif plan.folders:
            yield [Site("localhost", plan.folders)]
        else:
            assert endpoint is not None
            yield [Site("localhost", [_folder_of(endpoint)])]


@contextmanager
def _closing(site: Site) -> Iterator[Site]:
    try:
        yield site
    finally:
        site.close()


def _remote_sites(plan: LivePlan) -> list[Site]:
    from dsv4doctor.hosts.ssh import SshTransport

    targets = plan.targets
    where = Where(python=targets.python, prefix=split_prefix(targets.prefix))
    return [
        Site(
            str(host),
            plan.folders or DEFAULT_FOLDERS,
            connect=partial(SshTransport, host, config_file=targets.ssh_config),
            where=where,
        )
        for host in read_inventory(targets.ssh_hosts, targets.ssh_host_files)
    ]


def _folder_of(endpoint: Endpoint) -> str:
    """The folder of the probe that the server tells of, on this machine."""
    from dsv4doctor.client.probes import probe_states

    states = probe_states(endpoint)
    if states is None:
        raise DoctorError(
            f"{endpoint.base_url} does not say what it is: no /server_info",
            "check --base-url, or name the ranks' hosts with --ssh-host",
        )
    sockets = [str(state["socket"]) for state in states if state.get("socket")]
    if not sockets:
        raise DoctorError(f"{endpoint.base_url} has no probe in it", INSTALL_HINT)
    if not os.path.exists(sockets[0]):
        hosts = {str((state.get("rank") or {}).get("host")) for state in states}
        raise DoctorError(
            f"the probe's socket {sockets[0]} is not on this machine ({socket.gethostname()})",
            f"name the host with --ssh-host (it calls itself {', '.join(sorted(hosts))})",
        )
    return str(Path(sockets[0]).parent)
