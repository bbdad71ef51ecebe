"""The one file that a host is sent: our kernels, the worker, and a main, as plain source.

The host's Python reads it from stdin and imports from the text itself, so nothing is installed and
nothing is left. The modules' source stays readable to `inspect`, which Triton needs to compile.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).parents[1]
SENT = ("__init__.py", "kernels", "checksum/__init__.py", "checksum/worker")

_MAIN = '''\
import sys

if sys.version_info < (3, 10):
    sys.exit("python %d.%d is too old: 3.10 or newer is needed" % sys.version_info[:2])
import importlib.abc
import importlib.machinery
import linecache

SOURCES = {sources}


class FromText(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    """Imports the modules that came with this program."""

    def find_spec(self, name, path=None, target=None):
        key = name + ".__init__" if name + ".__init__" in SOURCES else name
        if key not in SOURCES:
            return None
        spec = importlib.machinery.ModuleSpec(
            name, self, origin=self.path_of(key), is_package=key != name
        )
        spec.has_location = True
        return spec

    def path_of(self, key):
        return "sent-by-dsv4doctor/" + key.replace(".", "/") + ".py"

    def key_of(self, name):
        return name + ".__init__" if name + ".__init__" in SOURCES else name

    def get_source(self, name):
        return SOURCES[self.key_of(name)]

    def exec_module(self, module):
        key = self.key_of(module.__name__)
        source, path = SOURCES[key], self.path_of(key)
        linecache.cache[path] = len(source), None, source.splitlines(True), path
        exec(compile(source, path, "exec"), module.__dict__)


sys.meta_path.insert(0, FromText())
from dsv4doctor.checksum.worker.main import main

main({job})
'''


def sources() -> dict[str, str]:
    """Module name (packages as `name.__init__`) → source, of everything that is sent."""
    found = {}
    for entry in SENT:
        path = PACKAGE / entry
        for file in [path] if path.is_file() else sorted(path.glob("*.py")):
            name = ".".join(("dsv4doctor", *file.relative_to(PACKAGE).with_suffix("").parts))
            found[name] = file.read_text(encoding="utf-8")
    return found


def program(job: Mapping[str, Any]) -> bytes:
    """The program that does `job`; ASCII, so that no host's locale garbles it."""
    text = _MAIN.replace("{sources}", json.dumps(sources()))
    return text.replace("{job}", repr(json.dumps(job))).encode("ascii")
