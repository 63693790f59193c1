"""Addresses of other servers that a client names, in a sink or in LOAD.

Who may register a query or send an update must not make the server ask its own neighbours (server-side request
forgery). So a name is resolved here, each address must be a public one unless the operator allows its network, and the
connection goes to an address that was checked: a name cannot be resolved again to another one.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from oxiseq.engine.extras import needed
from oxiseq.grammar.errors import OxiseqError

if TYPE_CHECKING:
    from websockets import exceptions
    from websockets.sync import client
else:
    client = needed("websockets.sync.client")
    exceptions = needed("websockets.exceptions")


Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network
_NAT64: Final = IPv6Network("64:ff9b::/96")
"""IPv4 addresses by way of a translator, which are what names resolve to where there is IPv6 alone."""
_GLOBAL_UNICAST: Final = IPv6Network("2000::/3")
"""All that is assigned of IPv6 to hosts of the internet."""
_SPECIAL: Final = tuple(
    ip_network(text)
    for text in (
        # IANA's registry of special-purpose IPv4 addresses, those of multicast behind it
        *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12"),
        *("192.0.0.0/24", "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16"),
        *("192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4", "224.0.0.0/4"),
        # what the registry of IPv6 has within _GLOBAL_UNICAST; 2002::/16 (6to4) holds IPv4 addresses
        *("2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20"),
    )
)
"""Nothing here is plainly a host of the internet, though a few of these blocks are routed: to the next relay, or to a
server that discards. Python's own `is_global` differs from release to release."""


class AddressError(OxiseqError):
    """A host has an address that is not public, and that no allowed network holds."""


def networks_of(texts: Iterable[str]) -> tuple[Network, ...]:
    """As ADDRESS/BITS. Raises AddressError for what is no network."""
    found: list[Network] = []
    for text in texts:
        try:
            found.append(ip_network(text.strip()))
        except ValueError as error:
            raise AddressError(f"{text!r} is no network: write ADDRESS/BITS, as 10.0.0.0/8") from error
    return tuple(found)


def addresses_of(host: str, port: int, networks: Iterable[Network], option: str) -> list[str]:
    """The addresses of a host, each of them public or of one of the networks, which the operator allows by `option`.
    Raises AddressError, OSError, UnicodeError."""
    texts = [str(each[4][0]) for each in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
    allowed = tuple(networks)
    for text in texts:
        address = ip_address(text.partition("%")[0])
        real = _behind(address)
        named = any(at.version == each.version and at in each for at in (address, real) for each in allowed)
        if not named and not is_public(address):
            raise AddressError(
                f"{host} has the address {real}, which is not public: the server's operator allows networks by {option}"
            )
    return list(dict.fromkeys(texts))


def is_public(address: Address) -> bool:
    """Whether it is plainly that of a host of the internet. An IPv4 address that is written as IPv6 counts as itself,
    but not one within a tunnel (6to4, Teredo): who ends that tunnel nobody knows."""
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is not None or address in _NAT64:
            return is_public(_behind(address))
        if address not in _GLOBAL_UNICAST:
            return False
    return not any(address.version == network.version and address in network for network in _SPECIAL)


def _behind(address: Address) -> Address:
    """The IPv4 address inside an IPv6 one, if there is one."""
    if isinstance(address, IPv6Address):
        if address in _NAT64:
            return IPv4Address(int(address) & 0xFFFFFFFF)
        teredo = address.teredo
        return address.ipv4_mapped or address.sixtofour or (teredo[1] if teredo else None) or address
    return address


# --- no redirects ----------------------------------------------------------------------------------------


@cache
def unredirected() -> type[client.ClientConnection]:
    """For `create_connection=`; it raises InvalidHandshake for a redirect. Needs websockets when it is called."""

    class Unredirected(client.ClientConnection):
        def handshake(self, *args: Any, **named: Any) -> None:
            try:
                super().handshake(*args, **named)
            except exceptions.InvalidStatus as error:
                if error.response.status_code not in range(300, 400):
                    raise
                told = f"{error}: redirects are not followed, give the address that it leads to"
                raise exceptions.InvalidHandshake(told) from None

    return Unredirected


# --- Retry-After -----------------------------------------------------------------------------------------

_LONGEST: Final = 86_400.0
"""Seconds: what asks for more is waited for so long."""


def seconds_of(given: str | None) -> float | None:
    """Seconds from now on; None where it says none."""
    text = (given or "").strip()
    if text.isascii() and text.isdecimal():
        return min(float(text[:12]), _LONGEST)
    try:
        at = parsedate_to_datetime(text)
    except ValueError:
        return None
    wait = (at.replace(tzinfo=at.tzinfo or UTC) - datetime.now(UTC)).total_seconds()
    return min(max(0.0, wait), _LONGEST)
