"""A deployment as its file says it: hosts, roles, how each is launched, and when it is ready."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

# Both ends of SGLang's own start-up: the log line in all releases, the route with a generation.
READY_LINE = "The server is fired up and ready to roll!"
HEALTH_ROUTE = "/health_generate"


class RoleKind(StrEnum):
    SERVER = "server"
    PREFILL = "prefill"
    DECODE = "decode"
    ROUTER = "router"


class LauncherKind(StrEnum):
    COMMAND = "command"
    SYSTEMD = "systemd"
    DOCKER = "docker"


@dataclass(frozen=True, slots=True, kw_only=True)
class HostEntry:
    """A machine: `ssh` names it as ssh does, None is this one. `state_dir` is where the baseline,
    the restore script and the deadman lie; None: `/var/tmp/dsv4doctor-UID`, which outlives a
    reboot."""

    name: str
    ssh: str | None = None
    state_dir: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Readiness:
    """When a role is ready: `log_line` in its log ("" asks for none), `health` answers 200 ("" asks
    nothing), and for prefill `bootstrap_url` answers for the whole group. Seconds."""

    log_line: str = READY_LINE
    health: str = HEALTH_ROUTE
    bootstrap_url: str | None = None
    timeout_s: float = 1800.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """One process of the deployment.

    `command`: `argv`, `environment` (added to the login's) and `workdir` start it where nothing
    runs yet; where it runs, what runs is the baseline. `systemd`: `unit`. `docker`: `container`.
    `factors` are the server-side factors that this role takes, None all of them.
    """

    name: str
    kind: RoleKind
    host: str
    launcher: LauncherKind
    url: str
    argv: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    workdir: str | None = None
    unit: str | None = None
    container: str | None = None
    factors: tuple[str, ...] | None = None
    stop_timeout_s: float = 60.0
    ready: Readiness = Readiness()

    def takes(self, factor: str) -> bool:
        """Whether a server-side factor changes this role; a router's launch never changes."""
        if self.kind is RoleKind.ROUTER:
            return False
        return self.factors is None or factor in self.factors


@dataclass(frozen=True, slots=True, kw_only=True)
class Meaning:
    """What a value means on this build: flags and variables to set; `unset` takes one out."""

    flags: Mapping[str, str] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Honours:
    """What the deployment can be made to do: server-side factors by name (None: all), and whether
    it takes any flag or variable."""

    factors: tuple[str, ...] | None = None
    any_flag: bool = True
    any_variable: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """`roles` in the order in which they start. `base_url` takes the requests. `belongs_to_run`:
    the deployment is started for the experiment and stopped after it."""

    name: str
    base_url: str
    hosts: tuple[HostEntry, ...]
    roles: tuple[Role, ...]
    model: str | None = None
    index_k: Mapping[str, Meaning] = field(default_factory=dict)
    honours: Honours = Honours()
    belongs_to_run: bool = False

    def host(self, name: str) -> HostEntry:
        """The host of that name, which decoding made sure of."""
        return next(host for host in self.hosts if host.name == name)

    def roles_on(self, host: str) -> tuple[Role, ...]:
        return tuple(role for role in self.roles if role.host == host)
