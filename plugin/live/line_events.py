"""Events as lines of JSON, as they come over one long request or a WebSocket.

    {"seq": 7, "time": "2024-05-01T10:00:00Z", "graph": "<http://example.org/h1> <http://example.org/watts> 120 ."}
    {"seq": 8, "time": "arrival", "graph": {"@id": "http://example.org/h1", "http://example.org/watts": 130}}
    {"seq": 9, "advance": "2024-05-01T10:01:00Z"}

`graph` is Turtle, or JSON-LD as it is. Without `seq` an item has the number behind the one before it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import field
from typing import Any, Final

from pyoxigraph import RdfFormat, Triple

from oxiseq.engine.errors import OxiseqError, syntax_reason
from oxiseq.engine.events.contexts import NO_CONTEXTS, Contexts
from oxiseq.engine.rdf import parse
from oxiseq.grammar.records import dataclass
from oxiseq.live.intake import Reason, read_triples
from oxiseq.live.portions import LARGEST_ITEM, Portion, too_large
from oxiseq.options.kinds import TIME
from oxiseq.sparql.messages import Problem

ON_ARRIVAL: Final = "arrival"
"""As a time: the server stamps the event."""
_MEMBERS: Final = {"seq", "time", "graph", "advance"}
_LAST: Final = 1 << 62
_REASONS: Final = 10
_EVENTS: Final = 4096
"""Of a portion at most."""


@dataclass(slots=True)
class _Open:
    """The portion that lines are added to."""

    stamped: bool = False
    events: list[tuple[int, list[Triple]]] = field(default_factory=list)
    rejected: int = 0
    reasons: list[Reason] = field(default_factory=list)
    duplicates: int = 0
    last: int = 0
    """The number of its last item; 0: it has none."""
    advance: int | None = None
    """The latest punctuation so far (µs); none of the events is before it, unless it came before that punctuation."""

    def reject(self, line: int, reason: str) -> None:
        self.rejected += 1
        if len(self.reasons) < _REASONS:
            self.reasons.append(Reason(reason, line))


class LineEvents:
    """Decodes them. after: the number of the last item that is stored; first: the number of the first item that states
    none; stamped: events without a time are stamped on arrival; contexts: those that JSON-LD may name."""

    def __init__(self, after: int, first: int = 1, *, stamped: bool = False, contexts: Contexts = NO_CONTEXTS) -> None:
        self._contexts = contexts
        self.fault: Problem | None = None
        self._stored, self._number, self._usual = after, first - 1, stamped
        self._rest = bytearray()
        self._line = 0
        self._done: list[Portion] = []
        self._open = _Open()

    @property
    def held(self) -> int:
        """Bytes of a line that has not come whole."""
        return len(self._rest)

    def feed(self, data: bytes) -> list[Portion]:
        """As Decoder."""
        first, *lines = data.split(b"\n")
        self._rest += first
        if lines:
            lines = [bytes(self._rest), *lines]
            self._rest = bytearray(lines.pop())
        return self._portions(lines)

    def finish(self) -> list[Portion]:
        """As Decoder."""
        rest, self._rest = bytes(self._rest), bytearray()
        return self._portions([rest])

    def _portions(self, lines: Iterable[bytes]) -> list[Portion]:
        for line in lines:
            self._line += 1
            if self.fault is None and line and not line.isspace():
                self._take(line)
        if self.fault is None and len(self._rest) > LARGEST_ITEM:
            self.fault = too_large(f"line {self._line + 1}")
        if self.fault is not None:
            self._rest = bytearray()
        self._close()
        done, self._done = self._done, []
        return done

    def _take(self, line: bytes) -> None:
        if len(line) > LARGEST_ITEM:
            self.fault = too_large(f"line {self._line}")
            return
        try:
            item = _item(line)
            number = _number(item, self._number)
        except (ValueError, RecursionError) as error:
            self.fault = Problem(400, "malformed item", f"line {self._line}: {error}")
            return
        self._number = number
        if number <= self._stored:
            self._open.duplicates += 1
            self._open.last = self._stored
            return
        self._stored = number
        try:
            self._add(item, number)
        except (SyntaxError, ValueError, RecursionError, OxiseqError) as error:
            reason = syntax_reason(error) if isinstance(error, SyntaxError) else str(error)
            self._open.reject(self._line, f"item {number}: {reason}")
            self._open.last = number

    def _add(self, item: dict[str, Any], number: int) -> None:
        """Raises SyntaxError, ValueError, OxiseqError for an item that cannot be stored."""
        if unknown := set(item) - _MEMBERS:
            raise ValueError(f"unknown members: {', '.join(sorted(unknown))}"[:200])
        graph = item.get("graph")
        if "advance" in item:
            if graph is not None or "time" in item:
                raise ValueError("an item is an event or `advance`")
            advance = TIME.data(item["advance"], "advance")
            if self._open.stamped:
                self._close()  # what is stamped completes its instant itself: the log takes no punctuation with it
            before = self._open.advance
            self._open.advance = advance if before is None else max(before, advance)
            self._open.last = number
            return
        time = item.get("time", ON_ARRIVAL if self._usual else None)
        if time is None or graph is None:
            raise ValueError(f"no {'time' if time is None else 'graph'}")
        stamped = time == ON_ARRIVAL
        event = 0 if stamped else TIME.data(time, "time"), _triples(graph, self._contexts)
        if not self._takes(event[0], stamped=stamped):
            self._close()
        self._open.stamped = stamped
        self._open.events.append(event)
        self._open.last = number

    def _takes(self, time: int, *, stamped: bool) -> bool:
        """Whether the open portion can hold this event, too. Its punctuation is stored behind all of its events. That
        changes nothing for an event that is not before it, so thousands of punctuations do not make thousands of
        entries; a late event, or one that the server stamps, begins another portion."""
        opened = self._open
        if opened.advance is not None and (stamped or time < opened.advance):
            return False
        return not opened.events or (opened.stamped == stamped and len(opened.events) < _EVENTS)

    def _close(self) -> None:
        """What has come so far is a portion."""
        done = self._open
        if not done.last:
            return
        self._open = _Open()
        reading = read_triples(done.events, done.rejected, tuple(done.reasons))
        self._done.append(Portion(done.last, reading, done.stamped, done.advance, done.duplicates))


def _item(line: bytes) -> dict[str, Any]:
    """Raises ValueError, RecursionError."""
    found = json.loads(line)
    if not isinstance(found, dict):
        raise ValueError("a JSON object is expected")
    return found


def _number(item: dict[str, Any], before: int) -> int:
    """Raises ValueError."""
    number = item.get("seq", before + 1)
    if isinstance(number, bool) or not isinstance(number, int) or not 0 < number < _LAST:
        raise ValueError(f"seq={str(number)[:40]}: a whole number from 1 on is expected")
    return number


def _triples(graph: object, contexts: Contexts) -> list[Triple]:
    """Raises SyntaxError, ValueError, RecursionError."""
    if isinstance(graph, str):
        return [quad.triple for quad in parse(graph.encode(), RdfFormat.TURTLE)]
    if isinstance(graph, dict | list):
        return [quad.triple for quad in contexts.quads(json.dumps(graph).encode())]
    raise ValueError("graph is text (Turtle) or an object (JSON-LD)")
