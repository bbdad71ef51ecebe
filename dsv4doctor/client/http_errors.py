"""What the HTTP library raises -> what really happened, in our own words.

httpx over aiohttp maps some of it badly: a closed connection is told as a connect time-out, and
replies that are no HTTP escape unmapped.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import aiohttp
import httpx

from dsv4doctor.client.encoding import EncodingError
from dsv4doctor.label import Label
from dsv4doctor.reply import Failure
from dsv4doctor.target import Endpoint


class HttpFailure(Exception):
    """A request that brought no usable answer; `failure` says why."""

    def __init__(self, failure: Failure, *, unanswered: bool = False) -> None:
        super().__init__(failure.message)
        self.failure = failure
        # The connection was closed before one byte of an answer.
        self.unanswered = unanswered


@contextlib.contextmanager
def mapped_errors(endpoint: Endpoint, connect_timeout_s: float) -> Iterator[None]:
    """Every error of the library told as what really happened.

    Raises:
        HttpFailure: in place of whatever httpx or aiohttp raise inside.
    """
    try:
        yield
    except (
        httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, aiohttp.ClientError, OSError,
        EncodingError,
    ) as error:  # fmt: skip
        raise _failure_of(error, endpoint, connect_timeout_s) from error


def _failure_of(error: Exception, endpoint: Endpoint, connect_timeout_s: float) -> HttpFailure:
    cause = error.__cause__ if isinstance(error, httpx.HTTPError) else error
    cause = cause or error
    where = endpoint.base_url
    kind, unanswered = Label.CONNECTION_ERROR, False
    if isinstance(cause, aiohttp.ServerDisconnectedError):
        kind, message, unanswered = _disconnected(cause, where)
    elif isinstance(cause, aiohttp.ServerTimeoutError):
        message = f"no connection to {where} within {connect_timeout_s:g} s"
    elif isinstance(cause, aiohttp.ClientConnectorCertificateError):
        message = f"TLS certificate of {where} refused: {cause.certificate_error}"
    elif isinstance(cause, aiohttp.ClientConnectorSSLError):
        message = f"{where} does not speak TLS as asked: {_one_line(cause.os_error)}"
    elif isinstance(cause, aiohttp.ClientConnectorDNSError):
        message = f"host of {where} is unknown"
    elif isinstance(cause, aiohttp.ClientConnectorError):
        message = f"no connection to {where}: {cause.os_error.strerror or cause.os_error}"
    elif isinstance(cause, aiohttp.ClientPayloadError):
        kind, message = _broken_body(cause)
    elif isinstance(cause, aiohttp.ClientResponseError):
        kind, message = Label.PROTOCOL_ERROR, f"{where} does not speak HTTP: {_one_line(cause)}"
    elif isinstance(cause, aiohttp.ClientConnectionError):
        message, unanswered = f"connection to {where} broke: {_one_line(cause)}", True
    elif isinstance(cause, EncodingError):
        kind, message = Label.PROTOCOL_ERROR, str(cause)
    else:
        message = f"{type(cause).__name__}: {_one_line(cause)}"
    is_stranger = isinstance(cause, aiohttp.ClientResponseError)
    failure = Failure(kind=kind, message=message, is_stranger=is_stranger)
    return HttpFailure(failure, unanswered=unanswered)


def _disconnected(cause: aiohttp.ServerDisconnectedError, where: str) -> tuple[Label, str, bool]:
    said = cause.message
    if isinstance(said, str | None):
        return Label.CONNECTION_ERROR, f"{where} closed the connection before answering", True
    # aiohttp hands over what it had parsed of an unfinished answer.
    return Label.PROTOCOL_ERROR, f"{where} closed the connection in the answer's head", False


def _broken_body(cause: aiohttp.ClientPayloadError) -> tuple[Label, str]:
    inner = cause.__cause__
    if isinstance(inner, aiohttp.http_exceptions.TransferEncodingError) or "400" in str(cause):
        text = _one_line(inner or cause)
        if "not enough data" not in text.lower():
            return Label.PROTOCOL_ERROR, f"broken transfer coding: {text}"
    return Label.CONNECTION_ERROR, "connection closed in the middle of the reply"


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__
