"""Whom sinks may reach: hosts by name, addresses after they are resolved."""

from __future__ import annotations

import socket
from typing import Any

import pytest

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
    checked = Allowed.of(hosts)
    if allowed:
        checked.check_host(host, port)
    else:
        with pytest.raises(SinkError, match="--sink-host"):
            checked.check_host(host, port)


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
    with pytest.raises(SinkError, match="ADDRESS/BITS"):
        Allowed.of([], ["10.0.0.0/99"])


def _resolve(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> None:
    def resolved(host: str, port: int, **_: Any) -> list[Any]:
        return [(0, 0, 0, "", (address, port)) for address in addresses]

    monkeypatch.setattr(socket, "getaddrinfo", resolved)
