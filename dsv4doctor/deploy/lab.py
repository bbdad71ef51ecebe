"""The lab as a deployment: the shipped file, filled in."""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import resources
from string import Template

from dsv4doctor.deploy.decode import decode_deployment
from dsv4doctor.deploy.document import Deployment

FILE = "lab.toml"


@dataclass(frozen=True, slots=True, kw_only=True)
class LabBaseline:
    """What the lab is launched as before anything is changed: further words and variables."""

    argv: tuple[str, ...] = ()
    index_k: str = "bf16"


def lab_deployment(
    *, python: str, port: int, folder: str, seed: int, baseline: LabBaseline
) -> Deployment:
    """The shipped deployment with its names filled in and its role made the baseline."""
    values = {"python": python, "port": str(port), "folder": folder, "seed": str(seed)}
    # A TOML basic string escapes as JSON does.
    escaped = {name: json.dumps(value)[1:-1] for name, value in values.items()}
    text = Template(shipped_file()).substitute(escaped)
    deployment = decode_deployment(text, f"the shipped {FILE}")
    meaning = deployment.index_k[baseline.index_k]
    role = deployment.roles[0]
    environment = {name: v for name, v in meaning.variables.items() if v != "unset"}
    role = replace(
        role,
        argv=(*role.argv, *baseline.argv, *_flags(meaning.flags)),
        environment={**role.environment, **environment},
    )
    return replace(deployment, roles=(role, *deployment.roles[1:]))


def shipped_file() -> str:
    """The text of the deployment file that comes with the package."""
    return (resources.files(__package__) / "data" / FILE).read_text(encoding="utf-8")


def free_port() -> int:
    """A port of this machine that nothing listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _flags(flags: Mapping[str, str]) -> list[str]:
    words: list[str] = []
    for flag, value in flags.items():
        if value == "on":
            words.append(flag)
        elif value not in {"off", "unset"}:
            words += [flag, value]
    return words
