"""Long pushes, from bytes to what the log stores: events that a client numbers, some at a time.

bytes, as they come ─▶ a Decoder ─▶ Portions ─▶ api/long_push.py ─▶ the log

Events as lines of JSON, as they come over one long request or a WebSocket.

    {"seq": 7, "time": "2024-05-01T10:00:00Z", "graph": "<http://example.org/h1> <http://example.org/watts> 120 ."}
    {"seq": 8, "time": "arrival", "graph": {"@id": "http://example.org/h1", "http://example.org/watts": 130}}
    {"seq": 9, "advance": "2024-05-01T10:01:00Z"}

`graph` is Turtle, or JSON-LD as it is. Without `seq` an item has the number behind the one before it.

Events as N-Quads, as they come over one long request or a WebSocket: numbered as they are completed.

Over a long request an event is complete when the next one begins, or the request ends; a WebSocket message holds whole
events. What cannot be read has no number, so the same text always gives the same numbers.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import field
from typing import Any, Final, Protocol

from pyoxigraph import RdfFormat, Triple

from oxiseq.engine.errors import OxiseqError, syntax_reason
from oxiseq.engine.events.assembler import BATCH_EVENTS, Block, EventAssembler
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.contexts import NO_CONTEXTS, Contexts
from oxiseq.engine.events.quads import GENERATED_AT
from oxiseq.engine.rdf import parse
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.records import dataclass
from oxiseq.journal import pack_events
from oxiseq.live.intake import SHARED_TERMS, Reading, Reason, quad_batches, read_triples
from oxiseq.options.kinds import TIME
from oxiseq.sparql.messages import Problem

# --- portions --------------------------------------------------------------------------------------------

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


# --- line events -----------------------------------------------------------------------------------------

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


# --- quad events -----------------------------------------------------------------------------------------

_OPEN: Final = 16 << 20
"""Bytes of events that are not complete, for instance because their times have not come."""
_ROWS: Final = 4096
_REMEMBERED: Final = 4096


class _Numbers:
    """Counts events, and skips those that are stored."""

    def __init__(self, after: int, first: int) -> None:
        self.stored, self.last = after, first - 1
        self._rejected = self._lines = 0
        self._reasons: list[Reason] = []

    def fault(self, line: int | None, reason: str) -> None:
        """Something is left out."""
        self._rejected += 1
        self._lines += line is not None
        if len(self._reasons) < _REASONS:
            self._reasons.append(Reason(reason, line))

    def portions(self, batches: list[EventBatch], terms: TermDictionary) -> list[Portion]:
        """The new ones of these events; what was left out is emitted with them."""
        found: list[Portion] = []
        for batch in batches:
            before, self.last = self.last, self.last + len(batch)
            duplicates = min(max(0, self.stored - before), len(batch))
            new = batch.slice(duplicates, len(batch)) if duplicates else batch
            self.stored = max(self.stored, self.last)
            found.append(self._portion(pack_events(new, terms), new, duplicates))
        if self._rejected:
            empty = EventBatch.empty()
            found.append(self._portion(pack_events(empty, terms), empty, 0))
        return found

    def _portion(self, blob: bytes, events: EventBatch, duplicates: int) -> Portion:
        reading = Reading(blob, events.time, self._rejected, tuple(self._reasons), self._lines)
        self._rejected, self._reasons, self._lines = 0, [], 0
        return Portion(self.stored, reading, duplicates=duplicates)


class QuadEvents:
    """Decodes a long request. after: the number of the last event that is stored; first: that of the first to come."""

    def __init__(self, after: int, first: int = 1) -> None:
        self.fault: Problem | None = None
        self._numbers = _Numbers(after, first)
        self._terms = TermDictionary()
        self._assembler = EventAssembler(
            self._terms, GENERATED_AT, self._numbers.fault, BATCH_EVENTS, rows=_ROWS, remembered=_REMEMBERED
        )
        self._rest = bytearray()

    @property
    def held(self) -> int:
        """Bytes of a line that has not come whole."""
        return len(self._rest)

    def feed(self, data: bytes) -> list[Portion]:
        """As Decoder."""
        whole, newline, rest = data.rpartition(b"\n")
        if newline:
            text, self._rest = bytes(self._rest) + whole + newline, bytearray(rest)
            return self._read(text)
        self._rest += rest
        if len(self._rest) > LARGEST_ITEM:
            self.fault, self._rest = too_large(f"line {self._assembler.next_line}"), bytearray()
        return []

    def finish(self) -> list[Portion]:
        """As Decoder."""
        text, self._rest = bytes(self._rest), bytearray()
        found = self._read(text + b"\n" if text else text)
        return found + self._numbers.portions(list(self._assembler.finish()), self._terms)

    def _read(self, text: bytes) -> list[Portion]:
        if self.fault is not None:
            return []
        batches = [*self._assembler.read(Block.of(text), self._assembler.next_line), *self._assembler.complete()]
        found = self._numbers.portions(batches, self._terms)
        self._terms.collect_if_due()
        if self._assembler.nbytes > _OPEN:
            self.fault = too_large("what is not complete (graphs without times, or one large graph)")
        return found


class QuadMessages:
    """Decodes WebSocket messages, each of which holds whole events."""

    held = 0

    def __init__(self, after: int, first: int = 1) -> None:
        self.fault: Problem | None = None
        self._numbers = _Numbers(after, first)
        self._message = b""

    def feed(self, data: bytes) -> list[Portion]:
        """As Decoder."""
        self._message = data
        return []

    def finish(self) -> list[Portion]:
        """As Decoder."""
        body, self._message = self._message, b""
        with SHARED_TERMS.borrowed() as terms:
            return self._numbers.portions(quad_batches(body, terms, self._numbers.fault), terms)
