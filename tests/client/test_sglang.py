"""A server's own routes, read from servers that have some of them."""

from __future__ import annotations

import asyncio

import pytest

from dsv4doctor.client.http import HttpClient
from dsv4doctor.client.sglang import ask_route, gauges, inspect_server, list_models, parse_metrics
from dsv4doctor.errors import DoctorError
from dsv4doctor.redact import REDACTED, redact_value
from dsv4doctor.target import parse_endpoint


def test_a_full_server_is_read_and_its_secrets_are_not(canned: str) -> None:
    info = inspect_server(parse_endpoint(f"{canned}/good"))
    assert (info.engine, info.version, info.model) == ("sglang", "0.5.23", "m")
    assert info.server_args["enable_hierarchical_cache"] is True
    assert info.server_args["tool_call_parser"] == "dsv4"
    assert info.problems == ()
    assert "s3cret" not in repr(info)


def test_a_server_with_other_routes_is_another_engine(canned: str) -> None:
    info = inspect_server(parse_endpoint(f"{canned}/vllm_call"))
    assert (info.engine, info.version, info.model) == ("vllm", "0.33.0", "m")
    assert dict(info.server_args) == {}
    assert info.problems == ("no /server_info: launch arguments are unknown",)


def test_an_unreachable_server_is_all_unknown() -> None:
    info = inspect_server(parse_endpoint("127.0.0.1:1"), deadline_s=1.0)
    assert (info.engine, info.version, info.model) == (None, None, None)
    with pytest.raises(DoctorError, match=r"no connection to http://127\.0\.0\.1:1") as error:
        list_models(parse_endpoint("127.0.0.1:1"))
    assert "--base-url" in error.value.hint


def test_models_are_listed_in_the_servers_order(canned: str) -> None:
    assert list_models(parse_endpoint(f"{canned}/good/v1")) == ("m", "n")


def test_routes_and_gauges(canned: str) -> None:
    async def read():
        async with HttpClient(parse_endpoint(f"{canned}/good")) as http:
            return (
                await ask_route(http, "/health"),
                await ask_route(http, "/nowhere"),
                await gauges(http),
            )

    health, nowhere, samples = asyncio.run(read())
    assert health.is_ok
    assert (nowhere.status, nowhere.problem) == (404, "HTTP 404: Not Found")
    assert samples == {
        "sglang:num_running_reqs": 3.0,
        "sglang:num_queue_reqs": 3.0,
        "sglang:prompt_tokens_total": 100.0,
    }


def test_metrics_text_that_is_odd_is_skipped() -> None:
    assert parse_metrics('a{x="}"} 1\n# b 2\nc\nd oops\ne 3 1700000000\na 2') == {"a": 3, "e": 3}


SECRETS = {
    "by key": ({"hf_token": "x", "n": {"ssl_keyfile_password": "x"}},
               {"hf_token": REDACTED, "n": {"ssl_keyfile_password": REDACTED}}),
    "not by key": ({"max_total_tokens": 7, "tokenizer_path": "/t", "api_key": None},
                   {"max_total_tokens": 7, "tokenizer_path": "/t", "api_key": None}),
    "command line": ("serve --api-key x --hf-token='a b' --tp 8",
                     f"serve --api-key {REDACTED} --hf-token={REDACTED} --tp 8"),
    "arguments": (["--api-key", "x", "--tp", "8"], ["--api-key", REDACTED, "--tp", "8"]),
    "url": ("redis://me:pw@host/0", f"redis://{REDACTED}@host/0"),
    "variables": ({"AWS_SECRET_ACCESS_KEY": "x", "SGLANG_TOKENS": "4"},
                  {"AWS_SECRET_ACCESS_KEY": REDACTED, "SGLANG_TOKENS": "4"}),
}  # fmt: skip


@pytest.mark.parametrize(("value", "shown"), SECRETS.values(), ids=SECRETS.keys())
def test_redaction(value, shown) -> None:
    assert redact_value(value) == shown
