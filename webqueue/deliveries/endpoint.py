"""Posting JSON lines to the endpoint of a retrieval index."""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus
from types import TracebackType
from typing import Final, Self

import httpx2

from webqueue import __version__
from webqueue.sentences import stored

# What is wrong with one document and says nothing of the next (RFC 9110 §15.5).
_ABOUT_THE_DOCUMENT: Final = frozenset(
    {
        HTTPStatus.BAD_REQUEST,
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
        HTTPStatus.UNPROCESSABLE_ENTITY,
    }
)
_LONGEST_WAIT_SEC: Final = 3600
_TOLD: Final = 300


class RefusedDocumentError(Exception):
    """The endpoint does not take this document; it may take the next."""


class EndpointError(Exception):
    """The endpoint takes nothing at present; `wait_sec` is what it asked for."""

    def __init__(self, message: str, wait_sec: float | None = None) -> None:
        super().__init__(message)
        self.wait_sec = wait_sec


class Endpoint:
    """One endpoint; used as a context manager, since it keeps its connection.

    Private addresses are allowed: an index is mostly a neighbour, and its address is set by who administers the
    machine. Redirects are not followed, and proxies of the environment not used: the token would go along.

    Args:
        url: where to post.
        token: sent as a bearer token; None sends none.
        timeout_sec: for connecting, and for each silence of the endpoint.
    """

    def __init__(self, url: str, token: str | None, *, timeout_sec: float = 30.0) -> None:
        headers = {"User-Agent": f"webqueue/{__version__}", "Content-Type": "application/x-ndjson"}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        self._url = url
        self._client = httpx2.Client(
            trust_env=False, follow_redirects=False, timeout=timeout_sec, headers=headers
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client.close()

    def post(self, lines: Sequence[bytes], idempotency_key: str) -> None:
        """Hand over the lines of one document.

        Args:
            lines: JSON, each with its line end.
            idempotency_key: the same for each repetition of the same lines, so that the endpoint can tell one.

        Raises:
            RefusedDocumentError: it was refused for what it is.
            EndpointError: nothing can be posted at present.
        """
        try:
            with self._client.stream(
                "POST", self._url, content=b"".join(lines), headers={"Idempotency-Key": idempotency_key}
            ) as answer:
                told = b"" if answer.is_success else next(answer.iter_bytes(_TOLD), b"")
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise EndpointError(
                stored(
                    "the endpoint cannot be reached: %(type)s: %(why)s",
                    type=type(error).__name__,
                    why=str(error),
                )
            ) from error
        if answer.is_success:
            return
        words = told.decode("utf-8", "replace").strip()[:_TOLD]
        message = (
            stored("HTTP %(status)s from the endpoint: %(why)s", status=answer.status_code, why=words)
            if words
            else stored("HTTP %(status)s from the endpoint", status=answer.status_code)
        )
        if answer.status_code in _ABOUT_THE_DOCUMENT:
            raise RefusedDocumentError(message)
        raise EndpointError(message, _wait_of(answer.headers.get("retry-after")))


def _wait_of(retry_after: str | None) -> float | None:
    """Seconds, where it is a number; an hour at most."""
    if retry_after is None or not retry_after.strip().isdecimal():
        return None
    return float(min(int(retry_after), _LONGEST_WAIT_SEC))
