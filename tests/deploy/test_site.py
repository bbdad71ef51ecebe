"""A site, here and over a real SSH server: taken once, changed, and put back by whoever is left."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest
from sites import (
    HOSTILE,
    Connect,
    arm_of,
    ask,
    free_port,
    held,
    is_running,
    one_role,
    server_script,
    site_of,
    start_baseline,
    wait_for,
)

from dsv4doctor.deploy.document import Deployment, HostEntry
from dsv4doctor.deploy.heart import Heart
from dsv4doctor.deploy.keeper import HostHeld
from dsv4doctor.deploy.site import Released
from dsv4doctor.errors import UsageError
from dsv4doctor.hosts.transport import HostError

pytestmark = pytest.mark.usefixtures("processes")


def test_an_arm_is_started_as_asked_and_the_baseline_comes_back(
    running: tuple[Deployment, int], connect: Connect, tmp_path: Path
) -> None:
    deployment, port = running
    before = ask(port)
    site = held(deployment, connect)
    baseline = site.baselines["server"]
    assert baseline.was_running
    assert baseline.launch.argv == deployment.roles[0].argv
    site.start_deadmen(60)
    site.apply({"server": arm_of(baseline.launch)})
    during = ask(port)
    assert tuple(during["argv"][2:]) == (*HOSTILE, "--arm=on off")
    assert during["environment"]["ARM"] == "'x y'\n深"
    assert during["environment"]["ODD"] == "it's $5\nand more"
    assert "DROPPED" not in during["environment"]
    assert not is_running(before["pid"])
    assert not is_running(before["child"]), "a child of the old server lives on"
    assert b"ready to roll" in site.log(deployment.roles[0])
    put_back = site.restore()
    assert put_back.done, put_back.evidence
    assert site.read_back().done, site.read_back().evidence
    after = ask(port)
    assert after["argv"] == before["argv"]
    assert after["cwd"] == before["cwd"]
    own = {"PWD", "OLDPWD", "SHLVL", "_"}
    assert {k: v for k, v in after["environment"].items() if k not in own} == {
        k: v for k, v in before["environment"].items() if k not in own
    }
    state = tmp_path / "state"
    assert not (state / "lock").exists()
    assert (state / "server" / "baseline.sh").stat().st_mode & 0o077 == 0, "secrets lie open"
    site.close()


def test_a_host_under_experiment_is_refused(
    running: tuple[Deployment, int], connect: Connect
) -> None:
    first, second = site_of(running[0], connect), site_of(running[0], connect, "run-2")
    assert first.take() is False
    with pytest.raises(HostHeld, match="under experiment already, by /somewhere/run-1") as held:
        second.take()
    assert "restore.sh" in held.value.hint
    assert first.take() is True, "the same run, resumed, gets it again"
    first.close()
    second.close()


def test_the_deadman_puts_back_when_no_heartbeat_comes(
    running: tuple[Deployment, int], connect: Connect, tmp_path: Path
) -> None:
    deployment, port = running
    site = held(deployment, connect)
    site.start_deadmen(3)
    with Heart(site, 3):
        site.apply({"server": arm_of(site.baselines["server"].launch)})
    assert "ARM" in ask(port)["environment"]
    site.close()  # and never a word again
    wait_for((tmp_path / "state" / "restored").exists)
    assert "restored by deadman" in (tmp_path / "state" / "restored").read_text()
    now = ask(port)
    assert "ARM" not in now["environment"]
    assert now["environment"]["DROPPED"] == "1"
    with pytest.raises(Released, match="no longer under this experiment: restored by deadman"):
        site.beat()
    with pytest.raises(HostError, match="no longer under this experiment"):
        site.apply({"server": arm_of(site.baselines["server"].launch)})
    assert "ARM" not in ask(port)["environment"]
    site.close()


@pytest.mark.parametrize("host", ["local"], indirect=True)
def test_heartbeats_keep_the_deadman_quiet(
    running: tuple[Deployment, int], connect: Connect, tmp_path: Path
) -> None:
    site = held(running[0], connect)
    site.start_deadmen(5)
    began = time.monotonic()
    with Heart(site, 5) as heart:  # for longer than the deadman's patience
        wait_for(lambda: time.monotonic() - began > 8)
        assert heart.problem is None
    assert (tmp_path / "state" / "lock").exists()
    assert site.restore().done
    site.close()


@pytest.mark.parametrize("host", ["local"], indirect=True)
def test_what_cannot_be_put_back_is_said_with_the_command(
    running: tuple[Deployment, int], connect: Connect, tmp_path: Path
) -> None:
    site = held(running[0], connect)
    site.apply({"server": arm_of(site.baselines["server"].launch)})
    (tmp_path / "state" / "server" / "baseline.sh").write_text("exit 1\n")
    outcome = site.restore()
    assert not outcome.done
    assert "not ready" in outcome.evidence[0]
    assert "restore.sh" in outcome.evidence[0]
    assert (tmp_path / "state" / "lock").exists(), "a host that is not back stays marked"
    site.close()


@pytest.mark.parametrize("host", ["local"], indirect=True)
def test_a_full_disk_stops_before_anything_is_changed(
    running: tuple[Deployment, int], connect: Connect, tmp_path: Path
) -> None:
    deployment, port = running
    before = ask(port)["pid"]
    full = tmp_path / "full"
    full.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4k", "none", full], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"no small file system can be mounted: {mounted.stderr.decode()}")
    try:
        entry = replace(deployment.hosts[0], state_dir=str(full))
        site = site_of(replace(deployment, hosts=(entry,)), connect)
        with pytest.raises(HostError, match=r"is the disk full\?"):
            site.take()
        assert not (full / "lock").exists()
        assert ask(port)["pid"] == before
        site.close()
    finally:
        subprocess.run(["umount", full], check=True)


def test_a_lost_connection_is_opened_anew(ssh_lab, connect: Connect, tmp_path: Path) -> None:
    host = HostEntry(name="here", ssh="one", state_dir=str(tmp_path / "state"))
    deployment = one_role(host, server_script(tmp_path), free_port())
    site = site_of(deployment, connect)
    site.take()
    ssh_lab.servers["one"].drop_connections()
    assert site.take() is True
    site.close()


def test_two_hosts_are_both_put_back_when_one_connection_died(
    ssh_lab, connect: Connect, tmp_path: Path
) -> None:
    hosts = tuple(
        HostEntry(name=name, ssh=name, state_dir=str(tmp_path / name)) for name in ("one", "two")
    )
    script, ports = server_script(tmp_path), (free_port(), free_port())
    parts = [one_role(h, script, p) for h, p in zip(hosts, ports, strict=True)]
    roles = tuple(replace(part.roles[0], name=f"server-{part.hosts[0].name}") for part in parts)
    deployment = Deployment(name="two", base_url=roles[0].url, hosts=hosts, roles=roles)
    processes = [start_baseline(part, {}) for part in parts]
    site = held(deployment, connect)
    site.start_deadmen(60)
    site.apply(
        {r.name: replace(site.baselines[r.name].launch, argv=(*r.argv, "--arm")) for r in roles}
    )
    assert all("--arm" in ask(port)["argv"] for port in ports)
    ssh_lab.servers["two"].drop_connections()
    assert site.restore().done
    assert not any("--arm" in ask(port)["argv"] for port in ports)
    assert site.read_back().done
    site.close()
    for process in processes:
        process.wait()


def test_the_restore_script_works_by_hand(
    running: tuple[Deployment, int], connect: Connect
) -> None:
    deployment, port = running
    site = held(deployment, connect)
    site.start_deadmen(60)
    site.apply({"server": arm_of(site.baselines["server"].launch)})
    command = next(iter(site.keepers.values())).by_hand()
    by_hand = command.split("sh ", 1)[1].strip("'") if command.startswith("ssh ") else command[3:]
    done = subprocess.run(["sh", by_hand.removeprefix("one '").removeprefix("sh ")],
                          capture_output=True, check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "ARM" not in ask(port)["environment"]
    site.close()


@pytest.mark.parametrize("host", ["local"], indirect=True)
def test_a_host_that_rebooted_is_noticed_and_started_again(
    running: tuple[Deployment, int], connect: Connect, tmp_path: Path
) -> None:
    """Server and deadman are gone, what lies under the folder is still there."""
    deployment, port = running
    site = held(deployment, connect)
    site.start_deadmen(60)
    site.apply({"server": arm_of(site.baselines["server"].launch)})
    state = tmp_path / "state"
    for pid in (ask(port)["pid"], int((state / "deadman.pid").read_text().split()[0])):
        os.kill(pid, signal.SIGKILL)
    with pytest.raises(Released, match="the deadman is gone"):
        site.beat()
    assert site.restore().done
    assert site.read_back().done
    assert "ARM" not in ask(port)["environment"]
    site.close()


@pytest.mark.parametrize("host", ["local"], indirect=True)
def test_one_machine_under_two_names_is_refused(
    running: tuple[Deployment, int], connect: Connect, tmp_path: Path
) -> None:
    deployment = running[0]
    again = replace(deployment.hosts[0], name="again")
    site = site_of(replace(deployment, hosts=(*deployment.hosts, again)), connect)
    with pytest.raises(UsageError, match="hosts here and again are one machine"):
        site.take()
    assert not (tmp_path / "state" / "lock").exists()
    site.close()


@pytest.mark.parametrize("host", ["local"], indirect=True)
def test_another_experiment_is_not_put_back_by_ours(
    running: tuple[Deployment, int], connect: Connect, tmp_path: Path
) -> None:
    """Ours was put back by its deadman while we slept, and somebody else has the host now."""
    deployment, port = running
    first = held(deployment, connect)
    assert first.restore().done
    second = held(deployment, connect, "run-2")
    second.apply({"server": arm_of(second.baselines["server"].launch)})
    outcome = first.restore()
    assert not outcome.done
    assert "another experiment holds it" in outcome.evidence[0]
    assert "ARM" in ask(port)["environment"]
    assert second.restore().done
    first.close()
    second.close()
