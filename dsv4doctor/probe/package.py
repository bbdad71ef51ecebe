"""What is put on a host: the probe under a name of its own, and the metadata that SGLang looks for.

The modules arrive as `dsv4doctor_probe`, so that a dsv4doctor that is installed there is neither
hidden nor needed. The folder holds nothing else but `run/`, where the ranks' sockets are.
"""

from __future__ import annotations

from pathlib import Path

SHIPPED = "dsv4doctor_probe"
ENTRY = "dsv4doctor"  # the plugin's name, for SGLANG_PLUGINS
GROUP = "sglang.srt.plugins"
RUN_FOLDER = "run"

_PACKAGE = Path(__file__).parents[1]
_KERNELS = (
    "__init__.py", "coefficients.py", "latent_digest.py", "layouts.py", "mixing.py",
    "page_digest.py", "page_rows.py", "reference.py",
)  # fmt: skip
# Not needed there: what puts it there.
_LEFT_HERE = ("package.py", "installer.py")


def files(version: str) -> dict[str, str]:
    """Relative path → text, of everything that is shipped."""
    found = {
        f"{SHIPPED}/{path.name}": path.read_text(encoding="utf-8")
        for path in sorted((_PACKAGE / "probe").glob("*.py"))
        if path.name not in _LEFT_HERE
    }
    for name in _KERNELS:
        path = _PACKAGE / "kernels" / name
        found[f"{SHIPPED}/kernels/{name}"] = path.read_text(encoding="utf-8")
    path = _PACKAGE / "probe_protocol.py"
    found[f"{SHIPPED}/probe_protocol.py"] = path.read_text(encoding="utf-8")
    renamed = {path: _renamed(text) for path, text in found.items()}
    info = f"{SHIPPED}-{version}.dist-info"
    return renamed | {
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {SHIPPED}\nVersion: {version}\n",
        f"{info}/entry_points.txt": f"[{GROUP}]\n{ENTRY} = {SHIPPED}.plugin:register\n",
    }


def _renamed(text: str) -> str:
    """Imports as they are there: everything of ours lies in one package."""
    text = text.replace(
        "from dsv4doctor import probe_protocol", f"from {SHIPPED} import probe_protocol"
    )
    for inner, there in (
        ("dsv4doctor.probe_protocol", f"{SHIPPED}.probe_protocol"),
        ("dsv4doctor.kernels", f"{SHIPPED}.kernels"),
        ("dsv4doctor.probe.", f"{SHIPPED}."),
    ):
        text = text.replace(f"from {inner}", f"from {there}")
    return text


def write(folder: Path, version: str) -> None:
    """All files under `folder`, for a serving environment on this machine."""
    for name, text in files(version).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
