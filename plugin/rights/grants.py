"""The decision: whether grants allow a right on a thing.

A grant is written RIGHT, RIGHT:KIND or RIGHT:KIND:NAMES, as `push:stream:http://example.org/plant1/*`. In NAMES `*`
matches any characters; nothing else is special, for `?` and `[` are usual in IRIs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Literal, TypeAlias, cast, get_args

from oxiseq.grammar.errors import OxiseqError
from oxiseq.grammar.records import dataclass

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
