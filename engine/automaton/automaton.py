"""One run of the edges of many queries: tables are appended as queries come, matches say whose they are.

In the flow: complete instants → rows of common letters → **one pass for all queries** → matches of each query, in its
own rows. A query that is examined, saved or does something by itself has its part taken out (memory.py).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Variable

from oxiseq.engine.automaton.ladders import Ladder, Rung
from oxiseq.engine.automaton.letters import CommonLetters, MemberLetters, Sought, compares
from oxiseq.engine.automaton.matching import NOTHING, CommonMatching, FoundLetters
from oxiseq.engine.automaton.memory import (
    TableSpan,
    begun_with,
    deadlines_by_query,
    finals_begun_with,
    part_of,
    with_part,
    with_tables,
)
from oxiseq.engine.bounds import CHOICES, MATCHES, InstantBound
from oxiseq.engine.errors import LimitError
from oxiseq.engine.kb import KnowledgeBase
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
from oxiseq.engine.matches.frozen import FrozenMatches
from oxiseq.engine.matches.plan import NO_CLAUSES, Clauses
from oxiseq.engine.matches.runner import UNCOUNTED_MOST
from oxiseq.engine.matching.enrich import KbAnswer
from oxiseq.engine.omissions import InstantError, Streak
from oxiseq.engine.order.clock import Clock, Instants
from oxiseq.engine.order.watermarks import AFTER_ALL
from oxiseq.engine.output.deadlines import NumberedInstants
from oxiseq.engine.output.rows import RowStore
from oxiseq.engine.output.write import enriched_gpms
from oxiseq.engine.plan.own_run import RunKind
from oxiseq.engine.plan.query import QueryPlan
from oxiseq.engine.plan.thresholds import alike, beginning
from oxiseq.engine.run.counted_part import CountedPart
from oxiseq.engine.run.finder import Finder, Findings
from oxiseq.engine.run.letters import RowWriter
from oxiseq.engine.sequence.counts import Counts
from oxiseq.engine.sequence.memory import Capacities, rows_named
from oxiseq.engine.sequence.rows import RowBuffer
from oxiseq.engine.sequence.run import SequenceRun
from oxiseq.engine.sequence.states import Edge, StateGraph, Value
from oxiseq.engine.sequence.tables import CompiledFilter, CompiledFold, SequenceTables, TableBuilder
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.records import dataclass

_PLACES: Final = (1 << PLACE_BITS) - 1
_PER_RECORD: Final = 3
"""A node may name a row of its own, and a group may have buckets of its own."""
_FEW_GONE: Final = 16
"""Queries that have left before it is worth while to make all tables again."""


@dataclass(slots=True, eq=False)
class AnswerShape:
    """Queries whose matches are written by one writer at once. `places`: of their stored variables in common rows;
    `written`: what is equal in their writers, None for those that write by themselves; `arranges`: matches of an
    instant come in the order that their rows fix; `enriched`: what matches are joined with, the KB's
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
    rung: Rung | None = None
    """Where it stands on a ladder, whose span it has."""
    exact: int | None = None
    """How many records it has, if somebody has asked since the last step."""
    kept: int | None = None
    """Up to which instant it has been told that the KB of before holds."""
    place: int = 0
    """Among all, in the order of shapes."""

    @property
    def places(self) -> NDArray[np.int32]:
        """i32[own letter, stored variable]: its columns in common rows."""
        return self.shape.places

    # --- common rows as the query alone has them (`KnownRows`), for its choice ----------------------

    @property
    def times(self) -> tuple[NDArray[np.int64], int]:
        return self.automaton.rows.times

    def take(self, ids: NDArray[np.int64]) -> RowBlock:
        return self.automaton.own_rows(self, ids)

    def clocks(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        return self.automaton.rows.clocks(ids)

    def answers(self, epoch: int) -> dict[str, KbAnswer]:
        return self.automaton.answers_of(self.shape, epoch)

    # --- where its state is (`CommonState`) ---------------------------------------------------------

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

    def collect(self, clock: int, instants: int) -> None:
        """Frees what is dead, of all."""
        self.automaton.collect(clock + self.span.clocks, instants + self.span.shift)
        alone = self.copied()
        alone.collect()
        self.exact = alone.records
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
    until: int
    """The smallest clock that may still come."""
    counted: CountedPart | None = None
    """Of the only member, where matches are counted."""

    def decided(self, number: int) -> NDArray[np.int64]:
        """When the matches of a member are decided (µs)."""
        found = self._of(number)
        return self.rows.block.time[found.rows[found.ends[1:] - 1] >> PLACE_BITS] if found.at is None else found.at

    def findings(self, number: int) -> Findings:
        """What a member has found, by its number."""
        member = self.members[number]
        omitted, choice = self.omitted.get(member, ()), member.finder.choice
        until, start = self.until - member.span.clocks, member.finder.window_start
        found, folded = self._of(number), choice.take_folded()
        if folded is not None:
            return Findings(None, None, folded, until, start, omitted)
        return Findings(found, self.counted, (), until, start, omitted, choice.take_counts())

    def _of(self, number: int) -> Found:
        member, seen = self.members[number], self.seen
        if seen is not None:
            seen = seen._replace(number=seen.number - member.span.clocks)
        return member.finder.stamped(self.found.take(np.arange(*self.bounds[number : number + 2])), self.rows, seen)


class CommonRun(SequenceRun):
    """The run of an automaton. `left_out`: by query the instants (µs) at which it has more matches than may be listed;
    `failed`: by number of a query the error of a decision that Python could not make; `by_query`: the queries of each
    number, of which several stand on a ladder; `rows`: those that nodes name."""

    def __init__(
        self, compiled: SequenceTables, terms: TermDictionary, by_query: Mapping[int, Sequence[JoinedQuery]]
    ) -> None:
        super().__init__(compiled, terms, Capacities())
        self.left_out: dict[JoinedQuery, dict[int, tuple[InstantBound, int | LimitError]]] = {}
        self.failed: dict[int, Exception] = {}
        self.by_query, self.rows = by_query, RowStore(1)
        self.filters_of: list[int] = []
        """By filter the query that it is of."""
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
        scalars = self._memory.scalars
        limits, kept, whole = self._compiled.tables.windows["limit"], list[NDArray[np.int64]](), True
        for query, finals in self._finals_of_each():
            within = limits[query] <= self.bounds.matches
            given = 0 if within else min(limits.item(query), self._count(finals))
            if given > self.bounds.matches:
                finals, whole = self._within(finals, given, self.by_query[query], instant), False
            kept.append(finals)
        scalars[ALLOWED] = NO_LIMIT
        if whole:
            return
        self._drain()
        self._parts = without_last(self._parts, scalars.item(EMITTED))
        self._put(kept)
        scalars[[PROGRESS, EMITTED, STACK]] = 0
        self._memory.quotas[:] = limits
        if not scalars[FINALS] and not waited:  # else the kernel has not come to the instant yet
            self._pass_by()

    def _finals_of_each(self) -> Iterator[tuple[int, NDArray[np.int64]]]:
        """The finals of each number, in their order."""
        finals = self._memory.finals[: self._memory.scalars[FINALS]].copy()
        finals = finals[np.argsort(finals[:, 2], kind="stable")]
        queries, first = np.unique(finals[:, 2], return_index=True)
        return zip(queries.tolist(), np.split(finals, first[1:]), strict=True)

    def _put(self, kept: list[NDArray[np.int64]]) -> None:
        """These are the finals."""
        memory = self._memory
        whole = np.concatenate([memory.finals[:0], *kept])
        if len(whole) > len(memory.finals):
            memory = memory._replace(finals=np.zeros((2 * len(whole), memory.finals.shape[1]), np.int64))
        memory.finals[: len(whole)] = whole
        memory.scalars[FINALS] = len(whole)
        self._memory = memory

    def _within(
        self, finals: NDArray[np.int64], given: int, members: Sequence[JoinedQuery], instant: int
    ) -> NDArray[np.int64]:
        """The finals of a number, below which too many matches are, without those of queries that have too many."""
        rung = members[0].rung
        if rung is None:
            self.left_out.setdefault(members[0], {})[instant] = MATCHES, given
            return finals[:0]
        memory = self._memory
        scalars = memory.scalars.copy()
        scalars[FINALS] = len(finals)
        frozen = FrozenMatches(memory._replace(scalars=scalars, finals=finals))
        nodes = np.flatnonzero(frozen.begins)
        ids = frozen.pos[nodes] >> PLACE_BITS
        rows, kept = self.rows.take(ids), np.zeros(self.rows.held, np.uint8)
        for member in members:
            begins = rung.ladder.begins(member, rows)
            frozen.leave_out(nodes[~begins])
            given = NO_LIMIT if frozen.exceeds(NO_LIMIT) else frozen.count
            if given > self.bounds.matches:
                self.left_out.setdefault(member, {})[instant] = MATCHES, given
            else:
                kept[ids[begins] - self.rows.base] = 1
        self._memory, finals = finals_begun_with(memory, finals, kept, self.rows.base)
        return finals

    def _choose(self, chosen: Callable[[], k.Memory], instant: int) -> None:
        self._instant = instant
        super()._choose(chosen, instant)

    def _chosen(self, store: RowStore) -> k.Memory:
        """Of each query the matches that it keeps."""
        kept = list[NDArray[np.int64]]()
        for query, finals in self._finals_of_each():
            member = self.by_query[query][0]
            if not member.finder.plan.clauses.chooses:
                kept.append(finals)
                continue
            self._put([finals])
            try:
                self._memory = member.finder.choice.pick(self._memory, member)
            except LimitError as error:
                self.left_out.setdefault(member, {})[self._instant] = CHOICES, error
            except Exception as error:  # it is one query's: the others go on
                self.failed.setdefault(query, error)
            else:
                finals = self._memory.finals[: self._memory.scalars[FINALS]].copy()
                finals[:, 2] = query
                kept.append(finals)
        self._put(kept)
        scalars = self._memory.scalars
        if not scalars[FINALS]:
            scalars[NODE_TOP] = scalars[NODE_BASE]
        return self._memory

    def _answer(self, asked: CompiledFilter | CompiledFold, vector: NDArray[np.int64]) -> int:
        try:
            return super()._answer(asked, vector)
        except Exception as error:  # it is one query's: the others go on
            self.failed.setdefault(self.filters_of[self._compiled.filters.index(asked)], error)
            return 0


class SharedAutomaton:
    """The queries of one clock that are in one run."""

    def __init__(self, streams: int, terms: TermDictionary, kb: KnowledgeBase, kind: RunKind) -> None:
        self.members: dict[Finder, JoinedQuery] = {}
        self._streams, self._terms, self._kb, self._kind = streams, terms, kb, kind
        self._begin()
        terms.register(self)

    def _begin(self) -> None:
        """There are no queries."""
        self._letters, self._builder = CommonLetters(self._streams, self._terms), TableBuilder(self._terms)
        self.matching = CommonMatching(self._letters, self._terms, self._kb)
        self._keys: list[tuple[Value, ...]] = []
        self._edges: list[Edge] = []
        self._filters_of: list[int] = []
        self._by_query: dict[int, list[JoinedQuery]] = {}
        self._ladders: dict[Hashable, Ladder | None] = {}
        """By what the queries of a ladder have in common; None: one has come so far, which is on none."""
        self._shapes: dict[Hashable, AnswerShape] = {}
        self._in_order: list[JoinedQuery] = []
        """AnswerShape by shape."""
        self._ranks = np.zeros(0, np.int64)
        """By number of a query its place among these, -1 of a ladder."""
        self._letter_keys, self._own_numbers = np.zeros(0, np.int64), np.zeros(0, np.int32)
        """query << 32 | common letter, ascending, and the query's own number of it."""
        self._entering: list[JoinedQuery] = []
        self._gone: set[int] = set()
        self._beginning: list[JoinedQuery] = []
        """Those that have seen no instant: their tumbling windows and reports begin with the first one."""
        self._without: list[JoinedQuery] = []
        """Those of which the last instants with events that they match were left out (`Finder.unmatched`)."""
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

    def held_ids(self) -> Iterator[NDArray[np.uint32]]:
        """The terms of all that is waited for (see `TermDictionary`)."""
        if self._run is not None:
            yield from self._run.memory.held_ids()
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
        self._entering.append(member)
        self._stale = True
        return True

    def _rung_of(self, finder: Finder) -> Rung | None:
        """The place of a query on a ladder, if another one that may be there is or has been here, and it has no runs
        yet."""
        threshold = beginning(finder.plan)
        if threshold is None or not finder.idle or not compares(finder.plan, threshold):
            return None
        key = alike(finder.plan, threshold)
        if key not in self._ladders:
            self._ladders[key] = None
            return None
        ladder = self._ladders[key] = self._ladders[key] or Ladder(self._terms)
        return Rung(ladder, threshold, self._newest)

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
        run = self._run
        if run is None or not len(run.memory.groups):
            return
        self.collect()
        sequence = finder.plan.runner.sequence
        common = run.memory
        if member.rung is not None:
            begins = member.rung.ladder.begins(member, self.rows.block).view(np.uint8)
            common = begun_with(common, begins, self.rows.base)
        memory, ids = part_of(common, sequence, member.span, finder.capacities, self._terms)
        memory.scalars[OMITTED] = member.streak.running
        finder.take_back(memory, self._with_answers(self.own_rows(member, ids), member.shape))

    def note_exact(self, member: JoinedQuery) -> None:
        """Somebody has counted its records: that holds until the next step."""
        self._asked.append(member)

    def collect(self, clock: int = BEFORE_ALL, instants: int = 0) -> None:
        """Frees all that is dead, behind so many instants, before the next of which this clock has passed."""
        if self._run is not None and self._run.pass_to(clock, instants):
            self._clean = False
        if self._run is not None and not self._clean:
            self._run.clean()
            self._clean, self._counts = True, None

    def _prepare(self) -> None:
        """Queries have come, or gone."""
        if not self._stale:
            return
        builder, letters = self._builder, self._letters
        chooses = any(each.finder.plan.clauses.chooses for each in self.members.values())
        compiled = SequenceTables(
            builder.tables(
                len(letters.all), Clauses(picks=chooses), counts_instants=self._kind.by_number, gone=self._gone
            ),
            (),
            tuple(tuple(letter.names) for letter in letters.all),
            tuple(builder.compiled),
            StateGraph((), tuple(self._edges)),
            tuple(self._keys),
            (),
            (),
            builder.vector,
            builder.depth,
            builder.measure_count,
            NO_CLAUSES,
            {},
            0,
        )
        if self._run is None:
            self._run = CommonRun(compiled, self._terms, self._by_query)
            self._run.reserve()
        else:
            self._run.become(compiled)
        self._run.filters_of = self._filters_of
        self._forget_gone(compiled)
        for ladder in [each for each in self._ladders.values() if each is not None and each.members]:
            ladder.settle()
            self._letters.look_for(ladder.rungs[0])
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
        windows = [member.finder.plan.window for member in self.members.values()]
        sizes = [None if window is None else window.size for window in windows]
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
        finder = member.finder
        self.matching.know(finder.answers.known(), member.letters)
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
        ids = rows_named(memory)
        base = self.rows.end
        if len(ids):
            self._put_rows(member, rows, ids)
            self._unsorted = self.rows.end
        own = finder.plan.runner.sequence
        run.memory = with_part(run.memory, compiled, memory, own, member.span, (ids, base), self._terms)

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
        count = len(instants.time)
        passed = self._until = instants.passed if last or not count else instants.time.item(-1) + 1
        if self._kind.by_number and not (last and passed >= AFTER_ALL):
            self._until = instants.first + count
        if self._run is None:
            return [], {}
        try:
            return self._stepped(self._run, instants, passed)
        finally:
            self.matching.end()

    def _stepped(
        self, run: CommonRun, instants: Instants, passed: int
    ) -> tuple[list[ShapeFound], dict[Finder, Exception]]:
        count = len(instants.time)
        self._newest = instants.time.item(-1) if count else self._newest
        sources, answers, *_ = self._begun(run, instants) if count else NOTHING
        if self._run is None or not (sources or run.waits):  # all may have gone
            return [], {}
        settings = self._writer.settings
        written = bool(sources) or (count > 0 and bool(settings[lr.EVERY]))
        if written:
            settings[[lr.FIRST_NUMBER, lr.EPOCH]] = instants.first, self.rows.epoch(answers)
            self._writer.write(sources, instants.time, self.rows)
        self._clean, self._counts, self._due = False, None, None
        for member in self._asked:
            member.exact = None
        self._asked.clear()
        rows = self._writer.buffer if written else None
        matches = run.feed(rows, self._until, self.rows, passed, origin=None)
        failed, run.failed = run.failed, {}
        seen = self._seen(instants)
        told = self._told(run, matches, seen) if len(matches) or run.left_out else []
        told += self._counted(run)
        return told, {each.finder: error for query, error in failed.items() for each in self._by_query[query]}

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
        self._note_matched(found.seen)
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
        told = self._by_shape(*self._owned(found, left_out), seen) if len(found) else []
        for member in left_out.keys() - {each for shape in told for each in shape.members}:
            told.append(self.nothing_of(member, seen))
        for each in told:
            for number, member in enumerate(each.members):
                beyond = left_out.get(member, {})
                if beyond or member.streak.running:
                    member.streak.note(each.decided(number).tolist(), beyond)
                    each.omitted[member] = member.streak.take()
        return told

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
        shapes = [member.shape for member in members]
        firsts = [n for n in range(len(shapes)) if n == 0 or shapes[n] is not shapes[n - 1]]
        return [
            self._of_shape(whole, block, members[low:high], matches[low : high + 1], rows[low], rows[high], seen)
            for low, high in pairwise([*firsts, len(members)])
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
        """What has been counted, query by query."""
        found: dict[JoinedQuery, list[Counts]] = {}
        for counts in run.take_counts() if self._kind.counting else ():
            for query, mine in counts.by_query(run.compiled.tables.edges["query"]):
                [member] = self._by_query[query]
                found.setdefault(member, []).append(replace(mine, edge=mine.edge - member.span.edge))
        return [
            self.nothing_of(member)._replace(counted=CountedPart(counts, member.finder.plan.runner.sequence.keys))
            for member, counts in found.items()
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


def _ladder(members: Sequence[JoinedQuery]) -> Ladder:
    """That of queries whose edges stand once."""
    rung = members[0].rung
    assert rung is not None
    return rung.ladder


def _starts(owners: NDArray[np.int64], count: int) -> list[int]:
    """Where what each owner has begins, if it is put in order of owners, and where all ends."""
    return [0, *np.cumsum(np.bincount(owners, minlength=count)).tolist()]
