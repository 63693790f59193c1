"""One CEQL query over its streams: events in, complex events out. All its state is here.

push ─ marks ─ merging ─ events in order ─ complex event automaton ─ complex events
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from copy import deepcopy
from functools import cached_property, partial
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import NamedNode

from oxiseq.engine.cea.composed import ComposedRun, not_composed, not_weighed
from oxiseq.engine.cea.events import MarkedEvents, Marks
from oxiseq.engine.cea.facts import compile_facts
from oxiseq.engine.cea.held import Holders
from oxiseq.engine.cea.listed import EventReader, FoundEvents
from oxiseq.engine.cea.memory import Capacities
from oxiseq.engine.cea.ordering import EventOrder
from oxiseq.engine.cea.plan import Atom, CeaPlan
from oxiseq.engine.cea.run import CeaRun, Pick
from oxiseq.engine.cea.table_marks import AtOnce, TableMarker
from oxiseq.engine.cea.term_marks import RDF_TYPE, TermMarker, faults_in, unfit
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.faults import Faults, Unfit
from oxiseq.engine.events.tuples import TupleRows
from oxiseq.engine.kernels.cea.records import Memory
from oxiseq.engine.matches.paging import Page
from oxiseq.engine.matches.partitions import PartitionTable
from oxiseq.engine.matches.ranking import Ranking
from oxiseq.engine.omissions import NO_OMISSIONS, InstantError, Omissions, raised
from oxiseq.engine.order.merging import Merging
from oxiseq.engine.order.position_log import PositionLog
from oxiseq.engine.output.batch import MatchBatch
from oxiseq.engine.output.complex_events import ComplexEvents, EventsOfQueries
from oxiseq.engine.output.end_plan import end_plan
from oxiseq.engine.output.end_totals import EndTotals
from oxiseq.engine.output.end_weights import EndWeigher, EndWeights
from oxiseq.engine.output.picking import MatchPicker
from oxiseq.engine.run.alone import AloneRun
from oxiseq.engine.run.concern import Concern, Key, keys_of
from oxiseq.engine.run.resets import Resets
from oxiseq.engine.run.run import Run
from oxiseq.engine.run.tuple_family import Member, TupleFamily, shape_of
from oxiseq.engine.terms.dictionary import AnyIds, TermDictionary
from oxiseq.engine.terms.saved import KnownTerms, SameTerms, SavedTerms, State, part, record, unsaved, value
from oxiseq.grammar.ceql_algebra import AttributeWindow, summed_attributes

Arrived = TypeVar("Arrived", EventBatch, TupleRows)
I64 = NDArray[np.int64]
CHUNK = 1 << 16
"""Events processed at a time, so that memory does not grow with a batch."""


class TupleRun(AloneRun):
    """The running state of a CEQL query. `lateness` in microseconds; events before `start` are not seen.

    Counter: `matches` found. `faults`: events that are no tuple events are left out, as if they had not come.
    """

    made_of = (
        value("matches"),
        *Run.made_of,
        record("faults", Faults),
        part("_partitions"),
        part("_merging"),
        part("_cea", "automaton"),
        part("_log"),
        unsaved("_tables"),
        unsaved("_weigher"),
    )

    __slots__ = ("_plan",)  # as there
    _plan: CeaPlan
    """The query's own."""

    def __init__(
        self,
        plan: CeaPlan,
        terms: TermDictionary,
        start: int | None = None,
        lateness: int = 0,
        capacities: Capacities | None = None,
        page: Page | None = None,
    ) -> None:
        super().__init__()
        self._plan, self._capacities = plan, capacities
        self._family: TupleFamily | None = None
        """Queries that are in its state and differ in predicates; None: all that are in it are equal."""
        self._omissions: dict[int, Omissions] = {}
        """The events that were left out, by number."""
        self._over = False
        """Whether it gets nothing more; with a family, each query may be stopped by itself."""
        self._errors: dict[int, InstantError] = {}
        """The same since they were last asked for, where there is a family."""
        self._left: list[ComplexEvents | MatchBatch] = []
        """The matches found when a limit was passed: the next call of `advance` returns it."""
        self.resets, self.faults = Resets(), Faults()
        query = plan.query
        by = query.partition.by if query.partition is not None else ()
        window = query.window.attribute if isinstance(query.window, AttributeWindow) else None
        facts, vocab, self._by = compile_facts(plan.letters), query.vocab or "", len(by)
        self._dictionary = terms
        summed = summed_attributes(query)
        self._terms = TermMarker(facts, vocab, terms, by, window, summed)
        self._table_marker = partial(TableMarker, facts, vocab, terms, by, window, summed)
        self._tables: TableMarker | None = None  # most queries never see a table
        self._merging = Merging(len(plan.streams), lateness, start)
        self._log = PositionLog(len(summed), len(plan.streams))
        ranking = plan.ranking if page is None else Ranking.of_page(page)
        self._picker = None if ranking is None else MatchPicker(ranking, terms)
        if by or summed or self.alike is not None:
            terms.register(self)
        self._weights: EndWeights | None = None
        self._weigher: EndWeigher | None = None
        self._totals: EndTotals | None = None
        self._cea = self._automaton(composes=plan.query.totals is not None and not_composed(plan) is None)
        self._at_once: AtOnce | None = None
        self._begin_partitions()

    @property
    def paged(self) -> int:  # type: ignore[override]  # it counts as it goes
        return 0 if self._picker is None else self._picker.paged

    def _automaton(self, *, composes: bool) -> CeaRun | ComposedRun:
        """One that has not seen anything. `composes`: it counts by composed windows; earlier versions did so in other
        cases."""
        plan, capacities, log = self._plan, self._capacities, self._log
        if plan.query.totals is None:
            return CeaRun(plan, capacities, pick=None if self._picker is None else self._pick_with(self._picker))
        # what follows reads the log, not this run, which may come to be in another state
        reader = EventReader(plan, log.values)
        ends = end_plan(plan, plan.query.totals), reader, self._dictionary, log.times
        if not_weighed(plan) is not None:
            self._totals = EndTotals(*ends)
            return CeaRun(plan, capacities, self._totals)
        weights = EndWeights(*ends)
        self._weights, self._weigher = None, None
        if composes:
            self._weights = weights
            return ComposedRun(plan, capacities, weights.measured, weights.least)
        self._weigher = EndWeigher(plan, weights, reader, lambda: log.oldest)
        return CeaRun(plan, capacities, weigher=self._weigher)

    def _pick_with(self, picker: MatchPicker) -> Pick:
        """What chooses, in order, among the complex events that end at an event."""
        order, terms = self._plan.query.order, self._dictionary
        reader = EventReader(self._plan, self._log.values)
        by = None if order is None else EventOrder(order, reader, terms)

        def pick(S: Memory, holders: Holders, at: int, time: int) -> Memory:
            in_order = None if by is None else partial(by.of, holders=holders, at=at)
            return picker.pick(S, time, partial(reader.at, holders=holders), in_order)

        return pick

    @property
    def fits(self) -> Hashable:  # type: ignore[override]  # it depends on what is read
        return self._plan.query.vocab, self._terms.attributes

    def unfit(self, stream: str, batch: EventBatch, terms: TermDictionary) -> Unfit | None:
        """Those that are no tuple events."""
        attributes = self._terms.attributes
        fault = faults_in(self._plan.query.vocab or "", attributes, batch, terms)
        return None if fault is None else unfit(stream, batch.time, fault, attributes)

    # --- with others that are alike -----------------------------------------------------------------

    @cached_property
    def alike(self) -> Hashable | None:
        return None if self._picker is not None else shape_of(self._plan)

    @property
    def shares(self) -> bool:
        """Whether its state is that of others, too, which are not equal."""
        return self._family is not None

    @property
    def number(self) -> int:
        return 0 if self._family is None else self._family.number(self._plan)

    def may_share(self, other: Self) -> bool:
        family = other._family
        known = Member.of(self._plan) == Member.of(other._plan) if family is None else self._plan in family
        return known or (not other.events and other.order.fresh)

    def share(self, other: Self) -> None:
        other._take_in(self._plan)
        super().share(other)

    def _take_in(self, plan: CeaPlan) -> None:
        """One more query, before anything comes, or one that is equal."""
        if Member.of(plan) == Member.of(self._plan) or (self._family is not None and plan in self._family):
            return
        self._family = self._as_family
        self._family.take_in(plan)
        assert isinstance(self._cea, CeaRun)
        self._cea.begin_query(self._family.number(plan), Member.of(plan).back)

    @property
    def _as_family(self) -> TupleFamily:
        """Those in its state, if only of itself."""
        return self._family or TupleFamily(self._plan, self._dictionary)

    @property
    def unites(self) -> bool:
        return self.alike is not None

    def unite(self, others: Sequence[Self]) -> Sequence[Sequence[Self]]:
        states: dict[Hashable, list[Self]] = {}
        for run in (self, *others):
            if not run.order.open and not run._over:
                states.setdefault((run.order.times, run.resets, run.faults), []).append(run)
        found = []
        for same in states.values():
            host, *rest = sorted(same, key=lambda run: run._cea.position, reverse=True)
            taken = [run for run in rest if host._absorb(run)]
            if taken:
                found.append((host, *taken))
        return found

    def _absorb(self, other: Self) -> bool:
        """Have the queries of another state, too, which gets the same events from now on; whether it could be."""
        mine, theirs, shift = self._as_family, other._as_family, self._cea.position - other._cea.position
        if mine.meets(theirs) or not self._log.fits(other._log, shift):
            return False
        assert isinstance(self._cea, CeaRun)
        assert isinstance(other._cea, CeaRun)
        self._family = mine
        numbers = mine.absorb(theirs, shift)
        self._log.take_over(other._log, shift)
        self._cea.take_over(other._cea, numbers, shift)
        self._had |= {here: other._had.get(there, 0) for there, here, _ in numbers}
        self._omissions |= {here: other._omissions.get(there, NO_OMISSIONS) for there, here, _ in numbers}
        return True

    def _leave_others(self) -> None:
        """There are no others any more."""
        terms, number = self._dictionary, self.number
        alone = self.another()
        alone.restore(deepcopy(self.save(SavedTerms(terms))), SameTerms(terms))
        alone._had = {0: self._had.get(number, 0)}
        alone._merging.events, alone._merging.late = self._merging.events, self._merging.late
        self.__dict__.update(alone.__dict__)

    def narrow(self, others: Sequence[Self]) -> None:
        family = self._family
        kept = {Member.of(run._plan) for run in others}
        if family is None or 2 * len(kept) > len(family) or self.order.open:
            return
        if len(kept) == 1:
            self._leave_others()
        else:
            gone = family.keep(kept)
            assert isinstance(self._cea, CeaRun)
            self._cea.begin_partitions(gone, 1)

    def of_each(self, found: Sequence[Any]) -> Mapping[int, Sequence[Any]] | None:
        if self._family is None:
            return None
        each: dict[int, list[ComplexEvents]] = {}
        for batch in found:
            order = np.argsort(batch.number, kind="stable")
            numbers, first = np.unique(batch.number[order], return_index=True)
            for number, mine in zip(numbers.tolist(), np.split(order, first[1:]), strict=True):
                own = batch.events.take(mine).earlier(self._family.shifts.get(number, 0))
                each.setdefault(number, []).append(own)
        return each

    def errors_of_each(self) -> Mapping[int, Exception]:
        errors, self._errors = self._errors, {}
        return errors

    @property
    def omitted(self) -> Omissions:
        return self._omissions.get(self.number, NO_OMISSIONS)

    @omitted.setter
    def omitted(self, omitted: Omissions) -> None:
        self._omissions[self.number] = omitted
        self._over = self._family is None and omitted.over

    def _work_for_all(self, family: TupleFamily, marks: Marks, streams: I64) -> EventsOfQueries | None:
        """Events of all queries, each of which has those that it reads."""
        assert isinstance(self._cea, CeaRun)
        self._log.add(marks.time, streams, marks.values)
        event, number, symbol = family.rows(marks)
        batch = len(marks), marks.time.item(-1)
        found = self._cea.feed(MarkedEvents(symbol, marks.time[event], number, None, event, batch))
        for query, errors in self._cea.take_omitted_of().items():
            self._omissions[query] = self._omissions.get(query, NO_OMISSIONS).more(errors)
            self._errors[query] = raised(errors)
            if errors[-1].final:
                family.stopped.add(query)
        made = EventsOfQueries(self._complex_events(found), number[found.of]) if len(found) else None
        self._log.forget(self._cea.oldest)
        if made is not None:
            for query, count in zip(*np.unique(made.number, return_counts=True), strict=True):
                self._had[int(query)] = self._had.get(int(query), 0) + int(count)
        return made

    # --- alone --------------------------------------------------------------------------------------

    def another(self) -> Self:
        order, capacities = self._merging, self._capacities
        return type(self)(self._plan, self._dictionary, order.start, order.lateness, capacities)

    @property
    def plan(self) -> CeaPlan:
        return self._plan

    @property
    def concern(self) -> Concern:
        """Complex events end at an event of a type that the formula names last. Earlier ones, and those with a
        position only, is seen whole when one of those comes."""
        letters = self._plan.letters
        ends, begins = self._keys([letters[n] for n in self._plan.runner.last]), self._keys(letters)
        return Concern(dict.fromkeys(self._plan.streams, ends), begins=begins)

    def _keys(self, atoms: Sequence[Atom]) -> frozenset[Key]:
        """Of the types of events."""
        keys = keys_of([(RDF_TYPE, NamedNode(atom.type)) for atom in atoms], self._dictionary)
        assert keys is not None, "a formula names types"
        return keys

    @property
    def idles(self) -> bool:
        return not self._by and not self.order.open and self._cea.idles

    def pass_by(self, events: int, last: int) -> None:
        super().pass_by(events, last)
        self._cea.pass_by(events, last)
        self._log.begin(self._cea.position)
        self._log.newest = last

    @property
    def order(self) -> Merging:
        self._let_wait()
        return self._merging

    def _let_wait(self) -> None:
        """What has been fed past the order of events, and would have waited in it, waits there."""
        once = self._at_once
        if once is not None and (marks := once.taken()) is not None:
            self._merging.mark(0).wait(marks)

    def push(self, stream: str, batch: Arrived) -> Arrived | None:
        """Take events of a stream in order of arrival; returns the late ones, if any. Call `advance` for matches.

        Events that are no tuple events are left out (`faults`). Raises EventError for a column of a table that cannot
        be an attribute; then none of the batch is taken.
        """
        if self._over:
            return None
        marker = self._terms if self._family is None else self._family.marker
        if isinstance(batch, EventBatch):
            marks = marker.mark(batch)
        else:
            assert self._family is None
            tables = self._tables or self._begin_tables()
            if self._pass_on(stream, batch):
                return None
            marks = tables.mark(batch)
        if marks.fault is not None:
            wrong = unfit(stream, batch.time, marks.fault, marker.attributes)
            self.faults = self.faults.more(wrong)
            marks, batch = marks.take(wrong.fit), batch.take(wrong.fit)
        late = self.order.take_in(self.plan.streams.index(stream), marks)
        return None if late is None else batch.take(late)

    def advance(self) -> list[Any]:
        found = self.advance_all()
        each = None if self._family is None else self.of_each(found)
        return found if each is None else [*each.get(self.number, ())]

    def advance_all(self) -> list[Any]:
        """Work through all events whose place is known by now; returns, in order of end, complex events, or rows
        of totals. Raises LimitError for the complex events of an event; these are not emitted, and the next call
        returns the rest (or `left`)."""
        found, self._left = self._left, []
        if self._over:
            return []
        if isinstance(self._cea, CeaRun):
            self._cea.bounds = self._dictionary.bounds
        once = self._at_once
        if once is not None and once.time is not None:
            found += self._feed_few(once)
        elif (taken := self._merging.take()) is not None:
            found += self._found(*taken)
        if omitted := self._cea.take_omitted():
            self.omitted, self._left = self.omitted.more(omitted), found
            raise raised(omitted)
        if found and self._family is None:
            self.matches += sum(map(len, found))
        return found

    def _begin_tables(self) -> TableMarker:
        """The first table has come."""
        self._tables = tables = self._table_marker()
        summed = summed_attributes(self._plan.query)
        if isinstance(self._cea, CeaRun) and not summed and len(self._plan.streams) == 1:
            self._at_once = AtOnce(tables, self._cea.few)
        return tables

    def _pass_on(self, stream: str, batch: TupleRows) -> bool:
        """Mark a batch of few rows whose place is known at once, if it is one."""
        once, order, time = self._at_once, self._merging, batch.time
        if once is None or once.time is not None or order.lateness or stream != self._plan.streams[0]:
            return False
        if not once.mark(batch):
            return False
        if not order.pass_at_once(len(time), time.item(0), time.item(-1)):
            once.time = None
            return False
        return True

    def _feed_few(self, once: AtOnce) -> list[ComplexEvents | MatchBatch]:
        """Those of the batch that has been marked."""
        assert once.time is not None and isinstance(self._cea, CeaRun)
        time, once.time = once.time, None
        if self._by:
            self._cea.few.partition[: len(time)] = self._partitions_of(once.values)
        made = self._emitted(self._cea.feed_few(time, *self._log.room(len(time))))
        self._log.newest = time.item(-1)
        self._log.forget(self._cea.oldest)
        return [] if made is None else [made]

    def left(self) -> list[Any]:
        found, self._left = self._left, []
        self.matches += sum(map(len, found))
        return found

    def _found(self, marks: Marks, streams: I64) -> list[Any]:
        """Complex events by their ends, in order."""
        found: list[Any] = []
        for low in range(0, len(marks), CHUNK):
            part = slice(low, low + CHUNK)
            batch = self._work(marks if len(marks) <= CHUNK else marks.take(part), streams[part])
            if batch is not None:
                found.append(batch)
            if self._cea.over:
                break
        return found

    def _begin_partitions(self) -> None:
        """None is known."""
        self._partitions: PartitionTable | None = None
        if self._by:
            parts = (self._capacities or Capacities()).parts
            self._partitions = PartitionTable(self._by, self._cea, parts, self._dictionary)

    def _partitions_of(self, values: I64) -> I64:
        """The partition of each event with these values, -1 where one of PARTITION BY is missing."""
        table = self._partitions
        if table is None:
            return np.zeros(len(values), np.int64)
        values = values[:, : self._by]
        if values.all():
            return table.number(values)
        whole = values.all(axis=1)
        numbers = np.full(len(values), -1, np.int64)
        numbers[whole] = table.number(values[whole])
        return numbers

    def _work(self, marks: Marks, streams: I64) -> ComplexEvents | MatchBatch | EventsOfQueries | None:
        if self._family is not None:
            return self._work_for_all(self._family, marks, streams)
        values = marks.values[:, self._by :] if self._by else marks.values
        self._log.add(marks.time, streams, values)
        partition = self._partitions_of(marks.values)
        made = self._made(MarkedEvents(marks.symbol, marks.time, partition, marks.attribute), values)
        self._log.forget(self._cea.oldest)
        return made

    def _made(self, events: MarkedEvents, values: I64) -> ComplexEvents | MatchBatch | None:
        if isinstance(self._cea, ComposedRun):
            assert self._weights is not None
            return self._weights.rows(self._cea.feed(events, values))
        return self._emitted(self._cea.feed(events))

    def _emitted(self, found: FoundEvents) -> ComplexEvents | MatchBatch | None:
        ends = self._totals or self._weigher
        if ends is not None:
            return ends.take()
        return self._complex_events(found) if len(found) else None

    def _complex_events(self, found: FoundEvents) -> ComplexEvents:
        time, (event_time, event_stream) = self._log.times(found.end), self._log.at(found.positions)
        return ComplexEvents(
            found.start, found.end, time, found.offsets, found.positions, found.held, event_time, event_stream
        )

    def held_ids(self) -> Iterator[AnyIds]:
        """The values of partitions, and the terms that aggregates may be of."""
        yield from super().held_ids()
        if self._at_once is not None and self._at_once.time is not None:
            yield self._at_once.values

    def save(self, terms: SavedTerms) -> State:
        self._let_wait()
        family = self._family
        own = {} if family is None else self._own_state(family, terms)
        if self._partitions is not None:
            self._partitions.forget_unused()
        if family is None:
            self._cea.collect()
            self._log.forget(self._cea.oldest)
        state: State = {}
        for each in self.made_of:
            if each.name in own:
                state[each.name] = own[each.name]
            else:
                each.save(self, state, terms)
        state["merging"] |= {"events": self._merging.events + self._elsewhere[0], "late": self.late}
        return state

    def _own_state(self, family: TupleFamily, terms: SavedTerms) -> State:
        """Its parts that are others', too, as they would be saved if its query were alone."""
        assert isinstance(self._cea, CeaRun)
        number = self.number
        shift = family.shifts.get(number, 0)
        alone = CeaRun(self._plan, self._capacities)
        alone.continue_one(self._cea, number, shift)
        return {
            "automaton": alone.save(terms),
            "merging": self._merging.mapped(partial(family.marks_of, number)).save(terms),
            "log": self._log.save(terms, alone.oldest, shift),
        }

    def restore(self, state: State, terms: KnownTerms) -> None:
        composes = "measures" in state["automaton"]
        if composes != (self._weights is not None):
            self._cea = self._automaton(composes=composes)
            self._begin_partitions()
        super().restore(state, terms)

    # --- its state and counters ---------------------------------------------------------------------

    @property
    def notes(self) -> tuple[str, ...]:
        """Columns of tables whose type never fits the query."""
        return () if self._tables is None else self._tables.notes

    @property
    def behind(self) -> int:
        """At how many events `WITHIN d [attribute]` reached back to forgotten events, because the attribute
        fell: matches that end there may be missing."""
        return self._cea.behind

    @property
    def state(self) -> dict[str, int]:
        """Numbers of live records; and `behind`. `partitions`: how many values of PARTITION BY, or combinations of
        values, are known; some may be forgotten."""
        partitions = {} if self._partitions is None else {"partitions": self._partitions.live}
        return {
            **self._cea.state,
            "events": self._log.held,
            **partitions,
            "behind": self.behind,
            "ignored": self.faults.count,
        }

    @property
    def bytes(self) -> int:
        """The size of its memory, or its part of it."""
        return -(-super().bytes // (1 if self._family is None else len(self._family)))

    @property
    def records(self) -> int:
        """How many records its state has; some may be dead by now (`collect`)."""
        return self._cea.records + self._log.held + (0 if self._partitions is None else self._partitions.live)

    def collect(self) -> None:
        """Frees dead memory, so that `records` counts what lives."""
        if self._partitions is None:
            self._cea.collect()
        else:
            self._partitions.forget_unused()
        self._log.forget(self._cea.oldest)

    def forget(self, at: int) -> None:
        """As there; counters and positions continue."""
        if self._family is not None:
            self._leave_others()
        self.resets = self.resets.another(at, self._log.newest, self.records)
        self._cea.forget()
        self._begin_partitions()
        self._log.begin(self._cea.position)
