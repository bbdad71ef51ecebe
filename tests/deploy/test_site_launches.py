"""Launches that go wrong: one that dies, one that is never ready, one that will not end."""

from __future__ import annotations

import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from sites import (
    Connect,
    answers,
    arm_of,
    ask,
    free_port,
    held,
    is_running,
    one_role,
    server_script,
    start_baseline,
    wait_for,
)

from dsv4doctor.deploy.document import Deployment, HostEntry
from dsv4doctor.deploy.readiness import NotReady, server_args
from dsv4doctor.target import parse_endpoint

pytestmark = pytest.mark.usefixtures("processes")

# What a server on a drowning machine may take.
LIMIT_S = 60.0


@pytest.mark.parametrize("host", ["local"], indirect=True)
def test_a_launch_that_dies_is_told_with_its_last_words_and_put_back(
    running: tuple[Deployment, int], connect: Connect
) -> None:
    deployment, port = running
    site = held(deployment, connect)
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
    site = held(deployment, connect)
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
    site = held(replace(deployment, roles=(role,)), connect)
    site.apply({"server": arm_of(site.baselines["server"].launch)})
    assert site.restore().done
    # The script has no line to wait for, and the server takes two seconds before it listens.
    site.wait_for_baseline()
    assert answers(port)
    assert "argv" in server_args(parse_endpoint(role.url), patience_s=LIMIT_S)
    site.close()
    process.wait()


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
    site = held(replace(deployment, roles=(role,)), connect)
    site.apply({})
    assert process.wait(timeout=5) == -signal.SIGKILL
    assert not is_running(before["child"])
    site.close()
