"""Whom sinks may reach: hosts by name, addresses after they are resolved."""

from __future__ import annotations

import socket
from ipaddress import IPv4Address, IPv6Address, ip_network
from typing import Any

import pytest

from oxiseq.options.addresses import AddressError
from oxiseq.sinks import Allowed, SinkError


@pytest.mark.parametrize(
    ("hosts", "host", "port", "allowed"),
    [
        (["hooks.example.org"], "hooks.example.org", 443, True),
        (["hooks.example.org"], "HOOKS.example.org.", 443, True),
        (["hooks.example.org"], "x.hooks.example.org", 443, False),
        (["*.example.org"], "a.b.example.org", 443, True),
        (["*.example.org"], "example.org", 443, False),
        (["*.example.org"], "badexample.org", 443, False),
        (["hooks.example.org:8443"], "hooks.example.org", 8443, True),
        (["hooks.example.org:8443"], "hooks.example.org", 443, False),
        (["*"], "anything", 1, True),
        (["*:443"], "anything", 80, False),
        (["[::1]:80"], "::1", 80, True),
        ([], "hooks.example.org", 443, False),
    ],
)
def test_hosts(hosts: list[str], host: str, port: int, allowed: bool) -> None:
    checked = Allowed.of(hosts, ["::1/128"])
    if allowed:
        checked.check_host(host, port)
    else:
        with pytest.raises(SinkError, match="--sink-host"):
            checked.check_host(host, port)


@pytest.mark.parametrize(
    ("host", "networks"),
    [("10.0.0.1", ["10.0.0.1/32"]), ("[fd00::1]", ["fd00::1/128"]), ("localhost", ["127.0.0.0/8", "::1/128"])],
)
def test_an_address_that_is_written_out_is_checked_at_once(host: str, networks: list[str]) -> None:
    options = [f"--sink-network {each}" for each in networks]
    for hosts, missing in (([], [f"--sink-host {host}", *options]), (["*"], options)):
        with pytest.raises(SinkError) as told:
            Allowed.of(hosts).check_host(host, 80)
        assert str(told.value).endswith(f"the server's operator allows it by {' and '.join(missing)}")
    Allowed.of(["*"], networks).check_host(host, 80)


def test_where_a_name_is_asked_for_a_star_will_not_do() -> None:
    with pytest.raises(SinkError, match="by its name"):
        Allowed.of(["*", "*.example.org"]).check_host("kafka.example.org", 9092, named=True)
    Allowed.of(["kafka.example.org"]).check_host("kafka.example.org", 9092, named=True)


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "10.0.0.1",
        "192.168.1.1",
        "172.16.0.1",
        "169.254.169.254",
        "0.0.0.0",
        "100.64.0.1",
        "224.0.0.1",
        "255.255.255.255",
        "::1",
        "::",
        "fe80::1",
        "fc00::1",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "64:ff9b::7f00:1",
        "2002:7f00:1::",
        "ff02::1",
    ],
)
def test_addresses_that_are_not_public_are_refused(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _resolve(monkeypatch, "93.184.215.14", address)  # one that is not public among others is enough
    with pytest.raises(SinkError, match="not public"):
        Allowed.of(["*"]).addresses("rebound.example", 80)


SPECIAL = """
0.0.0.0/8 0.0.0.0/32 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12
192.0.0.0/24 192.0.0.0/29 192.0.0.8/32 192.0.0.9/32 192.0.0.10/32 192.0.0.170/32 192.0.0.171/32
192.0.2.0/24 192.31.196.0/24 192.52.193.0/24 192.88.99.0/24 192.88.99.2/32 192.168.0.0/16 192.175.48.0/24
198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 240.0.0.0/4 255.255.255.255/32
::1/128 ::/128 64:ff9b:1::/48 100::/64 100:0:0:1::/64 2001::/23 2001::/32
2001:1::1/128 2001:1::2/128 2001:1::3/128 2001:2::/48 2001:3::/32 2001:4:112::/48 2001:10::/28 2001:20::/28
2001:30::/28 2001:db8::/32 2002::/16 2620:4f:8000::/48 3fff::/20 5f00::/16 fc00::/7 fe80::/10
"""
"""IANA's registries of special-purpose addresses, https://www.iana.org/assignments/iana-ipv4-special-registry and
iana-ipv6-special-registry: all rows but ::ffff:0:0/96 and 64:ff9b::/96, which are other ways to write IPv4."""
UNASSIGNED = ["224.0.0.0/4", "ff00::/8", "fec0::/10", "::/96", "4000::/3", "e000::/4"]
"""Multicast, what was site-local and IPv4-compatible, and what is given to nobody."""
PUBLIC = """
1.1.1.1 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0 169.253.255.255 169.255.0.0
172.15.255.255 172.32.0.0 191.255.255.255 192.0.1.0 192.0.3.0 192.88.98.255 192.88.100.0 192.167.255.255 192.169.0.0
198.17.255.255 198.20.0.0 203.0.112.255 203.0.114.0 223.255.255.255
2001:200:: 2001:4860:4860::8888 2003:: 2600:: 2a00:1450:4001::1 2606:2800:21f::1
"""


def ends(block: str) -> list[str]:
    """The first, last and a middle address of a block."""
    network = ip_network(block)
    return [str(network[0]), str(network[network.num_addresses // 2]), str(network[-1])]


def written_as_ipv6(address: str) -> list[str]:
    """An IPv4 address as IPv6 has it: mapped, by way of a translator."""
    value = int(IPv4Address(address))
    return [str(IPv6Address(0xFFFF << 32 | value)), str(IPv6Address(int(IPv6Address("64:ff9b::")) | value))]


def refuses(address: str, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether a name that has it is refused for it."""
    _resolve(monkeypatch, address)
    try:
        Allowed.of(["*"]).addresses("any.example", 80)
    except SinkError as error:
        return "not public" in str(error)
    return False


@pytest.mark.parametrize("block", SPECIAL.split() + UNASSIGNED)
def test_what_is_not_plainly_public_is_refused(block: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for address in ends(block):
        assert refuses(address, monkeypatch), address
        if ":" not in address:
            assert all(refuses(each, monkeypatch) for each in written_as_ipv6(address)), address


@pytest.mark.parametrize("address", PUBLIC.split())
def test_their_neighbours_are_public(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for each in [address] if ":" in address else [address, *written_as_ipv6(address)]:
        assert not refuses(each, monkeypatch), each


@pytest.mark.parametrize("tunnel", ["2002:5db8:d70e::1", "2001:0:5db8:d70e::1"])
def test_a_tunnel_to_a_public_address_is_none(tunnel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert refuses(tunnel, monkeypatch)
    assert Allowed.of(["*"], [tunnel]).addresses("any.example", 80) == [tunnel]


def test_the_connection_goes_to_the_address_that_was_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that resolves to another address the next time is not asked for again."""
    asked: list[str] = []

    def resolved(host: str, port: int, **_: Any) -> list[Any]:
        asked.append(host)
        return [(0, 0, 0, "", ("93.184.215.14" if len(asked) == 1 else "127.0.0.1", port))]

    def connected(address: tuple[str, int], timeout: float) -> None:
        asked.append(address[0])

    monkeypatch.setattr(socket, "getaddrinfo", resolved)
    monkeypatch.setattr(socket, "create_connection", connected)
    Allowed.of(["*"]).connect("rebound.example", 80, 1)
    assert asked == ["rebound.example", "93.184.215.14"]


def test_public_ones_and_those_of_allowed_networks_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    _resolve(monkeypatch, "93.184.215.14", "2606:2800:21f::1", "10.1.2.3", "::ffff:10.1.2.3")
    allowed = Allowed.of(["*"], ["10.1.0.0/16"])
    assert allowed.addresses("mixed.example", 80) == [
        "93.184.215.14",
        "2606:2800:21f::1",
        "10.1.2.3",
        "::ffff:10.1.2.3",
    ]


@pytest.mark.parametrize("spelled", ["127.1", "0x7f000001", "2130706433", "017700000001"])
def test_loopback_however_it_is_spelled(spelled: str) -> None:
    with pytest.raises(SinkError, match="not public"):
        Allowed.of(["*"]).addresses(spelled, 80)


def test_what_is_no_network() -> None:
    with pytest.raises(AddressError, match="ADDRESS/BITS"):
        Allowed.of([], ["10.0.0.0/99"])


def _resolve(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> None:
    def resolved(host: str, port: int, **_: Any) -> list[Any]:
        return [(0, 0, 0, "", (address, port)) for address in addresses]

    monkeypatch.setattr(socket, "getaddrinfo", resolved)
