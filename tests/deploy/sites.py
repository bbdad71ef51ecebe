"""A small real server to relaunch, its deployment, and how tests look at processes."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from dsv4doctor.deploy.document import (
    Deployment,
    HostEntry,
    LauncherKind,
    Readiness,
    Role,
    RoleKind,
)
from dsv4doctor.deploy.launch import Launch
from dsv4doctor.deploy.site import Site
from dsv4doctor.hosts.transport import Transport

Connect = Callable[[HostEntry], Transport]

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

# Answers every GET with its own command line and environment; has a child, as SGLang has.
SERVER = """
import http.server, json, os, subprocess, sys, time
port = int(sys.argv[1])
if "--die" in sys.argv:
    print("RuntimeError: out of memory", flush=True)
    sys.exit(1)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = json.dumps({"argv": sys.argv, "environment": dict(os.environ), "pid": os.getpid(),
                           "child": child.pid, "cwd": os.getcwd()}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_):
        pass
class Server(http.server.ThreadingHTTPServer):
    allow_reuse_address = True
if "--late" in sys.argv:
    time.sleep(2)
server = Server(("127.0.0.1", port), Handler)
if "--mute" not in sys.argv:
    print("The server is fired up and ready to roll!", flush=True)
server.serve_forever()
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def server_script(folder: Path) -> Path:
    path = folder / "server.py"
    path.write_text(SERVER)
    return path


def one_role(
    host: HostEntry, script: Path, port: int, *words: str, ready_s: float = 20.0, **fields: Any
) -> Deployment:
    """A deployment of one server under the `command` launcher."""
    role = Role(
        name="server",
        kind=RoleKind.SERVER,
        host=host.name,
        launcher=LauncherKind.COMMAND,
        url=f"http://127.0.0.1:{port}",
        argv=(sys.executable, str(script), str(port), *words),
        stop_timeout_s=5.0,
        ready=Readiness(health="/", timeout_s=ready_s),
        **fields,
    )
    return Deployment(name="small", base_url=role.url, hosts=(host,), roles=(role,))


def ask(port: int) -> dict[str, Any]:
    """What the server says of itself."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5) as answer:
        return json.load(answer)


def is_running(pid: int) -> bool:
    """Whether a process lives; one that is dead but not yet reaped does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def start_of(pid: str) -> str:
    """A process's start in clock ticks; empty when it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return ""


def wait_for(condition: Callable[[], object], seconds: float = 30.0) -> None:
    """Until `condition` holds, looked at often."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never came to be"
        time.sleep(0.05)


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


def held(deployment: Deployment, connect: Connect, run: str = "run-1") -> Site:
    """A site under our experiment, its baselines recorded."""
    site = site_of(deployment, connect, run)
    site.take()
    site.record()
    return site


def arm_of(baseline: Launch) -> Launch:
    environment = {**baseline.environment, "ARM": "'x y'\n深"}
    del environment["DROPPED"]
    return replace(baseline, argv=(*baseline.argv, "--arm=on off"), environment=environment)
