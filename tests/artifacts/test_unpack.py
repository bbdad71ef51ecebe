"""Packed logs, whole, in several members, cut short and broken inside."""

from __future__ import annotations

import gzip
import io
import os

import pytest
import zstandard

from dsv4doctor.artifacts.unpack import GZIP_MAGIC, ZSTD_MAGIC, Unpacker

# Random hex does not shrink to nothing, so a cut lies well inside.
PLAIN = b"".join(os.urandom(24).hex().encode() + b"\n" for _ in range(20_000))
PACKERS = {GZIP_MAGIC: gzip.compress, ZSTD_MAGIC: zstandard.compress}


def _read(packed: bytes, magic: bytes) -> tuple[bytes, str | None]:
    unpacker = Unpacker(io.BytesIO(packed), magic)
    return io.BufferedReader(unpacker).read(), unpacker.problem


@pytest.mark.parametrize("magic", PACKERS)
def test_whole_and_in_several_members(magic: bytes) -> None:
    pack = PACKERS[magic]
    assert _read(pack(PLAIN), magic) == (PLAIN, None)
    assert _read(pack(PLAIN) + pack(b"more\n"), magic) == (PLAIN + b"more\n", None)


@pytest.mark.parametrize("magic", PACKERS)
def test_what_a_cut_log_holds_is_read_and_the_cut_is_told(magic: bytes) -> None:
    packed = PACKERS[magic](PLAIN)
    plain, problem = _read(packed[: len(packed) * 3 // 4], magic)
    assert PLAIN.startswith(plain)
    assert len(plain) > len(PLAIN) // 2
    assert problem == "breaks off; what was there was read"


@pytest.mark.parametrize("magic", PACKERS)
def test_damage_inside_is_told(magic: bytes) -> None:
    packed = bytearray(PACKERS[magic](PLAIN))
    packed[len(packed) // 2 : len(packed) // 2 + 64] = bytes(64)
    plain, problem = _read(bytes(packed), magic)
    assert problem or plain != PLAIN
    assert len(plain) < 2 * len(PLAIN)


@pytest.mark.parametrize("lines", [50, 5_000, 20_000])
def test_a_wrong_checksum_costs_no_byte_that_unpacks(lines: int) -> None:
    plain = b"".join(PLAIN.splitlines(keepends=True)[:lines])
    packed = bytearray(gzip.compress(plain))
    packed[-6] ^= 0xFF
    for before in (b"", b"first\n"):
        member = gzip.compress(before) if before else b""
        read, problem = _read(member + bytes(packed), GZIP_MAGIC)
        assert read == before + plain
        assert problem is not None
        assert "is broken inside" in problem


def test_a_wrong_checksum_of_a_frame_costs_no_byte_that_unpacks() -> None:
    packed = bytearray(zstandard.ZstdCompressor(write_checksum=True).compress(PLAIN[:9_000]))
    packed[-2] ^= 0xFF
    read, problem = _read(zstandard.compress(b"first\n") + bytes(packed), ZSTD_MAGIC)
    assert read == b"first\n" + PLAIN[:9_000]
    assert problem is not None


def test_what_follows_a_member_and_is_none_is_told() -> None:
    read, problem = _read(gzip.compress(PLAIN) + b"no member", GZIP_MAGIC)
    assert read == PLAIN
    assert problem is not None
