"""`deployment.toml` is read strictly: what is wrong is named, with what it has to be."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from dsv4doctor.deploy.decode import decode_deployment, read_deployment
from dsv4doctor.deploy.document import LauncherKind, RoleKind
from dsv4doctor.deploy.lab import LabBaseline, lab_deployment
from dsv4doctor.errors import UsageError

PD = """
name = "ds4-pd"
base_url = "http://router:8000/v1"
model = "deepseek-ai/DeepSeek-V4-Flash"

[honours]
factors = ["index_k", "hicache", "overlap"]
any_flag = false

[index_k.bf16]
variables = { SGLANG_DSV4_BF16_INDEX_K = "1" }

[[hosts]]
name = "gpu7"
ssh = "root@gpu7"

[[hosts]]
name = "here"

[[roles]]
name = "prefill"
kind = "prefill"
host = "gpu7"
launcher = "systemd"
unit = "sglang-prefill"
url = "http://gpu7:30000"
factors = ["index_k", "hicache"]
ready = { bootstrap_url = "http://gpu7:8998", timeout_s = 900.0 }

[[roles]]
name = "decode"
kind = "decode"
host = "gpu7"
launcher = "docker"
container = "sglang-decode"
url = "http://gpu7:30001"

[[roles]]
name = "router"
kind = "router"
host = "here"
launcher = "command"
argv = ["python", "-m", "sglang_router.launch_router", "--pd-disaggregation"]
environment = { RUST_LOG = "info" }
url = "http://router:8000"
ready = { log_line = "", health = "/health" }
"""


def test_a_pd_deployment_is_read_whole() -> None:
    found = decode_deployment(PD, "pd.toml")
    prefill, decode, router = found.roles
    assert (prefill.launcher, prefill.unit) == (LauncherKind.SYSTEMD, "sglang-prefill")
    assert prefill.ready.bootstrap_url == "http://gpu7:8998"
    assert prefill.ready.log_line == "The server is fired up and ready to roll!"
    assert (decode.launcher, decode.container) == (LauncherKind.DOCKER, "sglang-decode")
    assert router.kind is RoleKind.ROUTER
    assert prefill.takes("hicache")
    assert not prefill.takes("overlap")
    assert decode.takes("overlap")
    assert not router.takes("overlap"), "a router's launch never changes"
    assert found.index_k["bf16"].variables == {"SGLANG_DSV4_BF16_INDEX_K": "1"}
    assert found.host("here").ssh is None


@pytest.mark.parametrize(
    ("old", "new", "said", "hint"),
    [
        ('unit = "sglang-prefill"', "", "role prefill has no unit", "needs it"),
        ('unit = "sglang-prefill"', 'unti = "x"', "roles[0].unti", "did you mean `roles[0].unit`"),
        ("any_flag", "any_flags", "honours.any_flags", "any_flag"),
        ('host = "here"', 'host = "there"', "unknown host 'there'", "gpu7"),
        ('name = "here"', 'name = "gpu7"', "two hosts are called 'gpu7'", "of its own"),
        ('launcher = "docker"', 'launcher = "podman"', "podman", "docs/ab.md"),
        ('kind = "decode"', 'kind = "encoder"', "encoder", "docs/ab.md"),
        ("timeout_s = 900.0", "timeout_s = 0.0", "time-out is not above 0", "seconds"),
        ("timeout_s = 900.0", 'timeout_s = "soon"', "Expected `float`", "docs/ab.md"),
        ("[index_k.bf16]", "[index_k.int8]", "index_k.int8 means nothing", "fp8"),
        ("variables = {", "variable = {", "index_k.bf16.variable", "variables"),
        ("RUST_LOG", '"RUST LOG"', "'RUST LOG'", "no such variable"),
        ('url = "http://gpu7:30001"', 'url = "gpu7:port"', "names no server", "http://HOST:PORT"),
        ('container = "sglang-decode"', 'container = "c"\nargv = ["x"]', "argv belongs", "remove"),
        ('name = "ds4-pd"', 'name = "../x"', "'../x'", "letters"),
        ("[honours]", "[honours", "is no TOML", "docs/ab.md"),
    ],
)
def test_what_is_wrong_is_named(old: str, new: str, said: str, hint: str) -> None:
    assert PD.count(old) == 1
    with pytest.raises(UsageError) as refused:
        decode_deployment(PD.replace(old, new), "pd.toml")
    assert str(refused.value).startswith("pd.toml: ") or "is no TOML" in str(refused.value)
    assert said in str(refused.value)
    assert hint in refused.value.hint


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"nowhere\.toml"):
        read_deployment(tmp_path / "nowhere.toml")


def test_the_shipped_lab_takes_any_interpreter_and_folder() -> None:
    """Paths may hold whatever a TOML string has to escape."""
    odd = 'C:\\odd "folder"/é $x'
    found = lab_deployment(
        python=f"{odd}/python", port=4711, folder=odd, seed=7,
        baseline=LabBaseline(argv=("--fault", "none"), index_k="bf16"),
    )  # fmt: skip
    (role,) = found.roles
    assert role.argv[0] == f"{odd}/python"
    assert role.argv[-4:] == ("--seed", "7", "--fault", "none")
    assert role.environment == {"SGLANG_DSV4_BF16_INDEX_K": "1"}
    assert found.hosts[0].state_dir == odd
    assert found.belongs_to_run
    assert role.url == found.base_url == "http://127.0.0.1:4711"
    fp4 = lab_deployment(
        python="python", port=1, folder="x", seed=0, baseline=LabBaseline(index_k="fp4")
    )
    assert "--enable-deepseek-v4-fp4-indexer" in fp4.roles[0].argv
    assert fp4.roles[0].environment == {}


def test_the_example_in_the_documentation_is_right() -> None:
    page = (Path(__file__).parents[2] / "docs" / "ab.md").read_text(encoding="utf-8")
    examples = [part.split("```")[0] for part in page.split("```toml\n")[1:]]
    assert examples
    for example in examples:
        assert tomllib.loads(example)
        decode_deployment(example, "docs/ab.md")
