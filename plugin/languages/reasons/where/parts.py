"""WHERE as ever larger parts: each with one element more than the one before, so that it shows where rows end.

Elements keep the order of the text, but for adjacent triple patterns: each one that shares a variable with the part
before comes first, so that no part is a product of unconnected patterns where the query has none. FILTERs come last in
their group, a conjunct at a time, as SPARQL means them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from pyoxigraph import Variable

from oxiseq.grammar.algebra import (
    EventPattern,
    Filter,
    FirstOf,
    Following,
    GraphPattern,
    Group,
    LastOf,
    MatchPattern,
    PathPattern,
    PatternElement,
    TimedPattern,
    TimeOp,
    TriplePattern,
    WindowPattern,
)
from oxiseq.grammar.records import dataclass
from oxiseq.grammar.render_sparql import SparqlWriter
from oxiseq.grammar.rsp_algebra import event_names
from oxiseq.grammar.scope import conjuncts, inner_groups, visible_variables

Build: TypeAlias = Callable[[tuple[PatternElement, ...]], Group]
"""The part with other elements in the place of the new one."""
Holder: TypeAlias = GraphPattern | WindowPattern | None


@dataclass(frozen=True, slots=True)
class Part:
    """A part. `added`: its new element, `holder`: its GRAPH or WINDOW; `unordered`: the same part, its last operator of
    time (`op`) left out; `before`: the variables of the part before."""

    added: PatternElement
    holder: Holder
    build: Build
    unordered: Group | None = None
    op: str = ""
    text: str = ""
    before: frozenset[Variable] = frozenset()

    @property
    def where(self) -> Group:
        """The part itself."""
        return self.build((self.added,))


def parts(
    where: Group, prefixes: Mapping[str, str], event_variables: Mapping[str, Sequence[Variable]] = {}
) -> list[Part]:
    """All parts, the last is the whole. `event_variables`: what the EVENT definitions bind, for MATCH."""
    writer, found = SparqlWriter(dict(prefixes)), []
    before: frozenset[Variable] = frozenset()
    for grown in _growing(where, frozenset(), event_variables):
        found.append(replace(grown, text=_text(grown, writer), before=before))
        before = frozenset(visible_variables(grown.where))
    return found


def _text(grown: Part, writer: SparqlWriter) -> str:
    element = grown.added
    shown = replace(grown.holder, pattern=Group((element,))) if grown.holder is not None else element
    text = " ".join(writer.element(shown, "").split()).removesuffix(" .").replace(" . }", " }")
    return f"{grown.op} {{ {text} }}" if grown.op else text


def _growing(group: Group, bound: frozenset[Variable], events: Mapping[str, Sequence[Variable]]) -> Iterator[Part]:
    done: tuple[PatternElement, ...] = ()
    plain = [e for e in group.elements if not isinstance(e, Filter)]
    for element in _connected(plain, bound):
        known = bound | frozenset(visible_variables(Group(done)))
        for grown in _grown(element, known, events):
            yield replace(
                grown,
                build=_after(done, grown.build),
                unordered=None if grown.unordered is None else Group((*done, *grown.unordered.elements)),
            )
        done = (*done, element)
    for condition in (c for e in group.elements if isinstance(e, Filter) for c in conjuncts(e.condition)):
        yield Part(Filter(condition), None, _after(done, Group))
        done = (*done, Filter(condition))


def _after(done: tuple[PatternElement, ...], build: Build) -> Build:
    return lambda elements: Group((*done, *build(elements).elements))


def _connected(elements: Sequence[PatternElement], bound: frozenset[Variable]) -> Iterator[PatternElement]:
    """Adjacent triple patterns in an order that joins; all else keeps its place."""
    waiting: list[PatternElement] = []
    for element in (*elements, None):
        if isinstance(element, TriplePattern | PathPattern):
            waiting.append(element)
            continue
        while waiting:
            nearest = next((e for e in waiting if bound & {*visible_variables(e)}), waiting[0])
            waiting.remove(nearest)
            bound |= frozenset(visible_variables(nearest))
            yield nearest
        if element is not None:
            bound |= frozenset(visible_variables(element))
            yield element


def _grown(
    element: PatternElement, bound: frozenset[Variable], events: Mapping[str, Sequence[Variable]]
) -> Iterator[Part]:
    match element:
        case WindowPattern() | GraphPattern():
            for inner in _growing(element.pattern, bound, events):
                yield replace(inner, holder=inner.holder or element, build=_inside(element, inner.build))
        case Group():
            for inner in _growing(element, bound, events):
                yield replace(inner, build=_nested(inner.build))
        case MatchPattern():
            yield from _matches(element, events)
        case TimedPattern():
            yield from _timed(element, bound, events)
        case _:
            yield Part(element, None, Group)


def _inside(holder: GraphPattern | WindowPattern, build: Build) -> Build:
    def built(elements: tuple[PatternElement, ...]) -> Group:
        inner = build(elements)
        return Group((replace(holder, pattern=inner),)) if inner.elements else Group(())

    return built


def _nested(build: Build) -> Build:
    def built(elements: tuple[PatternElement, ...]) -> Group:
        inner = build(elements)
        return Group((inner,)) if inner.elements else inner

    return built


def asked_alone(where: Group, without: tuple[type, ...] = ()) -> list[tuple[Holder, PatternElement]]:
    """(WINDOW, GRAPH or nothing, each triple pattern and path in it), each once; those of EXISTS, too, but none in what
    is of the kinds `without`."""
    return list(dict.fromkeys(_standing(where, None, without)))


def _standing(group: Group, holder: Holder, without: tuple[type, ...]) -> Iterator[tuple[Holder, PatternElement]]:
    for element in group.elements:
        if isinstance(element, TriplePattern | PathPattern):
            yield holder, element
        inside = element if isinstance(element, WindowPattern | GraphPattern) else holder
        for inner in () if isinstance(element, without) else inner_groups(element):
            yield from _standing(inner, inside, without)


# --- event patterns and operators of time ---------------------------------------------------------


def _matches(element: MatchPattern, events: Mapping[str, Sequence[Variable]]) -> Iterator[Part]:
    def match(pattern: EventPattern) -> MatchPattern:
        names = event_names(pattern)
        return MatchPattern(pattern, tuple(dict.fromkeys(v for n in names for v in events[n.name])))

    for pattern in _beginnings(element.events):
        joined = Group((match(pattern.first), match(pattern.second))) if isinstance(pattern, Following) else None
        yield Part(match(pattern), None, Group, joined)


def _beginnings(pattern: EventPattern) -> Iterator[EventPattern]:
    match pattern:
        case FirstOf(inner) | LastOf(inner):
            yield from _beginnings(inner)
        case Following(first, _):
            yield from _beginnings(first)
    yield pattern


def _timed(
    element: TimedPattern, bound: frozenset[Variable], events: Mapping[str, Sequence[Variable]]
) -> Iterator[Part]:
    """The side that must be there, then the other."""
    left, right = (side if isinstance(side, Group) else Group((side,)) for side in (element.left, element.right))
    backwards = element.op is TimeOp.OPTIONALSEQ
    first, second = (right, left) if backwards else (left, right)
    yield from _growing(first, bound, events)
    for grown in _growing(second, bound | frozenset(visible_variables(first)), events):

        def built(elements: tuple[PatternElement, ...], build: Build = grown.build) -> Group:
            other = build(elements)
            if not other.elements:
                return first
            pair = (other, right) if backwards else (left, other)
            return Group((TimedPattern(element.op, *pair),))

        together = Group((first, grown.build((grown.added,))))
        yield replace(grown, build=built, unordered=together, op=grown.op or element.op.value)
