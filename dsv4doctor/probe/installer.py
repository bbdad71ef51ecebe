"""What runs on a host: puts the probe's folder there, asks it how it stands, takes it away.

Sent as text, so it imports the standard library alone and prints nothing but its answer. Nothing is
written outside the folder; the serving environment is only looked at.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import importlib.util
import json
import os
import shutil
import socket
import stat
import sys
import tempfile
from typing import Any

OLDEST_SGLANG = (0, 5, 11)  # the first release with the group `sglang.srt.plugins`
NEEDED = ("torch", "triton", "sglang")
RUN_FOLDER = "run"
OURS = "dsv4doctor_probe"


class Refused(Exception):
    """The host is not one that the probe can run on; the text says why."""


def folder_of(job: dict[str, Any]) -> str:
    """Where the probe lies: as asked, or one place a user, where no one else can write."""
    asked: str | None = job["folder"]
    if asked is None:
        return f"/var/tmp/dsv4doctor-{os.geteuid()}/probe"
    return os.path.abspath(os.path.expanduser(asked))


def foreign_names(folder: str) -> list[str]:
    """What lies in the folder and is not ours."""
    if not os.path.isdir(folder):
        return []
    return [
        name
        for name in sorted(os.listdir(folder))
        if name not in (RUN_FOLDER, "__pycache__") and not name.startswith(OURS)
    ]


def refuse_foreign(folder: str) -> None:
    """Raise where something of somebody else's would be touched."""
    names = foreign_names(folder)
    if names or os.path.islink(folder):
        raise Refused(
            f"{folder} holds what is not the probe's ({', '.join(names[:3]) or 'a link'})"
        )


def install(job: dict[str, Any]) -> dict[str, Any]:
    """Write `job["files"]` (relative path → text) as a folder that is complete or absent."""
    folder = folder_of(job)
    version = check_environment()
    refuse_foreign(folder)
    was_there = os.path.isdir(folder)
    keep_private(os.path.dirname(folder))
    new = tempfile.mkdtemp(prefix=".new-", dir=os.path.dirname(folder))
    try:
        for name, text in job["files"].items():
            path = os.path.join(new, *name.split("/"))
            os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        if was_there:
            update(new, folder)
        else:
            os.rename(new, folder)
    finally:
        shutil.rmtree(new, ignore_errors=True)
    return {"folder": folder, "sglang": version, "was_there": was_there, **standing(job, folder)}


def update(new: str, folder: str) -> None:
    """Replace all but the run folder, in which ranks that are running have their sockets."""
    for name in os.listdir(folder):
        if name != RUN_FOLDER:
            remove_path(os.path.join(folder, name))
    for name in os.listdir(new):
        os.rename(os.path.join(new, name), os.path.join(folder, name))


def remove_path(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    else:
        os.unlink(path)


def keep_private(parent: str) -> None:
    """Make `parent` if it is missing; one in a place open to all must be ours."""
    os.makedirs(parent, mode=0o700, exist_ok=True)
    about = os.lstat(parent)
    above = os.stat(os.path.dirname(parent) or "/")
    is_open = bool(above.st_mode & stat.S_IWOTH)
    if stat.S_ISLNK(about.st_mode) or (is_open and about.st_uid != os.geteuid()):
        raise Refused(f"{parent} belongs to somebody else")


def check_environment() -> str:
    """SGLang's version in this Python.

    Raises:
        Refused: if this is no Python that serves, or its SGLang knows no plugins.
    """
    here = f"{sys.executable} (Python {sys.version_info[0]}.{sys.version_info[1]})"
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        named = " and no ".join(missing)
        raise Refused(f"{here} has no {named}: name the Python that serves with --remote-python")
    try:
        version = importlib.metadata.version("sglang")
    except importlib.metadata.PackageNotFoundError:
        return ""  # a checkout on the path: found, but its release is not known
    numbers = tuple(int(part) for part in version.split(".")[:3] if part.isdigit())
    if len(numbers) == len(OLDEST_SGLANG) and numbers < OLDEST_SGLANG:
        raise Refused(f"{here} has SGLang {version}, which knows no plugins: 0.5.11 does")
    return version


def status(job: dict[str, Any]) -> dict[str, Any]:
    folder = folder_of(job)
    return {"folder": folder, **standing(job, folder)}


def standing(job: dict[str, Any], folder: str) -> dict[str, Any]:
    """Whether the folder is there and as we would write it, and what its ranks answer."""
    is_there = os.path.isdir(folder)
    return {
        "installed": is_there,
        "current": is_there and digest_of(folder) == digest_of_files(job["files"]),
        "ranks": ask_all(folder, "status", job),
    }


def digest_of_files(files: dict[str, str]) -> str:
    whole = hashlib.sha256()
    for name in sorted(files):
        whole.update(f"{name}\n{len(files[name])}\n{files[name]}".encode())
    return whole.hexdigest()


def digest_of(folder: str) -> str:
    """As `digest_of_files`, of what lies there; bytecode that Python has added does not count."""
    found = {}
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in (RUN_FOLDER, "__pycache__")]
        for name in names:
            path = os.path.join(place, name)
            with open(path, encoding="utf-8", errors="replace") as file:
                found[os.path.relpath(path, folder)] = file.read()
    return digest_of_files(found)


def ask_all(folder: str, command: str, job: dict[str, Any]) -> list[dict[str, Any]]:
    request = {"v": job["protocol"], "command": command}
    return [ask(path, request, job["answer_s"]) for path in sockets(folder)]


def sockets(folder: str) -> list[str]:
    run = os.path.join(folder, RUN_FOLDER)
    if not os.path.isdir(run):
        return []
    return [os.path.join(run, name) for name in sorted(os.listdir(run)) if name.endswith(".sock")]


def ask(path: str, request: dict[str, Any], answer_s: float) -> dict[str, Any]:
    """The rank's answer, or an object with `gone`: why there is none."""
    folder, name = os.path.split(path)
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            client.settimeout(answer_s)
            place = os.open(folder, os.O_PATH | os.O_DIRECTORY)
            try:  # a socket's name holds 107 bytes; this way it is short
                client.connect(f"/proc/self/fd/{place}/{name}")
            finally:
                os.close(place)
            client.sendall(json.dumps(request).encode() + b"\n")
            with client.makefile("rb") as lines:
                answer = json.loads(lines.readline())
    except (OSError, ValueError) as error:
        return {"name": name, "gone": f"{type(error).__name__}: {error}"}
    return {"name": name, "answer": answer}


def remove(job: dict[str, Any]) -> dict[str, Any]:
    """Retire the ranks that answer, then remove the folder, and its parent where it was ours."""
    folder = folder_of(job)
    refuse_foreign(folder)
    was_there = os.path.isdir(folder)
    ranks = ask_all(folder, "retire", job)
    if was_there:
        shutil.rmtree(folder)
    if job["folder"] is None and os.path.isdir(os.path.dirname(folder)):
        with contextlib.suppress(OSError):  # something else of ours is in use there
            os.rmdir(os.path.dirname(folder))
    return {
        "folder": folder,
        "was_there": was_there,
        "installed": os.path.exists(folder),
        "ranks": ranks,
    }


ACTIONS = {"install": install, "status": status, "remove": remove}


def main(text: str) -> None:
    """Print the answer to `text`, a job as JSON: the action's, or an object with `error`."""
    job = json.loads(text)
    try:
        answer = ACTIONS[job["action"]](job)
    except (Refused, OSError) as error:
        answer = {"error": str(error)}
    answer["python"] = sys.executable
    json.dump(answer, sys.stdout)
