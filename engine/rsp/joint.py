"""Queries over the same windows, answered together by one plan of operators (operators.md, 7).

In the flow: complete events in order → one plan of operators with several roots (engine/flow/sharing) → **what each
query emits**. A query emits what it emits alone, in the same order: its answer is a function of its windows' contents.
Either all instants of a batch are answered at once (`JointAnswers`), or those that are due (`JointGeneral`), from the
contents of all their windows (held.py) and event mappings (event_mappings.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from pyoxigraph import Literal

from oxiseq.engine.bounds import ROWS
from oxiseq.engine.errors import LimitError
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.flow.conjunctions import apart
from oxiseq.engine.flow.delta import I64, Delta, Ids
from oxiseq.engine.flow.knowledge import KbAnswers, KbPart, Knowledge, event_of
from oxiseq.engine.flow.ordering import in_order
from oxiseq.engine.flow.plan import Asked, FlowPlan, GraphPlace, Join, Only, Patterns, below, draws
from oxiseq.engine.flow.sharing.joining import Output, joined
from oxiseq.engine.flow.standing import WindowFlow, only_of
from oxiseq.engine.flow.told import Told
from oxiseq.engine.patterns.matcher import StreamMatcher
from oxiseq.engine.rsp.event_mappings import CommonEvents, EventMappings
from oxiseq.engine.rsp.full_rows import FullRows, full_rows
from oxiseq.engine.rsp.general import TOLD, moves_of, repeated
from oxiseq.engine.rsp.held import Held
from oxiseq.engine.rsp.plan import ContentPlan, RspPlan
from oxiseq.engine.rsp.schedule import Stretches
from oxiseq.engine.rsp.steady import is_steady, window_of
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.saved import Stateful, unsaved
from oxiseq.engine.window import Window
from oxiseq.grammar.rsp_algebra import Report

_NO_BLANKS = np.zeros(0, np.uint32)
_MOST_INSTANTS: Final = 1 << 13
"""Instants processed at once for one query; fewer for several that differ, as operators hold the rows of all."""
_LEAST_INSTANTS: Final = 1 << 10


def why_alone(plan: RspPlan) -> str | None:
    """Why a query is answered by itself, whatever others there are; None: it shares with those that read the same
    streams through the same windows and are answered at the same instants."""
    if plan.consumes:
        return "items that have justified an answer of it are not used again"
    if draws(plan.flow.plan):
        return "it draws values by chance"
    return None if is_steady(plan) else _why_not_general(plan)


def _why_not_general(plan: RspPlan) -> str | None:
    if plan.events_read_kb:
        return "its event patterns ask the knowledge base"
    if not all(content.window.moves for content in plan.contents):
        return "its windows keep events for ever"
    return None


Piece: TypeAlias = tuple[Sequence[int], int, int]
"""The numbers of the queries that emit some rows of a part: a range, its end excluded."""


class Part(NamedTuple):
    """What some queries emit, and when. Each has one piece of it at most."""

    at: I64
    rows: FullRows
    pieces: Sequence[Piece]


class Numbered(NamedTuple):
    """The same, of instants by their numbers."""

    at: I64
    rows: FullRows
    pieces: Sequence[Piece]


class JointKnowledge(KbPart):
    """The KB's part in a plan for several queries: an event for each graph, with what any of them knows, and each
    table. known: theirs, by number, all of the same version. Each query asks the KB itself: so one that leaves the
    others knows what it has received."""

    def __init__(self, graphs: Sequence[GraphPlace], tables: Sequence[Asked], known: Sequence[Knowledge]) -> None:
        super().__init__(tables)
        self._graphs = graphs
        self._known: dict[int, Knowledge] = dict(enumerate(known))
        self._version: int | None = None
        self._told = not known
        self._earlier: list[tuple[Knowledge, int | None, KbAnswers | None]] = []
        """What each knew at the last `mark`, as far as that has changed since."""

    def mark(self) -> None:
        """Remember what all know now, for `back_to_mark`."""
        self._earlier.clear()

    def back_to_mark(self) -> None:
        """Each query knows what it knew then; this is of no use any more."""
        for knowledge, version, told in reversed(self._earlier):
            knowledge.version, knowledge.told = version, told

    def forget(self, number: int) -> None:
        """A query has left."""
        self._known.pop(number, None)

    def changed(self) -> KbAnswers | None:
        version = self._version
        for knowledge in self._known.values():  # they have queried the KB before
            self._earlier.append((knowledge, knowledge.version, knowledge.told))
            knowledge.changed()
            self._version = knowledge.version
            if self._told and self._version == version:  # as for one, so for all
                return None
        self._told = True
        return self._answers() if self._known else None

    def unchanged(self) -> KbAnswers | None:
        first, self._told = not self._told, True
        for knowledge in self._known.values():
            self._version = knowledge.version
        return self._answers() if first and self._version is not None else None

    def _answers(self) -> KbAnswers:
        """All that is known."""
        graphs = [event_of(_distinct([*self._events(place)])) for place in self._graphs]
        each = zip(self._tables, self._before, strict=True)
        return KbAnswers(graphs, [self._table(table.text, before) for table, before in each])

    def _events(self, place: GraphPlace) -> Iterator[Ids]:
        asked: dict[str, Ids] = {}
        for knowledge in self._known.values():
            number = knowledge.places.get(place)
            if number is not None and knowledge.told is not None:
                asked[knowledge.texts[number]] = np.column_stack(knowledge.told.graphs[number].ids)
        yield from asked.values()

    def _table(self, text: str, before: Ids) -> Ids:
        for knowledge in self._known.values():
            number = knowledge.places.get(text)
            if number is not None and knowledge.told is not None:
                return knowledge.told.tables[number]
        return before  # no query reads it any more


def _distinct(parts: Sequence[Ids]) -> Ids:
    """Each triple once."""
    if len(parts) == 1:
        return parts[0]
    return np.unique(np.concatenate([np.zeros((0, 3), np.uint32), *parts]), axis=0)


class Joint(WindowFlow):
    """The operators of several queries over the same windows as one plan. flows: their plans; windows: of its leaves;
    known: each one's answers of the KB, if they read it."""

    made_of = *WindowFlow.made_of, unsaved("knowledge"), unsaved("_sinks")
    knowledge: JointKnowledge

    def __init__(
        self,
        plans: Sequence[RspPlan],
        flows: Sequence[FlowPlan],
        windows: Sequence[Window],
        terms: TermDictionary,
        known: Sequence[Knowledge] = (),
    ) -> None:
        joint = joined(flows)
        super().__init__(apart(joint.plan, _only(joint.plan, joint.outputs, plans)), windows, terms)
        here = dict(zip(joint.plan.also, self.plan.also, strict=True))
        outputs = [
            o._replace(root=here[o.root], table=None if o.table is None else here[o.table]) for o in joint.outputs
        ]
        self._sinks = [sink for output in outputs for sink in _sinks(self.plan, output, plans, terms)]
        self._roots = self._flow.roots([sink.root for sink in self._sinks])
        self._always = [number for number, sink in enumerate(self._sinks) if sink.tells_all]
        for output in outputs:
            if output.table is not None:
                rows = _table(output, terms)
                self._flow.feed(output.table, Delta(np.zeros(len(rows), np.int64), np.ones(len(rows), np.int64), rows))
        graphs = [graph.place for graph in self.leaves.graphs]
        self.knowledge = JointKnowledge(graphs, [*self._tables.values()], known)

    def _told(self, first: int, instants: int) -> Iterator[Numbered]:
        """What the last step emits, whose instants were the ticks from `first` on. Raises LimitError."""
        for number in {*self._always, *self._roots.filled()} if instants else ():
            sink = self._sinks[number]
            yield from sink.told(self._flow.rows(sink.root), first, instants)

    def _pass_over(self) -> None:
        """Emits nothing of the last step."""
        for number in self._roots.filled():
            sink = self._sinks[number]
            sink.pass_over(self._flow.rows(sink.root))

    @property
    def state(self) -> dict[str, int]:
        """Numbers of live records."""
        return {"triples": self.leaves.triples, "rows": self._flow.records + sum(map(len, self._sinks))}


class JointAnswers(Joint):
    """All that changes for several queries that are answered at every instant of their streams (`is_steady`)."""

    def __init__(self, plans: Sequence[RspPlan], terms: TermDictionary, known: Sequence[Knowledge] = ()) -> None:
        self._streams = [content.stream for content in plans[0].contents]
        """By window."""
        windows = [window_of(content.window.operators[0]) for content in plans[0].contents]
        super().__init__(plans, [plan.flow.plan for plan in plans], windows, terms, known)

    def advance(self, batches: Sequence[EventBatch], passed: int) -> Iterator[Part]:
        """Complete events by stream in order of time, all before `passed`: what is emitted. All have asked the
        KB before. Raises LimitError."""
        if not any(map(len, batches)):
            return
        self._bound()
        first, times = self._push([batches[stream] for stream in self._streams], self.knowledge.changed())
        for at, rows, pieces in self._told(first, len(times)):
            yield Part(times[at], rows, pieces)

    def take_up(self, parts: Iterable[Sequence[EventBatch]], before: Sequence[int]) -> None:
        """Restores the state after these events, by stream, part by part, and so many instants; the KB has not changed.
        Raises LimitError."""
        self.leaves.start([before[stream] for stream in self._streams])
        for batches in parts:
            self._push([batches[stream] for stream in self._streams], self.knowledge.unchanged())
            self._pass_over()


class JointGeneral(Joint):
    """All that changes for several queries that are answered at instants of their own (REPORT), or look for event
    patterns (MATCH). held: their events."""

    made_of = *Joint.made_of, unsaved("_mappings")

    def __init__(
        self, plans: Sequence[RspPlan], terms: TermDictionary, held: Held, known: Sequence[Knowledge] = ()
    ) -> None:
        self._held = held
        self._contents = [_any_of(each) for each in zip(*(plan.contents for plan in plans), strict=True)]
        self._reports = [plan.report for plan in plans]
        self._volatile = any(plan.volatile for plan in plans)
        common = CommonEvents(len(plans[0].streams))
        flows = [common.flow(plan) for plan in plans]
        super().__init__(plans, flows, [TOLD for _ in self._contents], terms, known)
        matchers = [None if request is None else StreamMatcher(request, terms) for request in common.requests(terms)]
        sources = [source for source in common.sources if source.form.name in self._given]
        self._mappings = EventMappings(sources, matchers, held)
        self._most = max(_MOST_INSTANTS // len({*flows}), _LEAST_INSTANTS)

    def advance(self, batches: Sequence[EventBatch], passed: int) -> Iterator[Part]:
        """Complete events by stream in order of time; all before `passed` is complete: what is emitted. Raises
        LimitError; the events held are as before then, the rest is of no use."""
        held, before = self._held, self._held.mark()
        try:
            self._mappings.add(batches)
            if self._mappings.beyond:  # each query finds by itself which of its instants are left out
                raise next(iter(self._mappings.beyond.values()))
            due = held.due(batches, passed, ended=False)
            if self._volatile:
                held.schedule.check(due)
            held.schedule.go_on(due)
            for low in range(0, len(due), self._most):
                yield from self._answered(due.slice(low, low + self._most))
        except BaseException:
            held.back_to(before)
            raise
        held.forget()
        self._mappings.forget()

    def _answered(self, stretches: Stretches) -> Iterator[Part]:
        held = self._held
        before = [content.stop for content in held.contents]
        self._bound()
        first = self._through(before, held.through(stretches.at), len(stretches), self.knowledge.changed())
        for each in self._told(first, len(stretches)):
            report = self._reports[each.pieces[0][0][0]]  # of all that emit it
            if report is Report.RSTREAM and held.schedule.rhythm.ticks:
                yield from self._repeated(each, stretches)
            else:
                yield Part(stretches.at[each.at], each.rows, each.pieces)

    def _repeated(self, numbered: Numbered, stretches: Stretches) -> Iterator[Part]:
        for queries, low, high in numbered.pieces:
            index = np.arange(low, high)
            rows = numbered.rows.take(index)
            at, rows = repeated(Report.RSTREAM, self._held.schedule, stretches, numbered.at[index], rows)
            yield Part(at, rows, [(queries, 0, len(at))])

    def _through(
        self, before: Sequence[int], bounds: Sequence[tuple[I64, I64]], instants: int, answers: KbAnswers | None
    ) -> int:
        """Windows continue, from places up to which they have had events: the tick of the first instant."""
        moves = moves_of(self._contents, self._held, before, bounds, instants)
        return self._move(moves, self._mappings.move(bounds, 0), answers)

    def take_up(self) -> None:
        """Be as if all that is held had come, and the last instant had been answered. Raises LimitError."""
        held = self._held
        self._mappings.take_up()
        self._mappings.beyond = {}
        if held.begun:
            now = held.places
            bounds = [(np.array([low]), np.array([high])) for low, high, _ in now]
            self._through([low for low, _, _ in now], bounds, 1, self.knowledge.unchanged())
            self._pass_over()

    # --- its memory ----------------------------------------------------------------------------------

    @property
    def state(self) -> dict[str, int]:
        return {"items": len(self._held), "mappings": len(self._mappings), **super().state}

    @property
    def bytes(self) -> int:
        return super().bytes + self._held.bytes


def _any_of(contents: Sequence[ContentPlan]) -> ContentPlan:
    """What several queries ask of one window."""
    return replace(contents[0], asked=any(c.asked for c in contents), default=any(c.default for c in contents))


class _Sink(Stateful):
    """A root of the plan, as some queries emit it. queries: by row of the table their numbers; one: one of them,
    which stands for all."""

    made_of = (unsaved("_told"),)

    def __init__(
        self, plan: FlowPlan, output: Output, queries: Sequence[Sequence[int]], one: RspPlan, terms: TermDictionary
    ) -> None:
        self.root, self._one, self._terms = output.root, one, terms
        self._queries = queries
        self._by_row = int(output.table is not None)
        compared = one.flow.compared + self._by_row
        raw, most = plan.raw[output.root], terms.bounds.rows
        width, tabled = plan.widths[output.root], bool(self._by_row)
        self._told = Told(one.report, width, compared, raw, self._in_order, most, tabled=tabled)
        numbers = _numbers(len(output.queries), terms) if self._by_row else _NO_BLANKS
        self._order = np.argsort(numbers)
        self._numbers = numbers[self._order]

    @property
    def tells_all(self) -> bool:
        """Whether it emits something even where nothing changes."""
        return self._one.report is Report.RSTREAM

    def told(self, delta: Delta, first: int, instants: int) -> Iterator[Numbered]:
        """The rows emitted for a change, at the instants from the tick `first` on."""
        at, values = self._told.rows(delta, first, instants)
        if self._told.too_many:  # each query finds by itself which of its instants are left out
            raise LimitError(max(self._told.too_many.values()), self._terms.bounds.rows, ROWS.what)
        if not len(at):
            return
        if not self._by_row:
            at, rows = full_rows(self._one, at, values, _NO_BLANKS, self._terms)
            yield Numbered(at, rows, [(self._queries[0], 0, len(at))])
            return
        number = self._order[np.searchsorted(self._numbers, values[:, 0])]
        key = number * instants + at
        order = np.argsort(key, kind="stable")
        key, rows = full_rows(self._one, key[order], values[order, 1:], _NO_BLANKS, self._terms)
        number, at = np.divmod(key, instants)
        bounds = np.flatnonzero(np.diff(number, prepend=-1))
        lows = bounds.tolist()
        each = zip(number[bounds].tolist(), lows, [*lows[1:], len(number)], strict=True)
        yield Numbered(at, rows, [(self._queries[row], low, high) for row, low, high in each])

    def _in_order(self, group: I64, rows: Ids) -> I64:
        return in_order(group, rows[:, self._by_row :], self._one.flow.order, _NO_BLANKS, self._terms)

    def pass_over(self, delta: Delta) -> None:
        """Takes the changes of instants at which nothing is emitted."""
        self._told.pass_over(delta)

    def __len__(self) -> int:
        return len(self._told)


def _sinks(plan: FlowPlan, output: Output, plans: Sequence[RspPlan], terms: TermDictionary) -> Iterator[_Sink]:
    """Queries with the same rows may emit them differently: the new or the retracted ones, in an order or none."""
    ways: dict[tuple[object, ...], list[list[int]]] = {}
    for row, queries in enumerate(output.queries):
        for number in queries:
            one = plans[number]
            way = one.report, one.flow.compared, one.flow.order, one.flow.times
            ways.setdefault(way, [[] for _ in output.queries])[row].append(number)
    for by_row in ways.values():
        one = next(plans[number] for mine in by_row for number in mine)
        yield _Sink(plan, output, by_row, one, terms)


def _numbers(count: int, terms: TermDictionary) -> Ids:
    """Terms that stand for the rows of a table."""
    return np.array([terms.constant(Literal(str(row))) for row in range(count)], np.uint32)


def _table(output: Output, terms: TermDictionary) -> Ids:
    """Its rows: numbers, constants."""
    numbers = _numbers(len(output.queries), terms)
    constants = [[terms.constant(each) for each in row] for row in output.constants]
    return np.column_stack([numbers, np.array(constants, np.uint32).reshape(len(numbers), -1)])


def _only(plan: FlowPlan, outputs: Sequence[Output], plans: Sequence[RspPlan]) -> dict[int, Only]:
    """Which rows of each conjunction are needed, if not all."""
    found: dict[int, Only] = {}
    for output in outputs:
        inside = below(plan.forms, (output.root,))
        every = any(isinstance(plan.forms[place], Join) for place in inside)
        for one in (plans[number] for mine in output.queries for number in mine):
            only = "" if every else only_of(one.flow.plan, one.report, one.flow.compared)
            for place in (each for each in inside if isinstance(plan.forms[each], Patterns)):
                if found.setdefault(place, only) != only:
                    found[place] = ""
    return found
