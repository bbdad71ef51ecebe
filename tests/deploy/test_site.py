"""A site, here and over a real SSH server: taken once, changed, and put back by whoever is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from sites import Connect, ask, free_port, is_running, one_role, server_script, wait_for

from dsv4doctor.deploy.document import Deployment, HostEntry
from dsv4doctor.deploy.heart import Heart
from dsv4doctor.deploy.keeper import HostHeld
from dsv4doctor.deploy.launch import Launch
from dsv4doctor.deploy.readiness import NotReady, server_args
from dsv4doctor.deploy.site import Released, Site
from dsv4doctor.errors import UsageError
from dsv4doctor.hosts.transport import HostError
from dsv4doctor.target import parse_endpoint

pytestmark = pytest.mark.usefixtures("processes")

# What a server on a drowning machine may take.
LIMIT_S = 60.0
# Words that break under one layer of quoting too many or too few.
HOSTILE = (
    "a b",
    "it's",
    '"quoted"',
    "$HOME `id` \\",
    "--flag=x y",
    "-dash",
    "two\nlines",
    "ÿ 深度",
    "",
)


def site_of(deployment: Deployment, connect: Connect, run: str = "run-1") -> Site:
    return Site(deployment=deployment, run=run, owner="/somewhere/run-1", connect=connect)


def start_baseline(deployment: Deployment, environment: dict[str, str]) -> subprocess.Popen[bytes]:
    """The deployment as a person has started it."""
    process = subprocess.Popen(
        deployment.roles[0].argv,
        env={**os.environ, **environment},
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    port = int(deployment.roles[0].argv[2])
    wait_for(lambda: answers(port))
    return process


def answers(port: int) -> bool:
    try:
        ask(port)
    except OSError:
        return False
    return True


@pytest.fixture
def running(host: HostEntry, tmp_path: Path) -> tuple[Deployment, int]:
    """A deployment that runs with hostile words and variables, and its port."""
    port = free_port()
    deployment = one_role(host, server_script(tmp_path), port, *HOSTILE)
    process = start_baseline(deployment, {"ODD": "it's $5\nand more", "DROPPED": "1"})
    try:
        yield deployment, port
    finally:
        process.kill()
        process.wait()


def arm_of(baseline: Launch) -> Launch:
    environment = {**baseline.environment, "ARM": "'x y'\n深"}
    del environment["DROPPED"]
    return replace(baseline, argv=(*baseline.argv, "--arm=on off"), environment=environment)


def test_an_arm_is_started_as_asked_and_the_baseline_comes_back(
    running: tuple[Deployment, int], connect: Connect, tmp_path: Path
) -> None:
    deployment, port = running
    before = ask(port)
    site = site_of(deployment, connect)
    site.take()
    site.record()
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
    site = site_of(deployment, connect)
    site.take()
    site.record()
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
    site = site_of(running[0], connect)
    site.take()
    site.record()
    site.start_deadmen(5)
    began = time.monotonic()
    with Heart(site, 5) as heart:  # for longer than the deadman's patience
        wait_for(lambda: time.monotonic() - began > 8)
        assert heart.problem is None
    assert (tmp_path / "state" / "lock").exists()
    assert site.restore().done
    site.close()


@pytest.mark.parametrize("host", ["local"], indirect=True)
def test_a_launch_that_dies_is_told_with_its_last_words_and_put_back(
    running: tuple[Deployment, int], connect: Connect
) -> None:
    deployment, port = running
    site = site_of(deployment, connect)
    site.take()
    site.record()
    baseline = site.baselines["server"].launch
    with pytest.raises(NotReady, match=r"died while starting.*out of memory"):
        site.apply({"server": replace(baseline, argv=(*baseline.argv, "--die"))})
    assert site.restore().done
    assert "--die" not in ask(port)["argv"]
    site.close()


@pytest.mark.parametrize("host", ["local"], indirect=True)
def test_a_launch_that_is_never_ready_is_given_up(
    host: HostEntry, connect: Connect, tmp_path: Path
) -> None:
    port = free_port()
    deployment = one_role(host, server_script(tmp_path), port, ready_s=3.0)
    process = start_baseline(deployment, {})
    site = site_of(deployment, connect)
    site.take()
    site.record()
    baseline = site.baselines["server"].launch
    with pytest.raises(NotReady, match="not ready within 3 s: the log line"):
        site.apply({"server": replace(baseline, argv=(*baseline.argv, "--mute"))})
    assert site.restore().done
    assert "--mute" not in ask(port)["argv"]
    site.close()
    process.wait()


@pytest.mark.parametrize("host", ["local"], indirect=True)
def test_a_baseline_without_a_log_line_is_waited_for(
    host: HostEntry, connect: Connect, tmp_path: Path
) -> None:
    port = free_port()
    deployment = one_role(host, server_script(tmp_path), port, "--late")
    role = deployment.roles[0]
    role = replace(role, ready=replace(role.ready, log_line=""))
    process = start_baseline(deployment, {"DROPPED": "1"})
    site = site_of(replace(deployment, roles=(role,)), connect)
    site.take()
    site.record()
    site.apply({"server": arm_of(site.baselines["server"].launch)})
    assert site.restore().done
    # The script has no line to wait for, and the server takes two seconds before it listens.
    site.wait_for_baseline()
    assert answers(port)
    assert "argv" in server_args(parse_endpoint(role.url), patience_s=LIMIT_S)
    site.close()
    process.wait()


@pytest.mark.parametrize("host", ["local"], indirect=True)
def test_what_cannot_be_put_back_is_said_with_the_command(
    running: tuple[Deployment, int], connect: Connect, tmp_path: Path
) -> None:
    site = site_of(running[0], connect)
    site.take()
    site.record()
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
    site = site_of(deployment, connect)
    site.take()
    site.record()
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
    site = site_of(deployment, connect)
    site.take()
    site.record()
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
def test_a_process_that_ignores_term_is_killed(
    host: HostEntry, connect: Connect, tmp_path: Path
) -> None:
    port = free_port()
    deployment = one_role(host, server_script(tmp_path), port)
    deaf = (
        "import signal, sys, runpy\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        f"sys.argv = sys.argv[1:]\nrunpy.run_path({str(tmp_path / 'server.py')!r}, run_name='x')\n"
    )
    argv = (sys.executable, "-c", deaf, str(tmp_path / "server.py"), str(port))
    role = replace(deployment.roles[0], argv=argv, stop_timeout_s=1.0)
    process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, start_new_session=True)
    wait_for(lambda: answers(port))
    before = ask(port)
    site = site_of(replace(deployment, roles=(role,)), connect)
    site.take()
    site.record()
    site.apply({})
    assert process.wait(timeout=5) == -signal.SIGKILL
    assert not is_running(before["child"])
    site.close()


@pytest.mark.parametrize("host", ["local"], indirect=True)
def test_a_host_that_rebooted_is_noticed_and_started_again(
    running: tuple[Deployment, int], connect: Connect, tmp_path: Path
) -> None:
    """Server and deadman are gone, what lies under the folder is still there."""
    deployment, port = running
    site = site_of(deployment, connect)
    site.take()
    site.record()
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
    first, second = site_of(deployment, connect), site_of(deployment, connect, "run-2")
    first.take()
    first.record()
    assert first.restore().done
    second.take()
    second.record()
    second.apply({"server": arm_of(second.baselines["server"].launch)})
    outcome = first.restore()
    assert not outcome.done
    assert "another experiment holds it" in outcome.evidence[0]
    assert "ARM" in ask(port)["environment"]
    assert second.restore().done
    first.close()
    second.close()
