"""What another server sends, taken in whole, but neither without end nor for ever."""

from __future__ import annotations

import time
from collections.abc import Iterable

from oxiseq.engine.errors import LimitError


def whole_body(pieces: Iterable[bytes], most: int, until: float) -> bytes:
    """All pieces together. `until`: by the monotonic clock. Raises LimitError past `most` bytes, TimeoutError past
    `until`."""
    body = bytearray()
    for piece in pieces:
        body += piece
        if len(body) > most:
            raise LimitError(len(body), most, "bytes")
        if time.monotonic() > until:
            raise TimeoutError
    return bytes(body)
