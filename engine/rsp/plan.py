"""A query over windows, compiled: what is kept of the streams, what is asked of it, what is told.

Where it stands: algebra → **plan** → run. Equal windows are one content. A query is answered in one of three ways:

    native   conjunctions of patterns over windows and the KB: incrementally, by `engine/windows` (incremental.py)
    direct   MATCH alone: its event mappings are the rows
    asked    everything else: by Oxigraph, at every instant
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pyoxigraph import NamedNode, Variable

from oxiseq.engine.errors import OxiseqError
from oxiseq.engine.matching.plan import GpmRequest, StreamPlan, compile_stream
from oxiseq.engine.rsp.asking import (
    ROW_VARIABLE,
    AskedMatch,
    Rewriting,
    asked_by_name,
    blank_variable,
    window_graph,
)
from oxiseq.engine.rsp.incremental import NativePlan, NotIncrementalError, Surroundings, compile_native
from oxiseq.engine.rsp.items import WindowRange
from oxiseq.engine.rsp.schedule import Rhythm
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.algebra import (
    Aggregate,
    Call,
    EventName,
    EventPattern,
    Expression,
    Filter,
    FirstOf,
    Following,
    Gpm,
    GraphPattern,
    Group,
    LastOf,
    MatchPattern,
    Path,
    PathAlternative,
    PathInverse,
    PathPattern,
    PathRepeat,
    PathSequence,
    PatternElement,
    SubSelect,
    TriplePattern,
    WindowPattern,
)
from oxiseq.grammar.render_sparql import select_text
from oxiseq.grammar.rsp_algebra import (
    Consume,
    Every,
    OnClose,
    RangeWindow,
    Report,
    RspQuery,
    event_names,
)
from oxiseq.grammar.scope import (
    GpmParts,
    certain_variables,
    holds_exists,
    inner_expressions,
    inner_groups,
    split_gpm,
    sub_select_expressions,
    subexpressions,
    visible_variables,
)

_CHOICES: Final[Mapping[str, type[FirstOf | LastOf]]] = {"FIRST": FirstOf, "LAST": LastOf}
_VOLATILE: Final = frozenset({"NOW", "RAND", "UUID", "STRUUID", "BNODE"})
_MOST_GRAPHS: Final = 64
"""Of the KB, past which GRAPH ?g is asked of Oxigraph as it is."""
Column = Variable | tuple[Expression, Variable]


@dataclass(frozen=True, slots=True)
class RspOptions:
    """What is said of a query beside its text; each counts where the text has none."""

    report: Report | None = None
    instants: tuple[int, ...] | None = None
    consume: Consume | None = None


UNSAID: Final = RspOptions()


@dataclass(frozen=True, slots=True)
class ContentPlan:
    """What a window on a stream holds. `named`: a graph of the store follows it; `default`: the default graph does.
    `predicates`: those that patterns ask it for, None for all."""

    stream: int
    window: WindowRange
    named: bool
    default: bool
    predicates: tuple[NamedNode, ...] | None

    def graph(self, number: int) -> NamedNode:
        """Of the content of this number."""
        return window_graph(number)

    @property
    def stored(self) -> bool:
        """Whether the graphs of its events are needed."""
        return self.named or self.default


@dataclass(frozen=True, slots=True)
class EventPlan:
    """EVENT ON: the number of its window's content, of its request among those of the stream, what it binds."""

    name: str
    content: int
    request: int
    variables: tuple[Variable, ...]
    certain: frozenset[Variable]


@dataclass(frozen=True, slots=True)
class MatchPlan:
    """One MATCH; in its pattern FIRST ON and LAST ON are FIRST and LAST of the event."""

    pattern: EventPattern
    variables: tuple[Variable, ...]
    certain: frozenset[Variable]
    timed: bool
    """Whether the answers carry the times of its mappings."""


@dataclass(frozen=True, slots=True)
class KbNeeds:
    """What is copied of the KB: its default graph; graphs merged into the default graph; named graphs (None: all)."""

    default: bool
    merged: tuple[NamedNode, ...]
    graphs: tuple[NamedNode, ...] | None
    predicates: tuple[NamedNode, ...] | None

    @property
    def nothing(self) -> bool:
        """Whether the query does not ask the KB."""
        return not self.default and not self.merged and self.graphs == ()


@dataclass(frozen=True, slots=True)
class Asked:
    """The question to Oxigraph: its text, how many columns it answers, whether a row's number stands before them."""

    text: str
    width: int
    with_row: bool
    ordered: bool
    """The order of its rows is the query's."""
    by_name: SubSelect | None = None
    """The question again, if it asks GRAPH ?g what is `asked_by_name`: the KB's graphs have to be known."""

    def over(self, graphs: Sequence[NamedNode]) -> str:
        """Its text where the KB has these graphs."""
        if self.by_name is None or len(graphs) > _MOST_GRAPHS:
            return self.text
        asked = Rewriting({}, {}, graphs=graphs).select(self.by_name)
        return select_text(asked, asked.projection or ())


@dataclass(frozen=True, slots=True)
class RspPlan:
    """A compiled query. Answers are compared between instants by full rows; `shown` are the columns that are told."""

    query: RspQuery
    streams: tuple[str, ...]
    report: Report
    rhythm: Rhythm
    consumes: bool
    volatile: bool
    """Whether a function in it has another value each time: NOW, RAND, UUID, STRUUID, BNODE."""
    contents: tuple[ContentPlan, ...]
    events: tuple[EventPlan, ...]
    requests: tuple[StreamPlan | None, ...]
    matches: tuple[MatchPlan, ...]
    kb: KbNeeds
    default_predicates: tuple[NamedNode, ...] | None
    columns: tuple[str, ...]
    """Names of the answer's variables."""
    shown: tuple[int, ...]
    """Their places in full rows."""
    asked: Asked | None
    native: NativePlan | None
    """How it is answered incrementally."""
    why_not: str | None = None
    """Why it is not."""

    @property
    def direct(self) -> bool:
        """Whether the rows are the mappings of a MATCH."""
        return self.asked is None and self.native is None

    @property
    def timed(self) -> bool:
        """Whether rows carry the times of an event mapping."""
        return any(match.timed for match in self.matches)

    @property
    def reads_kb(self) -> bool:
        """Whether answers depend on the KB."""
        return not self.kb.nothing or any(
            request.parts.in_place for plan in self.requests if plan is not None for request in plan.requests
        )

    @property
    def feeds(self) -> str | None:
        """The stream that results go to."""
        return self.query.into.value if self.query.into is not None and self.query.form == "CONSTRUCT" else None


def compile_rsp(query: RspQuery, terms: TermDictionary, options: RspOptions = UNSAID) -> RspPlan:
    """Compile a checked query. Raises OxiseqError for options that contradict the text."""
    return _Compiler(query, terms, options).plan()


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
        columns = self._columns()
        full = self._full(columns)
        native, why_not = self._native(rhythm, columns)
        asked = None if native is not None or self._is_direct(columns) else self._asked(full)
        if native is not None:
            full = _told(native, columns)
        elif asked is None:
            full = next(iter(self.matches.values())).variables
        names = [_name(c) for c in full]
        return RspPlan(
            query,
            query.streams,
            self._report(),
            rhythm,
            (query.consume or self.options.consume or Consume.UNRESTRICTED) is not Consume.UNRESTRICTED,
            self._volatile(),
            tuple(self.contents),
            events,
            requests,
            tuple(self.matches.values()),
            self._kb() if asked is not None or (native is not None and native.kb) else KbNeeds(False, (), (), None),
            _predicates(self._default_patterns()),
            tuple(_name(c).value for c in columns),
            tuple(names.index(_name(c)) if _name(c) in names else -1 for c in columns),
            asked,
            native,
            why_not,
        )

    # --- options ------------------------------------------------------------------------------------

    def _report(self) -> Report:
        given, written = self.options.report, self.query.report
        if given is not None and written is not None and given is not written:
            raise OxiseqError(f"the query says REGISTER {written.value}, but report={given.value} is given")
        usual = Report.RSTREAM if self.query.language == "rsepql" else Report.ISTREAM
        return written or given or usual

    def _rhythm(self) -> Rhythm:
        query, instants = self.query, self.options.instants
        if query.when is not None and instants is not None:
            raise OxiseqError("the query says when it is answered (REPORT): leave out instants")
        if query.consume is not None and self.options.consume not in (None, query.consume):
            raise OxiseqError(f"the query says CONSUME {query.consume.value}: leave out consumption")
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
        """One content for equal windows; what is asked of it decides what it keeps."""
        numbers: dict[tuple[int, WindowRange], int] = {}
        asked = list(_window_patterns(self.whole))
        anywhere = any(isinstance(w.name, Variable) for w in asked)
        for window in self.query.windows:
            stream = self.query.streams.index(window.stream.value)
            key = stream, WindowRange(window.operators, self.query.language == "rsepql")
            if key not in numbers:
                numbers[key] = len(numbers)
                self.contents.append(ContentPlan(*key, False, False, ()))
            number = numbers[key]
            content = self.contents[number]
            if window.name is None:
                self.contents[number] = replace(content, default=True)
                continue
            self.named[window.name] = number
            mine = [w.pattern for w in asked if w.name == window.name or isinstance(w.name, Variable)]
            if mine or anywhere:
                wanted = _predicates(mine)
                known = content.predicates
                both = None if wanted is None or known is None else tuple(dict.fromkeys([*known, *wanted]))
                self.contents[number] = replace(content, named=True, predicates=both)

    def _default_patterns(self) -> list[Group]:
        """What is asked of the default graph."""
        return [Group(tuple(_outside(self.whole)))]

    @property
    def whole(self) -> Group:
        """The query as a pattern: WHERE, and EXISTS in what it lists."""
        return Group((self.query.body,))

    def _volatile(self) -> bool:
        selects = (e for e in _everything(self.whole) if isinstance(e, SubSelect))
        each = [*inner_expressions(self.whole), *(x for s in selects for x in sub_select_expressions(s))]
        return any(isinstance(e, Call) and e.name in _VOLATILE for x in each for e in subexpressions(x))

    def _kb(self) -> KbNeeds:
        query, where = self.query, self.whole
        graphs = [e for e in _everything(where) if isinstance(e, GraphPattern)]
        names = [g.name for g in graphs]
        outside = any(True for _ in _outside(where))
        default = outside and not query.default_graphs and not any(c.default for c in self.contents)
        known: tuple[NamedNode, ...] | None = tuple(dict.fromkeys(n for n in names if isinstance(n, NamedNode)))
        if any(isinstance(n, Variable) for n in names):
            known = query.named_graphs or None
        elif query.named_graphs:
            known = tuple(n for n in known or () if n in query.named_graphs)
        asked = [g.pattern for g in graphs] + ([Group(tuple(_outside(where)))] if outside else [])
        return KbNeeds(default, query.default_graphs if outside else (), known, _predicates(asked))

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
        certain = {e.name: certain_variables(e.pattern) for e in self.query.events}
        choices = {e.name: _CHOICES[e.choice] for e in self.query.events if e.choice}
        top = [e for e in self.query.body.where.elements if isinstance(e, MatchPattern)]
        timed = top[0] if len(top) == 1 and self.plain else None
        for element in _everything(self.whole):
            if isinstance(element, MatchPattern):
                sure = frozenset(v for n in event_names(element.events) for v in certain[n.name])
                key = element, element is timed
                pattern = _with_choices(element.events, choices)
                self.matches.setdefault(key, MatchPlan(pattern, element.variables, sure, element is timed))

    # --- answers ------------------------------------------------------------------------------------

    @property
    def plain(self) -> bool:
        """Whether rows are full mappings projected: no aggregates, grouping, DISTINCT, order, slice, no ASK."""
        body = self.query.body
        if self.query.form == "ASK" or body.distinct or body.group_by or body.having or body.order_by:
            return False
        expressions = [c[0] for c in body.projection or () if isinstance(c, tuple)]
        sliced = body.limit is not None or body.offset is not None
        return not sliced and not any(isinstance(e, Aggregate) for x in expressions for e in subexpressions(x))

    def _columns(self) -> tuple[Column, ...]:
        """What is told: SELECT's columns, for CONSTRUCT the template's variables."""
        body = self.query.body
        if self.query.form == "ASK":
            return ()
        if self.query.form == "CONSTRUCT":
            terms = (t for p in self.query.template for t in (p.subject, p.predicate, p.object))
            return tuple(dict.fromkeys(t for t in terms if isinstance(t, Variable)))
        return self._visible() if body.projection is None else body.projection

    def _visible(self) -> tuple[Variable, ...]:
        body = self.query.body
        inline = body.values.variables if body.values is not None else ()
        return tuple(dict.fromkeys([*visible_variables(body.where), *inline]))

    def _full(self, columns: tuple[Column, ...]) -> tuple[Column, ...]:
        if not self.plain:
            return columns
        hidden = [
            made
            for e in self.query.body.where.elements
            if isinstance(e, TriplePattern | PathPattern)
            for t in (e.subject, e.object)
            if (made := blank_variable(t)) is not t and isinstance(made, Variable)
        ]
        named = {_name(c) for c in columns}
        return *columns, *(v for v in dict.fromkeys([*self._visible(), *hidden]) if v not in named)

    def _is_direct(self, columns: tuple[Column, ...]) -> bool:
        body = self.query.body
        if not self.plain or body.values is not None or any(isinstance(c, tuple) for c in columns):
            return False
        return len(body.where.elements) == 1 and isinstance(body.where.elements[0], MatchPattern)

    def _asked(self, full: tuple[Column, ...]) -> Asked:
        every = [
            (pattern, AskedMatch(number, plan.variables, plan.certain, plan.timed))
            for number, ((pattern, _), plan) in enumerate(self.matches.items())
        ]
        timed = next((asked for _, asked in every if asked.timed), None)
        rewriting = Rewriting(self.named, {m: asked for m, asked in every if not asked.timed}, timed)
        body = self.query.body
        asked = replace(
            rewriting.select(replace(body, projection=full, where=Group(()))), where=rewriting.where(body.where)
        )
        if self.query.form == "ASK":
            asked = replace(asked, limit=1 if asked.limit is None else min(1, asked.limit))
        if self.plain:
            asked = replace(asked, reduced=False)
        shown: tuple[Column, ...] = asked.projection or ()
        columns = shown if timed is None else (ROW_VARIABLE, *shown)
        by_name = any(asked_by_name(e) for e in _everything(self.whole))
        return Asked(
            select_text(asked, columns), len(shown), timed is not None, bool(body.order_by),
            replace(asked, projection=columns) if by_name else None,
        )  # fmt: skip

    def _native(self, rhythm: Rhythm, columns: tuple[Column, ...]) -> tuple[NativePlan | None, str | None]:
        """How it is answered incrementally, or why it is not."""
        around = Surroundings(
            tuple(c.window.operators for c in self.contents),
            any(c.window.floored for c in self.contents),
            self.named,
            tuple(i for i, c in enumerate(self.contents) if c.default),
            columns,
            self.plain,
            rhythm == Rhythm(),
        )
        try:
            return compile_native(self.query, around), None
        except NotIncrementalError as reason:
            return None, str(reason)


def _with_choices(pattern: EventPattern, choices: Mapping[str, type[FirstOf | LastOf]]) -> EventPattern:
    """With FIRST or LAST around events by name."""
    match pattern:
        case EventName(name):
            return choices[name](pattern) if name in choices else pattern
        case FirstOf(inner) | LastOf(inner):
            return replace(pattern, events=_with_choices(inner, choices))
        case Following(first, second):
            return replace(
                pattern, first=_with_choices(first, choices), second=_with_choices(second, choices)
            )


def _told(native: NativePlan, columns: tuple[Column, ...]) -> tuple[Column, ...]:
    """The columns of the rows that it tells."""
    if native.fold is None:
        return native.columns
    if native.fold.distinct or native.fold.grouping is not None:
        return columns
    return tuple(native.columns[place] for place in native.fold.columns)


def _name(column: Column) -> Variable:
    return column[1] if isinstance(column, tuple) else column


def _in_place(parts: GpmParts) -> GpmParts:
    """A pattern that asks the KB is evaluated as one, beside the KB's graphs."""
    if parts.kb is None:
        return parts
    kept = [e for e in parts.gpm.pattern.elements if not isinstance(e, Filter) or holds_exists(e.condition)]
    pattern = Group(tuple(kept))
    return GpmParts(
        parts.gpm, pattern, None, (*parts.filters, *parts.kb_filters), (), parts.stateful, True,
        visible_variables(pattern), certain_variables(pattern),
    )  # fmt: skip


# --- what patterns ask for ------------------------------------------------------------------------


def _everything(group: Group) -> Iterator[PatternElement]:
    """Every element below, those of EXISTS in any expression included."""
    for element in group.elements:
        yield element
        for inner in inner_groups(element):
            yield from _everything(inner)


def _window_patterns(group: Group) -> Iterator[WindowPattern]:
    return (e for e in _everything(group) if isinstance(e, WindowPattern))


def _outside(group: Group) -> Iterator[PatternElement]:
    """Triple patterns and paths that are asked of the default graph."""
    for element in group.elements:
        if isinstance(element, TriplePattern | PathPattern):
            yield element
        elif not isinstance(element, WindowPattern | GraphPattern | MatchPattern):
            for inner in inner_groups(element):
                yield from _outside(inner)


def _predicates(groups: Iterable[Group]) -> tuple[NamedNode, ...] | None:
    """The predicates that patterns ask for, not looking into what is asked of other graphs; None for all."""
    found: dict[NamedNode, None] = {}
    for group in groups:
        for element in _outside(group):
            if isinstance(element, TriplePattern):
                if isinstance(element.predicate, Variable):
                    return None
                found[element.predicate] = None
            elif isinstance(element, PathPattern):
                inside = _path_predicates(element.path)
                if inside is None:
                    return None
                found.update(dict.fromkeys(inside))
    return tuple(found)


def _path_predicates(path: Path) -> list[NamedNode] | None:
    """None where a path may stay at a node that no predicate leads to, or names what it does not follow."""
    match path:
        case NamedNode():
            return [path]
        case PathInverse(inner):
            return _path_predicates(inner)
        case PathRepeat(inner, "+"):
            return _path_predicates(inner)
        case PathSequence(paths) | PathAlternative(paths):
            parts = [_path_predicates(p) for p in paths]
            return None if None in parts else [n for part in parts if part is not None for n in part]
        case _:
            return None


