"""What is asked of the store for a GPM with GRAPH inside its pattern (matching.md, section 7).

Where it stands: GpmParts → **FallbackGpm** → fallback.py. A batch of events is asked in one query with
`GRAPH ?event { P }` where that is right, and event by event where it is not:

| in the pattern | asked |
|---|---|
| MINUS whose sides surely share a variable | by batch (`?event` counts as shared too, which then changes nothing) |
| MINUS whose sides cannot share one | it removes nothing and is dropped |
| MINUS whose sides perhaps share one | by event |
| OPTIONAL, MINUS or EXISTS in a group without a triple pattern | by event |
| sub-SELECT at any depth (a group, LIMIT or DISTINCT would mix events) | by event |
| a pattern that can match without a triple (VALUES, `p*`) | `GRAPH ?event {}` before it |
| everything else | by batch |
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from pyoxigraph import NamedNode, Variable

from oxiseq.engine.matching.conditions import Condition, condition
from oxiseq.grammar.algebra import (
    Bind,
    Call,
    Exists,
    Expression,
    Filter,
    FunctionCall,
    GraphPattern,
    Group,
    Minus,
    OptionalPattern,
    Path,
    PathAlternative,
    PathInverse,
    PathPattern,
    PathRepeat,
    PathSequence,
    PatternElement,
    SubSelect,
    TriplePattern,
    Union,
    Values,
)
from oxiseq.grammar.render import render_group
from oxiseq.grammar.scope import (
    GpmParts,
    certain_variables,
    holds_exists,
    nested_elements,
    subexpressions,
    visible_variables,
)


@dataclass(frozen=True, slots=True)
class FallbackGpm:
    """A GPM for the store. `columns` are all visible variables; answers are distinct over them."""

    request: int
    name: str
    written: Group
    """As it stands in the text."""
    pattern: Group
    """Without the MINUS elements that remove nothing."""
    columns: tuple[Variable, ...]
    keep: tuple[int, ...]
    """Columns that are handed on."""
    conditions: tuple[Condition, ...]
    by_event: bool
    anchored: bool
    """Every answer needs a triple of the event."""
    predicates: tuple[NamedNode, ...]
    """Predicates without which an event has no answer."""
    graphs: tuple[NamedNode, ...] | None
    """Graphs of the KB that the pattern names; None: all of them (GRAPH ?g)."""

    @property
    def in_place(self) -> bool:
        """Whether the pattern reads the KB."""
        return self.graphs is None or len(self.graphs) > 0

    def query(self, kb_graphs: tuple[NamedNode, ...], *, by_event: bool) -> str:
        """SELECT of the event (when asked by batch) and the columns. `kb_graphs`: what GRAPH ?g ranges over."""
        group = self.written if by_event else self.pattern
        group = _fix_graphs(group, kb_graphs) if self.graphs is None else group
        names = " ".join(f"?{v.value}" for v in self.columns)
        if by_event:
            return f"SELECT DISTINCT {names or '(1 AS ?oxiseq_one)'} WHERE {render_group(group)}"
        event = f"?{self.event_variable.value}"
        first = "" if self.anchored else f"GRAPH {event} {{}} "
        return f"SELECT DISTINCT {event} {names} WHERE {{ {first}GRAPH {event} {render_group(group)} }}"

    @property
    def event_variable(self) -> Variable:
        """A variable that the pattern does not use."""
        return Variable("oxiseq_event")


def compile_fallback(request: int, name: str, parts: GpmParts, keep: tuple[Variable, ...]) -> FallbackGpm:
    """Decide how the pattern is asked."""
    pattern, exact = drop_idle_minus(parts.pattern)
    elements = list(nested_elements(pattern))
    named = [e.name for e in elements if isinstance(e, GraphPattern)]
    columns = visible_variables(parts.pattern)
    return FallbackGpm(
        request=request,
        name=name,
        written=parts.pattern,
        pattern=pattern,
        columns=columns,
        keep=tuple(columns.index(v) for v in keep),
        conditions=tuple(condition(e) for e in parts.filters),
        by_event=not exact
        or any(isinstance(e, SubSelect) for e in elements)
        or any(_needs_its_event(g) for g in _groups(pattern)),
        anchored=is_anchored(pattern),
        predicates=tuple(dict.fromkeys(_mandatory(pattern))),
        graphs=None
        if any(isinstance(n, Variable) for n in named)
        else tuple(dict.fromkeys(n for n in named if isinstance(n, NamedNode))),
    )


def drop_idle_minus(group: Group) -> tuple[Group, bool]:
    """Without the MINUS elements that remove nothing; False when one is left that a batch would get wrong."""
    kept: list[PatternElement] = []
    exact = True
    for element in group.elements:
        if isinstance(element, Minus):
            left = Group(tuple(kept))
            if not set(visible_variables(left)) & set(visible_variables(element.pattern)):
                continue
            exact = exact and bool(certain_variables(left) & certain_variables(element.pattern))
        inner, fine = _inside(element)
        kept.append(inner)
        exact = exact and fine
    return Group(tuple(kept), span=group.span), exact


def _inside(element: PatternElement) -> tuple[PatternElement, bool]:
    """`drop_idle_minus` within an element."""
    match element:
        case Group():
            return drop_idle_minus(element)
        case OptionalPattern(pattern) | Minus(pattern) | GraphPattern(_, pattern):
            inner, exact = drop_idle_minus(pattern)
            return replace(element, pattern=inner), exact
        case Union(branches):
            done = [drop_idle_minus(b) for b in branches]
            return replace(element, branches=tuple(b for b, _ in done)), all(fine for _, fine in done)
        case Filter(condition):
            found, exact = _inside_expression(condition)
            return replace(element, condition=found), exact
        case Bind(expression):
            found, exact = _inside_expression(expression)
            return replace(element, expression=found), exact
        case _:  # a sub-SELECT is asked by event as it stands
            return element, True


def _inside_expression(e: Expression) -> tuple[Expression, bool]:
    """EXISTS sees the outer variables, also inside MINUS (Oxigraph joins them in): it is left as it stands."""
    match e:
        case Call(_, args) | FunctionCall(_, args):
            return e, all(_inside_expression(arg)[1] for arg in args)
        case Exists(pattern):
            inner, exact = drop_idle_minus(pattern)
            return e, exact and inner == pattern
        case _:
            return e, True


def _needs_its_event(group: Group) -> bool:
    """OPTIONAL, MINUS or EXISTS beside nothing that says of which event: they would look into all of them.

    OPTIONAL, MINUS and BIND see what stands before them, a FILTER the whole group.
    """
    anchored, whole = False, is_anchored(group)
    for element in group.elements:
        match element:
            case OptionalPattern() | Minus() if not anchored:
                return True
            case Bind(expression) if not anchored and holds_exists(expression):
                return True
            case Filter(condition) if not whole and holds_exists(condition):
                return True
        anchored = anchored or _anchors(element)
    return False


def _groups(group: Group) -> Iterator[Group]:
    """The group and all below it, those of EXISTS too."""
    yield group
    for element in group.elements:
        match element:
            case Group():
                yield from _groups(element)
            case OptionalPattern(inner) | Minus(inner) | GraphPattern(_, inner) | SubSelect(_, inner):
                yield from _groups(inner)
            case Union(branches):
                for branch in branches:
                    yield from _groups(branch)
            case Filter(condition) | Bind(condition):
                for e in subexpressions(condition):
                    if isinstance(e, Exists):
                        yield from _groups(e.pattern)
            case _:
                pass


def is_anchored(group: Group) -> bool:
    """Whether every solution needs a triple of the event's graph."""
    return any(_anchors(element) for element in group.elements)


def _anchors(element: PatternElement) -> bool:
    match element:
        case TriplePattern():
            return True
        case PathPattern(_, path, _):
            return not _nullable(path)
        case Group():
            return is_anchored(element)
        case Union(branches):
            return all(is_anchored(b) for b in branches)
        case _:
            return False


def _nullable(path: Path) -> bool:
    """Whether the path can have length zero."""
    match path:
        case PathRepeat(inner, mark):
            return mark in "*?" or _nullable(inner)
        case PathInverse(inner):
            return _nullable(inner)
        case PathSequence(paths):
            return all(_nullable(p) for p in paths)
        case PathAlternative(paths):
            return any(_nullable(p) for p in paths)
        case _:
            return False


def _mandatory(group: Group) -> list[NamedNode]:
    found: list[NamedNode] = []
    for element in group.elements:
        if isinstance(element, TriplePattern) and isinstance(element.predicate, NamedNode):
            found.append(element.predicate)
        elif isinstance(element, Group):
            found += _mandatory(element)
    return found


def _fix_graphs(group: Group, kb_graphs: tuple[NamedNode, ...]) -> Group:
    """Let GRAPH ?g range over the KB's graphs, not over those of the events."""
    return Group(tuple(_fix_element(e, kb_graphs) for e in group.elements), span=group.span)


def _fix_element(element: PatternElement, kb_graphs: tuple[NamedNode, ...]) -> PatternElement:
    match element:
        case GraphPattern(name, pattern):
            fixed = replace(element, pattern=_fix_graphs(pattern, kb_graphs))
            if isinstance(name, Variable):
                return Group((Values((name,), tuple((g,) for g in kb_graphs)), fixed))
            return fixed
        case Group():
            return _fix_graphs(element, kb_graphs)
        case OptionalPattern(pattern) | Minus(pattern):
            return replace(element, pattern=_fix_graphs(pattern, kb_graphs))
        case SubSelect(_, where):
            return replace(element, where=_fix_graphs(where, kb_graphs))
        case Union(branches):
            return replace(element, branches=tuple(_fix_graphs(b, kb_graphs) for b in branches))
        case Filter(condition):
            return replace(element, condition=_fix_expression(condition, kb_graphs))
        case Bind(expression):
            return replace(element, expression=_fix_expression(expression, kb_graphs))
        case _:
            return element


def _fix_expression(e: Expression, kb_graphs: tuple[NamedNode, ...]) -> Expression:
    match e:
        case Call(_, args) | FunctionCall(_, args):
            return replace(e, args=tuple(_fix_expression(arg, kb_graphs) for arg in args))
        case Exists(pattern):
            return replace(e, pattern=_fix_graphs(pattern, kb_graphs))
        case _:
            return e
