"""`ab restore RUN_DIR`: put a deployment back by hand, from what its run directory recorded."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dsv4doctor.artifacts.store import RunDirectory
from dsv4doctor.codec import ShapeError, from_builtins
from dsv4doctor.deploy.document import Deployment
from dsv4doctor.deploy.launch import Launch
from dsv4doctor.deploy.launchers.launcher import RoleBaseline
from dsv4doctor.deploy.site import Site
from dsv4doctor.errors import EXIT_COULD_NOT, EXIT_DONE, UsageError
from dsv4doctor.finding import Evidence, Finding, Severity
from dsv4doctor.flows.ab_deployment import (
    BASELINE_FILE,
    DEPLOYMENT_FILE,
    connector,
    without_secrets,
)
from dsv4doctor.flows.ab_setup import COMMAND

VERDICT = "restored"
FAILED = "not restored"


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreOutcome:
    """What came of it; `body` holds `restored` and `restored_evidence` as `ab` does."""

    verdict: str
    exit_code: int
    findings: tuple[Finding, ...]
    body: Mapping[str, Any]


def restore_run(
    run_dir: Path, ssh_config: Path | None, tell: Callable[[str], None]
) -> RestoreOutcome:
    """Restore every host of the run's deployment and read it back.

    Raises:
        UsageError: if `run_dir` is no experiment that relaunched anything.
    """
    run = RunDirectory.open(run_dir)
    if run.manifest.get("command") != COMMAND or not (run_dir / BASELINE_FILE).exists():
        raise UsageError(
            f"{run_dir} relaunched nothing", "give a run directory of `ab` with a deployment"
        )
    site = _site(run_dir, ssh_config)
    try:
        tell(f"putting deployment {site.deployment.name} back")
        outcome = site.restore()
        evidence, done = list(outcome.evidence), outcome.done
        if done:
            read = site.read_back(shown=without_secrets)
            evidence += read.evidence
            done = read.done
        if done and site.deployment.belongs_to_run:
            site.stop()
            evidence.append("it was started for the run and is stopped again")
    finally:
        site.close()
    return RestoreOutcome(
        verdict=VERDICT if done else FAILED,
        exit_code=EXIT_DONE if done else EXIT_COULD_NOT,
        findings=() if done else (_finding(evidence),),
        body={"run_dir": str(run_dir), "restored": done, "restored_evidence": evidence},
    )


def _site(run_dir: Path, ssh_config: Path | None) -> Site:
    try:
        deployment = from_builtins(
            Deployment, json.loads((run_dir / DEPLOYMENT_FILE).read_text(encoding="utf-8"))
        )
        records = json.loads((run_dir / BASELINE_FILE).read_text(encoding="utf-8"))
        baselines = {
            record["role"]: RoleBaseline(
                role=record["role"],
                was_running=record["was_running"],
                launch=from_builtins(Launch, record),
            )
            for record in records
        }
    except (OSError, ValueError, KeyError, ShapeError) as error:
        raise UsageError(
            f"{run_dir}: what it recorded is damaged: {error}",
            "run restore.sh on the host by hand",
        ) from error
    return Site(
        deployment=deployment,
        run=run_dir.name,
        owner=str(run_dir.resolve()),
        connect=connector(ssh_config),
        baselines=baselines,
    )


def _finding(evidence: list[str]) -> Finding:
    return Finding(
        rule="NOT_RESTORED",
        severity=Severity.ERROR,
        title="the deployment is not known to be at its baseline",
        evidence=tuple(Evidence(where="restored_evidence", what=line) for line in evidence),
        remedy="run the commands in the evidence on the hosts",
    )
