"""A deployment under experiment: taken, recorded, changed, put back, let go.

The order keeps the promise: mark the hosts, record the baseline on host and here, start the
deadmen, and only then change anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from dsv4doctor.deploy.document import Deployment, HostEntry, Role
from dsv4doctor.deploy.keeper import Keeper, RoleKept, restore_script
from dsv4doctor.deploy.launch import Launch
from dsv4doctor.deploy.launchers import LAUNCHERS
from dsv4doctor.deploy.launchers.launcher import RoleBaseline, Snippets, role_folder
from dsv4doctor.deploy.readiness import Watched, wait_until_ready
from dsv4doctor.deploy.shell import HostShell
from dsv4doctor.errors import DoctorError
from dsv4doctor.hosts.transport import Transport

LOG_TIMEOUT_S = 120.0
STOP_MARGIN_S = 60.0
# A long block's log can be large; the end of it holds what went wrong.
MOST_LOG_BYTES = 32 * 2**20


class Released(DoctorError):
    """A host is no longer under our experiment: its deadman restored it, or someone did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """What putting back ended in: `done` only when every host said so; `evidence` in words, with
    the exact commands where it was impossible."""

    done: bool
    evidence: tuple[str, ...]


@dataclass(slots=True)
class Site:
    """One deployment. `connect` opens hosts, `run` names the experiment."""

    deployment: Deployment
    run: str
    owner: str
    connect: Callable[[HostEntry], Transport]
    baselines: dict[str, RoleBaseline] = field(default_factory=dict)
    shells: dict[str, HostShell] = field(default_factory=dict)
    keepers: dict[str, Keeper] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for host in self.deployment.hosts:
            shell = HostShell(host, self.connect)
            self.shells[host.name] = shell
            self.keepers[host.name] = Keeper(shell, self.run, self.owner)

    def take(self) -> bool:
        """Mark every host as under experiment; True where this run held one already.

        Raises:
            HostHeld: if another run holds one; those already marked are let go.
            HostError: if a host cannot be reached or written to.
        """
        marked, held = [], False
        try:
            for name, keeper in self.keepers.items():
                was_ours = keeper.take()
                held = held or was_ours
                if not was_ours:
                    marked.append(name)
        except DoctorError:
            for name in marked:
                self.shells[name].run('rm -rf "$S/lock"')
            raise
        return held

    def record(self) -> None:
        """Read what runs, and leave on each host what brings it back.

        Raises:
            DoctorError: if a role is not what the file says, or a host cannot be written to.
        """
        for role in self.deployment.roles:
            found = LAUNCHERS[role.launcher].read(role, self.shells[role.host])
            baseline = RoleBaseline(
                role=role.name,
                launch=found or from_file(role),
                was_running=found is not None,
            )
            self.baselines[role.name] = baseline
            LAUNCHERS[role.launcher].record(role, self.shells[role.host], baseline)
        for name, keeper in self.keepers.items():
            folder = self.shells[name].folder
            keeper.install(restore_script(self.deployment.name, folder, self._kept(name)))

    def start_deadmen(self, limit_s: int) -> None:
        for keeper in self.keepers.values():
            keeper.start_deadman(limit_s)

    def beat(self) -> None:
        """Tell every host that we live.

        Raises:
            Released: if a host is no longer ours.
            HostError: if one cannot be reached.
        """
        for name, keeper in self.keepers.items():
            status = keeper.beat()
            if not status.is_held:
                said = status.restored or "its lock is gone"
                raise Released(f"{name} is no longer under this experiment: {said}", _RESUME)
            if not status.has_deadman:
                raise Released(f"{name}: the deadman is gone", _RESUME)

    def apply(self, launches: Mapping[str, Launch]) -> None:
        """Stop every role, then start each with its launch, in order, waited for until ready.

        Raises:
            NotReady, HostError: where one does not come up.
        """
        for role in reversed(self.deployment.roles):
            # From here on the log of the role is one that we know of.
            self.shells[role.host].change(
                f"mkdir -p {role_folder(role)} && : >{role_folder(role)}/touched && "
                f"{self._snippets(role).halt}",
                f"stopping {role.name}",
                timeout_s=role.stop_timeout_s + STOP_MARGIN_S,
            )
        for role in self.deployment.roles:
            shell, baseline = self.shells[role.host], self.baselines[role.name]
            launcher = LAUNCHERS[role.launcher]
            launcher.start(role, shell, baseline, launches.get(role.name, baseline.launch))
            wait_until_ready(self._watched(role))

    def wait_for_baseline(self) -> None:
        """Returns when every role that ran before answers again. Log lines are the restore
        script's to wait for: a role that was left alone has no log that we know of.

        Raises:
            NotReady: where one does not answer.
        """
        for role in self.deployment.roles:
            if self.baselines[role.name].was_running:
                asked = replace(role, ready=replace(role.ready, log_line=""))
                wait_until_ready(replace(self._watched(role), role=asked))

    def read_launch(self, role: Role) -> Launch | None:
        """The launch that runs now, as the host shows it."""
        return LAUNCHERS[role.launcher].read(role, self.shells[role.host])

    def log(self, role: Role) -> bytes:
        """The log of the role's present launch, at most its last `MOST_LOG_BYTES`."""
        text = f"{{ {self._snippets(role).log}; }} 2>&1 | tail -c {MOST_LOG_BYTES}"
        return self.shells[role.host].run(text, timeout_s=LOG_TIMEOUT_S).stdout

    def restore(self) -> Restored:
        """Put every host back. Never raises for a host: what failed is told with its remedy."""
        done, evidence = True, []
        for name, keeper in self.keepers.items():
            try:
                evidence.append(f"{name}: {keeper.restore(self._kept(name))}")
            except DoctorError as error:
                done = False
                evidence.append(
                    f"{error}; to put it back by hand: {keeper.by_hand()}; else its deadman tries"
                )
        return Restored(done=done, evidence=tuple(evidence))

    def read_back(self, shown: Callable[[Launch], Launch] = lambda launch: launch) -> Restored:
        """Whether what runs now is what was recorded, read off the hosts. `shown` is what a record
        on disk leaves of a launch (no secrets), where the baseline came from there."""
        done, evidence = True, []
        for role in self.deployment.roles:
            baseline = self.baselines[role.name]
            try:
                found = self.read_launch(role)
            except DoctorError as error:
                done = False
                evidence.append(f"{role.name}: {error}")
                continue
            same, said = _compare(baseline, found and shown(found))
            done = done and same
            evidence.append(f"{role.name} on {role.host}: {said}")
        return Restored(done=done, evidence=tuple(evidence))

    def stop(self) -> None:
        """Stop every role: for a deployment that was started for the experiment."""
        for role in reversed(self.deployment.roles):
            self.shells[role.host].do(
                stop_text(role),
                f"stopping {role.name}",
                timeout_s=role.stop_timeout_s + STOP_MARGIN_S,
            )

    def keep_stop_scripts(self) -> None:
        """Leave on each host what stops a deployment that nobody comes back to."""
        for name, shell in self.shells.items():
            stops = "\n".join(map(stop_text, reversed(self.deployment.roles_on(name))))
            text = f'umask 077\nS="$(dirname "$0")"\n. "$S/host.sh"\n{stops}\nrm -f "$0"\n'
            shell.put({f"{shell.folder}/stop.sh": text})

    def close(self) -> None:
        for shell in self.shells.values():
            shell.close()

    def _kept(self, host: str) -> list[RoleKept]:
        return [
            RoleKept(
                role=role,
                snippets=self._snippets(role),
                was_running=self.baselines[role.name].was_running,
            )
            for role in self.deployment.roles_on(host)
        ]

    def _snippets(self, role: Role) -> Snippets:
        return LAUNCHERS[role.launcher].snippets(role, self.baselines[role.name])

    def _watched(self, role: Role) -> Watched:
        return Watched(role=role, shell=self.shells[role.host], snippets=self._snippets(role))


_RESUME = "the run directory holds all finished blocks; go on with --resume"


def from_file(role: Role) -> Launch:
    """The launch that the file gives, added to the login's environment."""
    return Launch(
        argv=role.argv, environment=role.environment, workdir=role.workdir, is_whole=False
    )


def stop_text(role: Role) -> str:
    """Stops what the `command` launcher started for this role."""
    return f"stop_process {role_folder(role)}/pid {role.stop_timeout_s:.0f}"


def _compare(baseline: RoleBaseline, found: Launch | None) -> tuple[bool, str]:
    if not baseline.was_running:
        return found is None, "not running, as before" if found is None else "runs, unlike before"
    if found is None:
        return False, "does not run"
    if found.argv != baseline.launch.argv:
        return False, "runs with another command line than before"
    before, now = baseline.launch.significant, found.significant
    differing = sorted(
        name for name in before.keys() | now.keys() if before.get(name) != now.get(name)
    )
    if differing:
        return False, f"runs with other values of {', '.join(differing)}"
    return True, f"command line ({len(found.argv)} words) and environment as recorded"
