"""Which parts of an EP-SPARQL pattern keep all that has come: those that no bound on getDURATION() reaches.

A bound reaches all parts of a solution of its group, as the engine takes it: a condition of its own, or joined by &&.
It does not reach what may be missing: OPTIONAL, OPTIONALSEQ and EXISTS have bounds of their own; MINUS, and EXISTS
without conditions, keep each combination of what they compare once. EQUALS and EQUALSOPTIONAL keep an instant.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyoxigraph import Literal

from oxiseq.grammar.algebra import (
    Bind,
    Call,
    Exists,
    Expression,
    Filter,
    GraphPattern,
    Group,
    MatchFunction,
    Minus,
    OptionalPattern,
    Path,
    PathPattern,
    PathRepeat,
    PathSequence,
    PatternElement,
    Span,
    SubSelect,
    TimedPattern,
    TimeOp,
    TriplePattern,
    Union,
)
from oxiseq.grammar.parts import parts
from oxiseq.grammar.scope import conjuncts, inner_groups, subexpressions

_SHORTER = {"<", "<=", "="}
_LONGER = {">", ">=", "="}


def unbounded(pattern: Group, bounded: bool = False) -> Iterator[Span]:
    """The places of such parts. `bounded`: a bound outside reaches the group."""
    bounded = bounded or has_bound(pattern)
    joined = [e for e in pattern.elements if not isinstance(e, Filter | Bind | OptionalPattern | Minus)]
    if not bounded and sum(map(reads_stream, joined)) > 1:
        yield pattern.span
    for element in pattern.elements:
        yield from _of(element, bounded)


def reads_stream(element: PatternElement) -> bool:
    """Whether it has triple patterns that the stream may answer."""
    if isinstance(element, TriplePattern | PathPattern):
        return True
    groups = () if isinstance(element, GraphPattern) else inner_groups(element)
    return any(reads_stream(inner) for group in groups for inner in group.elements)


def has_bound(pattern: PatternElement) -> bool:
    """Whether a group's own conditions bound the length of its solutions."""
    elements = pattern.elements if isinstance(pattern, Group) else ()
    return any(_bounds(c) for e in elements if isinstance(e, Filter) for c in conjuncts(e.condition))


def _bounds(condition: Expression) -> bool:
    match condition:
        case Call(op, (MatchFunction("getDURATION"), Literal())):
            return op in _SHORTER
        case Call(op, (Literal(), MatchFunction("getDURATION"))):
            return op in _LONGER
    return False


def _of(element: PatternElement, bounded: bool) -> Iterator[Span]:
    match element:
        case Group():
            yield from unbounded(element, bounded)
        case Union(branches):
            for branch in branches:
                yield from unbounded(branch, bounded)
        case SubSelect(_, where):
            yield from unbounded(where, bounded)
        case TimedPattern():
            yield from _in_time(element, bounded)
        case OptionalPattern(inner):
            if reads_stream(inner) and not has_bound(inner):
                yield element.span
            yield from unbounded(inner)
        case Minus(inner):
            yield from unbounded(inner)
        case PathPattern(_, path) if not bounded and _has_steps(path):
            yield element.span
        case Filter(condition):
            for e in subexpressions(condition):
                if isinstance(e, Exists):
                    if any(isinstance(inner, Filter) for inner in e.pattern.elements) and not has_bound(e.pattern):
                        yield e.span
                    yield from unbounded(e.pattern)


def _in_time(element: TimedPattern, bounded: bool) -> Iterator[Span]:
    earlier = element.op is TimeOp.OPTIONALSEQ
    if (element.op is TimeOp.SEQ and not bounded) or (earlier and not has_bound(element.left)):
        yield element.span
    yield from _of(element.left, bounded and not earlier)
    yield from _of(element.right, bounded)


def _has_steps(path: Path) -> bool:
    """Whether it may take more than one triple."""
    return any(parts(path, PathSequence)) or any(each.mark != "?" for each in parts(path, PathRepeat))
