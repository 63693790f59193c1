"""Who may do what: bearer tokens, and pages of other origins.

A browser sends what any page tells it to, with the address of the machine that it runs on: a token is not sent on its
own, but without one a form on a foreign page could write. So what writes must come from here, from no page at all, or
from an origin that `--cors` names.
"""

from __future__ import annotations

import hmac
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from math import ceil
from typing import Final
from urllib.parse import urlsplit

import werkzeug

from oxiseq.server.cors import named
from oxiseq.server.hosts import client_group
from oxiseq.server.settings import ServerSettings
from oxiseq.sparql import Problem

_WRONG: Final = 10
"""Wrong tokens that a client may send in one period."""
_PERIOD: Final = 5.0
"""Seconds."""
_CLIENTS: Final = 10_000
"""Clients that are remembered; the ones that were wrong longest ago are forgotten for others."""


@dataclass(slots=True)
class Access:
    """Checks requests. Safe for many threads."""

    settings: ServerSettings
    wrong: WrongTokens = field(default_factory=lambda: WrongTokens())

    def check(self, request: werkzeug.Request, *, writing: bool) -> None:
        """Raises Problem: 401 (no token or a wrong one), 403 (a read token where something is written, or a page from
        elsewhere that writes), 429 (too many wrong tokens)."""
        if writing:
            check_origin(request, self.settings.cors)
        tokens = self.settings.tokens
        needed = tokens.write if writing else tokens.read
        if needed is None and not (writing and tokens.read is not None):
            return
        given = request.authorization
        token = given.token if given is not None and given.type == "bearer" and given.token else None
        client = client_group(request.remote_addr)
        if token is not None:
            self.wrong.check(client)
        may_write = _same(token, tokens.write)
        may_read = may_write or _same(token, tokens.read)
        if may_write or (may_read and not writing):
            return
        if may_read:
            raise Problem(403, "the token allows reading only")
        if token is not None:
            self.wrong.note(client)
        challenge = 'Bearer realm="oxiseq"' + (', error="invalid_token"' if token else "")
        raise Problem(401, "a token is needed", headers=(("WWW-Authenticate", challenge),))


def check_origin(request: werkzeug.Request, allowed: tuple[str, ...]) -> None:
    """Raises Problem 403 where a page of another origin writes."""
    origin = request.headers.get("Origin")
    if origin is None:
        if request.headers.get("Sec-Fetch-Site") not in ("cross-site", "same-site"):
            return
        origin = "another origin"
    elif urlsplit(origin).netloc.lower() == request.headers.get("Host", "").lower() or named(origin, allowed):
        return
    raise Problem(403, "a page from elsewhere may not write", f"the request comes from {origin}; the server was "
                  f"started without --cors {origin if '://' in origin else 'ORIGIN'}")  # fmt: skip


class WrongTokens:
    """How many wrong tokens each client has sent of late.

    After ten in a period of five seconds none of the client's tokens is looked at until the period ends: so nobody
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
            raise Problem(429, "too many wrong tokens", f"of this client none is looked at for {ceil(left)} s",
                          headers=(("Retry-After", str(ceil(left))),))  # fmt: skip

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


def _same(given: str | None, secret: str | None) -> bool:
    """In a time that tells nothing of the secret."""
    if given is None or secret is None:
        return False
    return hmac.compare_digest(given.encode(errors="surrogatepass"), secret.encode(errors="surrogatepass"))
