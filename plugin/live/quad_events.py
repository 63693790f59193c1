"""Events as N-Quads, as they come over one long request or a WebSocket: numbered as they are completed.

Over a long request an event is complete when the next one begins, or the request ends; a WebSocket message holds whole
events. What cannot be read has no number, so the same text always gives the same numbers.
"""

from __future__ import annotations

from typing import Final

from oxiseq.engine.events.assembler import BATCH_EVENTS, Block, EventAssembler
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.quads import GENERATED_AT
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.journal import pack_events
from oxiseq.live.intake import SHARED_TERMS, Reading, Reason, quad_batches
from oxiseq.live.portions import LARGEST_ITEM, Portion, too_large
from oxiseq.sparql.messages import Problem

_REASONS: Final = 10
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
