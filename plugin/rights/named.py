"""Named tokens: a line of text each, with the token's hash in place of the token.

    plant1  sha256:9f86d0…  push:stream:http://example.org/plant1/*  read:query:plant1-*
    anonymous  -  read:kb

A token has 256 random bits, so its plain SHA-256 is as hard to go back from as a slow hash of a password. `#` begins a
comment at the begin of a line only: IRIs have it inside.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from dataclasses import field
from typing import Final

from oxiseq.grammar.errors import OxiseqError
from oxiseq.grammar.records import dataclass
from oxiseq.rights.grants import Grant, grant_of

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
