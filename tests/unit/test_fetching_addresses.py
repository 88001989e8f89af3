"""Which addresses a crawl may connect to."""

from __future__ import annotations

import pytest

from webqueue.handlers.fetching.addresses import why_refused

REFUSED = {
    "127.0.0.1": "loopback",
    "127.255.255.254": "loopback",
    "::1": "loopback",
    "0.0.0.0": "unspecified",
    "0.1.2.3": "unspecified",
    "::": "unspecified",
    "10.0.0.1": "private",
    "172.16.0.1": "private",
    "172.31.255.255": "private",
    "192.168.1.1": "private",
    "fc00::1": "private",
    "fdff:1::1": "private",
    "fec0::1": "private",
    "169.254.1.1": "link-local",
    "fe80::1": "link-local",
    "fe80::1%eth0": "link-local",
    "100.64.0.1": "CGNAT",
    "100.127.255.254": "CGNAT",
    "224.0.0.1": "multicast",
    "239.255.255.250": "multicast",
    "ff02::1": "multicast",
    "192.0.2.1": "reserved",
    "198.18.0.1": "reserved",
    "203.0.113.9": "reserved",
    "240.0.0.1": "reserved",
    "255.255.255.255": "reserved",
    "2001:db8::1": "reserved",
    "169.254.169.254": "metadata",
    "169.254.170.2": "metadata",
    "100.100.100.200": "metadata",
    "168.63.129.16": "metadata",
    "fd00:ec2::254": "metadata",
    "::ffff:127.0.0.1": "loopback",
    "::ffff:10.0.0.1": "private",
    "::ffff:a9fe:a9fe": "metadata",
    "::127.0.0.1": "loopback",
    "::10.1.2.3": "private",
    "2002:7f00:1::": "loopback",
    "2002:a00:1::1": "private",
    "64:ff9b::7f00:1": "loopback",
    "64:ff9b::192.168.0.1": "private",
    "64:ff9b:1::8.8.8.8": "reserved",
    "2001:0:4136:e378:8000:63bf:80ff:fffe": "loopback",  # Teredo, client 127.0.0.1
    "4000::1": "not a public",
}


@pytest.mark.parametrize(("address", "why"), REFUSED.items())
def test_refused(address: str, why: str) -> None:
    reason = why_refused(address)

    assert reason is not None
    assert why in reason


@pytest.mark.parametrize(
    "address",
    [
        "8.8.8.8",
        "1.1.1.1",
        "100.63.255.255",
        "100.128.0.1",
        "172.15.255.255",
        "172.32.0.1",
        "223.255.255.255",
        "2606:4700::1111",
        "240e::1",
        "::ffff:8.8.8.8",
        "64:ff9b::8.8.8.8",
        "2002:808:808::1",
    ],
)
def test_public(address: str) -> None:
    assert why_refused(address) is None


@pytest.mark.parametrize("text", ["localhost", "", "127.1", "0x7f000001", "2130706433", "1.2.3.4.5"])
def test_what_is_no_address_is_refused(text: str) -> None:
    assert why_refused(text) == "not an IP address"
