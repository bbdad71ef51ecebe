"""The command that settles what a client cannot see: at the server, or at a lab like that one."""

from __future__ import annotations

import shlex

from dsv4doctor.differential.causes import Cause
from dsv4doctor.flows.diagnose_plan import DiagnosePlan
from dsv4doctor.flows.lab import default_index_k
from dsv4doctor.flows.live_target import LabOptions


def next_command(cause: Cause, plan: DiagnosePlan) -> str:
    """A command line that works when the diagnosis has ended."""
    if plan.endpoint is not None:
        return cause.next_step.replace("{base_url}", shlex.quote(plan.endpoint.base_url))
    return cause.lab_step.replace("{lab}", shlex.join(_lab_words(plan)))


def _lab_words(plan: DiagnosePlan) -> list[str]:
    """The flags that start the lab which was diagnosed; what is their default is left out."""
    lab = plan.lab or LabOptions()
    words = []
    for fault in lab.faults:
        words += ["--lab-fault", fault]
    for fix in lab.fixes:
        words += ["--lab-fix", fix]
    if lab.index_k != default_index_k(lab.faults):
        words += ["--lab-index-k", lab.index_k]
    if not lab.hicache:
        words += ["--lab-hicache", "off"]
    for name, value in lab.switches:
        words += ["--lab-option", f"{name}={value}"]
    return [*words, "--seed", str(plan.seed)]
