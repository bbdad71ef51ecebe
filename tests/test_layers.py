"""The arrows between packages, read from imports: cli -> flows -> core and edges -> vocabulary."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1] / "dsv4doctor"
VOCABULARY = {path.stem for path in ROOT.glob("*.py")} - {"__init__", "__main__"}

# package -> packages of ours (beside the vocabulary and itself) that it may import
ALLOWED: dict[str, set[str]] = {
    "cli": {"flows", "report"},
    "flows": {
        "artifacts", "audit", "checksum", "client", "deploy", "detect", "differential", "dsml",
        "experiment", "hosts", "lab", "load", "patching", "probe", "report", "sglang_log",
        "sizing", "stats", "throughput", "tracing",
    },
    "detect": {"dsml"},
    "load": {"client"},
    "deploy": {"hosts", "client"},
    "checksum": {"kernels", "hosts"},
    "probe": {"kernels"},
    "experiment": set(), "differential": set(), "dsml": set(), "stats": set(), "sizing": set(),
    "report": set(),
    "sglang_log": set(), "audit": set(), "patching": set(), "client": set(), "hosts": set(),
    "artifacts": set(), "kernels": set(), "lab": set(), "throughput": set(), "tracing": set(),
}  # fmt: skip

HEAVY = {
    "torch", "triton", "numpy", "scipy", "statsmodels", "pandas", "paramiko", "httpx", "aiohttp",
    "hyperscan",
}  # fmt: skip

# heavy library -> the packages of ours that are its doors
DOORS = {
    "torch": {"kernels", "checksum", "probe"},
    "triton": {"kernels", "checksum", "probe"},
    "paramiko": {"hosts"},
    "httpx": {"client"},
    "httpx_aiohttp": {"client"},
    "aiohttp": {"client", "lab"},
    "pandas": {"report", "flows"},
    "statsmodels": {"stats"},
    "scipy": {"stats"},
    "hyperscan": {"detect"},
}


def _modules() -> list[Path]:
    return sorted(path for path in ROOT.rglob("*.py") if "__pycache__" not in path.parts)


def _package(path: Path) -> str:
    relative = path.relative_to(ROOT)
    return relative.parts[0] if len(relative.parts) > 1 else ""


def _imports(path: Path) -> list[tuple[str, bool]]:
    """(dotted name, at run time?) of every import; those under TYPE_CHECKING do not run."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    typing_only: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            typing_only |= {id(inner) for body in node.body for inner in ast.walk(body)}
    names = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [(alias.name, id(node) not in typing_only) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            # `from dsv4doctor import x` names a module as often as a constant.
            base = [node.module] + [f"{node.module}.{alias.name}" for alias in node.names]
            names += [(name, id(node) not in typing_only) for name in base]
    return names


@pytest.mark.parametrize("path", _modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_run_one_way(path: Path) -> None:
    package = _package(path)
    for name, _ in _imports(path):
        parts = name.split(".")
        if parts[0] != "dsv4doctor" or len(parts) < 2:
            continue
        target = parts[1]
        if target in VOCABULARY or target.startswith("_") or target.isupper() or target == package:
            continue
        if not (ROOT / target).is_dir():
            continue
        if package == "":
            assert path.stem == "__main__", f"the vocabulary imports {name}"
            continue
        assert target in ALLOWED[package], f"{package} imports {name}"


@pytest.mark.parametrize("path", _modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_each_heavy_library_has_its_doors(path: Path) -> None:
    for name, _ in _imports(path):
        library = name.split(".")[0]
        if library in DOORS:
            assert _package(path) in DOORS[library], f"{library} imported outside its door"


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys\n"
        "from dsv4doctor.cli.app import main\n"
        "try:\n    main(['--help'])\n"
        "except SystemExit as end:\n    assert end.code == 0, end.code\n"
        f"print('HEAVY', sorted({HEAVY!r} & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.rstrip().endswith("HEAVY []"), done.stdout
