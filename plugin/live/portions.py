"""Long pushes, from bytes to what the log stores: events that a client numbers, some at a time.

bytes, as they come ─▶ a Decoder (line_events.py, quad_events.py) ─▶ Portions ─▶ api/long_push.py ─▶ the log
"""

from __future__ import annotations

from typing import Final, Protocol

from oxiseq.grammar.records import dataclass
from oxiseq.live.intake import Reading
from oxiseq.sparql.messages import Problem

LARGEST_ITEM: Final = 1 << 20
"""Bytes of a line, of an event or of a WebSocket message at most."""


@dataclass(frozen=True, slots=True, eq=False)
class Portion:
    """Events that are stored together. last: the number of the client's last item in it; reading: its new events, and
    what had to be left out; stamped: the server gives them their times; advance: a punctuation (µs) after them;
    duplicates: how many items were stored before, and are skipped."""

    last: int
    reading: Reading
    stamped: bool = False
    advance: int | None = None
    duplicates: int = 0


class Decoder(Protocol):
    """Takes apart what a client sends. Not safe for threads."""

    fault: Problem | None
    """Why nothing that follows can be taken."""

    @property
    def held(self) -> int:
        """Bytes of an item that has not come whole."""
        ...

    def feed(self, data: bytes) -> list[Portion]:
        """What is whole with these bytes; items before a `fault` are among it."""
        ...

    def finish(self) -> list[Portion]:
        """The rest: nothing more comes, or (WebSocket) a message has ended."""
        ...


def too_large(what: str) -> Problem:
    """An item that is refused before it has come whole."""
    return Problem(413, "too large", f"{what} has more than {LARGEST_ITEM} bytes: push it alone")
