"""Every launcher there is. Adding one: write its module, add it to this mapping."""

from __future__ import annotations

from collections.abc import Mapping

from dsv4doctor.deploy.document import LauncherKind
from dsv4doctor.deploy.launchers import command, docker, systemd
from dsv4doctor.deploy.launchers.launcher import Launcher

LAUNCHERS: Mapping[LauncherKind, Launcher] = {
    LauncherKind.COMMAND: command.LAUNCHER,
    LauncherKind.SYSTEMD: systemd.LAUNCHER,
    LauncherKind.DOCKER: docker.LAUNCHER,
}
