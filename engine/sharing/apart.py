"""Runs that share neither clock nor matching: each gets its events separately, and only those that may matter to it.

    events of a stream ─ keys ─▶ runs that they concern: at once
                       └ backlog ─▶ the others: when they are concerned, when somebody looks, or when it has become long

A run is *asleep* while neither an event without its keys nor time alone can have it find anything (`Concern`). What
comes meanwhile waits in the stream's backlog, and is passed to it together, in the same order: so its answers, counters
and state are those that it would have had; whoever reads or saves them calls `catch_up` first. Of the runs asleep those
that have waited longest catch up a few at a time, so that no push has to work for all of them.

Runs of equal queries that are in the same state are one (member.py): those that are registered before anything comes,
or restored from the same snapshot. Those that are alike become one when their states have come to be the same
(member.py).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.order.watermarks import BEFORE_ALL, late_ones
from oxiseq.engine.run.alone import AloneRun
from oxiseq.engine.run.concern import Key, keys_in, predicate_of
from oxiseq.engine.sharing.backlog import Backlog
from oxiseq.engine.sharing.dispatching import Dispatcher, Outcome
from oxiseq.engine.sharing.member import Member, Reunions
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.records import dataclass

MOST: Final = 1 << 14
"""Events of a stream that a run may be behind; some more while others catch up."""
LARGE: Final = 1 << 22
"""Bytes of a state that is copied once at the most for each run that leaves it."""


class _Passed(NamedTuple):
    """Events in order that a run need not see: how many, and the time of the last."""

    events: int
    last: int


_Item: TypeAlias = tuple[str, EventBatch | _Passed | int]
"""A stream, and events or the time of a punctuation."""


@dataclass(slots=True)
class _Stream:
    """Who reads a stream. `asleep`: those that have waited longest first; `wanted`: by key those that it concerns."""

    backlog: Backlog = field(default_factory=Backlog)
    awake: dict[Member, None] = field(default_factory=dict)
    asleep: dict[Member, None] = field(default_factory=dict)
    wanted: dict[Key, dict[Member, None]] = field(default_factory=dict)
    paired: dict[int, int] = field(default_factory=dict)
    """Predicates of keys that have an object, and how many such keys there are."""
    known: dict[Member, None] = field(default_factory=dict)
    """Those of known lineage, which others may join as long as nothing comes."""
    watches: dict[Member, frozenset[Key]] = field(default_factory=dict)
    """The keys that the backlog watches for each."""

    def watch(self, member: Member) -> None:
        """Have the backlog watch what this one counts, and no longer what it does not."""
        keys = frozenset[Key]() if member.concern is None else member.concern.watched
        before = self.watches.get(member, frozenset())
        self.backlog.watch(keys - before)
        self.backlog.unwatch(before - keys)
        self.watches[member] = keys

    def leave(self, member: Member) -> None:
        """It reads the stream no longer."""
        self.awake.pop(member, None)
        self.asleep.pop(member, None)
        self.backlog.unwatch(self.watches.pop(member))


class ApartRuns(Dispatcher[AloneRun]):
    """Such runs. Outcomes come in order of registration."""

    def __init__(self, terms: TermDictionary) -> None:
        super().__init__()
        self._terms = terms
        self._members: dict[AloneRun, Member] = {}
        self._streams: dict[str, _Stream] = {}
        self._known: dict[tuple[Hashable, Hashable], Member] = {}
        """By fingerprint and lineage."""
        self._reunions = Reunions()
        terms.register(self)

    def held_ids(self) -> Iterator[NDArray[np.uint32]]:
        """The terms of events that wait for a run."""
        for stream in self._streams.values():
            yield from stream.backlog.held_ids()

    def __contains__(self, run: object) -> bool:
        return run in self._members

    @property
    def behind(self) -> int:
        """How many runs have not got all events that have come."""
        asleep = {member for stream in self._streams.values() for member in stream.asleep}
        late = (m for m in asleep if any(seen < self._streams[iri].backlog.end for iri, seen in m.seen.items()))
        return sum(len(member.runs) for member in late)

    # --- who is there -------------------------------------------------------------------------------

    def add(self, run: AloneRun, equal: Hashable | None = None) -> None:
        """One more: it sees what comes from now on. equal: what is the same in runs that it may be one with."""
        self._enrol(run)
        untouched = run.origin is not None and (run.origin or (run.order.fresh and not run.events))
        lineage: Hashable = (run.origin or run.order.times) if untouched else object()
        equal = object() if equal is None else equal
        there = self._known.get((equal, lineage))
        if there is not None and run.may_share(there.run):
            self._join(run, there)
            return
        seen = {iri: self._streams.setdefault(iri, _Stream()).backlog.end for iri in dict.fromkeys(run.plan.streams)}
        member = self._members[run] = Member([run], self._number[run], run.concern, seen, equal, lineage)
        if run.order.accepted > BEFORE_ALL:  # it has been restored: what it has seen may have concerned it
            member.called(run.order.accepted)
            member.wake()
        self._enter(member)
        self._know(member, lineage)

    def _join(self, run: AloneRun, member: Member) -> None:
        known = {iri: self._keys(member, iri) for iri in member.seen}
        member.take_in(run)
        self._members[run] = member
        self._want_more(member, known)

    def _want_more(self, member: Member, known: Mapping[str, Iterable[Key]]) -> None:
        """There are others in its state. known: by stream the earlier keys."""
        for iri, keys in known.items():
            self._streams[iri].watch(member)
            self._want(member, iri, frozenset(self._keys(member, iri)).difference(keys))

    def _enter(self, member: Member) -> None:
        self._reunions.enter(member)
        for iri in member.seen:
            stream = self._streams[iri]
            stream.awake[member] = None
            stream.watch(member)
            self._want(member, iri, self._keys(member, iri))

    def _want(self, member: Member, iri: str, keys: Iterable[Key]) -> None:
        """Events with these keys concern it."""
        stream = self._streams[iri]
        for key in keys:
            stream.wanted.setdefault(key, {})[member] = None
            if key != predicate_of(key):
                stream.paired[predicate_of(key)] = stream.paired.get(predicate_of(key), 0) + 1

    def remove(self, run: AloneRun) -> None:
        """One that has its state with others has none then."""
        member = self._members.pop(run)
        self._strike(run)
        member.drop(run)
        if not member.runs:
            self._leave(member)

    def _leave(self, member: Member) -> None:
        self._touch(member)
        self._reunions.leave(member)
        for iri in member.seen:
            stream = self._streams[iri]
            stream.leave(member)
            for key in self._keys(member, iri):
                del stream.wanted[key][member]
                if not stream.wanted[key]:
                    del stream.wanted[key]
                if key != predicate_of(key):
                    stream.paired[predicate_of(key)] -= 1
                    if not stream.paired[predicate_of(key)]:
                        del stream.paired[predicate_of(key)]
            self._trim(iri, stream)

    @staticmethod
    def _keys(member: Member, iri: str) -> Iterable[Key]:
        return () if member.concern is None else member.concern.keys.get(iri, ())

    def _know(self, member: Member, lineage: Hashable) -> None:
        """Others may join it, until something comes."""
        member.lineage = lineage
        self._known[member.equal, lineage] = member
        for iri in member.seen:
            self._streams[iri].known[member] = None

    def _touch(self, member: Member) -> None:
        """Its state is not the earlier one any more."""
        if self._known.get((member.equal, member.lineage)) is member:
            del self._known[member.equal, member.lineage]
            for iri in member.seen:
                self._streams[iri].known.pop(member, None)
        member.lineage, member.ended = object(), ()

    # --- events -------------------------------------------------------------------------------------

    def push(self, iri: str, batch: EventBatch) -> list[Outcome]:
        """Events of a stream, in order of arrival; the result."""
        stream = self._streams.get(iri)
        if stream is None:
            return []
        for member in tuple(stream.known):
            self._touch(member)
        missed = {member: self._missed(member) for member in self._concerned(stream, batch) if member in stream.asleep}
        touched = [*stream.awake, *missed]
        if stream.asleep:
            stream.backlog.add(batch)
        else:
            stream.backlog.pass_by(len(batch))
        if len(touched) > 1:
            touched.sort(key=_number)
        outcomes: list[Outcome] = []
        for member in touched:
            outcomes += self._step(member, [*missed.get(member, ()), (iri, batch)])
        if stream.asleep:
            outcomes += self._catch_up_some(iri, stream, len(batch))
        for members in self._reunions.due(len(batch)):
            outcomes += self._reunite(members)
        return self._in_order(outcomes)

    def _reunite(self, members: Sequence[Member]) -> list[Outcome]:
        """Have those that are alike be in one state, if they have come to be; what came of what they had missed."""
        outcomes = [outcome for member in members for outcome in self._caught_up(member)]
        known = {member.run: member for member in members}
        first, *others = known
        for host, *taken in first.unite(others):
            one = known[host]
            keys = {iri: self._keys(one, iri) for iri in one.seen}
            self._touch(one)
            for member in [known[run] for run in taken]:
                self._leave(member)
                self._members |= dict.fromkeys(member.runs, one)
                one.take_over(member)
            self._want_more(one, keys)
            self._place(one)
        return outcomes

    def _concerned(self, stream: _Stream, batch: EventBatch) -> dict[Member, None]:
        """Those that a batch concerns."""
        found: dict[Member, None] = {}
        for key in keys_in(batch, stream.wanted, stream.paired) if stream.wanted else ():
            found |= stream.wanted[key]
        if found:
            last = int(batch.time.max())
            for member in found:
                member.called(last)
        return found

    def punctuate(self, iri: str, time: int) -> list[Outcome]:
        """No event of a stream before `time` (µs) will come."""
        stream = self._streams.get(iri)
        if stream is None:
            return []
        for member in tuple(stream.known):
            self._touch(member)
        if stream.asleep:
            stream.backlog.mark(time)
        outcomes: list[Outcome] = []
        for member in sorted(stream.awake, key=_number):
            outcomes += self._step(member, [(iri, time)])
        return self._in_order(outcomes)

    def catch_up(self, run: AloneRun) -> list[Outcome]:
        return self._caught_up(self._members[run])

    def _caught_up(self, member: Member) -> list[Outcome]:
        missed = self._missed(member)
        return self._step(member, missed) if missed else []

    def _catch_up_some(self, iri: str, stream: _Stream, events: int) -> list[Outcome]:
        """As many as it takes for each to do so once while so many events come as it may be behind."""
        outcomes: list[Outcome] = []
        for _ in range(1 + len(stream.asleep) * events // MOST):
            member = next(iter(stream.asleep), None)
            if member is None or stream.backlog.end - member.seen[iri] <= MOST:
                break
            outcomes += self._step(member, self._missed(member))
        self._trim(iri, stream)
        return outcomes

    def _trim(self, iri: str, stream: _Stream) -> None:
        first = next(iter(stream.asleep), None)
        if first is None:
            stream.backlog.pass_by(0)
        else:
            stream.backlog.forget(first.seen[iri])

    def settle(self, run: AloneRun, until: int = BEFORE_ALL) -> list[Outcome]:
        return self._by_itself(run, "settle", lambda member: self._stepped_once(member, [], run.settle, quiet=False))

    def close(self, run: AloneRun) -> list[Outcome]:
        return self._by_itself(run, "close", lambda member: self._stepped_once(member, [], run.close, quiet=False))

    def forget(self, run: AloneRun, at: int) -> None:
        def forgets(member: Member) -> list[Outcome]:
            run.forget(at)
            return []

        self._by_itself(run, "forget", forgets)

    def _by_itself(self, run: AloneRun, what: str, step: Callable[[Member], list[Outcome]]) -> list[Outcome]:
        """What a run does that those in the same state do not, or have just done; the result."""
        outcomes = self.catch_up(run)
        if any(outcome.error is not None for outcome in outcomes):
            return outcomes
        member = self._members[run]
        lineage = member.lineage, what
        there = self._known.get((member.equal, lineage))
        if there is not None and run.may_share(there.run):
            member.drop(run)
            if not member.runs:
                self._leave(member)
            self._join(run, there)
            return [*outcomes, *there.told_to(run)]
        if len(member.runs) > 1:
            large = run.bytes > LARGE
            member = self._members[run] = member.part(run, self._terms)
            if large:  # or whoever reads matches and waits would have it copied repeatedly
                member.equal = object()
            self._enter(member)
            self._place(member)
        ended = step(member)
        self._touch(member)
        self._know(member, lineage)
        member.ended = ended
        return [*outcomes, *member.told(ended, quiet=False)]

    def keep_answers(self, run: AloneRun) -> bool:
        member = self._members[run]
        if run.reads_kb:
            assert not any(isinstance(item, EventBatch) for _, item in self._missed(member)), "catch_up first"
            member.wake()
            self._place(member)
        kept = member.keep_answers(run)
        if kept:
            self._touch(member)
        return kept

    # --- one run ------------------------------------------------------------------------------------

    def sleeps(self, run: AloneRun) -> bool:
        return self._is_asleep(self._members[run])

    def _is_asleep(self, member: Member) -> bool:
        return member in self._streams[next(iter(member.seen))].asleep

    def _missed(self, member: Member) -> list[_Item]:
        """The events that a sleeping one has not got."""
        if not self._is_asleep(member):
            return []
        items: list[_Item] = []
        assert member.concern is not None
        for iri, seen in member.seen.items():
            backlog = self._streams[iri].backlog
            needed, passed = member.concern.needed, self._passed(member, iri)
            mark_of, lateness = member.run.order.mark(list(member.seen).index(iri)), member.run.order.lateness
            largest, punctuation = mark_of.largest, mark_of.punctuation
            if passed is not None:
                items.append((iri, passed))
                seen, largest = seen + passed.events, max(largest, passed.last)
            for first, last, mark in backlog.stretches(seen):
                if first < last:
                    if needed is None:
                        items.append((iri, backlog.events(first, last)))
                    else:  # late events are reported completely
                        late, largest = late_ones(backlog.times(first, last), largest, punctuation, lateness)
                        items.append((iri, backlog.bare(first, last, needed | member.concern.kept, late)))
                if mark is not None:
                    items.append((iri, mark))
                    punctuation = max(punctuation, mark)
        return items

    def _passed(self, member: Member, iri: str) -> _Passed | None:
        """What one that is asleep need not see at all: events that come in order, but for the last ones."""
        concern, order, seen, backlog = member.concern, member.run.order, member.seen[iri], self._streams[iri].backlog
        if concern is None or len(member.seen) > 1 or (concern.needed is None and concern.begins is None):
            return None
        whole = concern.needed is None and not order.lateness  # then the last instant needs no other to be complete
        span = None if whole else concern.span + order.lateness
        events, first, last = backlog.dispensable(seen, concern.watched, span)
        if not events or not order.takes(0, first):
            return None
        if concern.needed is None and not (backlog.are_tuples(seen) and member.run.idles):
            return None
        return _Passed(events, last)

    def _step(self, member: Member, items: Sequence[_Item]) -> list[Outcome]:
        """Hand events and punctuations to runs in one state; the result for each."""
        return member.told(self._stepped_once(member, items))

    def _stepped_once(
        self, member: Member, items: Sequence[_Item], end: Callable[[], None] | None = None, *, quiet: bool = True
    ) -> list[Outcome]:
        """Hand events and punctuations to a run, one after the other, and let it work through what is complete then;
        what has come of that. `quiet`: nothing if it has found nothing."""
        run = member.run
        run.origin = None
        self._touch(member)
        self._stepped.update(member.runs)
        known, late = run.faults.count, dict[str, EventBatch]()
        wrong: Exception | None = None
        try:
            for iri, item in items:
                if isinstance(item, _Passed):
                    run.pass_by(*item)
                elif not isinstance(item, EventBatch):
                    run.punctuate(iri, item)
                elif (refused := run.push(iri, item)) is not None and len(refused):
                    late[iri] = EventBatch.concat([late[iri], refused]) if iri in late else refused
            if end is not None:
                end()
            found = run.advance_all()
        except Exception as error:
            wrong, found = error, run.left()
            member.wake()  # whatever it has not done it may do at the next event
        else:
            member.stepped()
        self._place(member)
        ignored, errors = run.faults.count - known, run.errors_of_each()
        *others, last = late.items() or [("", None)]
        outcomes = [Outcome(run, [], each, stream=iri) for iri, each in others]
        if found or last[1] is not None or ignored or wrong is not None or errors or not quiet:
            outcomes.append(Outcome(run, found, last[1], wrong, ignored, last[0], errors))
        return outcomes

    def _place(self, member: Member) -> None:
        """Among those awake, or last among those asleep."""
        rests = member.rests
        for iri in member.seen:
            stream = self._streams[iri]
            if not rests and member in stream.awake:
                return
            stream.awake.pop(member, None)
            stream.asleep.pop(member, None)
            (stream.asleep if rests else stream.awake)[member] = None
            member.seen[iri] = stream.backlog.end


def _number(member: Member) -> int:
    return member.number
