"""Checks of queries over windows: names that mean something, windows that can be filled (semantics.md 4 and 6).

stream       the query reads no stream
window       a window's name or size; nested count windows
event        an event's name
language     a clause that only the other language has
report       ON WINDOW CLOSE without a window that closes
unbounded    a window that never forgets
scope        a condition on what is bound elsewhere (below)
unused       a window or an event that nothing reads
unbound      SELECT, its clauses or a template read a variable that nothing binds
cross-product, kb-unjoined   parts of one pattern share nothing
itself, kinds   a comparison that can hardly be meant: see `checking.comparisons`

Conditions in WINDOW blocks see what their block binds (SPARQL 1.1, section 18.2; semantics.md 4 and 7).

scope        FILTER or BIND in a WINDOW block mentions a variable that is bound outside of it: it would never hold

A FILTER sees its own group, in OPTIONAL the group around it too. The pattern of EXISTS sees everything around the
EXISTS, at any depth.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pyoxigraph import NamedNode, Variable

from oxiseq.grammar.algebra import (
    Aggregate,
    Bind,
    EventName,
    Every,
    Filter,
    Following,
    GraphPattern,
    Group,
    MatchFunction,
    MatchPattern,
    OnClose,
    OptionalPattern,
    PatternElement,
    Prev,
    Span,
    SubSelect,
    WindowPattern,
)
from oxiseq.grammar.checking.common import in_turn, template_variables, unbound
from oxiseq.grammar.checking.patterns import check_every, check_select
from oxiseq.grammar.errors import Finding, at_pattern, at_variable, close_name, error, lint_finding
from oxiseq.grammar.records import dataclass
from oxiseq.grammar.rsp_algebra import (
    EventDefinition,
    IdentityWindow,
    IntervalWindow,
    LandmarkWindow,
    RangeWindow,
    RspQuery,
    WindowOperator,
    event_names,
)
from oxiseq.grammar.scope import (
    expression_variables,
    inner_expressions,
    inner_groups,
    nested_elements,
    pattern_expressions,
    plain_variables,
    sub_select_expressions,
    subexpressions,
    visible_variables,
)

# --- rsp ---------------------------------------------------------------------------------------------


def _windows(query: RspQuery, text: str) -> Iterator[Finding]:
    if not query.windows:
        hint = "write FROM STREAM <...> [RANGE 10 SECONDS SLIDE 1 SECONDS]"
        span = at_pattern(r"(?i)\b(?:SELECT|CONSTRUCT|ASK)\b", query.span, text)
        yield error("stream", "the query reads no stream", span, hint)
    for number, window in enumerate(query.windows):
        if window.name is not None and window.name in {w.name for w in query.windows[:number]}:
            yield error("window", f"two windows are named <{window.name.value}>", window.span, "choose another name")
        for operator in window.operators:
            yield from _operator(operator, query, nested=len(window.operators) > 1)
        if all(isinstance(o, LandmarkWindow | IdentityWindow) for o in window.operators):
            hint = "a window with RANGE evicts old events"
            yield lint_finding("unbounded", "this window grows without limit", window.span, hint)


def _operator(operator: WindowOperator, query: RspQuery, nested: bool) -> Iterator[Finding]:
    match operator:
        case RangeWindow(size, slide, events):
            if size < 1 or slide < 1:
                what = "RANGE" if size < 1 else "SLIDE"
                yield error("window", f"{what} must be more than 0", operator.span)
            if events and query.language == "rsepql":
                hint = "give RANGE and SLIDE as spans of time"
                yield error("window", "windows of RSEP-QL count time, not events", operator.span, hint)
            elif events and nested:
                yield error("window", "a window that counts events cannot be nested", operator.span)
            elif slide > size >= 1:
                hint = "some events are in no window"
                yield lint_finding("window", "SLIDE is larger than RANGE", operator.span, hint)
        case IntervalWindow(start, end) if end < start:
            yield error("window", "the interval ends before it starts", operator.span, f"[INTERVAL {end} {start}]")


def _clauses(query: RspQuery, text: str) -> Iterator[Finding]:
    if query.language != "rsepql":
        hint = 'it is RSEP-QL: language="rsepql", file ending .rsepql'
        if query.events:
            yield error("language", "continuous SPARQL has no EVENT", query.events[0].span, hint)
        if query.consume is not None:
            span = at_pattern(r"(?i)\bCONSUME\s+\w+\s*(?=$|REPORT)", query.span, text)
            yield error("language", "continuous SPARQL has no CONSUME", span, hint)
    if isinstance(query.when, OnClose) and not any(
        isinstance(o, RangeWindow) and not o.events for w in query.windows for o in w.operators
    ):
        hint = "write REPORT ON CONTENT CHANGE, or give a window [RANGE ... SLIDE ...]"
        yield error("report", "no window of this query closes", query.when.span, hint)
    if isinstance(query.when, Every) and query.when.period < 1:
        yield error("report", "REPORT EVERY takes a span above 0", query.when.span)


def _events(query: RspQuery, text: str) -> Iterator[Finding]:
    known = [w.name for w in query.windows if w.name is not None]
    for number, event in enumerate(query.events):
        if event.name in {e.name for e in query.events[:number]}:
            yield error("event", f"two events are named {event.name}", event.span, "choose another name")
        if event.window not in known:
            yield _unknown_window(event.window, known, event.span)
        yield from _unbound_filters(event)
        for element in nested_elements(event.pattern):
            if isinstance(element, GraphPattern) and isinstance(element.name, Variable):
                message = f"GRAPH ?{element.name.value} cannot be used in an event's pattern"
                yield error("event", message, element.span, "name the graph: GRAPH <iri> { ... }")
            if isinstance(element, WindowPattern | MatchPattern):
                hint = "an event's pattern is evaluated on one item: put WINDOW and MATCH into WHERE"
                what = "WINDOW" if isinstance(element, WindowPattern) else "MATCH"
                yield error("event", f"{what} cannot be used in an event's pattern", element.span, hint)


def _unbound_filters(event: EventDefinition) -> Iterator[Finding]:
    """A FILTER sees its own event only."""
    known = visible_variables(event.pattern)
    for element in event.pattern.elements:
        if isinstance(element, Filter):
            for v in sorted(expression_variables(element.condition) - frozenset(known), key=str):
                message = f"{event.name} does not bind ?{v.value}, so this is never true"
                yield error("scope", message, element.span, "compare events in a FILTER of WHERE, after MATCH")


def _unknown_window(name: NamedNode, known: list[NamedNode], span: Span) -> Finding:
    shown = [f"<{k.value}>" for k in known]
    otherwise = "name it: FROM NAMED WINDOW <w> ON <stream> [RANGE ...]"
    hint = close_name(f"<{name.value}>", shown, f"the windows are {', '.join(shown)}" if shown else otherwise)
    return error("window", f"there is no window <{name.value}>", span, hint)


def _where(query: RspQuery, text: str) -> Iterator[Finding]:
    known = [w.name for w in query.windows if w.name is not None]
    names = [e.name for e in query.events]
    used_windows, used_events = {e.window for e in query.events}, set[str]()
    for element in nested_elements(Group((query.body,))):
        if isinstance(element, WindowPattern):
            if isinstance(element.name, Variable):
                used_windows.update(known)
            elif element.name not in known:
                yield _unknown_window(element.name, known, element.span)
            else:
                used_windows.add(element.name)
        elif isinstance(element, MatchPattern):
            if query.language != "rsepql":
                hint = 'it is RSEP-QL: language="rsepql", file ending .rsepql'
                yield error("language", "continuous SPARQL has no MATCH", element.span, hint)
            yield from _match(element, names)
            used_events.update(n.name for n in event_names(element.events))
    for window in query.windows:
        if window.name is not None and window.name not in used_windows:
            hint = f"write WINDOW <{window.name.value}> {{ ... }} in WHERE"
            yield lint_finding("unused", f"no pattern uses the window <{window.name.value}>", window.span, hint)
    for event in query.events:
        if event.name not in used_events:
            hint = f"write MATCH {{ {event.name} }} in WHERE"
            yield lint_finding("unused", f"the event {event.name} is in no MATCH", event.span, hint)


def _match(element: MatchPattern, names: list[str]) -> Iterator[Finding]:
    for name in event_names(element.events):
        if name.name not in names:
            otherwise = f"the events are {', '.join(names)}" if names else "define it: EVENT ON :w { ... } AS E1"
            yield error("event", f"there is no event {name.name}", name.span, close_name(name.name, names, otherwise))
    if isinstance(element.events, Following):
        first, second = element.events.first, element.events.second
        if first == second and isinstance(first, EventName):
            hint = "all its variables must then be equal; define a second event with other variables"
            yield lint_finding("event", f"{first.name} follows itself", element.span, hint)


def _patterns(query: RspQuery, text: str) -> Iterator[Finding]:
    yield from check_select(_listed(query), text)
    for pattern in (query.body.where, *(e.pattern for e in query.events)):
        for condition in inner_expressions(pattern):
            for e in subexpressions(condition):
                if isinstance(e, Aggregate):
                    hint = "aggregates can be used in SELECT and HAVING"
                    yield error("aggregate", f"{e.name} cannot be used in FILTER or BIND", e.span, hint)


def _listed(query: RspQuery) -> SubSelect:
    """The query as a SELECT of what it returns: for CONSTRUCT the template's variables, for ASK nothing."""
    if query.form == "SELECT":
        return query.body
    return replace(query.body, projection=tuple(dict.fromkeys(v for v, _ in template_variables(query.template))))


def _output(query: RspQuery, text: str) -> Iterator[Finding]:
    bound = {*visible_variables(query.body.where), *(query.body.values.variables if query.body.values else ())}
    named = {key[1] for key in query.body.group_by if isinstance(key, tuple)}
    shown = [(c, query.body.span) for c in query.body.projection or () if isinstance(c, Variable)]
    shown += template_variables(query.template)
    for e in sub_select_expressions(query.body):
        shown += [(v, query.body.span) for v in plain_variables(e)]
    columns = {c[1] for c in query.body.projection or () if isinstance(c, tuple)}
    for variable, span in sorted(shown, key=lambda pair: str(pair[0])):
        if variable not in bound | named | columns:
            yield unbound(variable, span, bound, text)


def _every(query: RspQuery, text: str) -> Iterator[Finding]:
    where = query.body.where
    windows = [(w.pattern, "WINDOW") for w in nested_elements(where) if isinstance(w, WindowPattern)]
    patterns = [(where, "WHERE"), *windows, *((event.pattern, event.name) for event in query.events)]
    inside = [e for pattern in (where, *(e.pattern for e in query.events)) for e in pattern_expressions(pattern)]
    listed = [x for e in sub_select_expressions(query.body) for x in subexpressions(e)]
    yield from check_every(patterns, [*inside, *listed], text, foreign=(Prev, MatchFunction))


# --- blocks ------------------------------------------------------------------------------------------


_NOTHING: frozenset[Variable] = frozenset()


@dataclass(frozen=True, slots=True)
class _Around:
    """The surroundings of a group. `seen`: variables that its conditions see beside its own; `deep`: those that are
    seen at any depth below an EXISTS; `outside`: those bound outside of the WINDOW block, `within` it or not yet."""

    seen: frozenset[Variable] = _NOTHING
    deep: frozenset[Variable] = _NOTHING
    outside: frozenset[Variable] = _NOTHING
    within: bool = False


def check_blocks(query: RspQuery, text: str) -> Iterator[Finding]:
    """Of all WINDOW blocks of WHERE."""
    inline = query.body.values.variables if query.body.values is not None else ()
    yield from _group(query.body.where, _Around(outside=frozenset(inline)), text)


def _group(group: Group, around: _Around, text: str) -> Iterator[Finding]:
    here = around.seen | around.deep | frozenset(visible_variables(group))
    for number, element in enumerate(group.elements):
        below = replace(around, seen=_NOTHING)
        if not around.within:
            beside = Group((*group.elements[:number], *group.elements[number + 1 :]))
            below = replace(below, outside=around.outside | frozenset(visible_variables(beside)))
        match element:
            case Filter(condition) | Bind(condition):
                if around.within:
                    yield from _unseen(element, (plain_variables(condition) - here) & around.outside, text)
                below = replace(below, deep=here)
            case OptionalPattern():
                below = replace(below, seen=here)
            case WindowPattern():
                below = replace(below, within=True)
        for inner in inner_groups(element):
            yield from _group(inner, below, text)


def _unseen(element: PatternElement, variables: frozenset[Variable], text: str) -> Iterator[Finding]:
    word = "FILTER" if isinstance(element, Filter) else "BIND"
    for v in sorted(variables, key=str):
        message = f"?{v.value} is bound outside this WINDOW block, where {word} does not see it"
        hint = f"put it after the block: WINDOW ... {{ ... }} {word}(...)"
        yield error("scope", message, at_variable(v, element.span, text), hint)


check_rsp = in_turn(
    _windows,
    _clauses,
    _events,
    _where,
    _patterns,
    check_blocks,
    _output,
    _every,
)
"""All of them."""
