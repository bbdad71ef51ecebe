"""One server, however its base URL is spelt."""

from __future__ import annotations

import pytest

from dsv4doctor.errors import UsageError
from dsv4doctor.target import parse_endpoint


@pytest.mark.parametrize(
    ("text", "root"),
    [
        ("h:30000", "http://h:30000"),
        ("http://h:30000/", "http://h:30000"),
        ("http://h:30000/v1", "http://h:30000"),
        ("http://h:30000/v1/", "http://h:30000"),
        ("https://gw/ds4/v1", "https://gw/ds4"),
        ("https://gw/ds4", "https://gw/ds4"),
        ("http://[::1]:8000/v1", "http://[::1]:8000"),
        ("  h  ", "http://h"),
    ],
)
def test_every_spelling_is_one_root(text: str, root: str) -> None:
    assert parse_endpoint(text).base_url == root


@pytest.mark.parametrize(
    "text", ["", "ftp://h", "http://", "http://h:99999", "http://h:x", "a b", "http://h:0"]
)
def test_what_names_no_server_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_endpoint(text)
    assert "\n" not in str(caught.value)
    assert caught.value.hint


def test_credentials_never_stay_in_the_printable_url() -> None:
    endpoint = parse_endpoint("http://user:hunter2@h:30000/v1")
    assert endpoint.base_url == "http://h:30000"
    assert endpoint.userinfo == "user:hunter2"
