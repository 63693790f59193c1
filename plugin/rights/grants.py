"""The decision: whether grants allow a right on a thing.

A grant is written RIGHT, RIGHT:KIND or RIGHT:KIND:NAMES, as `push:stream:http://example.org/plant1/*`. In NAMES `*`
matches any characters; nothing else is special, for `?` and `[` are usual in IRIs.

Named tokens: a line of text each, with the token's hash in place of the token.

    plant1  sha256:9f86d0…  push:stream:http://example.org/plant1/*  read:query:plant1-*
    anonymous  -  read:kb

A token has 256 random bits, so its plain SHA-256 is as hard to go back from as a slow hash of a password. `#` begins a
comment at the begin of a line only: IRIs have it inside.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import os
import re
import secrets
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Final, Literal, TypeAlias, cast, get_args

from oxiseq.grammar.errors import OxiseqError
from oxiseq.grammar.records import dataclass

# --- grants ----------------------------------------------------------------------------------------------

Right: TypeAlias = Literal["read", "push", "register", "update"]
Kind: TypeAlias = Literal["stream", "query", "kb", "server"]
KINDS: Final[Mapping[Right, tuple[Kind, ...]]] = {
    "read": ("stream", "query", "kb", "server"),
    "push": ("stream",),
    "register": ("stream", "query"),
    "update": ("kb", "server"),
}
"""The kinds of object of each right. There is one knowledge base and one server; streams and queries have names."""
_NAMED: Final[tuple[Kind, ...]] = ("stream", "query")


@dataclass(frozen=True, slots=True)
class Grant:
    """A right on all things of a kind (None: of every kind) whose names the pattern covers."""

    right: Right
    kind: Kind | None = None
    names: str = "*"

    def __str__(self) -> str:
        """As `grant_of` reads it."""
        parts = [self.right, *filter(None, [self.kind]), *([self.names] if self.names != "*" else [])]
        return ":".join(parts)


class DeniedError(OxiseqError):
    """The client lacks a right; `token` is the name of the token of the request, None if there was none."""

    def __init__(self, token: str | None, needed: Grant) -> None:
        super().__init__(token, needed)
        self.token, self.needed = token, needed

    def __str__(self) -> str:
        who = "without a token nobody has" if self.token is None else f"the token {self.token!r} does not have"
        return f"{who} the right {self.needed}"


def allows(grants: Iterable[Grant], right: Right, kind: Kind, name: str = "") -> bool:
    """Whether one of the grants gives this right on this thing. All of the decision is here."""
    return any(grant.right == right and grant.kind in (None, kind) and covers(grant.names, name) for grant in grants)


def covers(pattern: str, name: str) -> bool:
    """Whether the pattern is the whole name, `*` being any characters. Takes time in proportion to both."""
    first, *rest = pattern.split("*")
    if not rest:
        return name == pattern
    if not name.startswith(first):
        return False
    *between, last = rest
    at = len(first)
    for part in between:
        found = name.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return len(name) - at >= len(last) and name.endswith(last)


def grant_of(text: str) -> Grant:
    """What a word says. Raises OxiseqError."""
    right, _, rest = text.partition(":")
    kind, has_names, names = rest.partition(":")
    if right not in KINDS:
        raise OxiseqError(f"{text!r}: {right!r} is no right; there are {', '.join(KINDS)}")
    known = KINDS[cast(Right, right)]
    if ":" not in text:
        return Grant(cast(Right, right))
    if kind not in known:
        raise OxiseqError(f"{text!r}: {right!r} is a right on {' and '.join(known)}, not on {kind!r}")
    if has_names and kind not in _NAMED:
        raise OxiseqError(f"{text!r}: there is one {kind}, without a name: write {right}:{kind}")
    if has_names and not names:
        raise OxiseqError(f"{text!r}: the name is missing; {right}:{kind} is for all of them")
    return Grant(cast(Right, right), kind, names if has_names else "*")


@dataclass(frozen=True, slots=True)
class Rights:
    """The rights of a client; `token`: the token's name, None for a client without one."""

    grants: tuple[Grant, ...]
    token: str | None = None

    def may(self, right: Right, kind: Kind, name: str = "") -> bool:
        """Whether this right is among them."""
        return allows(self.grants, right, kind, name)

    def demand(self, right: Right, kind: Kind, name: str = "") -> None:
        """Raises DeniedError where it is not."""
        if not self.may(right, kind, name):
            raise DeniedError(self.token, Grant(right, kind, name or "*"))

    def demand_some(self, right: Right, kind: Kind) -> None:
        """Raises DeniedError for who has this right on nothing at all, whatever the request names."""
        if not any(grant.right == right for grant in self.grants):
            raise DeniedError(self.token, Grant(right, kind))

    def demand_reading(self, streams: Iterable[str], *, kb: bool) -> None:
        """That these streams may be read, and the knowledge base if it is. Raises DeniedError."""
        for stream in dict.fromkeys(streams):
            self.demand("read", "stream", stream)
        if kb:
            self.demand("read", "kb")


READING: Final = (Grant("read"),)
EVERYTHING: Final = Rights(tuple(Grant(right) for right in get_args(Right)))
NOTHING: Final = Rights(())


# --- named -----------------------------------------------------------------------------------------------

ANONYMOUS: Final = "anonymous"
"""The name of the rights of requests without a token."""
_PREFIX: Final = "oxiseq_"
"""Before every token, so that programs that look for secrets in texts find it."""
_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,100}")
_HASH: Final = re.compile(r"sha256:([0-9a-f]{64})")
_NONE: Final = "-"


class TokenError(OxiseqError):
    """An invalid line of the tokens file; says which one."""


@dataclass(frozen=True, slots=True)
class Token:
    """`digest`: the SHA-256 of the token itself, empty for `anonymous`."""

    name: str
    digest: bytes = field(repr=False)
    grants: tuple[Grant, ...]


def new_secret() -> str:
    """A new token."""
    return _PREFIX + secrets.token_urlsafe(32)


def digest_of(secret: str) -> bytes:
    """What is kept of a token."""
    return hashlib.sha256(secret.encode(errors="surrogatepass")).digest()


def line_of(token: Token) -> str:
    """As `tokens_of` reads it."""
    digest = f"sha256:{token.digest.hex()}" if token.digest else _NONE
    return "  ".join([token.name, digest, *map(str, token.grants)])


def tokens_of(text: str, source: str) -> tuple[Token, ...]:
    """The tokens of a text; `source` is named in errors. Raises TokenError."""
    found: dict[str, Token] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        try:
            token = _token(line.split())
            if token.name in found:
                raise OxiseqError(f"there is a token {token.name!r} already")
        except OxiseqError as error:
            raise TokenError(f"{source}, line {number}: {error}") from None
        found[token.name] = token
    return tuple(found.values())


def checked_name(name: str) -> str:
    """Raises OxiseqError for an invalid name of a token."""
    if not _NAME.fullmatch(name):
        raise OxiseqError(f"{name[:100]!r} is no name for a token: letters, digits and . _ -, at most 100")
    return name


def _token(words: list[str]) -> Token:
    """Raises OxiseqError."""
    name = checked_name(words[0])
    digest = words[1] if len(words) > 1 else ""
    hashed = _HASH.fullmatch(digest)
    if hashed is None and digest != _NONE:
        raise OxiseqError("the name is followed by sha256: and 64 digits; `oxiseq token new` writes such a line")
    if (hashed is None) != (name == ANONYMOUS):
        raise OxiseqError(f"{_NONE} replaces the hash for {ANONYMOUS!r}, and for no other")
    if not words[2:]:
        raise OxiseqError(f"{name!r} has no rights: leave the line out")
    return Token(name, bytes.fromhex(hashed[1]) if hashed is not None else b"", tuple(map(grant_of, words[2:])))


# --- table -----------------------------------------------------------------------------------------------

LOG: Final = logging.getLogger("oxiseq.rights")
_LOOKED_EVERY: Final = 1.0
"""Seconds after which the file is checked again."""


class TokenTable:
    """Tokens by their hashes. The time of a look-up reveals nothing about them: they are found under hashes with a
    secret key, and compared in constant time."""

    def __init__(self, tokens: Iterable[Token], anonymous: Rights = NOTHING) -> None:
        self._key = os.urandom(32)
        self._found: dict[bytes, tuple[bytes, Rights]] = {}
        self.anonymous = anonymous
        """What may be done without a token."""
        for token in tokens:
            if token.name == ANONYMOUS:
                self.anonymous = Rights((*self.anonymous.grants, *token.grants))
            else:
                self._found[self._keyed(token.digest)] = token.digest, Rights(token.grants, token.name)

    def rights_of(self, secret: str) -> Rights | None:
        """Those of a token; None for a wrong one."""
        digest = digest_of(secret)
        found = self._found.get(self._keyed(digest))
        return found[1] if found is not None and hmac.compare_digest(found[0], digest) else None

    def _keyed(self, digest: bytes) -> bytes:
        return hashlib.blake2b(digest, key=self._key, digest_size=32).digest()

    def __len__(self) -> int:
        return len(self._found)


class TokenFile:
    """The tokens of a file as it is now: a change holds within a second. Safe for many threads.

    If it cannot be read, or a line is wrong, the old tokens stay valid, and the log says so. Raises TokenError if
    that happens at the start.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._state = self._look()  # before it is read: what is written meanwhile is seen next time
        self.tokens = self._read()
        self._looked = time.monotonic()

    def changed(self) -> bool:
        """Whether `tokens` have changed; the file is checked at most once per second."""
        now = time.monotonic()
        if now - self._looked < _LOOKED_EVERY or not self._lock.acquire(blocking=False):
            return False
        try:
            self._looked = now
            state = self._look()
            if state == self._state:
                return False
            self._state = state
            self.tokens = self._read()
        except TokenError as error:
            LOG.error("%s; the old tokens stay valid", error)
            return False
        finally:
            self._lock.release()
        LOG.info("%s: %d tokens", self.path, len(self.tokens))
        return True

    def _look(self) -> tuple[int, ...]:
        try:
            found = self.path.stat()
        except OSError:
            return ()
        return found.st_mtime_ns, found.st_size, found.st_ino, found.st_ctime_ns

    def _read(self) -> tuple[Token, ...]:
        """Raises TokenError."""
        try:
            return tokens_of(self.path.read_text("utf-8-sig"), str(self.path))
        except (OSError, UnicodeDecodeError) as error:
            raise TokenError(f"{self.path}: cannot be read: {error}") from None
