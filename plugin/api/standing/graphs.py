"""The graph of a CONSTRUCT query, kept triple by triple: how often each is made."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b

from pyoxigraph import BlankNode, NamedNode, Triple, Variable

from oxiseq.engine.terms.texts import Term
from oxiseq.grammar.algebra import TermOrVariable, TriplePattern

Solution = tuple[Term | None, ...]


class Constructed:
    """template: its variables are at `places` of solutions. Blank nodes of the template are new for each solution,
    and the same as long as that is there: their labels are made of it."""

    def __init__(self, template: Sequence[TriplePattern], places: Sequence[tuple[str, int]]) -> None:
        self._template = template
        self._places = {Variable(name): place for name, place in places}
        terms = (t for each in template for t in (each.subject, each.predicate, each.object))
        self._blank = any(isinstance(t, BlankNode) for t in terms)
        self._made: dict[Triple, int] = {}
        self._solutions: dict[Solution, int] = {}
        """How often each is there, where that makes other blank nodes."""

    @property
    def triples(self) -> list[Triple]:
        """The graph."""
        return [*self._made]

    def take(self, solutions: Iterable[tuple[Solution, int]]) -> list[tuple[Triple, int]]:
        """Solutions that come and go: the triples that come (1) and go (-1) with them."""
        before: dict[Triple, bool] = {}
        for solution, weight in solutions:
            for triple, count in self._of(solution, weight):
                known = self._made.get(triple, 0)
                before.setdefault(triple, known > 0)
                if known + count:
                    self._made[triple] = known + count
                else:
                    del self._made[triple]
        now = ((triple, self._made.get(triple, 0) > 0) for triple in before)
        return [(triple, 1 if is_there else -1) for triple, is_there in now if is_there != before[triple]]

    def _of(self, solution: Solution, weight: int) -> Iterable[tuple[Triple, int]]:
        if not self._blank:
            return [(triple, weight) for triple in self._instance(solution, 0)]
        known = self._solutions.get(solution, 0)
        self._solutions[solution] = known + weight
        if not known + weight:
            del self._solutions[solution]
        sign = 1 if weight > 0 else -1
        copies = range(known, known + weight) if weight > 0 else range(known + weight, known)
        return [(triple, sign) for copy in copies for triple in self._instance(solution, copy)]

    def _instance(self, solution: Solution, copy: int) -> list[Triple]:
        triples = []
        for pattern in self._template:
            subject, predicate, object_ = (
                self._filled(t, solution, copy) for t in (pattern.subject, pattern.predicate, pattern.object)
            )
            if isinstance(subject, NamedNode | BlankNode) and isinstance(predicate, NamedNode) and object_ is not None:
                triples.append(Triple(subject, predicate, object_))
        return [*dict.fromkeys(triples)]

    def _filled(self, term: TermOrVariable, solution: Solution, copy: int) -> Term | None:
        if isinstance(term, Variable):
            return solution[self._places[term]] if term in self._places else None
        if isinstance(term, BlankNode):
            made_of = "\n".join([term.value, str(copy), *map(str, solution)])
            return BlankNode("c" + blake2b(made_of.encode(), digest_size=12).hexdigest())
        return term
