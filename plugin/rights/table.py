"""From the token of a request to its rights; the file of tokens is read again when it changes."""

from __future__ import annotations

import hashlib
import hmac
import logging
import os
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from oxiseq.rights.grants import NOTHING, Rights
from oxiseq.rights.named import ANONYMOUS, Token, TokenError, digest_of, tokens_of

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
