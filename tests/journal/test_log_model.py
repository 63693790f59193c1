"""The journal against dictionaries and lists: any order of appends, retention, checkpoints, restarts and reads."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from journal_events import OTHER, STREAM, Clock, blob, found, matches, read
from profiles import drawn

from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.journal import Appended, Checkpoint, ConflictError, CursorError, Journal, Retention

STREAMS = st.sampled_from([STREAM, OTHER])
TIMES = st.lists(st.integers(0, 20), max_size=4)
IDS = st.none() | st.sampled_from("abc")
OWNERS = st.sampled_from("qr")


@dataclass
class Stored:
    """A batch: its first offset, its times, when it arrived; a punctuation has no times."""

    first: int
    times: list[int]
    received: int
    advance: int | None = None


@dataclass
class Model:
    """What a stream should be."""

    next: int = 0
    first: int = 0
    keep: Retention = field(default_factory=Retention)
    batches: list[Stored] = field(default_factory=list)
    ids: dict[str, tuple[list[int], int]] = field(default_factory=dict)

    def events(self) -> list[tuple[int, int]]:
        return [(b.first + i, t) for b in self.batches for i, t in enumerate(b.times)]

    def trim(self, now: int, held: int | None) -> None:
        while self.batches:
            batch = self.batches[0]
            end = batch.first + len(batch.times)
            old = self.keep.time is not None and batch.received < now - self.keep.time
            many = self.keep.count is not None and self.next - end >= self.keep.count
            passed = held is None or (end <= held if batch.times else batch.first < held)
            if not (old or many) or not passed:
                return
            self.batches.pop(0)
            self.first = end


class JournalMachine(RuleBasedStateMachine):
    """Two streams, two queries."""

    @initialize()
    def begin(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.clock = Clock()
        self.path = Path(self.folder.name) / "j"
        self.journal = Journal(self.path, "normal", clock=self.clock)
        self.streams = {STREAM: Model(), OTHER: Model()}
        self.arrived: list[tuple[str, Stored]] = []
        self.matches: dict[str, list[int]] = {"q": [], "r": []}
        self.offsets: dict[str, dict[str, int]] = {"q": {}, "r": {}}
        for iri in self.streams:
            self.journal.streams.create(iri)
        for name in self.matches:
            self.journal.queries.register(name, "text")

    @rule(iri=STREAMS, times=TIMES, batch_id=IDS, tick=st.integers(0, 3))
    def append(self, iri: str, times: list[int], batch_id: str | None, tick: int) -> None:
        self.clock.now += tick
        model = self.streams[iri]
        known = model.ids.get(batch_id) if batch_id else None
        if known is not None and known[0] != times:
            with pytest.raises(ConflictError):
                self.journal.log.append(iri, blob(times), batch_id)
            return
        answer = self.journal.log.append(iri, blob(times), batch_id)
        if known is not None:
            assert answer == Appended(known[1], len(times), repeated=True)
            return
        assert answer == Appended(model.next, len(times))
        if batch_id is not None:
            model.ids[batch_id] = (times, model.next)
        if times:
            self._arrive(iri, Stored(model.next, times, self.clock.now))
            model.next += len(times)

    @rule(iri=STREAMS, time=st.integers(0, 20))
    def advance(self, iri: str, time: int) -> None:
        assert self.journal.log.advance(iri, time) == self.streams[iri].next
        self._arrive(iri, Stored(self.streams[iri].next, [], self.clock.now, time))

    def _arrive(self, iri: str, batch: Stored) -> None:
        self.streams[iri].batches.append(batch)
        self.arrived.append((iri, batch))

    @rule(iri=STREAMS, time=st.none() | st.integers(0, 5), count=st.none() | st.integers(0, 6))
    def set_retention(self, iri: str, time: int | None, count: int | None) -> None:
        self.streams[iri].keep = Retention(time, count)
        self.journal.streams.create(iri, Retention(time, count))

    @rule(tick=st.integers(0, 3))
    def retain(self, tick: int) -> None:
        self.clock.now += tick
        self.journal.retain()
        for iri, model in self.streams.items():
            held = [offsets[iri] for offsets in self.offsets.values() if iri in offsets]
            model.trim(self.clock.now, min(held, default=None))

    @rule(owner=OWNERS, back=st.integers(0, 4), new=st.lists(st.integers(0, 9), max_size=3), again=st.integers(0, 2))
    def commit(self, owner: str, back: int, new: list[int], again: int) -> None:
        """A checkpoint some events before the end; some matches are found again."""
        offsets = {iri: max(model.first, model.next - back) for iri, model in self.streams.items()}
        numbers = self.matches[owner]
        again = min(again, len(numbers))
        part = found(owner, len(numbers) - again + 1, [*numbers[len(numbers) - again :], *new])
        numbers += new
        self.journal.checkpoints.commit(Checkpoint(owner, b"s", offsets, {owner: len(numbers)}), part)
        self.offsets[owner] = offsets

    @rule(owner=OWNERS)
    def drop(self, owner: str) -> None:
        self.journal.checkpoints.drop(owner)
        self.offsets[owner] = {}

    @rule()
    def restart(self) -> None:
        self.journal.close()
        self.journal = Journal(self.path, "normal", clock=self.clock)

    @rule(
        iri=STREAMS,
        since=st.integers(0, 12),
        length=st.integers(0, 8),
        start=st.integers(0, 20),
        span=st.integers(0, 20),
    )
    def read_range(self, iri: str, since: int, length: int, start: int, span: int) -> None:
        model = self.streams[iri]
        bounds = {"until": since + length, "start": start, "stop": start + span}
        if since < model.first:
            with pytest.raises(CursorError):
                read(self.journal, iri, since=since, **bounds)
            return
        expected = [(o, t) for o, t in model.events() if since <= o < since + length and start <= t < start + span]
        assert read(self.journal, iri, since=since, **bounds) == expected

    @rule(back=st.integers(0, 5))
    def replay(self, back: int) -> None:
        offsets = {iri: max(model.first, model.next - back) for iri, model in self.streams.items()}
        expected: list[tuple[str, int, int | None]] = []
        for iri, batch in self.arrived:
            if all(batch is not kept for kept in self.streams[iri].batches):
                continue
            if batch.advance is not None and batch.first >= offsets[iri]:
                expected.append((iri, -1, batch.advance))
            places = range(batch.first, batch.first + len(batch.times))
            expected += [(iri, o, t) for o, t in zip(places, batch.times, strict=True) if o >= offsets[iri]]
        got: list[tuple[str, int, int | None]] = []
        for part in self.journal.log.replay(offsets, TermDictionary()):
            got += [(part.stream, -1, part.advance)] if part.advance is not None else []
            pairs = zip(part.offset.tolist(), part.batch.time.tolist(), strict=True)
            got += [(part.stream, o, t) for o, t in pairs]
        assert got == expected

    @invariant()
    def everything_is_there(self) -> None:
        if not hasattr(self, "journal"):
            return
        for iri, model in self.streams.items():
            assert read(self.journal, iri) == model.events()
            record = self.journal.streams.get(iri)
            assert (record.first, record.next) == (model.first, model.next)
        for name, numbers in self.matches.items():
            assert matches(self.journal, name) == list(enumerate(numbers, 1))
            latest = self.journal.checkpoints.latest(name)
            assert (dict(latest.offsets) if latest else {}) == self.offsets[name]

    def teardown(self) -> None:
        if hasattr(self, "journal"):
            assert self.journal.verify() == []
            self.journal.close()
            self.folder.cleanup()


TestJournalMachine = JournalMachine.TestCase
TestJournalMachine.settings = drawn(20, stateful_step_count=30)
