"""A deployment that is relaunched for every block, and put back whatever happens."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

from dsv4doctor.artifacts.diskfull import told_plainly
from dsv4doctor.artifacts.store import RunDirectory
from dsv4doctor.client.sglang import list_models
from dsv4doctor.codec import to_builtins
from dsv4doctor.deploy.counters import Counters, read_counters
from dsv4doctor.deploy.document import Role, RoleKind
from dsv4doctor.deploy.heart import Heart
from dsv4doctor.deploy.readiness import generate_once, server_args
from dsv4doctor.deploy.site import Released, Site
from dsv4doctor.errors import DoctorError
from dsv4doctor.experiment.arms import Arm
from dsv4doctor.experiment.factors import Setting
from dsv4doctor.experiment.verification import ServerState
from dsv4doctor.flows.ab_changes import changed, settings_of
from dsv4doctor.flows.ab_deployment import BASELINE_FILE, DEPLOYMENT_FILE, baseline_record
from dsv4doctor.flows.ab_patience import patient
from dsv4doctor.flows.ab_setup import AbPlan
from dsv4doctor.progress import Progress
from dsv4doctor.redact import redact_text, redact_value
from dsv4doctor.sglang_log.boot import read_boot
from dsv4doctor.target import Endpoint, parse_endpoint

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

    def _args(self, role: Role, *, patience_s: float = 0.0) -> dict[str, Any]:
        endpoint = parse_endpoint(role.url, api_key=self.plan.api_key)
        return server_args(endpoint, patience_s=patience_s)

    def put_back(self) -> None:
        """Restore, read back, and say what was read; never raises for what a host does."""
        self.progress.note("putting the deployment back to its baseline")
        outcome = self.site.restore()
        self.evidence += outcome.evidence
        self.restored = outcome.done
        if outcome.done:
            self.restored = self._is_as_before()
        if not self.restored:
            for line in self.evidence:
                self.progress.note(line)

    def _is_as_before(self) -> bool:
        """Whether the hosts and the servers themselves show what was recorded."""
        try:
            self.site.wait_for_baseline()
        except DoctorError as error:
            self.evidence.append(str(error))
            return False
        read = self.site.read_back()
        same, said = self._servers_agree()
        self.evidence += [*read.evidence, *said]
        return read.done and same

    def _servers_agree(self) -> tuple[bool, list[str]]:
        """Every argument that an arm moved is again what the server said before."""
        same, said = True, []
        for role in self.site.deployment.roles:
            before = self.baseline_args.get(role.name)
            if not before:
                continue
            now = self._args(role, patience_s=role.ready.timeout_s)
            if not now:
                same = False
                said.append(f"{role.name}: {role.url} no longer answers /server_info")
                continue
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
                with patient(progress):
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
        with patient(target.progress):
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


def _values(arguments: dict[str, Any], names: list[str]) -> str:
    shown = [
        f"{name} = {arguments.get(name)}"
        for name in names
        if isinstance(arguments.get(name), bool | str) and len(str(arguments.get(name))) <= 60
    ]
    return ", ".join(shown) or f"what it said ({', '.join(names)})"
