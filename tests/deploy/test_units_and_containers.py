"""Launchers `systemd` and `docker`: what they change, and that they take it all away again.

The programs themselves are stood in for by shell scripts that keep the state that matters and write
down each call; what they tell has the form of `systemctl show` and `docker inspect`.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from sites import free_port

from dsv4doctor.deploy.document import (
    Deployment,
    HostEntry,
    LauncherKind,
    Readiness,
    Role,
    RoleKind,
)
from dsv4doctor.deploy.launch import Launch
from dsv4doctor.deploy.launchers import docker, systemd
from dsv4doctor.deploy.launchers.docker import create_body, launch_of
from dsv4doctor.deploy.launchers.systemd import drop_in
from dsv4doctor.deploy.site import Site
from dsv4doctor.errors import DoctorError
from dsv4doctor.hosts.local import LocalTransport

TRANSCRIPTS = Path(__file__).parents[1] / "transcripts" / "docker"
READY = Readiness(log_line="", health="", timeout_s=10.0)


def role_of(launcher: LauncherKind, **fields: str) -> Role:
    return Role(
        name="server", kind=RoleKind.SERVER, host="here", launcher=launcher,
        url=f"http://127.0.0.1:{free_port()}", ready=READY, stop_timeout_s=5.0, **fields,
    )  # fmt: skip


def site_of(role: Role, folder: Path) -> Site:
    host = HostEntry(name="here", state_dir=str(folder / "state"))
    deployment = Deployment(name="d", base_url=role.url, hosts=(host,), roles=(role,))
    return Site(
        deployment=deployment, run="run-1", owner="/run-1",
        connect=lambda entry: LocalTransport(entry.name),
    )  # fmt: skip


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder first on PATH; its programs log to `calls`."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setenv("WORLD", str(tmp_path))
    return folder


def program(folder: Path, name: str, body: str) -> None:
    path = folder / name
    path.write_text(f'#!/bin/sh\necho "{name} $*" >>"$WORLD/calls"\n{body}\n')
    path.chmod(0o755)


BASE = Launch(
    argv=("/usr/bin/python3", "-m", "sglang.launch_server", "--port", "30000"),
    environment={"HF_HOME": "/models", "GONE": "1"},
)


def test_a_drop_in_says_only_what_changes_and_quotes_it() -> None:
    changed = Launch(
        argv=(*BASE.argv, "--enable-hicache", 'a "b" $c 100% \\d'),
        environment={"HF_HOME": "/models", "NEW": 'x "y" 5% $z'},
    )
    assert drop_in(BASE, changed).splitlines()[1:] == [
        "[Service]",
        "ExecStart=",
        'ExecStart="/usr/bin/python3" "-m" "sglang.launch_server" "--port" "30000" '
        '"--enable-hicache" "a \\"b\\" $$c 100%% \\\\d"',
        'Environment="NEW=x \\"y\\" 5%% $z"',
        "UnsetEnvironment=GONE",
    ]
    assert "ExecStart" not in drop_in(BASE, replace(changed, argv=BASE.argv))


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd-analyze here")
def test_systemd_itself_reads_the_drop_in(tmp_path: Path) -> None:
    changed = Launch(
        argv=("/bin/echo", "a b", 'q"q', "$HOME", "100%", "back\\slash"), environment={"A": "b c"}
    )
    unit = tmp_path / "dsv4doctor-test.service"
    unit.write_text("[Service]\nType=oneshot\nExecStart=/bin/true\n")
    folder = tmp_path / "dsv4doctor-test.service.d"
    folder.mkdir()
    (folder / systemd.DROP_IN).write_text(drop_in(BASE, changed))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", unit], capture_output=True, text=True, check=False
    )
    assert "dsv4doctor" not in done.stderr, done.stderr


def test_a_unit_is_changed_under_run_and_given_back(
    programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(systemd, "RUNTIME_FOLDER", str(tmp_path / "run"))
    main = subprocess.Popen(["sleep", "300"], env={"UNIT_OWN": "yes"})
    try:
        program(
            programs,
            "systemctl",
            f"case $1 in show) printf 'MainPID={main.pid}\\nLoadState=loaded\\n"
            "ExecStart={ path=/usr/bin/sleep ; argv[]=sleep 300 ; ignore_errors=no }\\n' ;;\n"
            "is-active) echo active ;; esac",
        )
        role = role_of(LauncherKind.SYSTEMD, unit="sglang")
        site = site_of(role, tmp_path)
        site.take()
        site.record()
        launch = site.baselines["server"].launch
        assert launch.argv == ("/usr/bin/sleep", "300")
        assert launch.environment["UNIT_OWN"] == "yes"
        drop = tmp_path / "run" / "sglang.service.d" / systemd.DROP_IN
        site.apply({"server": replace(launch, argv=(*launch.argv, "--arm"))})
        assert '"--arm"' in drop.read_text()
        calls = (tmp_path / "calls").read_text()
        assert calls.index("daemon-reload") < calls.index("restart sglang.service")
        assert site.restore().done
        assert not drop.exists()
        last = (tmp_path / "calls").read_text().splitlines()[-2:]
        assert last == ["systemctl daemon-reload", "systemctl restart sglang.service"]
        site.close()
    finally:
        main.kill()
        main.wait()


def test_a_unit_that_does_not_exist_is_named(programs: Path, tmp_path: Path) -> None:
    program(programs, "systemctl", "printf 'MainPID=0\\nLoadState=not-found\\n'")
    site = site_of(role_of(LauncherKind.SYSTEMD, unit="sglnag"), tmp_path)
    site.take()
    with pytest.raises(DoctorError, match="unit sglnag is not-found"):
        site.record()
    site.close()


@pytest.fixture
def inspected() -> dict:
    return json.loads((TRANSCRIPTS / "inspect-host-network.json").read_text())[0]


def test_a_container_is_made_again_with_all_that_it_had(inspected: dict) -> None:
    launch = launch_of(inspected)
    assert launch.argv[:3] == ("python3", "-m", "sglang.launch_server")
    assert launch.environment["HF_HOME"] == "/models"
    changed = replace(
        launch,
        argv=(*launch.argv, "--enable-hierarchical-cache"),
        environment={**launch.environment, "SGLANG_DSV4_BF16_INDEX_K": "1"},
    )
    body = create_body(inspected, changed)
    assert body["Cmd"] == [*launch.argv, "--enable-hierarchical-cache"]
    assert body["Entrypoint"] == inspected["Config"]["Entrypoint"]
    assert "SGLANG_DSV4_BF16_INDEX_K=1" in body["Env"]
    assert body["Image"] == inspected["Image"], "the same image, not what its tag names today"
    own, its = body["HostConfig"], inspected["HostConfig"]
    assert own["RestartPolicy"] == {"Name": "no"}
    assert {k: v for k, v in own.items() if k != "RestartPolicy"} == {
        k: v for k, v in its.items() if k != "RestartPolicy"
    }
    assert body["NetworkingConfig"] == {"EndpointsConfig": {}}
    assert "Hostname" not in body


def test_a_container_is_stopped_not_changed_and_started_again(
    programs: Path, tmp_path: Path, inspected: dict
) -> None:
    (tmp_path / "own.json").write_text(json.dumps([inspected]))
    (tmp_path / "own.running").touch()
    program(
        programs,
        "docker",
        """
        for last; do :; done
        case $last in *-dsv4doctor*) who=arm ;; *) who=own ;; esac
        case $1 in
        inspect)
          [ $who = own ] || [ -e "$WORLD/arm.made" ] ||
            { echo "Error: No such container: $last" >&2; exit 1; }
          case "$*" in *State.Running*) [ -e "$WORLD/$who.running" ] && echo true; exit ;; esac
          if [ -e "$WORLD/$who.running" ]; then cat "$WORLD/own.json"
          else sed 's/"Running": true/"Running": false/' "$WORLD/own.json"; fi ;;
        stop) rm -f "$WORLD/$who.running" ;;
        start) touch "$WORLD/$who.running" ;;
        rm) rm -f "$WORLD/arm.made" "$WORLD/arm.running" ;;
        ps) [ -e "$WORLD/arm.made" ] && echo 0123 ;;
        esac
        true""",
    )
    program(programs, "curl", 'cat >"$WORLD/body.json"; touch "$WORLD/arm.made"')
    site = site_of(role_of(LauncherKind.DOCKER, container="sglang"), tmp_path)
    site.take()
    site.record()
    launch = site.baselines["server"].launch
    site.apply({"server": replace(launch, argv=(*launch.argv, "--arm"))})
    assert json.loads((tmp_path / "body.json").read_text())["Cmd"][-1] == "--arm"
    assert not (tmp_path / "own.running").exists()
    assert (tmp_path / "arm.running").exists()
    calls = (tmp_path / "calls").read_text()
    assert "secret" not in calls, "the environment must not stand on a command line"
    assert calls.index("docker stop -t 5 sglang") < calls.index("docker start sglang-dsv4doctor")
    assert site.restore().done
    assert (tmp_path / "own.running").exists()
    assert not (tmp_path / "arm.made").exists()
    assert "docker rm -f sglang\n" not in (tmp_path / "calls").read_text(), "the user's container"
    assert site.read_back().done
    site.close()


def test_a_command_in_one_shell_string_is_refused(
    programs: Path, tmp_path: Path, inspected: dict
) -> None:
    inspected["Config"]["Cmd"] = ["bash", "-c", "python3 -m sglang.launch_server --port 30000"]
    (tmp_path / "own.json").write_text(json.dumps([inspected]))
    program(
        programs,
        "docker",
        'case "$*" in *-dsv4doctor*) echo "No such container" >&2; exit 1 ;; esac\n'
        'cat "$WORLD/own.json"',
    )
    site = site_of(role_of(LauncherKind.DOCKER, container="sglang"), tmp_path)
    site.take()
    with pytest.raises(DoctorError, match="one long string"):
        site.record()
    site.close()
    assert docker.SUFFIX not in launch_of(inspected).argv
