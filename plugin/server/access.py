"""Who may come in: hosts, origins, tokens.

Which names this server answers to.

A page from elsewhere may have its own name lead to this machine (DNS rebinding): to the browser it then is of the same
origin as the server. Only the Host that it sends differs.

Cross-origin requests, for web pages from elsewhere; answered as `oxigraph serve --cors` does.

`*` among the origins: any page may ask and read. What writes must be named (see access.py).

Who may do what: bearer tokens, and pages of other origins.

A browser sends what any page makes it send, with the address of the machine that it runs on: a token is not sent on its
own, but without one a form on a foreign page could write. So what writes must come from here, from no page at all, or
from an origin that `--cors` names.
"""

from __future__ import annotations

import ipaddress
import threading
import time
from collections import OrderedDict
from collections.abc import Iterable
from math import ceil
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import werkzeug
from werkzeug.datastructures import Authorization

from oxiseq.rights import EVERYTHING, NOTHING, Rights, Token, TokenFile, TokenTable, digest_of, tokens_of
from oxiseq.rights.grants import READING
from oxiseq.server.conversion import ANY, Named, named, refusal
from oxiseq.server.settings import ServerSettings, Tokens
from oxiseq.sparql import Problem
from oxiseq.sparql.messages import TOKEN_NEEDED, challenge

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment


# --- hosts -----------------------------------------------------------------------------------------------


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


# --- tokens ----------------------------------------------------------------------------------------------

_WRONG: Final = 10
"""Wrong tokens that a client may send in one period."""
_PERIOD: Final = 5.0
"""Seconds."""
_CLIENTS: Final = 10_000
"""Clients that are remembered; the ones that were wrong longest ago are forgotten for others."""


class Access:
    """Identifies clients. Safe for many threads. Raises TokenError for tokens that are none."""

    def __init__(self, settings: ServerSettings) -> None:
        self._cors, self._behind_proxy = settings.cors, settings.behind_proxy
        self._tokens = settings.tokens
        self._file = TokenFile(settings.tokens.file) if settings.tokens.file is not None else None
        self._table = _table(self._tokens, self._file)
        self._guarded = settings.tokens != Tokens()
        self.wrong = WrongTokens()

    def check(self, headers: Named, address: str | None, *, writing: bool) -> Rights:
        """The rights that a request of these headers, from this address, comes with. Raises Problem: 403 (a page from
        elsewhere that writes), and as `rights_of`."""
        if writing:
            check_origin(headers, self._cors)
        if not self._guarded:
            return EVERYTHING
        given = Authorization.from_header(headers.get("authorization"))
        token = given.token if given is not None and given.type == "bearer" and given.token else None
        return self.rights_of(token, self._client(headers) or address)

    def _client(self, headers: Named) -> str:
        """Its address by the proxy's own word: of X-Forwarded-For the last one; the others anybody may have sent."""
        told = headers.get("x-forwarded-for") if self._behind_proxy else None
        return (told or "").rpartition(",")[2].strip()

    def rights_of(self, token: str | None, address: str | None) -> Rights:
        """What a token may do, None: who brings none. `address` is that of the client. Raises Problem: 401 (a wrong
        one, or none where nothing may be done without), 429 (too many wrong ones)."""
        if self._file is not None and self._file.changed():
            self._table = _table(self._tokens, self._file)
        if token is None:
            if not self._table.anonymous.grants:
                raise Problem(401, TOKEN_NEEDED, headers=(challenge(),))
            return self._table.anonymous
        client = client_group(address)
        self.wrong.check(client)
        found = self._table.rights_of(token)
        if found is None:
            self.wrong.note(client)
            raise Problem(401, TOKEN_NEEDED, "the token is not known", headers=(challenge("invalid_token"),))
        return found


def _table(tokens: Tokens, file: TokenFile | None) -> TokenTable:
    """Of all tokens that there are. Without named ones all may do what no token is there for."""
    simple = [
        Token(name, digest_of(secret), grants)
        for name, secret, grants in (("read", tokens.read, READING), ("write", tokens.write, EVERYTHING.grants))
        if secret is not None
    ]
    named = (*tokens_of(tokens.lines, "the lines of tokens"), *(file.tokens if file is not None else ()))
    anonymous = NOTHING
    if not tokens.lines and file is None and tokens.read is None:
        anonymous = Rights(READING)
    return TokenTable([*simple, *named], anonymous)


def check_origin(headers: Named, allowed: tuple[str, ...]) -> None:
    """Raises Problem 403 where a page of another origin writes."""
    origin = headers.get("origin")
    if origin is None:
        if headers.get("sec-fetch-site") not in ("cross-site", "same-site"):
            return
        origin = "another origin"
    elif _place_of(origin) == (headers.get("host") or "").lower() or named(origin, allowed):
        return
    raise Problem(
        403,
        "a page of another origin may not write",
        f"the request comes from {origin}; the server was "
        f"started without --cors {origin if '://' in origin else 'ORIGIN'}",
    )


def _place_of(origin: str) -> str | None:
    """Host and port of an origin; None where it names none."""
    try:
        return urlsplit(origin).netloc.lower() or None
    except ValueError:
        return None


def check_reader(headers: Named, allowed: tuple[str, ...]) -> None:
    """Raises Problem 403 where a page of another origin, which may not ask, opens a WebSocket: browsers let any page
    read it."""
    if headers.get("origin") is not None and ANY not in allowed:
        check_origin(headers, allowed)


class WrongTokens:
    """How many wrong tokens each client has sent of late.

    After ten in a period of five seconds none of the client's tokens is checked until the period ends: so nobody
    tries more than two a second, and a client with the right one waits for seconds only.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seen: OrderedDict[str, tuple[float, int]] = OrderedDict()
        """Client → begin of its period, wrong tokens in it."""

    def check(self, client: str) -> None:
        """Raises Problem 429 for a client that has sent too many."""
        with self._lock:
            begin, count = self._seen.get(client, (0.0, 0))
        left = begin + _PERIOD - time.monotonic()
        if count >= _WRONG and left > 0:
            raise Problem(
                429,
                "too many wrong tokens",
                f"the server checks no token of this client for {ceil(left)} s",
                headers=(("Retry-After", str(ceil(left))),),
            )

    def note(self, client: str) -> None:
        """It has sent one."""
        now = time.monotonic()
        with self._lock:
            begin, count = self._seen.pop(client, (now, 0))
            self._seen[client] = (begin, count + 1) if now - begin < _PERIOD else (now, 1)
            if len(self._seen) > _CLIENTS:
                self._seen.popitem(last=False)

    def __len__(self) -> int:
        return len(self._seen)
