"""Queries over windows, by their definitions (semantics.md 4 and 6): everything anew at every instant.

The windows' items are picked from the whole streams, their graphs merged, event patterns enumerated pair by pair. WHERE
is asked of a store that is made for the instant: a graph per window, the KB's graphs, MATCH as VALUES. So blank nodes
of streams can only be in windows, not in events' mappings.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, TypeAlias

from pyoxigraph import BlankNode, DefaultGraph, Literal, NamedNode, Quad, QuerySolutions, Store, Triple, Variable

from oxiseq.grammar.algebra import (
    Aggregate,
    Bind,
    Call,
    Every,
    Exists,
    Expression,
    Filter,
    FunctionCall,
    Gpm,
    GraphPattern,
    Group,
    MatchPattern,
    Minus,
    OnClose,
    OptionalPattern,
    PatternElement,
    SubSelect,
    Term,
    TriplePattern,
    Union,
    Values,
    WindowPattern,
)
from oxiseq.grammar.rsp_algebra import (
    Consume,
    IntervalWindow,
    LandmarkWindow,
    NamedWindow,
    RangeWindow,
    Report,
    RspQuery,
    WindowOperator,
)
from reference.event_patterns import Basic, Event, event_mappings, first, last
from reference.patterns import Mu, Omega, answer_kb, match_event, take_apart
from reference.scopes import inside, shown
from reference.sparql_text import select_text
from reference.values import normal_term, normal_triple

Time: TypeAlias = int
Row: TypeAlias = tuple[tuple[str, str], ...]
"""Names and values of what is bound."""
_Found: TypeAlias = Mapping[MatchPattern | None, Omega]
"""By MATCH its mappings; None: of the one of WHERE itself, where only that one's are looked at."""
WINDOW = "urn:reference:window:"


@dataclass(frozen=True)
class Item:
    """One graph of a stream; `position` numbers the stream's graphs in order, `instant` its instants from 1."""

    stream: str
    time: Time
    position: int
    instant: int
    graph: tuple[Triple, ...]


@dataclass(frozen=True)
class Answer:
    """One row: the instant, the times of its event mapping if it has one, its bindings, its full mapping."""

    at: Time
    start: Time | None
    end: Time | None
    row: Row


def evaluate_rsp(
    query: RspQuery,
    streams: Mapping[str, Sequence[tuple[Time, Sequence[Triple]]]],
    kb: Store | Callable[[Time], Store] | None = None,
    instants: Sequence[Time] | None = None,
    consume: Consume | None = None,
    report: Report | None = None,
    made: Callable[[list[Row]], Iterable[Row]] | None = None,
) -> list[Answer]:
    """All that is told, instant by instant. `kb`: always, or at each instant. `instants`, `consume` and `report` count
    where the text has none. `made`: what is made of the rows of an instant before they are compared with those of the
    one before."""
    items = {iri: _items(iri, streams.get(iri, ())) for iri in query.streams}
    told = query.report or report or (Report.RSTREAM if query.language == "rsepql" else Report.ISTREAM)
    used: set[tuple[str, int]] = set()
    consumes = (query.consume or consume or Consume.UNRESTRICTED) is not Consume.UNRESTRICTED
    out: list[Answer] = []
    before: Counter[_Full] = Counter()
    for at in evaluation_instants(query, items, instants):
        justified: set[tuple[str, int]] = set()
        known = Store() if kb is None else kb if isinstance(kb, Store) else kb(at)
        now = Counter(_answers(query, items, known, at, used, justified))
        if made is not None:
            now = Counter(_Full(row, None, None, row) for row in made([full.row for full in now.elements()]))
        if consumes:
            used |= justified
        chosen = {Report.RSTREAM: now, Report.ISTREAM: now - before, Report.DSTREAM: before - now}[told]
        out += [Answer(at, full.start, full.end, full.row) for full in chosen.elements()]
        before = now
    return out


def _items(iri: str, events: Sequence[tuple[Time, Sequence[Triple]]]) -> list[Item]:
    ordered = sorted(events, key=lambda e: e[0])
    times = sorted({time for time, _ in ordered})
    return [
        Item(iri, time, i, times.index(time) + 1, tuple(_own(normal_triple(t), f"{iri} {i}") for t in graph))
        for i, (time, graph) in enumerate(ordered)
    ]


def _own(triple: Triple, event: str) -> Triple:
    """With blank nodes of its event: their labels mean nothing outside."""

    def own(term: Term) -> Term:
        return BlankNode("e" + f"{event} {term.value}".encode().hex()) if isinstance(term, BlankNode) else term

    return Triple(own(triple.subject), triple.predicate, own(triple.object))  # type: ignore[arg-type]


# --- when -----------------------------------------------------------------------------------------


def evaluation_instants(
    query: RspQuery, items: Mapping[str, Sequence[Item]], instants: Sequence[Time] | None
) -> list[Time]:
    """The instants, in order. Ticks at which no window has anything, and none had before, are left out. When the
    streams have ended the clock goes on until no window with a RANGE of time, which alone closes, holds an event: the
    tick at which the last of them is empty is reported, as a live store reports it."""
    times = sorted({i.time for each in items.values() for i in each})
    if query.when is None and instants is not None:
        return sorted(set(instants))
    if not isinstance(query.when, Every | OnClose):
        return times
    if not times:
        return []
    periods = (
        [query.when.period]
        if isinstance(query.when, Every)
        else [o.slide for w in query.windows for o in w.operators if isinstance(o, RangeWindow) and not o.events]
    )
    closing = [w for w in query.windows if any(isinstance(o, RangeWindow) and not o.events for o in w.operators)]
    closing = [w for w in closing if not any(isinstance(o, RangeWindow) and o.events for o in w.operators)]
    ends = [max(-(-times[-1] // p) * p for p in periods)]
    if held := [at for at in _closes(closing, times) if any(window_items(query, w, items, at) for w in closing)]:
        ends.append(min((max(held) // p + 1) * p for p in periods))
    ticks = sorted({k * p for p in periods for k in range(-(-times[0] // p), max(ends) // p + 1)})
    out, filled = [], False
    for tick in ticks:
        now = any(window_items(query, w, items, tick) for w in query.windows)
        if now or filled:
            out.append(tick)
        filled = now
    return out


def _closes(windows: Sequence[NamedWindow], times: Sequence[Time]) -> list[Time]:
    """Among these is the last time at which a window that closes holds something: the last before a multiple of the
    slide, or that, at which an event is as old as the window is long."""
    ranges = {o for w in windows for o in w.operators if isinstance(o, RangeWindow)}
    return [
        ((time + o.size) // o.slide + turn) * o.slide + least
        for o in ranges
        for time in times
        for turn in (-1, 0, 1)
        for least in (-1, 0)
    ]


# --- windows --------------------------------------------------------------------------------------


def window_items(query: RspQuery, window: NamedWindow, items: Mapping[str, Sequence[Item]], at: Time) -> list[Item]:
    """ω(S, at) (Def. 3; semantics.md 6)."""
    kept = [i for i in items[window.stream.value] if i.time <= at]
    for operator in window.operators:
        kept = [i for i in kept if _inside(query, operator, i, at, kept)]
    return kept


def _inside(query: RspQuery, operator: WindowOperator, item: Item, at: Time, seen: Sequence[Item]) -> bool:
    match operator:
        case RangeWindow(size, slide, True):
            newest = max(i.instant for i in seen)
            return -(-newest // slide) * slide - size < item.instant <= newest
        case RangeWindow(size, slide) if query.language == "rsepql":
            end = at // slide * slide
            return end - size < item.time <= end
        case RangeWindow(size, slide):
            return -(-at // slide) * slide - size < item.time <= at
        case LandmarkWindow(start):
            return start <= item.time
        case IntervalWindow(start, end):
            return start <= item.time <= end
        case _:
            return True


# --- events ---------------------------------------------------------------------------------------


def definitions(
    query: RspQuery, items: Mapping[str, Sequence[Item]], kb: Store, at: Time, used: Collection[tuple[str, int]]
) -> dict[str, Basic]:
    """What each EVENT ON finds at an instant (Eq. 4), without the items that were consumed."""
    found = {}
    for definition in query.events:
        (window,) = (w for w in query.windows if w.name == definition.window)
        parts = take_apart(Gpm(definition.name, "", definition.pattern))
        from_kb = answer_kb(parts, kb)
        events = frozenset(
            Event(mu, i.time, i.time, frozenset([(i.stream, i.position)]))
            for i in window_items(query, window, items, at)
            if (i.stream, i.position) not in used
            for mu in match_event(parts, i.graph, from_kb, kb)
        )
        choice = {"": None, "FIRST": first, "LAST": last}[definition.choice]
        found[definition.name] = Basic(events, frozenset(shown(definition.pattern)), choice)
    return found


# --- answers --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Full:
    """What is compared between instants: a full mapping with what is shown of it."""

    mapping: Row
    start: Time | None
    end: Time | None
    row: Row


def _answers(
    query: RspQuery,
    items: Mapping[str, Sequence[Item]],
    kb: Store,
    at: Time,
    used: set[tuple[str, int]],
    justified: set[tuple[str, int]],
) -> Iterator[_Full]:
    store = _dataset(query, items, kb, at)
    found: dict[MatchPattern, frozenset[Event]] = {}
    defined = definitions(query, items, kb, at, used)
    for element in _all(Group((query.body,))):
        if isinstance(element, MatchPattern):
            found[element] = event_mappings(element.events, defined)
            justified.update(i for e in found[element] for i in e.items)
    mappings: dict[MatchPattern, Omega] = {m: frozenset(e.mu for e in events) for m, events in found.items()}
    timed = [e for e in query.body.where.elements if isinstance(e, MatchPattern)]
    if not is_plain(query) or len(timed) != 1:
        yield from _ask(query, store, mappings, None)
        return
    spans = {(e.mu, e.start, e.end) for e in found[timed[0]]}
    for mu, start, end in spans:
        yield from _ask(query, store, {**mappings, None: frozenset([mu])}, (start, end))


def _dataset(query: RspQuery, items: Mapping[str, Sequence[Item]], kb: Store, at: Time) -> Store:
    store = Store()
    default = any(w.name is None for w in query.windows) or bool(query.default_graphs)
    for name in kb.named_graphs():
        if not query.named_graphs or name in query.named_graphs:
            store.add_graph(name)
    for quad in kb:
        triple = Quad(quad.subject, quad.predicate, quad.object)
        if quad.graph_name == DefaultGraph():
            if not default:
                store.add(triple)
            continue
        if not query.named_graphs or quad.graph_name in query.named_graphs:
            store.add(quad)
        if quad.graph_name in query.default_graphs:
            store.add(triple)
    for number, window in enumerate(query.windows):
        name = DefaultGraph() if window.name is None else NamedNode(f"{WINDOW}{number}")
        if isinstance(name, NamedNode):
            store.add_graph(name)
        for item in window_items(query, window, items, at):
            store.extend(Quad(t.subject, t.predicate, t.object, name) for t in item.graph)
    return store


def is_plain(query: RspQuery) -> bool:
    """Whether answers are told by full mappings: no aggregates, grouping, DISTINCT, order or slice."""
    body = query.body
    if query.form == "ASK" or body.distinct or body.group_by or body.having or body.order_by:
        return False
    if body.limit is not None or body.offset is not None:
        return False
    expressions = [c[0] for c in body.projection or () if isinstance(c, tuple)]
    return not any(isinstance(e, Aggregate) for x in expressions for e in inside(x))


def _ask(
    query: RspQuery,
    store: Store,
    mappings: _Found,
    times: tuple[Time, Time] | None,
) -> Iterator[_Full]:
    _store_rows(store, _rows_graph(query), mappings)
    where = _asked(query, query.body.where, mappings)
    body = _in_clauses(replace(query.body, where=where), lambda group: _asked(query, group, mappings, False))
    shows = list(body.projection) if body.projection is not None else [*_shown(query)]
    names = [c if isinstance(c, Variable) else c[1] for c in shows]
    if query.form == "ASK":
        if list(store.query(select_text(replace(body, projection=((Literal(1), Variable("one")),))))):
            yield _Full((), None, None, ())
        return
    if is_plain(query):
        hidden = dict.fromkeys(
            v
            for e in where.elements
            if isinstance(e, TriplePattern)
            for v in (e.subject, e.object)
            if isinstance(v, Variable)
        )
        extra = [v for v in [*_shown(query), *hidden] if v not in names]
        columns = tuple(dict.fromkeys([*shows, *extra])) or (Variable("nothing_is_shown"),)
        body = replace(body, projection=columns, reduced=False)
    elif not shows:
        body = replace(body, projection=(Variable("nothing_is_shown"),))
    found = store.query(select_text(body))
    assert isinstance(found, QuerySolutions)
    for solution in found:
        bound = {v.value: str(normal_term(t)) for v in found.variables if (t := solution[v]) is not None}
        row = tuple(sorted((n.value, bound[n.value]) for n in names if n.value in bound))
        full = tuple(sorted(bound.items())) if is_plain(query) else row
        start, end = times if times is not None else (None, None)
        yield _Full(full, start, end, row)


# Blank nodes cannot stand in VALUES: mappings that bind some stand in a graph, a row for each.


def _rows_graph(query: RspQuery) -> NamedNode:
    return NamedNode(f"{WINDOW}{len(query.windows)}")


def _row(mu: Mu) -> NamedNode:
    return NamedNode("urn:row:" + "".join(sorted(f"{v}{t}" for v, t in mu)).encode().hex())


def _store_rows(store: Store, graph: NamedNode, mappings: _Found) -> None:
    for mu in {mu for found in mappings.values() for mu in found}:
        store.extend(Quad(_row(mu), NamedNode(f"urn:value:{v.value}"), t, graph) for v, t in mu)


def _stored_rows(variables: tuple[Variable, ...], found: Omega, graph: NamedNode) -> SubSelect:
    row = Variable("row_of_match")
    of = {v: Group((TriplePattern(row, NamedNode(f"urn:value:{v.value}"), v),)) for v in variables}
    values = [OptionalPattern(Group((GraphPattern(graph, each),))) for each in of.values()]
    return SubSelect(variables, Group((Values((row,), tuple((_row(mu),) for mu in found)), *values)))


def _shown(query: RspQuery) -> list[Variable]:
    inline = query.body.values.variables if query.body.values is not None else ()
    return list(dict.fromkeys([*shown(query.body.where), *inline]))


def _asked(query: RspQuery, group: Group, mappings: _Found, top: bool = True) -> Group:
    """WHERE for the store; blank nodes of its own triple patterns become variables, so that mappings are full."""
    return Group(tuple(_element(query, e, mappings, top) for e in group.elements))


def _element(query: RspQuery, element: PatternElement, mappings: _Found, top: bool) -> PatternElement:
    def below(group: Group) -> Group:
        return _asked(query, group, mappings, False)

    match element:
        case TriplePattern(s, p, o) if top:
            named = [Variable(f"blank_{t.value}") if isinstance(t, BlankNode) else t for t in (s, o)]
            return TriplePattern(named[0], p, named[1])
        case WindowPattern(name, inner) if isinstance(name, NamedNode):
            (number,) = (i for i, w in enumerate(query.windows) if w.name == name)
            return GraphPattern(NamedNode(f"{WINDOW}{number}"), below(inner))
        case WindowPattern(name, inner):
            assert isinstance(name, Variable)
            each = [(w.name, NamedNode(f"{WINDOW}{i}")) for i, w in enumerate(query.windows) if w.name is not None]
            return Union(
                tuple(
                    Group((GraphPattern(graph, _titled(_relabelled(below(inner), f".{i}"), name, window)),))
                    for i, (window, graph) in enumerate(each)
                )
            )
        case MatchPattern(_, variables):
            found = mappings[None if top and None in mappings else element]
            if any(isinstance(t, BlankNode) for mu in found for _, t in mu):
                return _stored_rows(variables, found, _rows_graph(query))
            return Values(variables, tuple(tuple(dict(mu).get(v) for v in variables) for mu in found))
        case GraphPattern(name, inner) if isinstance(name, Variable):
            others = [Filter(Call("!=", (name, NamedNode(f"{WINDOW}{i}")))) for i in range(len(query.windows) + 1)]
            return Group((GraphPattern(name, below(inner)), *others))
        case GraphPattern(name, inner):
            return GraphPattern(name, below(inner))
        case OptionalPattern(inner):
            return OptionalPattern(below(inner))
        case Minus(inner):
            return Minus(below(inner))
        case Union(branches):
            return Union(tuple(below(b) for b in branches))
        case SubSelect():
            return _in_clauses(replace(element, where=below(element.where)), below)
        case Group():
            return below(element)
        case Filter(condition):
            return Filter(_asking(condition, below))
        case Bind(expression, variable):
            return Bind(_asking(expression, below), variable)
        case _:
            return element


def _asking(value: Any, below: Callable[[Group], Group]) -> Any:
    """An expression, or what holds some, with the patterns of EXISTS for the store."""
    match value:
        case Exists(pattern, negated):
            return Exists(below(pattern), negated)
        case tuple():
            return tuple(_asking(each, below) for each in value)
        case Call() | FunctionCall():
            return replace(value, args=_asking(value.args, below))
        case Aggregate():
            return replace(value, arg=_asking(value.arg, below))
        case _:
            return value


def _in_clauses(query: SubSelect, below: Callable[[Group], Group]) -> SubSelect:
    """With the patterns of EXISTS in what it lists, groups and orders."""
    clauses = ("projection", "group_by", "having", "order_by")
    return replace(query, **{name: _asking(getattr(query, name), below) for name in clauses})


def _relabelled(value: Any, suffix: str) -> Any:
    """With other labels for its blank nodes."""
    match value:
        case BlankNode():
            return BlankNode(value.value + suffix)
        case tuple():
            return tuple(_relabelled(each, suffix) for each in value)
        case _ if is_dataclass(value) and not isinstance(value, type):
            made = {f.name: _relabelled(getattr(value, f.name), suffix) for f in fields(value) if f.compare}
            return replace(value, **made)
        case _:
            return value


def _titled(group: Group, name: Variable, window: NamedNode) -> Group:
    """A group that binds a name as well."""
    inner = (group,) if len(group.elements) == 1 and isinstance(group.elements[0], SubSelect) else group.elements
    return Group((Values((name,), ((window,),)), *inner))


def _all(group: Group) -> Iterator[PatternElement]:
    """Every element below, patterns of EXISTS included."""
    for element in group.elements:
        yield element
        expressions: list[Expression] = []
        match element:
            case OptionalPattern(i) | Minus(i) | GraphPattern(_, i) | WindowPattern(_, i):
                yield from _all(i)
            case Union(branches):
                for branch in branches:
                    yield from _all(branch)
            case Group():
                yield from _all(element)
            case SubSelect(projection, where):
                yield from _all(where)
                expressions += [c[0] for c in (*(projection or ()), *element.group_by) if isinstance(c, tuple)]
                expressions += [*element.having, *(key for key, _ in element.order_by)]
            case Filter(condition):
                expressions.append(condition)
            case Bind(expression):
                expressions.append(expression)
        for expression in expressions:
            for e in inside(expression):
                if isinstance(e, Exists):
                    yield from _all(e.pattern)
