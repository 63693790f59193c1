"""One run of the edges of many queries: tables are appended as queries come, matches say whose they are.

In the flow: complete instants → rows of common letters → **one pass for all queries** → matches of each query, in its
own rows. A query that is examined, saved or does something by itself has its part taken out (memory.py).
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.automaton.ladders import Ladder, Rung
from oxiseq.engine.automaton.letters import CommonLetters, MemberLetters, Sought, compares
from oxiseq.engine.automaton.matching import NOTHING, CommonMatching, FoundLetters
from oxiseq.engine.automaton.memory import (
    Renumbered,
    TableSpan,
    begun_with,
    counted_of,
    deadlines_by_query,
    part_of,
    with_part,
)
from oxiseq.engine.automaton.parted import CommonPartitions
from oxiseq.engine.automaton.queries import AnswerShape, JoinedQuery, ShapeFound
from oxiseq.engine.automaton.run import CommonRun, Stop
from oxiseq.engine.kernels.matches.records import (
    OMITTED,
    PLACE_BITS,
)
from oxiseq.engine.kernels.memory.pointers import Pointers, call
from oxiseq.engine.kernels.sequence import letter_rows as lr
from oxiseq.engine.kernels.sequence import records as k
from oxiseq.engine.kernels.sequence.extraction import count_records, drop_queries
from oxiseq.engine.kernels.sequence.letter_rows import RowBlock
from oxiseq.engine.kernels.sequence.records import BEFORE_ALL
from oxiseq.engine.matches.found import Found
from oxiseq.engine.matches.plan import NO_CLAUSES, Clauses
from oxiseq.engine.matching.enrich import KbAnswer
from oxiseq.engine.omissions import LeftOut, Streak
from oxiseq.engine.order.clock import Instants
from oxiseq.engine.order.watermarks import AFTER_ALL
from oxiseq.engine.output.deadlines import NumberedInstants
from oxiseq.engine.output.rows import RowStore
from oxiseq.engine.output.write import enriched_gpms
from oxiseq.engine.plan.query import QueryPlan
from oxiseq.engine.run.finder import Finder, rows_in_use
from oxiseq.engine.run.letters import RowWriter
from oxiseq.engine.sequence.run import RowBuffer
from oxiseq.engine.sequence.states import Edge, StateGraph, Value
from oxiseq.engine.sequence.tables import SequenceTables, TableBuilder
from oxiseq.engine.terms.dictionary import AnyIds, TermDictionary

_PLACES: Final = (1 << PLACE_BITS) - 1
_PER_RECORD: Final = 3
"""A node may name a row of its own, and a group may have buckets of its own."""
_FEW_GONE: Final = 16
"""Queries that have left before it is worth while to make all tables again."""


class Step(NamedTuple):
    """What queries have found, shape by shape, and the errors of those that cannot go on. `done`: of so many instants,
    since the others are to be worked through without queries that are to work by themselves; None: of all."""

    told: list[ShapeFound]
    failed: dict[Finder, Exception]
    done: int | None = None


class SharedAutomaton:
    """The queries of one clock that are in one run; first: one of them, of the same kind as all."""

    def __init__(self, streams: int, terms: TermDictionary, first: Finder) -> None:
        self.members: dict[Finder, JoinedQuery] = {}
        self._streams, self._terms, self._kb, self._kind = streams, terms, first.kb, first.kind
        self._begin()
        terms.register(self)

    def _begin(self) -> None:
        """There are no queries."""
        self._letters = CommonLetters(self._streams, self._terms, partitioned=self._kind.partitioned)
        self._builder = TableBuilder(self._terms)
        self._partitions: CommonPartitions | None = None
        self.matching = CommonMatching(self._letters, self._terms, self._kb)
        self._keys: list[tuple[Value, ...]] = []
        self._edges: list[Edge] = []
        self._filters_of: list[int] = []
        self._by_query: dict[int, list[JoinedQuery]] = {}
        self.ladders: dict[Hashable, Ladder | None] = {}
        """By what the queries of a ladder have in common; None: one has come so far, which is on none."""
        self._shapes: dict[Hashable, AnswerShape] = {}
        self._in_order: list[JoinedQuery] = []
        """Shape by shape."""
        self._ranks = np.zeros(0, np.int64)
        """By number of a query its place among these, -1 of a ladder."""
        self._letter_keys, self._own_numbers = np.zeros(0, np.int64), np.zeros(0, np.int32)
        """query << 32 | common letter, ascending, and the query's own number of it."""
        self._entering: list[JoinedQuery] = []
        self._gone: set[int] = set()
        self._beginning: list[JoinedQuery] = []
        """Those that have seen no instant: their tumbling windows and reports begin with the first one."""
        self._deferring: dict[int, JoinedQuery] = {}
        """By query those whose matches wait until all of their end are decided."""
        self._without: list[JoinedQuery] = []
        """Those of which the last instants with events that they match were left out (`Finder.unmatched`)."""
        self._leaving: list[JoinedQuery] = []
        """Those that are to go before the next step, since they would do too much at its first instant."""
        self._placed = 0
        """How many partitions of the next step's first instant have been worked through."""
        self._stale = False
        self._clean = True
        self._newest = BEFORE_ALL
        """The time of the last instant."""
        self._run: CommonRun | None = None
        self.rows, self._kept_rows, self._unsorted = RowStore(1), 0, 0
        self._longest: int | None = None
        self._counts: NDArray[np.int64] | None = None
        self._due: tuple[NDArray[np.bool_], NDArray[np.int64]] | None = None
        """By query, as of the last step."""
        self._until: int = BEFORE_ALL
        """Of the instants in work, or of the last ones: as of `ShapeFound`."""
        self._asked: list[JoinedQuery] = []
        """Those whose records have been counted exactly."""

    def held_ids(self) -> Iterator[AnyIds]:
        """The terms of all that is waited for (see `TermDictionary`)."""
        if self._run is not None:
            yield from self._run.memory.held_ids()
        if self._partitions is not None:
            yield from self._partitions.table.held_ids()
        yield from self.rows.held_ids()

    # --- queries come and go ------------------------------------------------------------------------

    def enter(self, finder: Finder, shift: int, written: Hashable | None = None) -> bool:
        """A query comes, which may have seen events, unless it has its letters in another order than those that are
        here: whether it has come. `shift`: how many instants the clock had completed before its own first one;
        `written`: as of `AnswerShape`."""
        plan, rung = finder.plan, self._rung_of(finder)
        letters = self._letters.add(plan, rung)
        if letters is None:
            return False
        if rung is not None and rung.ladder.members:
            span = rung.ladder.members[0].span._replace(shift=shift)
        else:
            span = self._append(plan, letters, shift)
        streak = Streak(self._terms.bounds)
        places = letters.places(plan.runner.stored)
        arranges = finder.arranges
        asked = tuple((gpm.name, letters.names_of(gpm.name), gpm.kb.variables) for gpm in enriched_gpms(plan) if gpm.kb)
        key = written, places.shape, places.tobytes(), arranges, asked
        shape = self._shapes.setdefault(key, AnswerShape(places, written, arranges, asked))
        member = self.members[finder] = JoinedQuery(self, finder, span, letters, shape, streak, rung)
        self._by_query.setdefault(span.query, []).append(member)
        if rung is not None:
            rung.ladder.members = self._by_query[span.query]
        if finder.deferred is not None:
            self._deferring[span.query] = member
        self._entering.append(member)
        self._stale = True
        return True

    def _rung_of(self, finder: Finder) -> Rung | None:
        """The place of a query on a ladder, if another one that may be there is or has been here, and it has no runs
        yet."""
        plan, kind = finder.plan, finder.ladder
        if kind is None or not finder.is_idle() or (kind.threshold is not None and not compares(plan, kind.threshold)):
            return None
        if kind.alike not in self.ladders:
            self.ladders[kind.alike] = None
            return None
        ladder = self.ladders[kind.alike] or Ladder(self._terms, plan.runner.sequence.keys)
        self.ladders[kind.alike] = ladder
        return Rung(ladder, kind.threshold, self._newest, 0 if plan.window is None else plan.window.size)

    def _append(self, plan: QueryPlan, letters: MemberLetters, shift: int) -> TableSpan:
        """Edges of one more query, or of those of a ladder."""
        builder, sequence = self._builder, plan.runner.sequence
        first, leads, filters = len(builder.edges), len(builder.leads), len(builder.filters)
        query = len(builder.windows)
        builder.add(sequence.graph, sequence.keys, sequence.scopes, plan.window, sequence.clauses, letters)
        self._keys += sequence.keys
        self._edges += sequence.graph.edges
        self._filters_of += [query] * (len(builder.filters) - filters)
        edges, led = len(builder.edges) - first, len(builder.leads) - leads
        shift = 0 if self._kind.partitioned else shift
        return TableSpan(query, first, edges, leads, led, shift, shift if self._kind.by_number else 0)

    def release(self, member: JoinedQuery) -> None:
        """A query goes, with its part."""
        self._part(member, member.finder)
        self.drop(member.finder)

    def drop(self, finder: Finder) -> None:
        """A query goes, if it is here, and its part is forgotten."""
        member = self.members.get(finder)
        if member is None:
            return
        if member in self._entering:
            self._entering.remove(member)
        member.finder.away = None
        del self.members[member.finder]
        self._by_query[member.span.query].remove(member)
        self._deferring.pop(member.span.query, None)
        self._beginning = [each for each in self._beginning if each is not member]
        self._without = [each for each in self._without if each is not member]
        if not self._by_query[member.span.query]:
            del self._by_query[member.span.query]
            self._gone.add(member.span.query)
        self._stale = True
        if len(self._gone) > max(_FEW_GONE, len(self.members)):
            self.dissolve()

    def dissolve(self) -> None:
        """All go, each with its part."""
        for member in tuple(self.members.values()):
            self._part(member, member.finder)
            member.finder.away = None
        self.members.clear()
        self._begin()

    def copy_of(self, member: JoinedQuery) -> Finder:
        """A finder in the state of one that is here, of the same plan."""
        other = member.finder.another(member.finder.plan)
        self._part(member, other)
        return other

    def _part(self, member: JoinedQuery, finder: Finder) -> None:
        """Give a finder the part of a query."""
        if member in self._entering:  # it has never been here
            if finder is not member.finder:
                raise AssertionError("one that has not come is at home")
            return
        finder.start = member.finder.start
        finder.answers.follow(self.matching.kb, member.letters.parts)
        finder.unmatched.running = member.finder.unmatched.running
        finder.placed = self._placed
        run = self._run
        if run is None or not len(run.memory.groups):
            return
        self.collect()
        sequence = finder.plan.runner.sequence
        common, deferred = run.memory, member.finder.deferred
        held = np.zeros(0, np.int64) if deferred is None else deferred.rows_named
        if member.rung is not None and self._kind.counting:
            ladder = member.rung.ladder
            common = counted_of(common, member.span, lambda edges, keys: ladder.has(member, edges, keys))
        elif member.rung is not None:
            begins = member.rung.ladder.begins(member, self.rows.block).view(np.uint8)
            common = begun_with(common, begins, self.rows.base)
        memory, ids = part_of(common, sequence, member.span, held, finder.capacities, self._terms)
        memory.scalars[OMITTED] = member.streak.running
        rows = self._with_answers(self.own_rows(member, ids), member.shape)
        partitions = None if self._partitions is None else self._partitions.table
        finder.take_back(memory, rows, member.finder, ids, partitions)

    def note_exact(self, member: JoinedQuery) -> None:
        """Somebody has counted its records: that holds until the next step."""
        self._asked.append(member)

    def collect(self, clock: int = BEFORE_ALL, instants: int = 0) -> None:
        """Frees all that is dead, behind so many instants, before the next of which this clock has passed."""
        if self._run is not None and self._run.pass_to(clock, instants):
            self._clean = False
        if self._run is not None and self._partitions is not None and self._run.pass_in(self._partitions.table.count):
            self._clean = False
        if self._run is not None and not self._clean:
            self._run.clean()
            self._clean, self._counts = True, None

    def _prepare(self) -> None:
        """Queries have come, or gone."""
        if not self._stale:
            return
        builder, letters = self._builder, self._letters
        ladders = [each for each in self.ladders.values() if each is not None and each.members]
        for ladder in ladders:
            builder.windows[ladder.members[0].span.query]["size"] = ladder.longest
        chooses = any(each.finder.plan.clauses.chooses for each in self.members.values())
        clauses = Clauses(picks=chooses, partitioned=self._kind.partitioned)
        compiled = SequenceTables(
            builder.tables(len(letters.all), clauses, counts_instants=self._kind.by_number, gone=self._gone),
            (),
            letters.names,
            tuple(builder.compiled),
            StateGraph((), tuple(self._edges)),
            tuple(self._keys),
            (),
            (),
            builder.vector,
            builder.depth,
            builder.measure_count,
            replace(NO_CLAUSES, partitioned=self._kind.partitioned),
            {},
        )
        if self._run is None:
            self._run = CommonRun(compiled, self._terms, self._by_query)
            self._run.reserve()
        else:
            self._run.become(compiled)
        if self._kind.partitioned and self._partitions is None:
            plan = next(iter(self.members)).plan
            self._partitions = CommonPartitions(plan, letters, self._run, self._terms)
        self._run.filters_of = self._filters_of
        self._forget_gone(compiled)
        for ladder in ladders:
            ladder.settle()
            if ladder.rungs[0].threshold is not None:
                letters.look_for(ladder.rungs[0])
        self._writer = RowWriter(letters.row_columns(builder.wide), letters.stored_columns(), compiled)
        self._writer.settings[lr.BY_NUMBER] = self._kind.by_number
        self._writer.settings[lr.EVERY] = self._kind.by_number and any(each.passes for each in self._edges)
        self.rows = self._run.rows = self.rows.widened(max(letters.width, 1))
        self.matching.want([member.letters for member in self.members.values()])
        self._run.ask = self.matching.ask
        for member in self._entering:
            self._take_in(self._run, compiled, member)
        self._entering, self._stale, self._clean = [], False, False
        self._counts = self._due = None
        self._number()
        finders = [(member.finder, member.finder.plan.window) for member in self.members.values()]
        # a match is held for a window's length behind its end
        sizes = [None if w is None else w.size * (1 if each.deferred is None else 2) for each, w in finders]
        self._longest = None if None in sizes else max((size for size in sizes if size is not None), default=0)

    def _number(self) -> None:
        """Which query is written with which, and what its letters are."""
        shapes = {shape: number for number, shape in enumerate(self._shapes.values())}
        self._in_order = sorted(self.members.values(), key=lambda each: (shapes[each.shape], each.span.query))
        for place, each in enumerate(self._in_order):
            each.place = place
        self._ranks = np.full(len(self._builder.windows), -1, np.int64)
        alone = [each for each in self._in_order if each.rung is None]
        self._ranks[[each.span.query for each in alone]] = [each.place for each in alone]
        letters = {query: members[0].letters.numbers for query, members in self._by_query.items()}
        keys = [query << 32 | n for query, numbers in letters.items() for n in numbers.values()]
        own = [n for numbers in letters.values() for n in range(len(numbers))]
        order = np.argsort(keys)
        self._letter_keys, self._own_numbers = np.array(keys, np.int64)[order], np.array(own, np.int32)[order]

    def _forget_gone(self, compiled: SequenceTables) -> None:
        assert self._run is not None
        gone = np.zeros(len(compiled.tables.windows), np.uint8)
        gone[[*self._gone]] = 1
        if self._gone:
            call(drop_queries, Pointers(compiled.tables), Pointers(self._run.memory), gone)

    def _take_in(self, run: CommonRun, compiled: SequenceTables, member: JoinedQuery) -> None:
        """The state of a query that has come."""
        finder, partitions = member.finder, member.finder.partitions
        self.matching.know(finder.answers.known(), member.letters)
        if partitions is not None:
            partitions.table.forget_unused()
        memory, rows = finder.give_away()
        finder.away = member
        if finder.start is None:
            self._beginning.append(member)
        if finder.unmatched.running:
            self._without.append(member)
        run.memory.origins[member.span.query] = finder.window_start + member.span.clocks
        if memory is None:
            return
        member.streak.running = int(memory.scalars[OMITTED])
        if member.rung is not None:
            return
        ids, base = rows_in_use(memory, finder.deferred), self.rows.end
        if finder.deferred is not None:
            finder.deferred.renumber(ids, base)
        if len(ids):
            self._put_rows(member, rows, ids)
            self._unsorted = self.rows.end
        own, parts = finder.plan.runner.sequence, None
        if self._partitions is not None and partitions is not None:
            parts = Renumbered(*self._partitions.table.adopt(partitions.table))
        run.memory = with_part(run.memory, compiled, memory, own, member.span, (ids, base), parts, self._terms)

    def _put_rows(self, member: JoinedQuery, store: RowStore, ids: NDArray[np.int64]) -> None:
        """A query's own rows become common ones."""
        block = store.take(ids)
        epochs, place = np.unique(block.epoch, return_inverse=True)
        known = [store.answers(epoch) if store.epochs else {} for epoch in epochs.tolist()]
        epoch = np.array([self.rows.epoch(member.letters.common(answers)) for answers in known], np.int32)[place]
        numbers = np.array([*member.letters.numbers.values()], np.int32)
        stored = np.zeros((len(block.letter), self.rows.width), np.uint32)
        for own, places in enumerate(member.places):
            rows = np.flatnonzero(block.letter == own)
            for variable, column in enumerate(places.tolist()):
                if column >= 0:
                    stored[rows, column] = block.stored[rows, variable]
        clock = block.clock + member.span.clocks
        self.rows.append(RowBlock(numbers[block.letter], block.time, clock, stored, epoch))

    # --- instants → matches -------------------------------------------------------------------------

    def step(self, instants: Instants, *, last: bool) -> Step:
        """What queries find in instants that are complete. Queries of which a pattern is beyond a limit have gone: they
        are to work by themselves. `last`: as of `Part`."""
        leaving, self._leaving = self._leaving, []
        for member in leaving:
            if member.finder in self.members:
                self.release(member)
        self._prepare()
        count = len(instants.time)
        passed = self._until = instants.passed if last or not count else instants.time.item(-1) + 1
        if self._kind.by_number and not (last and passed >= AFTER_ALL):
            self._until = instants.first + count
        if self._run is None or not self.members:
            return Step([], {})
        try:
            return self._stepped(self._run, instants, passed)
        finally:
            self.matching.end()

    def _stepped(self, run: CommonRun, instants: Instants, passed: int) -> Step:
        count = len(instants.time)
        self._newest = instants.time.item(-1) if count else self._newest
        matched = self._begun(run, instants) if count else NOTHING
        sources = matched.sources
        columns: tuple[NDArray[np.int64], ...] = ()
        if self._partitions is not None and count:
            sources, columns = self._partitions.place(matched, instants)
        held = any(each.finder.decides_before(self._until) for each in self._deferring.values())
        placed, self._placed = self._placed, 0
        if self._run is None or not (sources or run.waits or held):  # all may have gone
            return Step([], {})
        settings = self._writer.settings
        written = bool(sources) or (count > 0 and bool(settings[lr.EVERY]))
        if written:
            settings[[lr.FIRST_NUMBER, lr.EPOCH]] = instants.first, self.rows.epoch(matched.answers)
            self._writer.write(sources, instants.time, self.rows, columns)
        self._clean, self._counts, self._due = False, None, None
        for member in self._asked:
            member.exact = None
        self._asked.clear()
        rows = self._writer.buffer if written else None
        if placed and rows is not None:
            placed = rows.count_of(instants.time.item(0), columns[-1][:placed])
        matches = run.feed(rows, self._until, self.rows, passed, origin=None, first=placed)
        stop, run.stopped = run.stopped, None
        done = None if stop is None else self._stop(stop, self._writer.buffer, instants, columns)
        failed, run.failed = run.failed, {}
        seen = self._seen(instants)
        told = self._told(run, matches, seen) if len(matches) or run.left_out or held else []
        told += self._counted(run) if self._kind.counting else []
        errors = {each.finder: error for query, error in failed.items() for each in self._by_query[query]}
        return Step(told, errors, done)

    def _stop(self, stop: Stop, rows: RowBuffer, instants: Instants, columns: tuple[NDArray[np.int64], ...]) -> int:
        """The run has stopped, and what it has not worked through comes again: how many instants are before that."""
        done = int(np.searchsorted(instants.time, rows.arrays.time[stop.instant]))
        self._until = instants.first + done if self._kind.by_number else instants.time.item(done)
        self.rows.end = stop.low
        self._leaving = [member for query in stop.queries for member in self._by_query[query]]
        if self._partitions is not None:
            _, instant, _, partition = columns
            low = int(np.searchsorted(instant, done))
            np.subtract.at(self._partitions.table.count, partition[low:], 1)
            self._placed = int(np.flatnonzero(partition[low:] == rows.arrays.partition[stop.instant])[0])
        return done

    def _begun(self, run: CommonRun, instants: Instants) -> FoundLetters:
        """What some instants bring, with which tumbling windows may begin."""
        for member in self._beginning:
            member.finder.start = instants.clocks.item(0)
            run.memory.origins[member.span.query] = member.finder.window_start + member.span.clocks
        self._beginning = []
        self._forget(run)
        found = self.matching.find(instants)
        while found.beyond:
            self._beyond(found.beyond)
            if not self.members:
                return NOTHING
            found = self.matching.find(instants)
        self._note_matched(each for each, _ in found.rows)
        return found

    def _note_matched(self, seen: Iterable[Sought]) -> None:
        """An event that a query matches was not left out."""
        if self._without:
            letters = {number for each in seen for number in each.letters}
            for member in self._without:
                if not letters.isdisjoint(member.letters.numbers.values()):
                    member.finder.unmatched.answered()
            self._without = [each for each in self._without if each.finder.unmatched.running]

    def _beyond(self, letters: set[int]) -> None:
        """Queries with these letters go, since their rows are too many, or cannot be made; all may."""
        for member in tuple(self.members.values()):
            if member.finder in self.members and not letters.isdisjoint(member.letters.numbers.values()):
                self.release(member)
        self._prepare()

    def _seen(self, instants: Instants) -> NumberedInstants | None:
        """The instants, where windows count them."""
        if not self._kind.by_number:
            return None
        return NumberedInstants(np.arange(instants.first, instants.first + len(instants.time)), instants.time)

    def _told(self, run: CommonRun, found: Found, seen: NumberedInstants | None) -> list[ShapeFound]:
        """The matches, shape by shape, and in each query by query."""
        left_out, run.left_out = run.left_out, {}
        told, found = self._released(found, left_out, seen) if self._deferring else ([], found)
        told += self._by_shape(*self._owned(found, left_out), seen) if len(found) else []
        for member in left_out.keys() - {each for shape in told for each in shape.members}:
            told.append(self.nothing_of(member, seen))
        for each in told:
            for number, member in enumerate(each.members):
                beyond = left_out.get(member, {})
                if member.finder.deferred is None and (beyond or member.streak.running):
                    member.streak.note(each.decided(number).tolist(), beyond)
                    each.omitted[member] = member.streak.take()
        return told

    def _released(
        self, found: Found, left_out: Mapping[JoinedQuery, LeftOut], seen: NumberedInstants | None
    ) -> tuple[list[ShapeFound], Found]:
        """What queries that wait for all matches of an end have now, one by one, and the matches of the others."""
        whose = found.marks[:, 2]
        others, found_of = np.flatnonzero(~np.isin(whose, [*self._deferring])), {*whose.tolist()}
        told = list[ShapeFound]()
        for query, member in self._deferring.items():
            finder, beyond = member.finder, left_out.get(member, {})
            if not (query in found_of or beyond or finder.decides_before(self._until)):
                continue
            mine = found.take(np.flatnonzero(whose == query))
            if beyond or member.streak.running:
                member.streak.note(finder.moments(mine, member).tolist(), beyond)
            released, ends = finder.released(mine, member, self._writer.buffer.arrays, self._until)
            omitted = sorted([*member.streak.take(), *finder.take_undecided()], key=lambda error: error.instant)
            if not (len(released) or ends or omitted):
                continue
            each = self.nothing_of(member, seen)
            if len(released):
                places = np.full(len(released), member.place, np.int64)
                (each,) = self._by_shape(replace(released, at=None), places, seen)
                each = each._replace(found=replace(each.found, at=released.at))
            told.append(each._replace(omitted={member: omitted}, ends=ends))
        return told, found.take(others)

    def _by_shape(self, found: Found, of_match: NDArray[np.int64], seen: NumberedInstants | None) -> list[ShapeFound]:
        """The matches of the queries with these places in rows of their own, which are numbered shape by shape, then
        query by query, and in the order that these fix. All is done for all queries at once."""
        ranks, of_match = np.unique(of_match, return_inverse=True)
        of_row = np.repeat(of_match, np.diff(found.ends))
        ids, base = found.rows >> PLACE_BITS, self.rows.base
        pairs, place = np.unique(of_row * (self.rows.end - base) + (ids - base), return_inverse=True)
        owner, ids = np.divmod(pairs, self.rows.end - base)
        block = self.rows.take(ids + base)
        members = [self._in_order[rank] for rank in ranks.tolist()]
        queries = np.array([member.span.query for member in members], np.int64)
        letter = self._own_numbers[np.searchsorted(self._letter_keys, queries[owner] << 32 | block.letter)]
        order = np.lexsort((letter, block.time, owner))
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        block = RowBlock(letter[order], *(column[order] for column in block[1:]))
        if seen is not None:
            clocks = np.array([member.span.clocks for member in members], np.int64)
            block = block._replace(clock=block.clock - clocks[owner[order]])
        mine = np.argsort(of_match, kind="stable")
        whole = Found((rank[place] << PLACE_BITS) | (found.rows & _PLACES), found.ends, found.marks)
        whole = whole.take(mine)
        matches, rows = _starts(of_match, len(members)), _starts(owner, len(members))
        return [
            self._of_shape(whole, block, members[low:high], matches[low : high + 1], rows[low], rows[high], seen)
            for low, high in _by_shape(members)
        ]

    def _owned(self, found: Found, left_out: Mapping[JoinedQuery, Collection[int]]) -> tuple[Found, NDArray[np.int64]]:
        """The matches, those of a ladder once for each query whose they are, and the place of the query of each.
        `left_out`: the instants at which queries have none."""
        queries = found.marks[:, 2]
        places = self._ranks[queries]
        alone = np.flatnonzero(places >= 0)
        if len(alone) == len(queries):
            return found, places
        picked, owners = [alone], [places[alone]]
        for query in np.unique(queries[places < 0]).tolist():
            mine, members = np.flatnonzero(queries == query), self._by_query[query]
            first = self.rows.take(found.rows[found.ends[mine]] >> PLACE_BITS)
            match, member = _ladder(members).owners(first)
            for number, each in enumerate(members):
                if each in left_out:
                    last = self.rows.take(found.rows[found.ends[mine[match] + 1] - 1] >> PLACE_BITS)
                    there = (member != number) | ~np.isin(last.time, [*left_out[each]])
                    match, member = match[there], member[there]
            picked.append(mine[match])
            owners.append(np.array([each.place for each in members], np.int64)[member])
        return found.take(np.concatenate(picked)), np.concatenate(owners)

    def _of_shape(
        self,
        found: Found,
        block: RowBlock,
        members: list[JoinedQuery],
        bounds: list[int],
        first: int,
        last: int,
        seen: NumberedInstants | None,
    ) -> ShapeFound:
        low, high = bounds[0], bounds[-1]
        begin, end = int(found.ends[low]), int(found.ends[high])
        rows = found.rows[begin:end] - (first << PLACE_BITS)
        part = Found(rows, found.ends[low : high + 1] - begin, found.marks[low:high])
        mine = RowBlock(*(column[first:last] for column in block))
        shape = members[0].shape
        part = part.arranged() if shape.arranges else part
        store = self._with_answers(mine._replace(stored=_own_stored(mine, mine.letter, shape.places)), shape)
        return ShapeFound(shape, members, [bound - low for bound in bounds], part, store, {}, seen, self._until)

    def nothing_of(self, member: JoinedQuery, seen: NumberedInstants | None = None) -> ShapeFound:
        """Of a query that has no matches."""
        rows = RowStore(member.shape.places.shape[1])
        return ShapeFound(member.shape, [member], [0, 0], Found.of(()), rows, {}, seen, self._until)

    def _counted(self, run: CommonRun) -> list[ShapeFound]:
        """What has been counted, shape by shape, and in each query by query."""
        counts = run.take_counts()
        if not len(counts):
            return []
        queries = run.compiled.tables.edges["query"][counts.edge]
        picked = [np.flatnonzero(self._ranks[queries] >= 0)]
        owners = [self._ranks[queries[picked[0]]]]
        for query in np.unique(queries[self._ranks[queries] < 0]).tolist():
            mine, members = np.flatnonzero(queries == query), self._by_query[query]
            of_query = counts.take(mine)
            of_query = replace(of_query, edge=of_query.edge - members[0].span.edge)
            row, member = _ladder(members).owners_of(of_query)
            picked.append(mine[row])
            owners.append(np.array([each.place for each in members], np.int64)[member])
        whose = np.concatenate(owners)
        order = np.argsort(whose, kind="stable")
        counts = counts.take(np.concatenate(picked)[order])
        places, firsts = np.unique(whose[order], return_index=True)
        members, bounds = [self._in_order[place] for place in places.tolist()], [*firsts.tolist(), len(counts)]
        first_edges = np.array([member.span.edge for member in members], np.int64)
        counts = replace(counts, edge=counts.edge - np.repeat(first_edges, np.diff(bounds)))
        return [
            self.nothing_of(members[low])._replace(
                members=members[low:high],
                bounds=[bound - bounds[low] for bound in bounds[low : high + 1]],
                counted=counts.take(slice(bounds[low], bounds[high])),
            )
            for low, high in _by_shape(members)
        ]

    def _with_answers(self, block: RowBlock, shape: AnswerShape) -> RowStore:
        """A store of rows of queries' own, with the KB's answers that their matches are joined with."""
        if not shape.enriched:
            return RowStore.of(block._replace(epoch=np.zeros_like(block.epoch)))
        epochs, place = np.unique(block.epoch, return_inverse=True)
        store = RowStore.of(block._replace(epoch=place.astype(np.int32)))
        store.epochs += [self.answers_of(shape, epoch) for epoch in epochs.tolist()]
        return store

    def answers_of(self, shape: AnswerShape, epoch: int) -> dict[str, KbAnswer]:
        """What matches of queries of this shape are joined with, of an epoch of common rows."""
        answers = self.rows.answers(epoch)
        return {
            name: answers[here].named(variables)
            for name, names, variables in shape.enriched
            for here in names
            if here in answers
        }

    def own_rows(self, member: JoinedQuery, ids: NDArray[np.int64]) -> RowBlock:
        """Common rows as the query alone has them."""
        block = self.rows.take(ids)
        letter = member.letters.own_numbers(len(self._letters.all))[block.letter]
        clock = block.clock - member.span.clocks
        return RowBlock(letter, block.time, clock, _own_stored(block, letter, member.places), block.epoch)

    def _forget(self, run: CommonRun) -> None:
        """Drop rows that are out of every window; where there is one without an end, those that no node names."""
        rows = self.rows
        if self._longest is not None and rows.base >= self._unsorted:
            rows.forget(int(run.memory.scalars[k.CLOCK]) - self._longest, 0)
        elif rows.held > 4 * max(self._kept_rows, 1024):
            self.collect()
            held = [each.finder.deferred for each in self._deferring.values()]
            rows.forget(BEFORE_ALL, min([run.oldest_row, *(each.oldest_row for each in held if each is not None)]))
            self._kept_rows = rows.held

    # --- counters -----------------------------------------------------------------------------------

    @property
    def bytes(self) -> int:
        """How large its arrays are."""
        return (0 if self._run is None else self._run.memory.bytes) + self.rows.bytes

    @property
    def records(self) -> int:
        """Of all queries; some may be dead."""
        return self.rows.held + (0 if self._run is None else self._run.records)

    @property
    def due(self) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
        """As of `deadlines_by_query`, of those that have come."""
        if self._due is None:
            assert self._run is not None, "those that are away have come"
            self._due = deadlines_by_query(self._run.memory, self._run.compiled)
        return self._due

    def records_of(self, member: JoinedQuery) -> int:
        """Of one query: at least as many as it has, or exactly, if that was counted since the last step."""
        if self._run is None or member in self._entering:
            return member.finder.records
        if member.exact is not None:
            return member.exact
        if self._counts is None:
            self._counts = np.zeros(len(self._run.compiled.tables.windows), np.int64)
            memory = self._run.memory
            owners = np.full(len(memory.nodes), -1, np.int32)
            call(count_records, Pointers(self._run.compiled.tables), Pointers(memory), owners, self._counts)
        deferred = member.finder.deferred
        held = 0 if deferred is None else deferred.held + len(deferred.rows_named)
        return _PER_RECORD * int(self._counts[member.span.query]) + held


def _own_stored(block: RowBlock, letter: NDArray[np.int32], places: NDArray[np.int32]) -> NDArray[np.uint32]:
    """The terms of common rows that queries with these places store."""
    if not places.shape[1]:
        return np.zeros((len(letter), 0), np.uint32)
    at = places[letter]
    stored: NDArray[np.uint32] = np.take_along_axis(block.stored, np.maximum(at, 0), 1)
    stored[at < 0] = 0
    return stored


def _by_shape(members: Sequence[JoinedQuery]) -> Iterator[tuple[int, int]]:
    """From where up to where they are of one shape."""
    shapes = [member.shape for member in members]
    firsts = [n for n in range(len(shapes)) if n == 0 or shapes[n] is not shapes[n - 1]]
    return pairwise([*firsts, len(members)])


def _ladder(members: Sequence[JoinedQuery]) -> Ladder:
    """That of queries whose edges stand once."""
    rung = members[0].rung
    assert rung is not None
    return rung.ladder


def _starts(owners: NDArray[np.int64], count: int) -> list[int]:
    """Where what each owner has begins, if it is put in order of owners, and where all ends."""
    return [0, *np.cumsum(np.bincount(owners, minlength=count)).tolist()]
