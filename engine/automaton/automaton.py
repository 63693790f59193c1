"""One run of the edges of many queries: tables are appended as queries come, matches say whose they are.

In the flow: complete instants → rows of common letters → **one pass for all queries** → matches of each query, in its
own rows. A query that is examined, saved or does something by itself has its part taken out (memory.py).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Variable

from oxiseq.engine.automaton.letters import CommonLetters, MemberLetters, Sought
from oxiseq.engine.automaton.matching import NOTHING, CommonMatching, FoundLetters
from oxiseq.engine.automaton.memory import Renumbered, TableSpan, deadlines_by_query, part_of, with_part, with_tables
from oxiseq.engine.automaton.parted import CommonPartitions
from oxiseq.engine.bounds import CHOICES, MATCHES, InstantBound
from oxiseq.engine.errors import LimitError
from oxiseq.engine.kernels.matches.records import (
    ALLOWED,
    EMITTED,
    FINALS,
    NO_LIMIT,
    NODE_BASE,
    NODE_TOP,
    OMITTED,
    PLACE_BITS,
    PROGRESS,
    STACK,
    UNCOUNTED,
)
from oxiseq.engine.kernels.memory.pointers import Pointers, call
from oxiseq.engine.kernels.sequence import letter_rows as lr
from oxiseq.engine.kernels.sequence import records as k
from oxiseq.engine.kernels.sequence.extraction import count_records, drop_queries
from oxiseq.engine.kernels.sequence.letter_rows import RowBlock
from oxiseq.engine.kernels.sequence.records import BEFORE_ALL, NEVER_CLOSES
from oxiseq.engine.matches.found import Found, without_last
from oxiseq.engine.matches.plan import NO_CLAUSES, Clauses
from oxiseq.engine.matches.runner import UNCOUNTED_MOST
from oxiseq.engine.omissions import InstantError, Streak
from oxiseq.engine.order.clock import Clock, Instants
from oxiseq.engine.order.watermarks import AFTER_ALL
from oxiseq.engine.output.deadlines import NumberedInstants
from oxiseq.engine.output.rows import RowStore
from oxiseq.engine.output.write import enriched_gpms
from oxiseq.engine.run.finder import Finder, Findings
from oxiseq.engine.run.letters import RowWriter
from oxiseq.engine.run.narrowed import finds_for_others
from oxiseq.engine.sequence.memory import Capacities, rows_named
from oxiseq.engine.sequence.rows import RowBuffer
from oxiseq.engine.sequence.run import Positions, SequenceRun
from oxiseq.engine.sequence.states import Edge, StateGraph, Value
from oxiseq.engine.sequence.tables import CompiledFilter, CompiledFold, SequenceTables, TableBuilder
from oxiseq.engine.terms.dictionary import AnyIds, TermDictionary
from oxiseq.grammar.records import dataclass

if TYPE_CHECKING:
    from oxiseq.engine.matches.choice import Chooser

_PLACES: Final = (1 << PLACE_BITS) - 1
_PER_RECORD: Final = 3
"""A node may name a row of its own, and a group may have buckets of its own."""
_FEW_GONE: Final = 16
"""Queries that have left before it is worth while to make all tables again."""


@dataclass(slots=True, eq=False)
class AnswerShape:
    """Queries whose matches are written by one writer at once. `places`: of their stored variables in common rows;
    `written`: what is equal in their writers, None for those that write by themselves; `arranges`: matches of an
    instant come in the order that their rows fix (run/narrowed.py); `enriched`: what matches are joined with, the KB's
    answers of these names here, by GPM, as variables of the queries."""

    places: NDArray[np.int32]
    written: Hashable | None
    arranges: bool
    enriched: tuple[tuple[str, tuple[str, ...], tuple[Variable, ...]], ...]


@dataclass(slots=True, eq=False)
class JoinedQuery:
    """A query, or several that are equal, in an automaton. `span`: its part of the tables."""

    automaton: SharedAutomaton
    finder: Finder
    span: TableSpan
    letters: MemberLetters
    shape: AnswerShape
    streak: Streak
    exact: int | None = None
    """How many records it has, if somebody has asked since the last step."""
    kept: int | None = None
    """Up to which instant it has been told that the KB of before holds."""

    @property
    def places(self) -> NDArray[np.int32]:
        """i32[own letter, stored variable]: its columns in common rows."""
        return self.shape.places

    @property
    def chooser(self) -> Chooser | None:
        """That of its strategy, if it has one."""
        run = self.finder.sequence
        assert isinstance(run, SequenceRun)
        return run.chooser

    def come_home(self) -> None:
        """Has its part in a run of its own from now on."""
        self.automaton.release(self)

    def copied(self) -> Finder:
        """Another finder in the same state."""
        return self.automaton.copy_of(self)

    @property
    def records(self) -> int:
        """How many records are its; some may be dead by now, unless `collect` has been called since the last step."""
        return self.automaton.records_of(self)

    @property
    def bytes(self) -> int:
        """Its share of all memory."""
        return self.automaton.bytes // max(len(self.automaton.members), 1)

    @property
    def waits(self) -> bool:
        """Whether the clock alone may complete a match of it."""
        return bool(self.automaton.due[0][self.span.query])

    @property
    def deadline(self) -> int | None:
        """When time alone may complete a match of it (µs), if it can."""
        deadline = self.automaton.due[1].item(self.span.query)
        return None if deadline == NEVER_CLOSES else deadline

    def collect(self, clock: int) -> None:
        """Frees what is dead at a clock, of all."""
        self.automaton.collect(clock + self.span.clocks)
        self.exact = self.copied().records
        self.automaton.note_exact(self)

    def keep(self, clock: Clock) -> bool:
        """The KB is about to change; whether something is kept for it that was not."""
        if not self.letters.parts:
            return False
        kb = self.automaton.matching.kb
        kb.keep(clock.unfinished)
        before, self.kept = self.kept, kb.kept_until
        return self.kept is not None and self.kept != before


class ShapeFound(NamedTuple):
    """What queries of one shape have found in some instants: of member i the matches `bounds[i] : bounds[i + 1]`, which
    name these rows. `omitted`: the instants that are left out; `seen`: those that there were, if windows count them."""

    shape: AnswerShape
    members: list[JoinedQuery]
    bounds: list[int]
    found: Found
    rows: RowStore
    omitted: dict[JoinedQuery, list[InstantError]]
    seen: NumberedInstants | None

    def decided(self, number: int) -> NDArray[np.int64]:
        """When the matches of a member are decided (µs)."""
        found = self._of(number)
        return self.rows.block.time[found.rows[found.ends[1:] - 1] >> PLACE_BITS] if found.at is None else found.at

    def findings(self, number: int) -> Findings:
        """What a member has found, by its number."""
        member = self.members[number]
        omitted = self.omitted.get(member, ())
        return Findings(self._of(number), None, (), BEFORE_ALL, member.finder.window_start, omitted)

    def _of(self, number: int) -> Found:
        member, seen = self.members[number], self.seen
        if seen is not None:
            seen = seen._replace(number=seen.number - member.span.clocks)
        return member.finder.stamped(self.found.take(np.arange(*self.bounds[number : number + 2])), self.rows, seen)


class CommonRun(SequenceRun):
    """The run of an automaton. `left_out`: by query the instants (µs) at which it has more matches than may be listed;
    `failed`: by query the error of a decision that Python could not make."""

    def __init__(self, compiled: SequenceTables, terms: TermDictionary, capacities: Capacities) -> None:
        super().__init__(compiled, terms, capacities)
        self.left_out: dict[int, dict[int, tuple[InstantBound, int | LimitError]]] = {}
        self.failed: dict[int, Exception] = {}
        self.filters_of: list[int] = []
        """By filter the query that it is of."""
        self.choosers: dict[int, Chooser] = {}
        """Of queries that have a strategy."""
        self._instant = 0
        """At which some are to choose (µs)."""

    def become(self, compiled: SequenceTables) -> None:
        """Queries have been added to its tables, or have gone from them."""
        self.clean()
        self._memory = with_tables(self._memory, compiled, self._capacities, self._terms)
        self._compiled, self._no_rows = compiled, RowBuffer.empty(compiled)

    @property
    def memory(self) -> k.Memory:
        """Of all queries."""
        return self._memory

    @memory.setter
    def memory(self, memory: k.Memory) -> None:
        self._memory = memory

    def _begin_counting(self, memory: k.Memory) -> None:
        most = UNCOUNTED_MOST + 64 * len(self._compiled.tables.windows)
        memory.scalars[UNCOUNTED] = min(self.bounds.matches, most)

    def _list(self, limit: int, instant: int, *, waited: bool = False) -> None:
        """Each query for itself: one with too many matches at the instant has none there."""
        memory = self._memory
        scalars = memory.scalars
        finals = memory.finals[: scalars.item(FINALS)].copy()
        beyond = []
        for query in np.unique(finals[:, 2]).tolist():
            given = self._count(finals[finals[:, 2] == query])
            if given > self.bounds.matches:
                beyond.append(query)
                self.left_out.setdefault(query, {})[instant] = MATCHES, given
        scalars[ALLOWED] = NO_LIMIT
        if not beyond:
            return
        self._drain()
        self._parts = without_last(self._parts, scalars.item(EMITTED))
        kept = finals[~np.isin(finals[:, 2], beyond)]
        memory.finals[: len(kept)] = kept
        scalars[FINALS] = len(kept)
        scalars[[PROGRESS, EMITTED, STACK]] = 0
        if not len(kept) and not waited:  # else the kernel has not come to the instant yet
            self._pass_by()

    def _choose(self, chosen: Callable[[], k.Memory], instant: int) -> None:
        self._instant = instant
        super()._choose(chosen, instant)

    def _chosen(self, positions: Positions) -> k.Memory:
        """Of each query with a strategy the matches that it keeps, of the others all."""
        memory = self._memory
        finals, kept = memory.finals[: memory.scalars[FINALS]].copy(), list[NDArray[np.int64]]()
        for query in np.unique(finals[:, 2]).tolist():
            mine = finals[finals[:, 2] == query]
            if (chooser := self.choosers.get(query)) is not None:
                memory.finals[: len(mine)] = mine
                memory.scalars[FINALS] = len(mine)
                try:
                    memory = chooser.choose(memory, *positions)
                except LimitError as error:
                    self.left_out.setdefault(query, {})[self._instant] = CHOICES, error
                    continue
                mine = memory.finals[: memory.scalars[FINALS]].copy()
                mine[:, 2] = query
            kept.append(mine)
        whole = np.concatenate([finals[:0], *kept])
        if len(whole) > len(memory.finals):
            memory = memory._replace(finals=np.zeros((2 * len(whole), memory.finals.shape[1]), np.int64))
        memory.finals[: len(whole)] = whole
        memory.scalars[FINALS] = len(whole)
        if not len(whole):
            memory.scalars[NODE_TOP] = memory.scalars[NODE_BASE]
        return memory

    def _answer(self, asked: CompiledFilter | CompiledFold, vector: NDArray[np.int64]) -> int:
        try:
            return super()._answer(asked, vector)
        except Exception as error:  # it is one query's: the others go on
            self.failed.setdefault(self.filters_of[self._compiled.filters.index(asked)], error)
            return 0


class SharedAutomaton:
    """The queries of one clock that are in one run; first: one of them, of the same kind as all."""

    def __init__(self, streams: int, terms: TermDictionary, first: Finder) -> None:
        self.members: dict[Finder, JoinedQuery] = {}
        self._streams, self._terms, self._kb = streams, terms, first.kb
        self._by_number, self._partitioned = first.by_number, first.partitions is not None
        self._begin()
        terms.register(self)

    def _begin(self) -> None:
        """There are no queries."""
        self._letters = CommonLetters(self._streams, self._terms, partitioned=self._partitioned)
        self._builder = TableBuilder(self._terms)
        self._partitions: CommonPartitions | None = None
        self.matching = CommonMatching(self._letters, self._terms, self._kb)
        self._keys: list[tuple[Value, ...]] = []
        self._edges: list[Edge] = []
        self._filters_of: list[int] = []
        self._by_query: dict[int, JoinedQuery] = {}
        self._shapes: dict[Hashable, AnswerShape] = {}
        self._in_order: list[JoinedQuery] = []
        """AnswerShape by shape."""
        self._ranks = np.zeros(0, np.int64)
        """By query its place among these."""
        self._letter_keys, self._own_numbers = np.zeros(0, np.int64), np.zeros(0, np.int32)
        """query << 32 | common letter, ascending, and the query's own number of it."""
        self._entering: list[JoinedQuery] = []
        self._gone: set[int] = set()
        self._beginning: list[JoinedQuery] = []
        """Those whose tumbling windows begin with the first instant."""
        self._without: list[JoinedQuery] = []
        """Those of which the last instants with events that they match were left out (`Finder.unmatched`)."""
        self._stale = False
        self._clean = True
        self._run: CommonRun | None = None
        self.rows, self._kept_rows, self._unsorted = RowStore(1), 0, 0
        self._longest: int | None = None
        self._counts: NDArray[np.int64] | None = None
        self._due: tuple[NDArray[np.bool_], NDArray[np.int64]] | None = None
        """By query, as of the last step."""
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
        plan, builder = finder.plan, self._builder
        letters = self._letters.add(plan)
        if letters is None:
            return False
        sequence = plan.runner.sequence
        first, leads, filters = len(builder.edges), len(builder.leads), len(builder.filters)
        query = len(builder.windows)
        builder.add(sequence.graph, sequence.keys, sequence.scopes, plan.window, letters)
        self._keys += sequence.keys
        self._edges += sequence.graph.edges
        self._filters_of += [query] * (len(builder.filters) - filters)
        edges, led = len(builder.edges) - first, len(builder.leads) - leads
        shift = 0 if self._partitioned else shift
        span = TableSpan(query, first, edges, leads, led, shift, shift if self._by_number else 0)
        streak = Streak(self._terms.bounds)
        places = letters.places(plan.runner.stored)
        arranges = finds_for_others(plan)
        asked = tuple((gpm.name, letters.names_of(gpm.name), gpm.kb.variables) for gpm in enriched_gpms(plan) if gpm.kb)
        key = written, places.shape, places.tobytes(), arranges, asked
        shape = self._shapes.setdefault(key, AnswerShape(places, written, arranges, asked))
        member = JoinedQuery(self, finder, span, letters, shape, streak)
        self._by_query[query] = self.members[finder] = member
        self._entering.append(member)
        self._stale = True
        return True

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
        del self.members[member.finder], self._by_query[member.span.query]
        self._beginning = [each for each in self._beginning if each is not member]
        self._without = [each for each in self._without if each is not member]
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
        run = self._run
        if run is None or not len(run.memory.groups):
            return
        self.collect()
        sequence = finder.plan.runner.sequence
        memory, ids = part_of(run.memory, sequence, member.span, finder.capacities, self._terms)
        memory.scalars[OMITTED] = member.streak.running
        partitions = None if self._partitions is None else self._partitions.table
        finder.take_back(memory, self._with_answers(self._own_rows(member, ids), member.shape), partitions)

    def note_exact(self, member: JoinedQuery) -> None:
        """Somebody has counted its records: that holds until the next step."""
        self._asked.append(member)

    def collect(self, clock: int = BEFORE_ALL) -> None:
        """Frees all that is dead, at a clock behind the last instant if one is given."""
        if self._run is not None and self._run.pass_to(clock):
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
        choosers = {each.span.query: each.chooser for each in self.members.values() if each.chooser is not None}
        clauses = Clauses(picks=bool(choosers), partitioned=self._partitioned)
        compiled = SequenceTables(
            builder.tables(len(letters.all), clauses, counts_instants=self._by_number, gone=self._gone),
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
            replace(NO_CLAUSES, partitioned=self._partitioned),
            {},
            0,
        )
        if self._run is None:
            self._run = CommonRun(compiled, self._terms, Capacities())
            self._run.reserve()
        else:
            self._run.become(compiled)
        if self._partitioned and self._partitions is None:
            plan = next(iter(self.members)).plan
            self._partitions = CommonPartitions(plan, letters, self._run, self._terms)
        self._run.filters_of, self._run.choosers = self._filters_of, choosers
        self._forget_gone(compiled)
        columns = letters.row_columns(letters.width)
        self._writer = RowWriter(letters.row_columns(builder.wide), columns, compiled)
        self._writer.settings[lr.BY_NUMBER] = self._by_number
        self._writer.settings[lr.EVERY] = self._by_number and any(each.passes for each in self._edges)
        self.rows = self.rows.widened(max(letters.width, 1))
        self.matching.want([member.letters for member in self.members.values()])
        for member in self._entering:
            self._take_in(self._run, compiled, member)
        self._entering, self._stale, self._clean = [], False, False
        self._counts = self._due = None
        self._number()
        windows = [member.finder.plan.window for member in self.members.values()]
        sizes = [None if window is None else window.size for window in windows]
        self._longest = None if None in sizes else max((size for size in sizes if size is not None), default=0)

    def _number(self) -> None:
        """Which query is written with which, and what its letters are."""
        shapes = {shape: number for number, shape in enumerate(self._shapes.values())}
        self._in_order = sorted(self.members.values(), key=lambda each: (shapes[each.shape], each.span.query))
        self._ranks = np.zeros(len(self._builder.windows), np.int64)
        self._ranks[[each.span.query for each in self._in_order]] = np.arange(len(self._in_order))
        keys = [each.span.query << 32 | n for each in self._in_order for n in each.letters.numbers.values()]
        own = [n for each in self._in_order for n in range(len(each.letters.numbers))]
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
        if finder.start is None and finder.plan.window is not None:
            self._beginning.append(member)
        if finder.unmatched.running:
            self._without.append(member)
        run.memory.origins[member.span.query] = finder.window_start + member.span.clocks
        if memory is None:
            return
        member.streak.running = int(memory.scalars[OMITTED])
        ids = rows_named(memory)
        base = self.rows.end
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

    def step(self, instants: Instants, *, last: bool) -> tuple[list[ShapeFound], dict[Finder, Exception]]:
        """What queries find in instants that are complete, and the errors of those that cannot go on. Queries of which
        a pattern is beyond a limit have gone: they are to work by themselves. `last`: as of `Part`."""
        self._prepare()
        if self._run is None:
            return [], {}
        count = len(instants.time)
        found = self._begun(self._run, instants) if count else NOTHING
        run, sources = self._run, found.sources
        columns: tuple[NDArray[np.int64], ...] = ()
        if self._partitions is not None and count:
            sources, columns = self._partitions.place(found, instants)
        if run is None or not (sources or run.waits):
            return [], {}
        settings = self._writer.settings
        written = bool(sources) or (count > 0 and bool(settings[lr.EVERY]))
        if written:
            settings[[lr.FIRST_NUMBER, lr.EPOCH]] = instants.first, self.rows.epoch(found.answers)
            self._writer.write(sources, instants.time, self.rows, columns)
        self._clean, self._counts, self._due = False, None, None
        for member in self._asked:
            member.exact = None
        self._asked.clear()
        passed = until = instants.passed if last or not count else instants.time.item(-1) + 1
        if self._by_number and not (last and passed >= AFTER_ALL):
            until = instants.first + count
        rows = self._writer.buffer if written else None
        matches = run.feed(rows, until, self.rows.times, passed, origin=None)
        failed, run.failed = run.failed, {}
        told = self._told(run, matches, instants) if len(matches) or run.left_out else []
        return told, {self._by_query[query].finder: error for query, error in failed.items()}

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

    def _told(self, run: CommonRun, found: Found, instants: Instants) -> list[ShapeFound]:
        """The matches, shape by shape, and in each query by query."""
        left_out, run.left_out = run.left_out, {}
        seen = None
        if self._by_number:
            numbers = np.arange(instants.first, instants.first + len(instants.time))
            seen = NumberedInstants(numbers, instants.time)
        told = self._by_shape(found, seen) if len(found) else []
        for query in left_out.keys() - {each.span.query for shape in told for each in shape.members}:
            member = self._by_query[query]
            nothing = RowStore(member.shape.places.shape[1])
            told.append(ShapeFound(member.shape, [member], [0, 0], Found.of(()), nothing, {}, seen))
        for each in told:
            for number, member in enumerate(each.members):
                beyond = left_out.get(member.span.query, {})
                if beyond or member.streak.running:
                    member.streak.note(each.decided(number).tolist(), beyond)
                    each.omitted[member] = member.streak.take()
        return told

    def _by_shape(self, found: Found, seen: NumberedInstants | None) -> list[ShapeFound]:
        """The matches in rows of the queries' own, which are numbered shape by shape, then query by query, and in the
        order that these fix. All is done for all queries at once."""
        of_match = self._ranks[found.marks[:, 2]]
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
        shapes = [member.shape for member in members]
        firsts = [n for n in range(len(shapes)) if n == 0 or shapes[n] is not shapes[n - 1]]
        return [
            self._of_shape(whole, block, members[low:high], matches[low : high + 1], rows[low], rows[high], seen)
            for low, high in pairwise([*firsts, len(members)])
        ]

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
        return ShapeFound(shape, members, [bound - low for bound in bounds], part, store, {}, seen)

    def _with_answers(self, block: RowBlock, shape: AnswerShape) -> RowStore:
        """A store of rows of queries' own, with the KB's answers that their matches are joined with."""
        if not shape.enriched:
            return RowStore.of(block._replace(epoch=np.zeros_like(block.epoch)))
        epochs, place = np.unique(block.epoch, return_inverse=True)
        store = RowStore.of(block._replace(epoch=place.astype(np.int32)))
        for epoch in epochs.tolist():
            answers = self.rows.answers(epoch)
            store.epochs.append(
                {
                    name: answers[here].named(variables)
                    for name, names, variables in shape.enriched
                    for here in names
                    if here in answers
                }
            )
        return store

    def _own_rows(self, member: JoinedQuery, ids: NDArray[np.int64]) -> RowBlock:
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
            rows.forget(BEFORE_ALL, run.oldest_row)
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
        return _PER_RECORD * int(self._counts[member.span.query])


def _own_stored(block: RowBlock, letter: NDArray[np.int32], places: NDArray[np.int32]) -> NDArray[np.uint32]:
    """The terms of common rows that queries with these places store."""
    if not places.shape[1]:
        return np.zeros((len(letter), 0), np.uint32)
    at = places[letter]
    stored: NDArray[np.uint32] = np.take_along_axis(block.stored, np.maximum(at, 0), 1)
    stored[at < 0] = 0
    return stored


def _starts(owners: NDArray[np.int64], count: int) -> list[int]:
    """Where what each owner has begins, if it is put in order of owners, and where all ends."""
    return [0, *np.cumsum(np.bincount(owners, minlength=count)).tolist()]
