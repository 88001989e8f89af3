"""Connections that are checked before they are made, and whose waits end when they are told to.

This is httpcore2's network backend: all bytes of a fetcher go through here, TLS and proxies included.
"""

from __future__ import annotations

import errno
import os
import select
import socket
import ssl
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import httpcore2

from webqueue.handlers.fetching.addresses import Resolver, is_address, why_refused
from webqueue.handlers.fetching.interruption import Interruption
from webqueue.sentences import stored

T = TypeVar("T")


class AddressRefusedError(Exception):
    """The host has no address that may be connected to; the text names address and reason."""


class TLSFailedError(httpcore2.ConnectError):
    """The connection was there, but TLS could not be agreed on.

    Attributes:
        certificate: the server's certificate was refused; it will be at the next try, too.
    """

    def __init__(self, message: str, *, certificate: bool) -> None:
        super().__init__(message)
        self.certificate = certificate


class RefusedConnectError(httpcore2.ConnectError):
    """The server's machine, or a firewall before it, refused or reset the connection."""


class ResetReadError(httpcore2.ReadError):
    """The connection was reset before the answer was whole."""


class ResetWriteError(httpcore2.WriteError):
    """The connection was reset before the request was sent."""


class CheckedBackend(httpcore2.NetworkBackend):
    """Resolves a name, checks each address, and connects to an address that was checked: one look-up, no second.

    Args:
        interruption: ends the waits.
        resolve: looks names up.
        allow_private: whether every address may be connected to.
        trusted: a host and port that are not checked: the proxy that an administrator configured. It lies in a
            private network as a rule, and what it lets through is the administrator's decision.
    """

    def __init__(
        self,
        interruption: Interruption,
        resolve: Resolver,
        *,
        allow_private: bool,
        trusted: tuple[str, int] | None = None,
    ) -> None:
        self._interruption = interruption
        self._resolve = resolve
        self._allow_private = allow_private
        self._trusted = trusted

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[object] | None = None,
    ) -> httpcore2.NetworkStream:
        """Connect to the first of the host's permitted addresses that answers, within `timeout` seconds for all.

        Raises:
            AddressRefusedError: none of its addresses is permitted.
            httpcore2.ConnectError, httpcore2.ConnectTimeout: no connection came about.
            StopRequested: a stop was requested meanwhile.
        """
        del local_address, socket_options  # the pool of `transport` sets neither
        until = _until(timeout)
        try:
            addresses = self._permitted(host, port, self._look_up(host, port, until))
            sock = self._connect_to_any(addresses, port, until)
        except TimeoutError as error:
            raise httpcore2.ConnectTimeout(
                stored("no connection to %(host)s port %(port)s", host=host, port=port)
            ) from error
        except OSError as error:
            kind = RefusedConnectError if _is_refusal(error) else httpcore2.ConnectError
            raise kind(
                stored(
                    "no connection to %(host)s port %(port)s: %(why)s", host=host, port=port, why=_text(error)
                )
            ) from error
        return WatchedStream(sock, self._interruption)

    def _look_up(self, host: str, port: int, until: float) -> Sequence[str]:
        if is_address(host):
            return [host]
        try:
            return self._interruption.run_beside(lambda: self._resolve(host, port), until)
        except (socket.gaierror, UnicodeError) as error:
            raise httpcore2.ConnectError(
                stored("the name %(host)s was not found (%(why)s)", host=host, why=_text(error))
            ) from error

    def _permitted(self, host: str, port: int, addresses: Sequence[str]) -> Sequence[str]:
        if self._allow_private or (host, port) == self._trusted:
            return addresses
        reasons = {address: why_refused(address) for address in addresses}
        permitted = [address for address, reason in reasons.items() if reason is None]
        if not permitted and reasons:
            found = ", ".join(
                f"{address}, {reason}" if address != host else str(reason)
                for address, reason in reasons.items()
            )
            raise AddressRefusedError(stored("%(host)s is %(what)s", host=host, what=found))
        return permitted

    def _connect_to_any(self, addresses: Sequence[str], port: int, until: float) -> socket.socket:
        failure: OSError = OSError(errno.EADDRNOTAVAIL, stored("the name has no address"))
        for position, address in enumerate(addresses):
            # A fair share of the time left for each, so that a dead IPv6 route does not use it all up.
            now = time.monotonic()
            share = (until - now) / (len(addresses) - position)
            try:
                return self._connect(address, port, now + share)
            except OSError as error:
                failure = error
        raise failure

    def _connect(self, address: str, port: int, until: float) -> socket.socket:
        # Numeric only: from here on nothing is looked up any more.
        family, kind, protocol, _, target = socket.getaddrinfo(
            address, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST
        )[0]
        sock = socket.socket(family, kind, protocol)
        try:
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            code = sock.connect_ex(target)
            if code == errno.EINPROGRESS:
                self._interruption.wait_for(sock, select.POLLOUT, until)
                code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        except BaseException:
            sock.close()
            raise
        if code:
            sock.close()
            raise OSError(code, os.strerror(code))  # of the subclass that fits the code
        return sock


class WatchedStream(httpcore2.NetworkStream):
    """A connection on a non-blocking socket; every wait ends when the interruption says so."""

    def __init__(self, sock: socket.socket, interruption: Interruption) -> None:
        self._sock = sock
        self._interruption = interruption

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Receive what is there, at least one byte; none at the end."""
        try:
            return self._do(lambda: self._sock.recv(max_bytes), select.POLLIN, _until(timeout))
        except TimeoutError as error:
            raise httpcore2.ReadTimeout(stored("nothing came")) from error
        except OSError as error:
            raise (ResetReadError if _is_refusal(error) else httpcore2.ReadError)(_text(error)) from error

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Send everything; `timeout` is for each part that the network takes."""
        view = memoryview(buffer)
        try:
            while view:
                part = view
                sent = self._do(lambda: self._sock.send(part), select.POLLOUT, _until(timeout))  # noqa: B023
                view = view[sent:]
        except TimeoutError as error:
            raise httpcore2.WriteTimeout(stored("nothing was taken")) from error
        except OSError as error:
            raise (ResetWriteError if _is_refusal(error) else httpcore2.WriteError)(_text(error)) from error

    def close(self) -> None:
        """Close the connection."""
        self._sock.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        """Shake hands; the certificate is checked against `server_hostname`, never against the address."""
        try:
            tls = ssl_context.wrap_socket(
                self._sock, server_hostname=server_hostname, do_handshake_on_connect=False
            )
        except (OSError, ValueError) as error:
            self.close()
            raise TLSFailedError(_text(error), certificate=False) from error
        stream = WatchedStream(tls, self._interruption)
        try:
            stream._do(tls.do_handshake, select.POLLIN, _until(timeout))
        except TimeoutError as error:
            stream.close()
            raise httpcore2.ConnectTimeout(stored("TLS was not agreed on")) from error
        except ssl.SSLCertVerificationError as error:
            stream.close()
            raise TLSFailedError(error.verify_message, certificate=True) from error
        except OSError as error:
            stream.close()
            if _is_refusal(error):  # firewalls often reset as soon as they have read the name in the greeting
                raise RefusedConnectError(
                    stored("TLS could not be agreed on: %(why)s", why=_text(error))
                ) from error
            raise TLSFailedError(_text(error), certificate=False) from error
        except BaseException:
            stream.close()
            raise
        return stream

    def get_extra_info(self, info: str) -> object:
        """What httpcore2 asks about: the TLS object, and whether an idle connection was closed by the server."""
        if info == "ssl_object":
            return self._sock if isinstance(self._sock, ssl.SSLSocket) else None
        if info == "is_readable":
            return self._is_readable()
        if info == "socket":
            return self._sock
        return None

    def _is_readable(self) -> bool:
        if self._sock.fileno() < 0:
            return True
        poll = select.poll()
        poll.register(self._sock, select.POLLIN)
        return bool(poll.poll(0))

    def _do(self, step: Callable[[], T], blocked_for: int, until: float) -> T:
        while True:
            self._interruption.check()
            try:
                return step()
            except ssl.SSLWantWriteError:
                event = select.POLLOUT
            except ssl.SSLWantReadError:
                event = select.POLLIN
            except BlockingIOError:
                event = blocked_for
            self._interruption.wait_for(self._sock, event, until)


def _until(timeout: float | None) -> float:
    return time.monotonic() + (timeout if timeout is not None else float("inf"))


def _is_refusal(error: OSError) -> bool:
    return isinstance(error, ConnectionRefusedError | ConnectionResetError | BrokenPipeError)


def _text(error: Exception) -> str:
    """An operating system's or OpenSSL's error in words, without its number and source line."""
    if isinstance(error, ssl.SSLError) and error.reason:
        return error.reason.replace("_", " ").lower()
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__
