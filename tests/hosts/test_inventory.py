"""Spellings of hosts, and files of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from dsv4doctor.errors import UsageError
from dsv4doctor.hosts.inventory import Host, parse_host, read_inventory


@pytest.mark.parametrize(
    ("text", "host"),
    [
        ("gpu-1", Host(name="gpu-1")),
        (" root@gpu-1 ", Host(name="gpu-1", user="root")),
        ("gpu-1:2222", Host(name="gpu-1", port=2222)),
        ("ops@10.0.0.4:22", Host(name="10.0.0.4", user="ops", port=22)),
        ("[fe80::1%eth0]:2222", Host(name="fe80::1%eth0", port=2222)),
        ("2001:db8::7", Host(name="2001:db8::7")),
    ],
)
def test_every_spelling_of_a_host(text: str, host: Host):
    assert parse_host(text) == host
    assert parse_host(str(host)) == host


@pytest.mark.parametrize(
    "text", ["", "-oProxyCommand=x", "a b", "@host", "host:0", "host:x", "u@-x", "host:99999"]
)
def test_what_names_no_host_is_refused(text: str):
    with pytest.raises(UsageError, match="--ssh-host"):
        parse_host(text)


def test_files_and_flags_are_one_list_without_repeats(tmp_path: Path):
    path = tmp_path / "hosts"
    path.write_text("# the prefill side\ngpu-1\n\nroot@gpu-2:2222  # new\ngpu-1\n")
    found = read_inventory(["gpu-0", "gpu-1"], [path])
    assert [str(host) for host in found] == ["gpu-0", "gpu-1", "root@gpu-2:2222"]


def test_a_bad_line_is_named_with_its_number(tmp_path: Path):
    path = tmp_path / "hosts"
    path.write_text("gpu-1\ngpu 2\n")
    with pytest.raises(UsageError, match=r"hosts:2: 'gpu 2'"):
        read_inventory([], [path])


@pytest.mark.parametrize("content", [None, b"\xff\xfe\0"])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, content: bytes | None):
    path = tmp_path / "hosts"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UsageError, match="--ssh-hosts"):
        read_inventory([], [path])
