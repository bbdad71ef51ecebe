"""`deployment.toml`, read strictly: every unknown key, missing key and dangling name is told."""

from __future__ import annotations

import dataclasses
import difflib
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from dsv4doctor.codec import ShapeError, from_builtins
from dsv4doctor.deploy.document import (
    Deployment,
    Honours,
    HostEntry,
    LauncherKind,
    Meaning,
    Readiness,
    Role,
)
from dsv4doctor.errors import UsageError
from dsv4doctor.target import parse_endpoint

_FORM = "see docs/ab.md for the form"
_INDEX_K = ("fp8", "bf16", "fp4")
# Names become folders on the host and files here.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}\Z")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


def read_deployment(path: Path) -> Deployment:
    """The deployment that the TOML file at `path` describes.

    Raises:
        UsageError: naming the file and the key that is wrong, and what it has to be.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"cannot read {path}: {error.strerror}", "give a deployment file to --deployment"
        ) from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is no TOML: {error}", _FORM) from error
    return decode_deployment(text, str(path))


def decode_deployment(text: str, where: str) -> Deployment:
    """The deployment in `text`; `where` names it in errors.

    Raises:
        UsageError: as `read_deployment`.
    """
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{where} is no TOML: {error}", _FORM) from error
    _refuse_unknown_keys(where, table)
    try:
        deployment = from_builtins(Deployment, table)
    except ShapeError as error:
        raise UsageError(f"{where}: {error}", _FORM) from error
    for problem, hint in _problems(deployment):
        raise UsageError(f"{where}: {problem}", hint)
    return deployment


def _refuse_unknown_keys(where: str, table: Mapping[str, Any]) -> None:
    _refuse_unknown(where, table, Deployment, "")
    for at, rows, kind in (
        ("hosts", table.get("hosts"), HostEntry),
        ("roles", table.get("roles"), Role),
    ):
        for number, row in enumerate(rows if isinstance(rows, list) else ()):
            if isinstance(row, Mapping):
                _refuse_unknown(where, row, kind, f"{at}[{number}].")
                if isinstance(row.get("ready"), Mapping):
                    _refuse_unknown(where, row["ready"], Readiness, f"{at}[{number}].ready.")
    if isinstance(table.get("honours"), Mapping):
        _refuse_unknown(where, table["honours"], Honours, "honours.")
    index_k = table.get("index_k")
    for value, meaning in index_k.items() if isinstance(index_k, Mapping) else ():
        if isinstance(meaning, Mapping):
            _refuse_unknown(where, meaning, Meaning, f"index_k.{value}.")


def _refuse_unknown(where: str, table: Mapping[str, Any], kind: type[Any], at: str) -> None:
    known = [each.name for each in dataclasses.fields(kind)]
    for key in table:
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
            guess = f"did you mean `{at}{near[0]}`?" if near else f"known are {', '.join(known)}"
            raise UsageError(f"{where}: unknown key `{at}{key}`", guess)


def _problems(deployment: Deployment) -> Iterable[tuple[str, str]]:
    """What a well-typed deployment must fulfil besides: problem and hint, the first counts."""
    if not _NAME.match(deployment.name):
        yield f"name {deployment.name!r}", "use letters, digits, '.', '_' and '-'"
    if not deployment.hosts or not deployment.roles:
        yield "there are no hosts or no roles", "give at least one [[hosts]] and one [[roles]]"
    for kind, names in (
        ("hosts", [host.name for host in deployment.hosts]),
        ("roles", [role.name for role in deployment.roles]),
    ):
        for name in names:
            if not _NAME.match(name):
                yield f"{kind} has the name {name!r}", "use letters, digits, '.', '_' and '-'"
            if names.count(name) > 1:
                yield f"two {kind} are called {name!r}", "give each a name of its own"
    yield from _url_problem(deployment.base_url, "base_url")
    for value in deployment.index_k:
        if value not in _INDEX_K:
            yield f"index_k.{value} means nothing", f"it may be {', '.join(_INDEX_K)}"
    hosts = {host.name for host in deployment.hosts}
    for role in deployment.roles:
        yield from _problems_of_role(role, hosts)


def _problems_of_role(role: Role, hosts: set[str]) -> Iterable[tuple[str, str]]:
    if role.host not in hosts:
        yield f"role {role.name} is on unknown host {role.host!r}", f"hosts are {', '.join(hosts)}"
    yield from _url_problem(role.url, f"role {role.name}: url")
    needed = {LauncherKind.SYSTEMD: "unit", LauncherKind.DOCKER: "container"}.get(role.launcher)
    if needed and not getattr(role, needed):
        yield f"role {role.name} has no {needed}", f"launcher {role.launcher} needs it"
    for key, owner in (("unit", LauncherKind.SYSTEMD), ("container", LauncherKind.DOCKER)):
        if getattr(role, key) and role.launcher is not owner:
            yield f"role {role.name}: {key} belongs to launcher {owner}", "remove one of them"
    if role.argv and role.launcher is not LauncherKind.COMMAND:
        yield f"role {role.name}: argv belongs to launcher command", "remove one of them"
    for name in role.environment:
        if not _VARIABLE.match(name):
            yield f"role {role.name}: environment has the name {name!r}", "no such variable can be"
    if role.ready.timeout_s <= 0 or role.stop_timeout_s <= 0:
        yield f"role {role.name}: a time-out is not above 0", "give seconds"


def _url_problem(url: str, key: str) -> Iterable[tuple[str, str]]:
    try:
        parse_endpoint(url)
    except UsageError:
        yield f"{key} = {url!r} names no server", "write http://HOST:PORT"
