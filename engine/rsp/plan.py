"""A query over windows, compiled: what it keeps of the streams, evaluates, and emits.

In the flow: algebra → **plan** → run. Equal windows are one content. WHERE is a plan of operators over rows that
come and go (engine/flow); what MATCH finds is one of their sources.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import NamedNode, Variable

from oxiseq.engine.errors import ArgumentTypeError, ArgumentValueError
from oxiseq.engine.expressions.blank_nodes import with_shared_blank_nodes
from oxiseq.engine.flow.events import EventRows
from oxiseq.engine.flow.plan import Asked, GraphPlace, Patterns, WindowPlace
from oxiseq.engine.flow.sparql import Around, Lowered, Matched, compile_where, is_plain
from oxiseq.engine.patterns.plan import GpmRequest, StreamPlan, compile_stream
from oxiseq.engine.rsp.items import WindowRange
from oxiseq.engine.rsp.schedule import Rhythm
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.algebra import (
    EventName,
    EventPattern,
    Every,
    Filter,
    FirstOf,
    Following,
    Gpm,
    Group,
    LastOf,
    MatchPattern,
    OnClose,
    WindowPattern,
)
from oxiseq.grammar.records import dataclass
from oxiseq.grammar.rsp_algebra import Consume, RangeWindow, Report, RspQuery
from oxiseq.grammar.scope import (
    GpmParts,
    certain_variables,
    holds_exists,
    nested_elements,
    split_gpm,
    visible_variables,
)

_CHOICES: Final[Mapping[str, type[FirstOf | LastOf]]] = {"FIRST": FirstOf, "LAST": LastOf}


@dataclass(frozen=True, slots=True)
class RspOptions:
    """Options of a query beside its text; each applies where the text has none."""

    report: Report | None = None
    instants: tuple[int, ...] | None = None
    consume: Consume | None = None


UNSAID: Final = RspOptions()


@dataclass(frozen=True, slots=True)
class ContentPlan:
    """What a window on a stream holds; asked: whether patterns read it."""

    stream: int
    window: WindowRange
    default: bool
    """It is (part of) the default graph."""
    asked: bool

    @property
    def stored(self) -> bool:
        """Whether the graphs of its events are needed."""
        return self.asked or self.default


@dataclass(frozen=True, slots=True)
class EventPlan:
    """EVENT ON: the number of its window's content, of its request among those of the stream, its variables."""

    name: str
    content: int
    request: int
    variables: tuple[Variable, ...]
    certain: frozenset[Variable]

    @property
    def rows(self) -> EventRows:
        """Its source for operators."""
        return EventRows(self.name, self.variables, self.certain)


@dataclass(frozen=True, slots=True)
class MatchPlan:
    """One MATCH; in its pattern FIRST ON and LAST ON are FIRST and LAST of the event."""

    pattern: EventPattern
    variables: tuple[Variable, ...]
    timed: bool
    """Whether the answers carry the times of its mappings."""


@dataclass(frozen=True, slots=True, weakref_slot=True)
class RspPlan:
    """A compiled query. Answers are compared between instants by full rows; `told` are the emitted columns."""

    query: RspQuery
    streams: tuple[str, ...]
    report: Report
    rhythm: Rhythm
    consumes: bool
    volatile: bool
    """Whether rows that are emitted again depend on the time of emission: NOW."""
    contents: tuple[ContentPlan, ...]
    events: tuple[EventPlan, ...]
    requests: tuple[StreamPlan | None, ...]
    matches: tuple[MatchPlan, ...]
    columns: tuple[str, ...]
    """Names of the answer's variables."""
    flow: Lowered

    @property
    def timed(self) -> bool:
        """Whether rows carry the times of an event mapping."""
        return any(match.timed for match in self.matches)

    @property
    def reads_kb(self) -> bool:
        """Whether answers depend on the KB."""
        forms = self.flow.plan.forms
        asked = any(isinstance(form, Asked) or (isinstance(form, Patterns) and _reads_kb(form)) for form in forms)
        return asked or self.events_read_kb

    @property
    def events_read_kb(self) -> bool:
        """Whether event mappings depend on the KB."""
        return any(request.parts.in_place for plan in self.requests if plan is not None for request in plan.requests)

    def predicates(self, terms: TermDictionary) -> list[NDArray[np.uint32] | None]:
        """By stream the predicates of the triples that its patterns match in windows; None: of any."""
        found: list[set[int] | None] = [set() for _ in self.streams]
        for form in self.flow.plan.forms:
            if not isinstance(form, Patterns):
                continue
            for pattern, place in zip(form.patterns, form.places, strict=True):
                if not isinstance(place, WindowPlace):
                    continue
                stream, predicate = self.contents[place.content].stream, pattern.predicate
                if not isinstance(predicate, NamedNode):
                    found[stream] = None
                elif (mine := found[stream]) is not None:
                    mine.add(int(terms.constant(predicate)))
        return [None if each is None else np.array(sorted(each), np.uint32) for each in found]

    @property
    def feeds(self) -> str | None:
        """The stream that results go to."""
        return self.query.into.value if self.query.into is not None and self.query.form == "CONSTRUCT" else None


def compile_rsp(query: RspQuery, terms: TermDictionary, options: RspOptions = UNSAID) -> RspPlan:
    """Compile a checked query. Raises OxiseqError for options that contradict the text."""
    return _Compiler(with_shared_blank_nodes(query), terms, options).plan()


class _Compiler:
    def __init__(self, query: RspQuery, terms: TermDictionary, options: RspOptions) -> None:
        self.query = query
        self.terms = terms
        self.options = options
        self.named: dict[NamedNode, int] = {}
        self.contents: list[ContentPlan] = []
        self.matches: dict[tuple[MatchPattern, bool], MatchPlan] = {}
        """By pattern and whether its rows carry times: an equal one further down does not."""

    def plan(self) -> RspPlan:
        query = self.query
        rhythm = self._rhythm()
        self._contents()
        self._matches()
        events, requests = self._events()
        flow, report = self._flow(events), self._report()
        return RspPlan(
            query,
            query.streams,
            report,
            rhythm,
            self._consumes,
            report is Report.RSTREAM and any(each.place is None for each in flow.told),
            tuple(self.contents),
            events,
            requests,
            tuple(self.matches.values()),
            tuple(told.name for told in flow.told),
            flow,
        )

    # --- options ------------------------------------------------------------------------------------

    @property
    def _consumes(self) -> bool:
        return (self.query.consume or self.options.consume or Consume.UNRESTRICTED) is not Consume.UNRESTRICTED

    def _report(self) -> Report:
        given, written = self.options.report, self.query.report
        if given is not None and written is not None and given is not written:
            raise ArgumentValueError(
                f"the query says REGISTER {written.value}, but stream_operator={given.value} is given"
            )
        usual = Report.RSTREAM if self.query.language == "rsepql" else Report.ISTREAM
        return written or given or usual

    def _rhythm(self) -> Rhythm:
        query, instants = self.query, self.options.instants
        if query.when is not None and instants is not None:
            raise ArgumentTypeError("the query says when it is answered (REPORT): leave out evaluation_times")
        if query.consume is not None and self.options.consume not in (None, query.consume):
            raise ArgumentTypeError(f"the query says CONSUME {query.consume.value}: leave out consumption")
        if instants is not None:
            return Rhythm(tuple(sorted(set(instants))))
        if isinstance(query.when, Every):
            return Rhythm(None, (query.when.period,))
        if isinstance(query.when, OnClose):
            ranges = [o for w in query.windows for o in w.operators if isinstance(o, RangeWindow) and not o.events]
            return Rhythm(None, tuple(sorted({o.slide for o in ranges})))
        return Rhythm()

    # --- windows ------------------------------------------------------------------------------------

    def _contents(self) -> None:
        """One content for equal windows; the patterns on it decide what it keeps."""
        numbers: dict[tuple[int, WindowRange], int] = {}
        asked = [w.name for w in nested_elements(self.whole) if isinstance(w, WindowPattern)]
        any_window = any(isinstance(name, Variable) for name in asked)
        for window in self.query.windows:
            stream = self.query.streams.index(window.stream.value)
            key = stream, WindowRange(window.operators, self.query.language == "rsepql")
            if key not in numbers:
                numbers[key] = len(numbers)
                self.contents.append(ContentPlan(*key, False, False))
            number = numbers[key]
            content = self.contents[number]
            if window.name is None:
                self.contents[number] = replace(content, default=True)
                continue
            self.named[window.name] = number
            if any_window or window.name in asked:
                self.contents[number] = replace(content, asked=True)

    @property
    def whole(self) -> Group:
        """The query as a pattern: WHERE, and EXISTS in its columns."""
        return Group((self.query.body,))

    # --- events -------------------------------------------------------------------------------------

    def _events(self) -> tuple[tuple[EventPlan, ...], tuple[StreamPlan | None, ...]]:
        requests: list[list[GpmRequest]] = [[] for _ in self.query.streams]
        events = []
        for event in self.query.events:
            content = self.named[event.window]
            mine = requests[self.contents[content].stream]
            parts = _in_place(split_gpm(Gpm(event.name, "", event.pattern)))
            variables = visible_variables(parts.pattern)
            events.append(EventPlan(event.name, content, len(mine), variables, parts.certain))
            mine.append(GpmRequest(event.name, parts, variables))
        plans = tuple(compile_stream(each, self.terms) if each else None for each in requests)
        return tuple(events), plans

    def _matches(self) -> None:
        choices = {e.name: _CHOICES[e.choice] for e in self.query.events if e.choice}
        top = [e for e in self.query.body.where.elements if isinstance(e, MatchPattern)]
        timed = top[0] if len(top) == 1 and is_plain(self.query) else None
        for element in nested_elements(self.whole):
            if isinstance(element, MatchPattern):
                key = element, element is timed
                pattern = _with_choices(element.events, choices)
                self.matches.setdefault(key, MatchPlan(pattern, element.variables, element is timed))

    # --- answers ------------------------------------------------------------------------------------

    def _flow(self, events: tuple[EventPlan, ...]) -> Lowered:
        """WHERE and the output, as operators."""
        given: dict[MatchPattern, Matched] = {}
        timed: Matched | None = None
        for (pattern, _), plan in self.matches.items():
            matched = Matched(plan.pattern, plan.variables, plan.timed)
            if plan.timed:
                timed = matched
            else:
                given[pattern] = matched
        query = self.query
        default = tuple(i for i, c in enumerate(self.contents) if c.default)
        rows = {event.name: event.rows for event in events}
        graphs = query.default_graphs, query.named_graphs
        return compile_where(query, Around(self.named, default, *graphs, given, timed, rows, self._consumes))


def _reads_kb(form: Patterns) -> bool:
    return any(isinstance(place, GraphPlace) for place in form.places)


def _with_choices(pattern: EventPattern, choices: Mapping[str, type[FirstOf | LastOf]]) -> EventPattern:
    """With FIRST or LAST around events by name."""
    match pattern:
        case EventName(name):
            return choices[name](pattern) if name in choices else pattern
        case FirstOf(inner) | LastOf(inner):
            return replace(pattern, events=_with_choices(inner, choices))
        case Following(first, second):
            return replace(pattern, first=_with_choices(first, choices), second=_with_choices(second, choices))


def _in_place(parts: GpmParts) -> GpmParts:
    """A pattern that reads the KB is evaluated as one, beside the KB's graphs."""
    if parts.kb is None:
        return parts
    kept = [e for e in parts.gpm.pattern.elements if not isinstance(e, Filter) or holds_exists(e.condition)]
    pattern = Group(tuple(kept))
    variables = visible_variables(pattern)
    return GpmParts(
        parts.gpm,
        pattern,
        None,
        (*parts.filters, *parts.kb_filters),
        (),
        parts.stateful,
        True,
        variables,
        certain_variables(pattern),
        variables,
        (),
    )
