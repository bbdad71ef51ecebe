"""An arm's settings → the launch of each role that takes them, as this build means them."""

from __future__ import annotations

from dsv4doctor.deploy.document import Deployment, Role
from dsv4doctor.deploy.launch import Launch
from dsv4doctor.deploy.site import Site
from dsv4doctor.experiment.arms import Arm
from dsv4doctor.experiment.factors import Setting, Side
from dsv4doctor.experiment.launch import (
    INDEX_K_CHANGES,
    LaunchChange,
    apply_to_argv,
    apply_to_environment,
    launch_change,
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
