"""The entry point of the group `sglang.srt.plugins`: puts the hooks of `hooks.py` in.

Each target is looked up first; where a release has none of that name, the hops that need it are
"not observable on this version". SGLang's own registry puts the hooks in (0.5.11 to 0.5.23).
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import pkgutil
import sys
from importlib import import_module
from typing import Any

from dsv4doctor import probe_protocol as protocol
from dsv4doctor.probe.hooks import SCHEDULER_MODULE, bound_hooks
from dsv4doctor.probe.observer import Observer
from dsv4doctor.probe.rank import RankProbe

logger = logging.getLogger("dsv4doctor.probe")

# Set where schedulers are no processes of their own (Ray actors, tests).
HERE_VARIABLE = "DSV4DOCTOR_PROBE_HERE"


def missing(target: str) -> str | None:
    """Why `target` is not there; None if it is."""
    owner, _, name = target.rpartition(".")
    try:
        found = pkgutil.resolve_name(owner)
    except Exception as error:  # an import of SGLang's may fail with anything
        return f"{type(error).__name__}: {error}"
    if not hasattr(found, name):
        return f"{owner.rpartition('.')[2]} has no {name}"
    return None


def install(probe: RankProbe, registry: Any, kinds: Any) -> None:
    """Register every hook whose target is there, and say what is not observable."""
    for hook, call in bound_hooks(probe):
        why = missing(hook.target)
        if why is None:
            registry.register(hook.target, call, getattr(kinds, hook.kind.upper()))
        elif hook.hops:
            probe.observer.give_up(hook.hops, f"{protocol.NOT_OBSERVABLE}: {why}")
        else:
            logger.debug("dsv4doctor: %s is not there: %s", hook.target, why)


def runs_here() -> bool:
    """Whether this process is a scheduler's: the launcher loads plugins too, before SGLang's
    modules may be imported, and so do processes that have no cache."""
    if os.environ.get(HERE_VARIABLE):
        return True
    return SCHEDULER_MODULE in sys.modules and multiprocessing.parent_process() is not None


PROBE: RankProbe | None = None


def register() -> None:
    """What SGLang calls. Raises nothing that matters: SGLang logs it and goes on."""
    global PROBE  # noqa: PLW0603 - one process, one probe
    if PROBE is not None or not runs_here():
        return
    hook_registry = import_module("sglang.srt.plugins.hook_registry")
    PROBE = RankProbe(Observer())
    install(PROBE, hook_registry.HookRegistry, hook_registry.HookType)
    logger.info("dsv4doctor's probe is in place, and off")
