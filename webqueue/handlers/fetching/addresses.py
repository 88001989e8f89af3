"""Which addresses a crawl may connect to.

A target is a URL that somebody typed, and a page may redirect anywhere: without this check the crawler would fetch
whatever its machine can reach, the admin itself and the cloud's metadata service included (server-side request
forgery). The check is made on the address that is connected to, in the connection's own code, because a name may
answer differently to a check and to the connection that follows (DNS rebinding).
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Iterator, Sequence

from webqueue.sentences import stored

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Resolver = Callable[[str, int], Sequence[str]]
"""Gives the IP addresses of a host; raises OSError. `socket.getaddrinfo`, unless a test replaces it."""

# Told by name where a person would ask "why?"; what is in no list but not globally routable is refused all the same.
_REFUSED: tuple[tuple[str, tuple[str, ...]], ...] = (
    # Azure's is a public address by number, and reachable from every machine there.
    (
        stored("an address of a cloud's metadata service"),
        (
            "169.254.169.254/32",
            "169.254.170.2/32",
            "168.63.129.16/32",
            "100.100.100.200/32",
            "192.0.0.192/32",
            "fd00:ec2::254/128",
        ),
    ),
    (stored("a loopback address"), ("127.0.0.0/8", "::1/128")),
    (stored("an unspecified address, which reaches this machine"), ("0.0.0.0/8", "::/128")),
    (stored("a private address"), ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7", "fec0::/10")),
    (stored("a link-local address"), ("169.254.0.0/16", "fe80::/10")),
    (stored("an address of a provider's inner network (CGNAT)"), ("100.64.0.0/10",)),
    (stored("a multicast address"), ("224.0.0.0/4", "ff00::/8")),
    (
        stored("a reserved address"),
        (
            "192.0.0.0/24",
            "192.0.2.0/24",
            "192.88.99.0/24",
            "198.18.0.0/15",
            "198.51.100.0/24",
            "203.0.113.0/24",
            "240.0.0.0/4",
            "100::/64",
            "2001:2::/48",
            "2001:db8::/32",
            "3fff::/20",
            "64:ff9b:1::/48",
        ),
    ),
)
_NETWORKS: tuple[tuple[str, tuple[Network, ...]], ...] = tuple(
    (what, tuple(ipaddress.ip_network(text) for text in texts)) for what, texts in _REFUSED
)
# All that was ever given out of IPv6 (RFC 3513 §2.4); what lies outside may be routed to anything inside a network.
_GLOBAL_UNICAST = ipaddress.IPv6Network("2000::/3")
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_V4_COMPATIBLE = ipaddress.IPv6Network("::/96")


def why_refused(address: str) -> str | None:
    """What is wrong with connecting to an IP address (`a loopback address`), or None if it is a public one.

    An IPv6 address that carries an IPv4 one (mapped, compatible, 6to4, Teredo, NAT64) is judged by both.
    """
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return stored("not an IP address")
    return next((reason for form in _forms(parsed) if (reason := _reason(form))), None)


def is_address(host: str) -> bool:
    """Whether a host is an IP address and needs no look-up."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def system_resolver(host: str, port: int) -> Sequence[str]:
    """The addresses of a host in the order in which the system would try them."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def _reason(address: Address) -> str | None:
    for what, networks in _NETWORKS:
        if any(address.version == network.version and address in network for network in networks):
            return what
    if _carries_ipv4(address):
        return None  # judged by the IPv4 address; the prefix around it is not globally routable by itself
    allotted = address.version == 4 or address in _GLOBAL_UNICAST
    return None if address.is_global and allotted else stored("not a public address")


def _forms(address: Address) -> Iterator[Address]:
    yield address
    if isinstance(address, ipaddress.IPv6Address):
        yield from _embedded(address)


def _embedded(address: ipaddress.IPv6Address) -> Iterator[ipaddress.IPv4Address]:
    if address.ipv4_mapped is not None:
        yield address.ipv4_mapped
    if address.sixtofour is not None:
        yield address.sixtofour
    if address.teredo is not None:
        yield from address.teredo
    if address in _NAT64 or (address in _V4_COMPATIBLE and int(address) > 1):
        yield ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)


def _carries_ipv4(address: Address) -> bool:
    return isinstance(address, ipaddress.IPv6Address) and any(_embedded(address))
