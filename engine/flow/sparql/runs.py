"""The joins of a group, up to the next OPTIONAL, MINUS or BIND.

In the flow: elements → triple patterns by graph, questions to the knowledge base, other relations → **one
relation**. Triple patterns of the group and of plain WINDOW and GRAPH blocks in it become one leaf. What the knowledge
base answers as a whole is queried with all that is joined with it there: a remote one distinguishes blank nodes in one
answer only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from typing import Final, TypeAlias

from pyoxigraph import BlankNode, NamedNode, Variable

from oxiseq.engine.expressions.functions import is_pure
from oxiseq.engine.flow import plan as p
from oxiseq.engine.flow.relations import Relation, Relations
from oxiseq.engine.flow.sparql.asking import Asking
from oxiseq.engine.flow.sparql.grounds import EachEvent, EachGraph, Ground, Merge, Scope
from oxiseq.engine.flow.sparql.leaves import Conjunction, Key, Leaves, Where, connected, is_own, keys_of
from oxiseq.engine.flow.sparql.paths import Paths
from oxiseq.grammar.algebra import (
    Expression,
    Filter,
    GraphPattern,
    Group,
    PathInverse,
    PathPattern,
    PathSequence,
    PatternElement,
    TriplePattern,
    WindowPattern,
)
from oxiseq.grammar.parts import components
from oxiseq.grammar.records import dataclass
from oxiseq.grammar.scope import (
    certain_variables,
    conjuncts,
    holds_exists,
    match_parts,
    plain_variables,
    visible_variables,
)

Named: TypeAlias = Callable[[GraphPattern | WindowPattern], Ground]
"""The graph that a block with an IRI is about."""
Compile: TypeAlias = Callable[[PatternElement, Scope], Relation]


@dataclass(frozen=True, slots=True)
class _Known:
    """An element that is on the knowledge base. `triples`: it is a triple pattern, of which a leaf can be made."""

    element: PatternElement
    ground: Ground
    triples: bool

    @property
    def keys(self) -> frozenset[Key]:
        """Its variables and blank nodes."""
        own = self.element
        ends = (
            [t for t in (own.subject, own.object) if isinstance(t, BlankNode)]
            if isinstance(own, TriplePattern | PathPattern)
            else []
        )
        return frozenset([*visible_variables(own), *ends])


@dataclass(slots=True)
class _Parts:
    """The parts of a run found so far."""

    leaf: Conjunction = field(default_factory=Conjunction)
    known: list[_Known] = field(default_factory=list)
    others: list[Callable[[], Relation]] = field(default_factory=list)
    filters: list[Expression] = field(default_factory=list)


class Runs:
    """Joins of neighbours."""

    def __init__(
        self,
        relations: Relations,
        asking: Asking,
        leaves: Leaves,
        named: Named,
        compile_other: Compile,
        *,
        followed: bool,
        opens: bool,
    ) -> None:
        """followed: each named graph of the store is a source as others are; opens: patterns in GRAPH and WINDOW are
        joined with those around them."""
        self._relations = relations
        self._asking = asking
        self._leaves = leaves
        self._paths = Paths(relations, leaves, asking)
        self._followed, self._opens = followed, opens
        self._named = named
        self._compile = compile_other

    def joined(
        self, first: Sequence[Relation], elements: Sequence[PatternElement], pending: list[Expression], scope: Scope
    ) -> Relation:
        """Some relations and elements joined. Takes those of the pending conditions that can be decided already."""
        found = _Parts()
        for element in elements:
            self._sort(element, scope, found)
        self._settle(found)
        pending += found.filters
        leaf = self._leaf(found.leaf, pending, alone=not (first or found.others))
        parts = [*first, *leaf, *(self._filtered(make(), pending) for make in found.others)]
        whole = self._filtered(connected(self._relations, parts), pending)
        return self._relations.without_columns(whole, [c for c in whole.columns if is_own(c)])

    def _filtered(self, a: Relation, pending: list[Expression]) -> Relation:
        """The conditions whose variables a relation surely binds hold of its rows, whatever they are joined with."""
        now = [c for c in pending if decided(c, frozenset(v for v in a.certain if isinstance(v, Variable)))]
        pending[:] = [c for c in pending if c not in now]
        return self._relations.filter(a, now)

    # --- sorting the elements -----------------------------------------------------------------------

    def _sort(self, element: PatternElement, scope: Scope, found: _Parts) -> None:
        match element:
            case TriplePattern():
                self._triple(element, scope.ground, found)
            case PathPattern():
                self._path(element, scope, found)
            case WindowPattern(NamedNode(), inner) | GraphPattern(NamedNode(), inner) if self._opens and _is_plain(
                inner
            ):
                assert isinstance(element, WindowPattern | GraphPattern)
                self._block(inner, scope.on(self._named(element)), found)
            case Group() if _is_plain(element):
                self._block(element, scope, found)
            case _ if self._asking.may((element,), scope):
                found.known.append(_Known(element, scope.ground, False))
            case _:
                found.others.append(lambda: self._compile(element, scope))

    def _block(self, inner: Group, scope: Scope, found: _Parts) -> None:
        for element in inner.elements:
            if isinstance(element, Filter):
                found.filters.extend(conjuncts(element.condition))
            else:
                self._sort(element, scope, found)

    def _triple(self, pattern: TriplePattern, ground: Ground, found: _Parts) -> None:
        match ground:
            case EachEvent():
                found.leaf.patterns.append((pattern, ground))
            case EachGraph() if self._followed:
                found.leaf.patterns.append((pattern, ground))
            case EachGraph():
                found.known.append(_Known(pattern, ground, False))
            case Merge(places) if len(places) == 1:
                if isinstance(places[0], p.WindowPlace):
                    found.leaf.patterns.append((pattern, places[0]))
                else:
                    found.known.append(_Known(pattern, ground, True))
            case Merge():
                found.others.append(lambda: self._leaves.on(pattern, ground))

    def _path(self, pattern: PathPattern, scope: Scope, found: _Parts) -> None:
        ground = scope.ground
        for step in self._paths.steps(pattern):
            if isinstance(step, TriplePattern):
                self._triple(step, ground, found)
            elif self._asking.may((step,), scope):
                found.known.append(_Known(step, ground, False))
            else:
                found.others.append(_later(self._paths, step, ground))

    def _settle(self, found: _Parts) -> None:
        """Patterns on the knowledge base go into the leaf; where these are not triple patterns alone,
        into a question."""
        for together in _connected(found.known):
            if all(each.triples for each in together):
                for each in together:
                    assert isinstance(each.element, TriplePattern) and isinstance(each.ground, Merge)
                    found.leaf.patterns.append((each.element, each.ground.places[0]))
                continue
            found.others.extend(_asked(self._asking, ground, mine) for ground, mine in _questions(together))

    def _leaf(self, whole: Conjunction, pending: list[Expression], *, alone: bool) -> list[Relation]:
        """Leaves for triple patterns: one if nothing else is joined, else one for those that share variables."""
        found = []
        for patterns in [whole.patterns] if alone and whole.patterns else connected_patterns(whole.patterns):
            part = Conjunction(patterns)
            keys = frozenset(key for key in part.keys if isinstance(key, Variable))
            part.filters = [c for c in pending if decided(c, keys)]
            pending[:] = [c for c in pending if c not in part.filters]
            found += self._leaves.joined(part)
        return found


def decided(condition: Expression, known: frozenset[Variable]) -> bool:
    """Whether a condition is the same of all rows that agree on these variables, which they bind."""
    fixed = is_pure(condition) and not holds_exists(condition) and not match_parts(condition)
    return fixed and plain_variables(condition) <= known


def _is_plain(group: Group) -> bool:
    """Whether a block is triple patterns and conditions on their variables: it is joined with its neighbours."""
    known = certain_variables(group)
    return any(not isinstance(e, Filter) for e in group.elements) and all(
        isinstance(e, TriplePattern)
        or (isinstance(e, PathPattern) and _is_sequence(e.path))
        or (isinstance(e, Filter) and decided(e.condition, known))
        or (isinstance(e, Group) and _is_plain(e))
        or (isinstance(e, WindowPattern | GraphPattern) and isinstance(e.name, NamedNode) and _is_plain(e.pattern))
        for e in group.elements
    )


def _is_sequence(path: object) -> bool:
    match path:
        case NamedNode():
            return True
        case PathInverse(inner):
            return _is_sequence(inner)
        case PathSequence(paths):
            return all(map(_is_sequence, paths))
        case _:
            return False


def _later(paths: Paths, step: PathPattern, ground: Ground) -> Callable[[], Relation]:
    return lambda: paths.pairs(step, ground)


def _asked(asking: Asking, ground: Ground, mine: Sequence[PatternElement]) -> Callable[[], Relation]:
    return lambda: asking.asked(mine, ground)


_KB: Final = Merge((p.GraphPlace(None),))


def _questions(together: Sequence[_Known]) -> Iterator[tuple[Ground, list[PatternElement]]]:
    """What one query covers: all patterns on single graphs, each in its own graph; patterns on each graph
    separately."""
    each = [known for known in together if isinstance(known.ground, EachGraph)]
    if each:
        yield each[0].ground, [known.element for known in each]
    by_ground: dict[Merge, list[PatternElement]] = {}
    for known in together:
        if not isinstance(known.ground, EachGraph):
            ground = known.ground if isinstance(known.ground, Merge) else Merge(())  # events are not queried
            by_ground.setdefault(ground, []).append(known.element)
    if len(by_ground) == 1:
        ((ground, elements),) = by_ground.items()
        yield ground, elements
    elif by_ground:
        yield _KB, [in_ground(ground, elements) for ground, elements in by_ground.items()]


def in_ground(ground: Merge, elements: Sequence[PatternElement]) -> PatternElement:
    """Elements in the graph that they are about."""
    group = Group(tuple(elements))
    named = [place.name for place in ground.places if isinstance(place, p.GraphPlace) and place.name is not None]
    return GraphPattern(named[0], group) if named else group


def _connected(known: Sequence[_Known]) -> list[list[_Known]]:
    """Elements that share variables, directly or by way of others."""
    return components(known, lambda each: each.keys)


def connected_patterns(patterns: Sequence[tuple[TriplePattern, Where]]) -> list[list[tuple[TriplePattern, Where]]]:
    """Triple patterns that share variables or blank nodes, directly or by way of others."""
    return components(patterns, lambda each: frozenset(keys_of(each[0])))
