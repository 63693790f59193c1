"""Property paths over windows: joins, unions, and the pairs that steps connect (operators.md, 4.1 and 5.1).

Sequences and inverses are triple patterns with blank nodes between them, so the leaf joins them with all else. What
repeats is a set of pairs: of one step or more from `Reach`, of none each node of the graph and the path's own constant
ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from typing import Final

from pyoxigraph import BlankNode, NamedNode, Variable

from oxiseq.engine.flow.relations import Column, Relation, Relations
from oxiseq.engine.flow.sparql.asking import Asking
from oxiseq.engine.flow.sparql.grounds import EachEvent, EachGraph, Ground, Merge
from oxiseq.engine.flow.sparql.leaves import OWN, Conjunction, Leaves, connected
from oxiseq.grammar.algebra import (
    Call,
    Path,
    PathAlternative,
    PathInverse,
    PathNegated,
    PathPattern,
    PathRepeat,
    PathSequence,
    TermOrVariable,
    TriplePattern,
)

_FROM: Final = Variable(f"{OWN}from")
_TO: Final = Variable(f"{OWN}to")
_STEP: Final = Variable(f"{OWN}step")
_END: Final = Variable(f"{OWN}end")


class Paths:
    """Paths on some graphs as one."""

    def __init__(self, relations: Relations, leaves: Leaves, asking: Asking) -> None:
        self._relations = relations
        self._asking = asking
        self._leaves = leaves
        self._numbers = count(1)

    def steps(self, whole: PathPattern) -> Iterator[TriplePattern | PathPattern]:
        """Triple patterns for a sequence or an inverse of IRIs, with blank nodes of its own between them, and
        the rest."""
        s, path, o = whole.subject, whole.path, whole.object
        match path:
            case NamedNode():
                yield TriplePattern(s, path, o)
            case PathInverse(inner):
                yield from self.steps(PathPattern(o, inner, s))
            case PathSequence(paths):
                ends = [s, *(BlankNode(f"{OWN}{next(self._numbers)}") for _ in paths[1:]), o]
                for number, each in enumerate(paths):
                    yield from self.steps(PathPattern(ends[number], each, ends[number + 1]))
            case _:
                yield whole

    def pairs(self, whole: PathPattern, ground: Ground) -> Relation:
        """The solutions of a path: a column for each end that is no constant, contexts first."""
        s, o = whole.subject, whole.object
        match whole.path:
            case NamedNode() | PathInverse() | PathSequence():
                return self._joined(list(self.steps(whole)), s, o, ground)
            case PathAlternative(paths):
                return self._relations.union([self.pairs(PathPattern(s, each, o), ground) for each in paths])
            case PathNegated(paths):
                return self._negated(paths, s, o, ground)
            case PathRepeat(inner, mark):
                return self._between(self._repeated(inner, mark, s, o, ground), s, o)

    def _joined(
        self, steps: Sequence[TriplePattern | PathPattern], s: TermOrVariable, o: TermOrVariable, ground: Ground
    ) -> Relation:
        plain = [step for step in steps if isinstance(step, TriplePattern)]
        if isinstance(ground, Merge) and len(ground.places) == 1 and plain:
            parts = self._leaves.joined(Conjunction([(step, ground.places[0]) for step in plain]))
        else:
            parts = [self._leaves.on(step, ground) for step in plain]
        parts += [self.pairs(step, ground) for step in steps if isinstance(step, PathPattern)]
        return self._between_ends(connected(self._relations, parts), _ends(s, o))

    def _between_ends(self, a: Relation, ends: Sequence[Column]) -> Relation:
        """These columns behind the contexts."""
        return self._relations.project(a, (*a.context, *ends))

    def _negated(
        self, paths: Sequence[NamedNode | PathInverse], s: TermOrVariable, o: TermOrVariable, ground: Ground
    ) -> Relation:
        forward = [each for each in paths if isinstance(each, NamedNode)]
        backward = [each.path for each in paths if isinstance(each, PathInverse) and isinstance(each.path, NamedNode)]
        parts = []
        for start, names, end in ((s, forward, o), (o, backward, s)):
            if names or (names is forward and not backward):
                every = self._leaves.on(TriplePattern(start, _STEP, end), ground)
                other = self._relations.filter(every, [Call("NOT IN", (_STEP, *names))] if names else [])
                parts.append(self._between_ends(other, _ends(s, o)))
        return self._relations.union(parts)

    def _repeated(self, inner: Path, mark: str, s: TermOrVariable, o: TermOrVariable, ground: Ground) -> Relation:
        """Pairs (from, to), each once; of no steps only those that the ends want."""
        once = self._relations.distinct(
            self._between_ends(self.pairs(PathPattern(_FROM, inner, _TO), ground), (_FROM, _TO))
        )
        some = once if mark == "?" else self._relations.reach(once)
        if mark == "+":
            return some
        return self._relations.distinct(self._relations.union([some, self._stays(s, o, ground)]))

    def _stays(self, s: TermOrVariable, o: TermOrVariable, ground: Ground) -> Relation:
        """Nodes, each with itself."""
        known = list[Relation]()
        if ends := [end for end in (s, o) if not isinstance(end, Variable | BlankNode)]:
            stays = self._relations.values((_FROM, _TO), [(end, end) for end in ends])
            if isinstance(ground, EachGraph | EachEvent):
                stays = self._relations.join(self._asking.graphs(ground), stays)
            if not self._relations.in_time:
                return stays
            known.append(stays)  # and whenever they occur
        triples = self._leaves.on(TriplePattern(_FROM, _STEP, _TO), ground)
        nodes = self._relations.union(
            [
                self._relations.renamed(self._between_ends(triples, (end,)), (*triples.context, _END))
                for end in (_FROM, _TO)
            ]
        )
        both = self._relations.copied(self._relations.distinct(nodes), [(_END, _TO)])
        return self._relations.union([*known, self._relations.renamed(both, (*both.context, _FROM, _TO))])

    def _between(self, pairs: Relation, s: TermOrVariable, o: TermOrVariable) -> Relation:
        """Pairs as the ends want them."""
        names: list[Column] = [*pairs.context]
        for place, end in ((_FROM, s), (_TO, o)):
            if isinstance(end, Variable | BlankNode):
                names.append(end)
            else:
                pairs = self._relations.join(pairs, self._relations.values((place,), [(end,)]))
                names.append(place)
        if s == o and isinstance(s, Variable | BlankNode):
            pairs = self._relations.filter(pairs, [Call("SAMETERM", (_FROM, _TO))])
            return self._relations.renamed(self._between_ends(pairs, (_FROM,)), (*pairs.context, s))
        return self._between_ends(self._relations.renamed(pairs, names), _ends(s, o))


def _ends(s: TermOrVariable, o: TermOrVariable) -> tuple[Variable | BlankNode, ...]:
    return tuple(dict.fromkeys(end for end in (s, o) if isinstance(end, Variable | BlankNode)))
