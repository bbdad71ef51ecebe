"""A deployment that is relaunched for every block, and put back whatever happens."""

from __future__ import annotations

import json
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from dsv4doctor.artifacts.diskfull import told_plainly
from dsv4doctor.artifacts.store import RunDirectory
from dsv4doctor.client.sglang import inspect_server, list_models
from dsv4doctor.codec import to_builtins
from dsv4doctor.deploy.counters import Counters, read_counters
from dsv4doctor.deploy.decode import read_deployment
from dsv4doctor.deploy.document import Deployment, HostEntry, Role, RoleKind
from dsv4doctor.deploy.heart import Heart
from dsv4doctor.deploy.lab import LabBaseline, free_port, lab_deployment
from dsv4doctor.deploy.launch import Launch
from dsv4doctor.deploy.readiness import generate_once
from dsv4doctor.deploy.site import Released, Site
from dsv4doctor.errors import DoctorError
from dsv4doctor.experiment.arms import Arm
from dsv4doctor.experiment.factors import Setting, Side
from dsv4doctor.experiment.launch import (
    INDEX_K_CHANGES,
    LaunchChange,
    apply_to_argv,
    apply_to_environment,
    launch_change,
)
from dsv4doctor.experiment.verification import ServerState
from dsv4doctor.flows.ab_setup import AbPlan
from dsv4doctor.hosts.local import LocalTransport
from dsv4doctor.hosts.transport import Transport
from dsv4doctor.progress import Progress
from dsv4doctor.redact import redact_argv, redact_text, redact_value
from dsv4doctor.sglang_log.boot import read_boot
from dsv4doctor.target import Endpoint, parse_endpoint

DEPLOYMENT_FILE = "deployment.json"
BASELINE_FILE = "baseline.json"
HOST_FOLDER = "host"
LOGS = "logs"
_INDEXER_POOL = "deepseek_v4_c4_indexer"
_CUDA_GRAPH = "cuda graph: True"
# Kinds of /server_info values that a launch decides; numbers are often profiled anew.
_DECIDED = (bool, str, dict, type(None))


@dataclass(slots=True)
class Relaunched:
    """The deployment under experiment; `restored` and `evidence` are known when it is over."""

    site: Site
    plan: AbPlan
    run: RunDirectory
    progress: Progress
    heart: Heart | None = None
    model: str | None = None
    baseline_args: dict[str, dict[str, Any]] = field(default_factory=dict)
    moved: set[tuple[str, str]] = field(default_factory=set)
    restored: bool | None = None
    evidence: list[str] = field(default_factory=list)

    @property
    def endpoint(self) -> Endpoint:
        return parse_endpoint(self.site.deployment.base_url, api_key=self.plan.api_key)

    def prepare(self, arm: Arm, number: int) -> Endpoint:
        """Launch the arm and wait until it is ready.

        Raises:
            DoctorError: if it does not come up, or a host is no longer ours.
        """
        if self.heart is not None and isinstance(self.heart.problem, Released):
            raise self.heart.problem
        launches = {
            role.name: changed(self.site.baselines[role.name].launch, arm, role, self.site)
            for role in self.site.deployment.roles
        }
        try:
            self.site.apply(launches)
            self.model = self.plan.model or list_models(self.endpoint)[0]
            timeout_s = max(role.ready.timeout_s for role in self.site.deployment.roles)
            generate_once(self.endpoint, self.model, deadline_s=timeout_s)
        except DoctorError:
            self.keep_logs(arm, number)
            raise
        return self.endpoint

    def states(self, arm: Arm) -> dict[str, tuple[tuple[Setting, ...], ServerState]]:
        """By role: the settings that it takes, and what it says of itself."""
        return {
            role.name: (settings_of(arm, role), self._state(role))
            for role in self.site.deployment.roles
            if role.kind is not RoleKind.ROUTER
        }

    def counters(self) -> Counters:
        """The counters of all servers together."""
        return read_counters(
            [
                parse_endpoint(role.url, api_key=self.plan.api_key)
                for role in self.site.deployment.roles
                if role.kind is not RoleKind.ROUTER
            ]
        )

    def keep_logs(self, arm: Arm, number: int) -> tuple[tuple[str, ...], bool | None]:
        """Fetch each role's log of this launch; their names, and whether a CUDA graph was seen."""
        names, seen = [], None
        for role in self.site.deployment.roles:
            try:
                log = self.site.log(role)
            except DoctorError as error:
                self.progress.note(f"the log of {role.name} could not be fetched: {error}")
                continue
            name = f"{LOGS}/b{number:03d}-{arm.name}-{role.name}.log"
            text = log.decode("utf-8", "replace")
            path = self.run.path / name
            with told_plainly(path):
                path.parent.mkdir(exist_ok=True)
                path.write_text(redact_text(text), encoding="utf-8")
            names.append(name)
            if "cuda graph: " in text:
                seen = bool(seen) or _CUDA_GRAPH in text
        return tuple(names), seen

    def record_baseline_args(self) -> None:
        """Remember what every server says of itself before anything is changed."""
        for role in self.site.deployment.roles:
            if role.kind is not RoleKind.ROUTER:
                self.baseline_args[role.name] = self._args(role)

    def _state(self, role: Role) -> ServerState:
        arguments = self._args(role)
        before = self.baseline_args.get(role.name, {})
        for name in arguments.keys() | before.keys():
            if arguments.get(name) != before.get(name):
                self.moved.add((role.name, name))
        launch = self.site.read_launch(role)
        shown = arguments.get("env_vars")
        pools = read_boot(self.site.log(role).decode("utf-8", "replace").splitlines()).host_pools
        return ServerState(
            server_args=arguments,
            # What the process was given, and over it what the server says is in force.
            environment={
                **(launch.environment if launch else {}),
                **(shown if isinstance(shown, dict) else {}),
            }
            if launch or shown
            else None,
            index_k_page_bytes=next(
                (pool.item_bytes for pool in pools if pool.name == _INDEXER_POOL), None
            ),
        )

    def _args(self, role: Role) -> dict[str, Any]:
        info = inspect_server(parse_endpoint(role.url, api_key=self.plan.api_key))
        return dict(info.server_args)

    def put_back(self) -> None:
        """Restore, read back, and say what was read; never raises for what a host does."""
        self.progress.note("putting the deployment back to its baseline")
        outcome = self.site.restore()
        self.evidence += outcome.evidence
        self.restored = outcome.done
        if outcome.done:
            read = self.site.read_back()
            self.evidence += read.evidence
            same, said = self._servers_agree()
            self.evidence += said
            self.restored = read.done and same
        if not self.restored:
            for line in self.evidence:
                self.progress.note(line)

    def _servers_agree(self) -> tuple[bool, list[str]]:
        """Every argument that an arm moved is again what the server said before."""
        same, said = True, []
        for role in self.site.deployment.roles:
            before = self.baseline_args.get(role.name)
            if before is None:
                continue
            now = self._args(role)
            names = sorted(
                name
                for role_name, name in self.moved
                if role_name == role.name and isinstance(before.get(name), _DECIDED)
            )
            differing = [name for name in names if now.get(name) != before.get(name)]
            same = same and not differing
            if differing:
                said.append(f"{role.name}: /server_info differs in {', '.join(differing)}")
            elif names:
                said.append(f"{role.name}: /server_info again says {_values(before, names)}")
        return same, said


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
    if plan.deployment is not None:
        return read_deployment(plan.deployment)
    lab = plan.lab
    words = ["--enable-hierarchical-cache"] if lab.hicache else []
    for name, values in (("--fault", lab.faults), ("--fix", lab.fixes)):
        words += [word for value in values for word in (name, value)]
    words += [w for name, value in lab.switches for w in (f"--{name}", value) if w]
    return lab_deployment(
        python=sys.executable,
        port=free_port(),
        folder=str((run_dir / HOST_FOLDER).resolve()),
        seed=plan.seed,
        baseline=LabBaseline(argv=tuple(words), index_k=lab.index_k),
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


@contextmanager
def relaunched(
    plan: AbPlan, run: RunDirectory, site: Site, progress: Progress
) -> Iterator[Relaunched]:
    """The site taken, recorded and watched over; at the end it is at its baseline."""
    target = Relaunched(site=site, plan=plan, run=run, progress=progress)
    run.write_text(DEPLOYMENT_FILE, json.dumps(redact_value(to_builtins(site.deployment))))
    try:
        if site.take():
            progress.note("an earlier part of this run left a host changed: restoring it first")
            _restore_left_over(site)
            site.take()
        with ExitStack() as beating:
            _begin(target, beating)
            try:
                yield target
            finally:
                with _patient(progress):
                    target.put_back()
                    if site.deployment.belongs_to_run:
                        site.stop()
                        target.evidence.append("it was started for this run and is stopped again")
    finally:
        site.close()


def _begin(target: Relaunched, beating: ExitStack) -> None:
    """Record the baseline and start deadmen and heart; the hosts are let go where that fails."""
    site, plan = target.site, target.plan
    try:
        if site.deployment.belongs_to_run:
            site.stop()  # what an earlier part of this run left running
            site.keep_stop_scripts()
        site.record()
        target.run.write_text(BASELINE_FILE, json.dumps(baseline_record(site)))
        site.start_deadmen(plan.deadman_s)
        target.heart = beating.enter_context(Heart(site, plan.deadman_s))
        if site.deployment.belongs_to_run:
            target.progress.note("no server given: starting the lab")
            site.apply({})
            site.record()
            target.run.write_text(BASELINE_FILE, json.dumps(baseline_record(site)))
        target.record_baseline_args()
    except BaseException:
        with _patient(target.progress):
            for shell in site.shells.values():
                shell.run('[ ! -e "$S/restore.sh" ] || sh "$S/restore.sh" doctor; rm -rf "$S/lock"')
        raise


def _restore_left_over(site: Site) -> None:
    for shell in site.shells.values():
        shell.do(
            '[ ! -e "$S/restore.sh" ] || sh "$S/restore.sh" resume && rm -rf "$S/lock"',
            "restoring what an earlier part left",
            timeout_s=sum(role.ready.timeout_s for role in site.deployment.roles),
        )


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


def settings_of(arm: Arm, role: Role) -> tuple[Setting, ...]:
    """The arm's server-side settings that change this role."""
    return tuple(s for s in arm.settings if s.side is Side.SERVER and role.takes(s.factor))


def changed(baseline: Launch, arm: Arm, role: Role, site: Site) -> Launch:
    """The baseline with the arm's settings in it."""
    meanings = {**INDEX_K_CHANGES, **index_k_changes(site.deployment)}
    change = launch_change(settings_of(arm, role), meanings)
    return Launch(
        argv=tuple(apply_to_argv(baseline.argv, change)),
        environment=apply_to_environment(baseline.environment, change),
        workdir=baseline.workdir,
        is_whole=baseline.is_whole,
    )


def index_k_changes(deployment: Deployment) -> dict[str, LaunchChange]:
    """What fp8, bf16 and fp4 mean on this build, as the file says."""
    flag = {"on": "", "off": None, "unset": None}
    return {
        value: LaunchChange(
            flags=tuple((name, flag.get(v, v)) for name, v in meaning.flags.items()),
            variables=tuple(
                (name, None if v == "unset" else v) for name, v in meaning.variables.items()
            ),
        )
        for value, meaning in deployment.index_k.items()
    }


@contextmanager
def _patient(progress: Progress) -> Iterator[None]:
    """The first Ctrl-C inside is told that we are putting back; the second is obeyed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard: list[int] = []

    def on_signal(number: int, _frame: FrameType | None) -> None:
        heard.append(number)
        if len(heard) > 1:
            raise KeyboardInterrupt
        progress.note("putting the deployment back first; interrupt again to leave it as it is")

    before = {
        number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if heard:
        raise KeyboardInterrupt


def _values(arguments: dict[str, Any], names: list[str]) -> str:
    shown = [
        f"{name} = {arguments.get(name)}"
        for name in names
        if isinstance(arguments.get(name), bool | str) and len(str(arguments.get(name))) <= 60
    ]
    return ", ".join(shown) or f"what it said ({', '.join(names)})"
