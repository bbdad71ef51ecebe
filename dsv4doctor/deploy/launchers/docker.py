"""Launcher `docker`: the container's own command re-run with changed flags and environment.

The container itself is only stopped, never changed: a second one is created from what `docker
inspect` says of it, through the engine's API, which takes the same shape. Putting back is removing
the second and starting the first. Needs on the host: docker, and curl for the API's socket.

Source: Docker Engine API, `ContainerCreate` and `ContainerInspect`.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any

from dsv4doctor.deploy.document import Role
from dsv4doctor.deploy.launch import Launch
from dsv4doctor.deploy.launchers.launcher import (
    RoleBaseline,
    Snippets,
    refuse_shell_string,
    role_folder,
)
from dsv4doctor.deploy.shell import HostShell
from dsv4doctor.errors import DoctorError

SUFFIX = "-dsv4doctor"
SOCKET = "/var/run/docker.sock"
# What inspect shows of a container that a new one must not take over: who it was.
_OWN = frozenset({"Hostname", "Domainname", "Image"})


class DockerLauncher:
    def read(self, role: Role, shell: HostShell) -> Launch | None:
        """The experiment's container where it runs, else the one of the file."""
        shell.do(f"mkdir -p {role_folder(role)}", f"looking for {role.name}")
        for name in (_arm(role), _container(role)):
            facts = _inspect(shell, name)
            if facts is not None and facts["State"]["Running"]:
                return launch_of(facts)
        if _inspect(shell, _container(role)) is None:
            raise DoctorError(
                f"{shell.name}: there is no container {role.container}",
                "give the name that `docker ps -a` shows",
            )
        return None

    def record(self, role: Role, shell: HostShell, baseline: RoleBaseline) -> None:
        if not baseline.was_running:
            raise DoctorError(
                f"{shell.name}: container {role.container} does not run",
                f"start it first (docker start {role.container}): its launch is the baseline",
            )
        refuse_shell_string(role, baseline.launch)

    def start(self, role: Role, shell: HostShell, baseline: RoleBaseline, launch: Launch) -> None:
        if launch == baseline.launch:
            snippets = self.snippets(role, baseline)
            shell.change(
                f"{snippets.stop}; docker stop -t {role.stop_timeout_s:.0f} "
                f"{shlex.quote(_container(role))} && {snippets.restore}",
                f"restarting {role.container}",
                timeout_s=role.stop_timeout_s + 120,
            )
            return
        facts = _inspect(shell, _container(role))
        if facts is None:
            raise DoctorError(f"{shell.name}: container {role.container} is gone", "docker ps -a")
        arm, folder = shlex.quote(_arm(role)), role_folder(role)
        # The body holds the environment: it goes over stdin, not on a command line.
        shell.change(
            f"docker stop -t {role.stop_timeout_s:.0f} {shlex.quote(_container(role))} && "
            f"{{ docker rm -f {arm} >/dev/null 2>&1; date +%s >{folder}/since; }} && "
            f"curl -sS --fail-with-body --unix-socket {SOCKET} -H 'Content-Type: application/json' "
            f"--data-binary @- 'http://docker/containers/create?name='{arm} && docker start {arm}",
            f"starting {_arm(role)}",
            stdin=json.dumps(create_body(facts, launch)).encode(),
            timeout_s=role.stop_timeout_s + 120,
        )

    def snippets(self, role: Role, baseline: RoleBaseline) -> Snippets:
        own, arm = shlex.quote(_container(role)), shlex.quote(_arm(role))
        present = (
            f'"$(docker ps -q --filter name=^/{arm}$ | grep -q . && echo {arm} || echo {own})"'
        )
        return Snippets(
            alive=f"[ \"$(docker inspect -f '{{{{.State.Running}}}}' {present})\" = true ]",
            log=f'docker logs --since "$(cat {role_folder(role)}/since)" {present} 2>&1',
            halt=f"docker stop -t {role.stop_timeout_s:.0f} {present}",
            stop=f"{{ docker rm -f {arm} >/dev/null 2>&1; true; }}",
            restore=f"{{ date +%s >{role_folder(role)}/since; docker start {own}; }}",
        )


def launch_of(facts: Mapping[str, Any]) -> Launch:
    """The launch that `docker inspect` tells of: the command, else the entry point."""
    config = facts["Config"]
    pairs = (word.partition("=") for word in config.get("Env") or ())
    return Launch(
        argv=tuple(config.get("Cmd") or config.get("Entrypoint") or ()),
        environment={name: value for name, _, value in pairs},
    )


def create_body(facts: Mapping[str, Any], launch: Launch) -> dict[str, Any]:
    """The body of ContainerCreate: the inspected container with another command and environment."""
    config = {name: value for name, value in facts["Config"].items() if name not in _OWN}
    config["Cmd" if config.get("Cmd") else "Entrypoint"] = list(launch.argv)
    config["Env"] = [f"{name}={value}" for name, value in launch.environment.items()]
    # An experiment must not come back by itself after a reboot.
    host_config = {**facts["HostConfig"], "RestartPolicy": {"Name": "no"}}
    networks = (facts.get("NetworkSettings") or {}).get("Networks") or {}
    mode = str(host_config.get("NetworkMode") or "")
    endpoints = {} if mode in {"host", "none"} else {
        name: {"Aliases": network.get("Aliases"), "IPAMConfig": network.get("IPAMConfig")}
        for name, network in networks.items()
    }  # fmt: skip
    return {
        **config,
        "Image": facts["Image"],
        "HostConfig": host_config,
        "NetworkingConfig": {"EndpointsConfig": endpoints},
    }


def _inspect(shell: HostShell, name: str) -> dict[str, Any] | None:
    done = shell.run(f"docker inspect --type container {shlex.quote(name)}")
    if done.exit_code:
        said = done.stderr.decode("utf-8", "replace").strip()
        if "no such container" in said.lower():
            return None
        raise DoctorError(f"{shell.name}: docker inspect failed: {said}", "does `docker ps` work?")
    facts: dict[str, Any] = json.loads(done.text)[0]
    return facts


def _container(role: Role) -> str:
    return role.container or ""


def _arm(role: Role) -> str:
    return f"{_container(role)}{SUFFIX}"


LAUNCHER = DockerLauncher()
