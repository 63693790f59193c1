"""CONSTRUCT rules of EP-SPARQL: which of them feed which, and in what order they are processed.

In the flow: rules → strata. A rule's closure (semantics.md 5) is a least fixpoint at each instant. What an
optional part, MINUS or EXISTS reads must be complete before it is read: it may come from rules of an earlier
stratum, or of earlier instants (the left side of a SEQ), but of no rule that waits for this one at the same instant.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from pyoxigraph import BlankNode, NamedNode, Variable

from oxiseq.grammar.algebra import (
    Bind,
    Construct,
    Exists,
    Expression,
    Filter,
    GraphPattern,
    Group,
    Minus,
    OptionalPattern,
    Path,
    PathAlternative,
    PathInverse,
    PathNegated,
    PathPattern,
    PathRepeat,
    PathSequence,
    PatternElement,
    SubSelect,
    TermOrVariable,
    TimedPattern,
    TimeOp,
    TriplePattern,
    Union,
)
from oxiseq.grammar.ep_algebra import EpQuery
from oxiseq.grammar.errors import QueryError
from oxiseq.grammar.records import dataclass
from oxiseq.grammar.scope import subexpressions

_Place: TypeAlias = TermOrVariable | None
"""None: anything."""


@dataclass(frozen=True, slots=True)
class Need:
    """A triple pattern that a pattern reads. `whole`: it must be complete before it is read; `past`: it is read
    only in what ended before the instant."""

    triple: tuple[_Place, _Place, _Place]
    whole: bool
    past: bool


@dataclass(frozen=True, slots=True)
class Stratum:
    """Rules (their numbers) that are processed together; `recursive`: some feed each other."""

    rules: tuple[int, ...]
    recursive: bool


def strata(rules: Sequence[EpQuery]) -> tuple[Stratum, ...]:
    """The strata in order. Raises QueryError where a rule waits for what it derives itself."""
    feeds = [[_strongest(rule, other) for other in rules] for rule in rules]
    reach = _closure([[need is not None for need in row] for row in feeds])
    count = range(len(rules))
    for i in count:
        for j in count:
            need = feeds[i][j]
            if need is not None and need.whole and not need.past and (reach[j][i] or i == j):
                raise _circular(rules[i])
    groups: list[tuple[int, ...]] = []
    for i in count:
        group = tuple(j for j in count if j == i or (reach[i][j] and reach[j][i]))
        if group not in groups:
            groups.append(group)
    ordered = sorted(groups, key=lambda g: sum(reach[g[0]]))  # what it needs, each of them needs less
    return tuple(Stratum(g, any(reach[i][i] for i in g)) for g in ordered)


def feeds_itself(rule: EpQuery) -> bool:
    """Whether it may derive, of what it has derived, more at the same instant."""
    made = rule.form.template if isinstance(rule.form, Construct) else ()
    return any(_unify(need, triple) for need in needs(rule.where) if not need.past for triple in made)


def _circular(rule: EpQuery) -> QueryError:
    return QueryError(
        "the rule reads at the same instant triples that it derives, perhaps through other rules",
        rule.where.span,
        rule.text,
        hint="move that pattern into the first operand of a SEQ, which reads the past",
        code="rules",
    )


def _closure(direct: list[list[bool]]) -> list[list[bool]]:
    reach = [list(row) for row in direct]
    for k in range(len(reach)):
        for row in reach:
            if row[k]:
                row[:] = [a or b for a, b in zip(row, reach[k], strict=True)]
    return reach


def _strongest(rule: EpQuery, other: EpQuery) -> Need | None:
    """How `rule` needs what `other` derives, in the way that binds most."""
    made = other.form.template if isinstance(other.form, Construct) else ()
    found = [n for n in needs(rule.where) if any(_unify(n, triple) for triple in made)]
    return max(found, key=lambda n: (n.whole and not n.past, n.whole), default=None)


def _unify(need: Need, triple: TriplePattern) -> bool:
    made = (triple.subject, triple.predicate, triple.object)
    return all(_open(a) or _open(b) or a == b for a, b in zip(need.triple, made, strict=True))


def _open(term: _Place) -> bool:
    return term is None or isinstance(term, Variable | BlankNode)


# --- what a pattern reads ---------------------------------------------------------------------------


def needs(pattern: Group, whole: bool = False, past: bool = False) -> Iterator[Need]:
    """The triple patterns that `pattern` reads of the stream."""
    for element in pattern.elements:
        yield from _needs(element, whole, past)


def _needs(element: PatternElement, whole: bool, past: bool) -> Iterator[Need]:
    match element:
        case TriplePattern(s, p, o):
            yield Need((s, p, o), whole, past)
        case PathPattern(_, path, _):
            for step in _steps(path):
                yield Need((None, step, None), whole, past)
        case OptionalPattern(inner) | Minus(inner):
            yield from needs(inner, True, past)
        case Group():
            yield from needs(element, whole, past)
        case SubSelect(_, inner):
            yield from needs(inner, whole, past)
        case Union(branches):
            for branch in branches:
                yield from needs(branch, whole, past)
        case TimedPattern(op, left, right):
            if op is TimeOp.OPTIONALSEQ:
                yield from _earlier(left, past)
            else:
                yield from _needs(left, whole, past or op is TimeOp.SEQ)
            yield from _needs(right, whole or op is TimeOp.EQUALSOPTIONAL, past)
        case Filter(condition) | Bind(condition):
            yield from _of_exists(condition, past)
        case GraphPattern():
            return  # the knowledge base
        case _:
            return


def _earlier(optional: PatternElement, past: bool) -> Iterator[Need]:
    """For an optional part that lies in the past; its own filters are evaluated on the pair, in the present."""
    for element in optional.elements if isinstance(optional, Group) else (optional,):
        yield from _needs(element, True, past or not isinstance(element, Filter))


def _of_exists(expression: Expression, past: bool) -> Iterator[Need]:
    for e in subexpressions(expression):
        if isinstance(e, Exists):
            yield from needs(e.pattern, True, past)


def _steps(path: Path) -> Iterator[NamedNode | None]:
    """The predicates of a path; None: all."""
    match path:
        case NamedNode():
            yield path
        case PathInverse(inner):
            yield from _steps(inner)
        case PathRepeat(inner, mark):
            yield from _steps(inner)
            if mark != "+":
                yield None  # a path of no step matches every node
        case PathSequence(paths) | PathAlternative(paths):
            for each in paths:
                yield from _steps(each)
        case PathNegated():
            yield None
