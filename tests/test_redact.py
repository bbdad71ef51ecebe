"""No secret survives; nothing else is touched."""

from __future__ import annotations

import pytest

from dsv4doctor.redact import (
    REDACTED,
    is_secret_name,
    redact_argv,
    redact_text,
    redact_value,
)

SECRET = "hunter2hunter2hunter2"


@pytest.mark.parametrize(
    "argv",
    [
        ("--api-key", SECRET),
        (f"--api-key={SECRET}",),
        ("--header", f"Authorization=Bearer {SECRET}"),
        ("--header", f"X-Api-Key: {SECRET}"),
        ("-H", f"Cookie: a={SECRET}"),
        (f"-HAuthorization: {SECRET}",),
        (f"--header=Authorization: {SECRET}",),
        ("--base-url", f"http://user:{SECRET}@host:30000/v1"),
        ("--base-url", f"https://{SECRET}@host"),
        (f"--base-url=http://user:{SECRET}@host",),
        ("--base-url", f"http://host/v1?api_key={SECRET}&x=1"),
        ("--extra-request-body", f'{{"auth": "Bearer {SECRET}"}}'),
        ("--extra-request-body", f'{{"password": "{SECRET}"}}'),
        (f'--extra-body={{"deep": {{"api_key": "{SECRET}"}}}}',),
        ("--hf-token", SECRET),
        ("--admin-api-key", SECRET),
        ("--ssl-keyfile-password", SECRET),
        (f"sk-{SECRET}",),
    ],
)
def test_secrets_go(argv: tuple[str, ...]) -> None:
    shown = redact_argv(("dsv4doctor", "repro", *argv, "--seed", "1"))
    assert SECRET not in " ".join(shown)
    assert REDACTED in " ".join(shown)
    assert shown[-2:] == ("--seed", "1")
    assert len(shown) == len(argv) + 4


@pytest.mark.parametrize(
    "argv",
    [
        ("--max-tokens", "512"),
        ("--context-tokens", "2000:80000"),
        ("--base-url", "http://gpu7:30000/v1"),
        ("--header", "X-Tenant=blue"),
        ("--extra-request-body", '{"top_k": 1}'),
        ("--tokenizer-path", "/models/ds4"),
    ],
)
def test_other_words_stay(argv: tuple[str, ...]) -> None:
    assert redact_argv(argv) == argv


@pytest.mark.parametrize("name", ["max_total_tokens", "eos_token", "canary_key", "keys"])
def test_names_that_are_no_secret(name: str) -> None:
    assert not is_secret_name(name)


def test_headers_keep_their_names() -> None:
    shown = redact_value({"Authorization": f"Bearer {SECRET}", "Accept": "text/event-stream"})
    assert shown == {"Authorization": REDACTED, "Accept": "text/event-stream"}


def test_server_arguments_at_any_depth() -> None:
    shown = redact_value(
        {
            "api_key": SECRET,
            "admin_api_key": None,
            "max_total_tokens": 1000,
            "nested": [{"hf_token": SECRET, "url": f"redis://u:{SECRET}@h/0"}],
            "page_size": 256,
        }
    )
    assert SECRET not in str(shown)
    assert shown["admin_api_key"] is None
    assert shown["max_total_tokens"] == 1000
    assert shown["nested"][0]["url"] == f"redis://{REDACTED}@h/0"


def test_a_launch_line_kept_as_one_string() -> None:
    line = f"python -m sglang.launch_server --api-key {SECRET} --max-tokens 5 --hf-token='{SECRET}'"
    assert redact_text(line) == line.replace(f"'{SECRET}'", REDACTED).replace(SECRET, REDACTED)


def test_prose_is_left_alone() -> None:
    text = "Bearer of news: 3 < 4, mail me@example.org, http://a/b?c=d"
    assert redact_text(text) == text
