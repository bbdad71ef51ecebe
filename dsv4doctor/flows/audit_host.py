"""A host's server processes as facts: /proc, packages, driver, kernel, topology. Reads only.

One POSIX script does it. Only variables of the environment that a server or its libraries read by
these names leave the host. What the host does not tell stays unknown, and is named so.
"""

from __future__ import annotations

import base64
import binascii
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dsv4doctor.audit.facts import Fact, Facts
from dsv4doctor.flows.audit_sources import facts_of_launch
from dsv4doctor.sizing.launch import Launch, read_launch

if TYPE_CHECKING:
    from dsv4doctor.hosts.transport import Transport

_SCRIPT = r"""
packages='
from importlib.metadata import distributions
wanted = "sglang vllm vllm-ascend flashinfer-python deep-gemm lmcache nixl torch triton"
wanted = set((wanted + " mooncake-transfer-engine sglang-router sglang-kernel").split())
for found in distributions():
    name = (found.metadata["Name"] or "").lower()
    if name in wanted:
        print("PACKAGE", name, found.version)
'
for p in /proc/[0-9]*; do
  a=$(tr '\0' '\n' < "$p/cmdline" 2>/dev/null) || continue
  case "$a" in
    *sglang.launch_server*|*sglang*serve*|*vllm*serve*|*vllm.entrypoints*) ;;
    *) continue ;;
  esac
  first=$(printf '%s\n' "$a" | head -n 1)
  case "${first##*/}" in
    sh|bash|dash|zsh|sudo|env|timeout|nohup|nice|numactl|docker|podman|ssh|tee|grep) continue ;;
  esac
  printf 'PROCESS %s ' "${p#/proc/}"
  base64 < "$p/cmdline" | tr -d '\n'
  echo
  if [ -r "$p/environ" ] && tr '\0' '\n' < "$p/environ" > "$TMPDIR/environ" 2>/dev/null; then
    echo ENVIRONMENT
    grep -E '^(SGLANG|VLLM|MC|MOONCAKE|NCCL|UCX|NIXL|LMCACHE|CUDA|HIP|ROCR|PYTORCH)_' \
      "$TMPDIR/environ" | sed 's/^/ENV /'
  fi
  case "${first##*/}" in
    python*) (cd "$p/cwd" 2>/dev/null; "$first" -c "$packages" 2>/dev/null) ;;
    *) head -n 1 "$first" 2>/dev/null | sed -n 's/^#! *\([^ ]*python[^ ]*\).*/\1/p' |
         while read -r python; do "$python" -c "$packages" 2>/dev/null; done ;;
  esac
done
echo HOST
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | sed 's/^/GPU /'
nvidia-smi topo -m 2>/dev/null | sed 's/^/TOPOLOGY /'
cat /sys/module/amdgpu/version 2>/dev/null | sed 's/^/AMDGPU /'
uname -r | sed 's/^/KERNEL /'
sed -n 's/^PRETTY_NAME="\{0,1\}\([^"]*\)"\{0,1\}$/SYSTEM \1/p' /etc/os-release 2>/dev/null
true
"""
# What a package's version is called among the facts, where that is not the package's name.
_NAMES = {"flashinfer-python": "flashinfer"}
# What a host is asked for; the rest may be unknown.
_ASKED = ("gpu", "driver", "topology", "kernel")


@dataclass(slots=True, kw_only=True)
class _Process:
    pid: str
    words: list[str]
    env: dict[str, str] = field(default_factory=dict)
    env_known: bool = False
    packages: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFacts:
    """One subject a server process, and what the host did not tell."""

    subjects: tuple[Facts, ...]
    unknown: tuple[str, ...]


def facts_of_host(
    transport: Transport, stated: Mapping[str, Any], has: frozenset[int]
) -> HostFacts:
    """The facts of every server process that runs on the host.

    Raises:
        DoctorError: the host does not answer, or a process's arguments cannot be read.
    """
    from dsv4doctor.hosts.transport import Command

    processes, said = _read(transport.run(Command(script=_SCRIPT)).text)
    shared = {
        name: Fact(name=name, value=value, source=transport.name) for name, value in said.items()
    }
    unknown = [name for name in _ASKED if name not in said]
    unknown += [f"environment of pid {one.pid}" for one in processes if not one.env_known]
    unknown += [f"packages of pid {one.pid}" for one in processes if not one.packages]
    return HostFacts(
        subjects=tuple(_subject(transport.name, one, shared, stated, has) for one in processes),
        unknown=tuple(unknown),
    )


def _read(text: str) -> tuple[list[_Process], dict[str, Any]]:
    processes: list[_Process] = []
    host: dict[str, Any] = {}
    gpus: list[str] = []
    topology: list[str] = []
    for line in text.splitlines():
        kind, _, rest = line.partition(" ")
        if kind == "PROCESS":
            pid, _, encoded = rest.partition(" ")
            processes.append(_Process(pid=pid, words=_words(encoded)))
        elif kind == "GPU":
            gpus.append(rest)
        elif kind == "TOPOLOGY":
            topology.append(rest)
        elif kind == "AMDGPU":
            host["driver"] = f"amdgpu {rest}"
        elif kind == "KERNEL":
            host["kernel"] = rest
        elif kind == "SYSTEM":
            host["system"] = rest
        elif processes:
            _of_process(processes[-1], kind, rest)
    if gpus:
        name, _, driver = gpus[0].rpartition(", ")
        host |= {"gpu": name, "gpu_count": len(gpus), "driver": driver}
    if topology:
        host["topology"] = "\n".join(topology)
    return processes, host


def _of_process(process: _Process, kind: str, rest: str) -> None:
    if kind == "ENVIRONMENT":
        process.env_known = True
    elif kind == "ENV" and "=" in rest:
        name, _, value = rest.partition("=")
        process.env[name] = value
    elif kind == "PACKAGE":
        name, _, version = rest.partition(" ")
        process.packages[_NAMES.get(name, name)] = version


def _words(encoded: str) -> list[str]:
    """The arguments as the kernel keeps them: each ends with a NUL byte."""
    try:
        text = base64.b64decode(encoded).decode("utf-8", "replace")
    except binascii.Error:
        return []
    return text.removesuffix("\0").split("\0")


def _subject(
    host: str,
    process: _Process,
    shared: Mapping[str, Fact],
    stated: Mapping[str, Any],
    has: frozenset[int],
) -> Facts:
    launch = read_launch(shlex.join(process.words))
    launch = Launch(engine=launch.engine, flags=launch.flags, env=dict(process.env))
    source = f"{host} pid {process.pid}"
    said = dict(process.packages)
    if launch.engine in said:
        said["version"] = said[launch.engine]
    packages = {
        name: Fact(name=name, value=value, source=f"packages of {source}")
        for name, value in said.items()
    }
    return facts_of_launch(
        launch, source, {**shared, **packages, **stated}, has, env_known=process.env_known
    )
