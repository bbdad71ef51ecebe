"""Connections: certificates, keys and headers, and schemes that do not fit."""

from __future__ import annotations

import asyncio
import datetime
import ipaddress
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from servers.running import running

from dsv4doctor.client.http import Answer, HttpClient
from dsv4doctor.client.http_errors import HttpFailure
from dsv4doctor.errors import UsageError
from dsv4doctor.label import Label
from dsv4doctor.target import parse_endpoint


def get(url: str, path: str = "/v1/models", **options) -> Answer:
    async def run() -> Answer:
        endpoint = parse_endpoint(url, **options)
        async with HttpClient(endpoint, connect_timeout_s=2.0) as http:
            return await http.fetch(path, deadline_s=5.0)

    return asyncio.run(run())


@pytest.fixture(scope="module")
def self_signed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The authority of a TLS server whose certificate nobody vouches for."""
    path = tmp_path_factory.mktemp("tls") / "server.pem"
    _write_certificate(path)
    with running(str(path)) as port:
        yield f"127.0.0.1:{port}"


def _write_certificate(path: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "canned")])
    today = datetime.datetime.now(datetime.UTC)
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(today - datetime.timedelta(days=1))
        .not_valid_after(today + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem, pkcs8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    path.write_bytes(
        key.private_bytes(pem, pkcs8, serialization.NoEncryption()) + certificate.public_bytes(pem)
    )


def test_an_unknown_certificate_is_refused_by_name(self_signed: str) -> None:
    with pytest.raises(HttpFailure, match=r"TLS certificate of https://.* refused: .*self.signed"):
        get(f"https://{self_signed}/good")


def test_an_unknown_certificate_is_taken_when_told_so(self_signed: str) -> None:
    assert get(f"https://{self_signed}/good", verify_tls=False).status == 200


def test_tls_asked_of_a_plain_server(canned: str) -> None:
    with pytest.raises(HttpFailure) as problem:
        get(canned.replace("http:", "https:"))
    assert problem.value.failure.kind is Label.CONNECTION_ERROR
    assert "does not speak TLS" in problem.value.failure.message


def test_plain_http_asked_of_a_tls_server(self_signed: str) -> None:
    with pytest.raises(HttpFailure) as problem:
        get(f"http://{self_signed}/good")
    assert problem.value.failure.kind in {Label.CONNECTION_ERROR, Label.PROTOCOL_ERROR}


def test_an_unknown_host() -> None:
    with pytest.raises(HttpFailure, match=r"no-such-host\.invalid"):
        get("http://no-such-host.invalid:30000")


@pytest.mark.parametrize(
    ("url", "options", "sent"),
    [
        ("{}/good.a", {"api_key": "sk-1"}, "bearer sk-1"),
        ("me:p%40ss@{}/good.b", {}, "basic bwu6cebzcw=="),
        ("{}/good.c", {"headers": (("Authorization", "Token t"),)}, "token t"),
    ],
    ids=["key", "credentials in the URL", "a header of the user's own"],
)
def test_credentials_travel_in_the_header(canned: str, url, options, sent) -> None:
    root = url.format(canned.removeprefix("http://"))

    async def run() -> list[dict]:
        async with HttpClient(parse_endpoint(root, **options)) as http:
            await http.fetch("/v1/x", deadline_s=5, method="POST", content=b"{}")
            return (await http.fetch("/seen", deadline_s=5)).body

    assert f'"authorization": "{sent}"'.encode() in asyncio.run(run())


@pytest.mark.parametrize("value", ["a\r\nX-Evil: 1", "clé", "a\x00b"])
def test_a_header_that_cannot_be_sent_is_a_usage_error(value: str) -> None:
    with pytest.raises(UsageError, match="cannot be sent") as problem:
        HttpClient(parse_endpoint("h:1", api_key=value))
    assert value not in str(problem.value)


def test_a_slow_answer_has_a_deadline(canned: str) -> None:
    async def run() -> None:
        async with HttpClient(parse_endpoint(f"{canned}/mute")) as http:
            await http.fetch("/v1/x", deadline_s=0.2, method="POST", content=b"{}")

    with pytest.raises(HttpFailure, match=r"no answer from /v1/x within 0\.2 s"):
        asyncio.run(run())
