"""What went wrong with a request, in words for the person who reads the job."""

from __future__ import annotations

from dataclasses import dataclass

import httpcore2

from webqueue.handlers.fetching.decompression import MAX_RATIO, BombError, UndecodableError
from webqueue.handlers.fetching.exchange import BrokenBodyError, CutBodyError, TooLargeError
from webqueue.handlers.fetching.hops import Hop
from webqueue.handlers.fetching.interruption import TotalTimeoutError
from webqueue.handlers.fetching.wire import (
    AddressRefusedError,
    RefusedConnectError,
    ResetReadError,
    ResetWriteError,
    TLSFailedError,
)
from webqueue.sentences import stored


@dataclass(frozen=True)
class Failure:
    """Why there is no answer.

    Attributes:
        kind: of the `FetchError`.
        text: what happened.
        advice: what to do about it, where that can be known.
        again: whether another try may go better.
        sent: whether the server may have got the request.
        refused: the connection was refused or reset, which three times over is a block.
    """

    kind: str
    text: str
    advice: str = ""
    again: bool = False
    sent: bool = True
    refused: bool = False


def failure_of(error: Exception, hop: Hop, timeout_sec: float) -> Failure | None:  # noqa: PLR0911 - a table
    """What an exception of an exchange means; None for one that is a surprise."""
    match error:
        case AddressRefusedError():
            return Failure(
                "address",
                str(error),
                stored("Crawls reach such addresses only where WEBQUEUE_ALLOW_PRIVATE_ADDRESSES is on."),
            )
        case TooLargeError():
            return Failure(
                "too_large", stored("the answer is larger than %(count)s bytes", count=hop.max_bytes)
            )
        case BombError():
            return Failure(
                "too_large",
                stored(
                    "the answer unpacks to more than %(count)s times its size, as only decompression "
                    "bombs do",
                    count=MAX_RATIO,
                ),
            )
        case UndecodableError():
            return Failure("decoding", stored("the answer cannot be unpacked: %(why)s", why=str(error)))
        case BrokenBodyError():
            return Failure("decoding", stored("the answer cannot be unpacked: it ends too early"))
        case CutBodyError():
            return Failure(
                "network", stored("the connection was cut in the middle of the answer"), again=True
            )
        case httpcore2.TimeoutException():
            return _timeout(error, hop, timeout_sec)
    return _connection(error)


def _timeout(error: httpcore2.TimeoutException, hop: Hop, timeout_sec: float) -> Failure:
    match error:
        case TotalTimeoutError():
            return Failure(
                "timeout",
                stored("the answer was not complete within %(seconds)s s", seconds=f"{hop.total_sec:g}"),
                again=True,
            )
        case httpcore2.ConnectTimeout():
            return Failure(
                "timeout",
                stored("%(what)s within %(seconds)s s", what=str(error), seconds=f"{timeout_sec:g}"),
                again=True,
                sent=False,
            )
    return Failure(
        "timeout", stored("the server was silent for %(seconds)s s", seconds=f"{timeout_sec:g}"), again=True
    )


def _connection(error: Exception) -> Failure | None:  # noqa: PLR0911 - a table
    match error:
        case TLSFailedError(certificate=True):
            return Failure(
                "network",
                stored("the certificate was refused: %(why)s", why=str(error)),
                stored(
                    "If you trust the server all the same, set verify_tls: false in the site's http settings."
                ),
                sent=False,
            )
        case TLSFailedError():
            return Failure(
                "network",
                stored("TLS could not be agreed on: %(why)s", why=str(error)),
                stored("An old server may need legacy_tls: true in the site's http settings."),
                again=True,
                sent=False,
            )
        case httpcore2.ConnectError():
            refused = isinstance(error, RefusedConnectError)
            return Failure("network", str(error), again=True, sent=False, refused=refused)
        case httpcore2.ProxyError():
            return Failure(
                "network",
                stored("the proxy refused: %(why)s", why=str(error)),
                stored("Check the site's proxy."),
                again=True,
            )
        case httpcore2.LocalProtocolError() | UnicodeEncodeError():
            return Failure(
                "network",
                stored("the request cannot be sent: %(why)s", why=str(error)),
                stored("Check the headers in the site's http settings and in the target."),
                sent=False,
            )
        case httpcore2.RemoteProtocolError():
            told = str(error).rstrip(".")
            return Failure(
                "network", stored("the answer is not whole, or no HTTP: %(why)s", why=told), again=True
            )
        case httpcore2.NetworkError():
            refused = isinstance(error, ResetReadError | ResetWriteError)
            return Failure(
                "network",
                stored("the connection broke: %(why)s", why=str(error)),
                again=True,
                refused=refused,
            )
    return None
