"""What a block used, read off the server's metrics: absent is None, and a restart is no loss."""

from __future__ import annotations

import pytest

from dsv4doctor.deploy.counters import Counters, counters_of

LABELS = 'model_name="m",tp_rank="0"'


@pytest.mark.parametrize(
    ("text", "host_hits", "cached"),
    [
        (
            f'sglang:cached_tokens_total{{{LABELS},cache_source="device"}} 700\n'
            f'sglang:cached_tokens_total{{{LABELS},cache_source="host"}} 256\n'
            f'sglang:cached_tokens_total{{{LABELS},tp_rank="1",cache_source="host"}} 44\n',
            300,
            1000,
        ),
        (f'sglang:cached_tokens_total{{{LABELS},source="host"}} 1.5e3\n', 1500, 1500),
        (f"sglang:load_back_tokens_total{{{LABELS}}} 512\n", 512, None),
        # A host that never hit has the label in no sample yet, but the load-back counter at 0.
        (
            f'sglang:cached_tokens_total{{{LABELS},cache_source="device"}} 9\n'
            f"sglang:load_back_tokens_total{{{LABELS}}} 0\n",
            0,
            9,
        ),
        ("sglang:num_running_reqs 3\n", None, None),
        ("", None, None),
    ],
)
def test_host_hits_are_found_under_every_name(
    text: str, host_hits: float | None, cached: float | None
) -> None:
    found = counters_of(text)
    assert found.host_hit_tokens == host_hits
    assert found.cached_tokens == cached


def test_growth_is_counted_from_the_block_s_start() -> None:
    before = Counters(host_hit_tokens=100.0, cached_tokens=None)
    after = Counters(host_hit_tokens=130.0, cached_tokens=7.0, accept_length=2.5)
    grown = after.since(before)
    assert grown == Counters(host_hit_tokens=30.0, cached_tokens=7.0, accept_length=2.5)
    assert Counters(host_hit_tokens=40.0).since(before).host_hit_tokens == 40.0
    assert Counters().since(before).host_hit_tokens is None
