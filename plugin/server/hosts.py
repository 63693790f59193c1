"""Which names this server answers to.

A page from elsewhere may have its own name lead to this machine (DNS rebinding): to the browser it then is of the same
origin as the server. Only the Host that it sends differs.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import werkzeug

from oxiseq.server.refusals import refusal
from oxiseq.sparql import Problem

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

ANY: Final = "*"


class KnownHosts:
    """Lets requests through to `rest` that ask for a host of ours: loopback names, where the server listens, and
    `allowed`. A server that listens at all addresses has each of them: a number cannot be made to lead elsewhere."""

    def __init__(self, listens: str, allowed: Iterable[str], rest: WSGIApplication) -> None:
        self._names = frozenset(host_name(name) for name in (listens, *allowed))
        self._any = ANY in self._names
        address = _address(listens)
        self._everywhere = not listens or (address is not None and address.is_unspecified)
        self._rest = rest

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """WSGI."""
        try:
            self.check(environ.get("HTTP_HOST"))
        except Problem as problem:
            return refusal(problem, werkzeug.Request(environ))(environ, start_response)
        return self._rest(environ, start_response)

    def check(self, host: str | None) -> None:
        """Raises Problem 421 for the Host of another server; None: HTTP 1.0, which no browser speaks."""
        if host is not None and ("," in host or not self.knows(host)):  # of several none is believed
            detail = f"{host} is not a name of this server; start it with --allowed-host {host_name(host)}"
            raise Problem(421, "not this host", detail)

    def knows(self, host: str) -> bool:
        """Whether the value of a Host header is ours, whatever its port."""
        name = host_name(host)
        if self._any or name in self._names or name == "localhost" or name.endswith(".localhost"):
            return True
        address = _address(name)
        return address is not None and (address.is_loopback or self._everywhere)


def host_name(host: str) -> str:
    """The name or number of `name:port`, `[number]:port`, or without a port; in lower case."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    name = host.rpartition(":")[0] if host.count(":") == 1 else host
    return name.removesuffix(".").lower()


def client_group(address: str | None) -> str:
    """The client that an address belongs to: of IPv6 the network, which one client has whole."""
    found = _address(address or "")
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is None:
        return str(ipaddress.ip_network((found, 64), strict=False))
    return address or ""


def _address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None
