"""Rules at work: facts in, the facts that they make of these out.

In the flow: facts → plans at work (standing.py) → solutions → **templates filled** → facts.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from pyoxigraph import BlankNode, Literal, NamedNode, Variable

from oxiseq.engine.flow.delta import Buffer, Delta
from oxiseq.engine.flow.epsparql.facts import FACT
from oxiseq.engine.flow.epsparql.lowering import Lowered
from oxiseq.engine.flow.epsparql.standing import Standing
from oxiseq.engine.flow.operators.rows import UnionNode
from oxiseq.engine.flow.ordering import in_order_of_time
from oxiseq.engine.flow.times import times_at
from oxiseq.engine.kernels.flow import facts as k
from oxiseq.engine.kernels.flow.buffers import DONE
from oxiseq.engine.kernels.flow.moments import INTERVAL
from oxiseq.engine.kernels.memory.pointers import Pointers, call
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.algebra import Construct, TermOrVariable, TriplePattern


class Rules:
    """The rules of a stratum at work."""

    def __init__(self, rules: Sequence[Construct], lowered: Lowered, terms: TermDictionary) -> None:
        self.standing = Standing(lowered, [lowered], terms)
        self._templates = [
            _Template(form.template, names, self.standing.root(number), terms)
            for number, (form, names) in enumerate(zip(rules, lowered.names, strict=True))
        ]
        self._given = Buffer(FACT)
        made = [template.out for template in self._templates]
        self._made, self._all = UnionNode(made), UnionNode([self._given, *made])

    def derive(self, facts: Delta, since: int, *, again: bool = False) -> Delta:
        """What they make of facts of some instants, or, `again`, of a further round of one; until the next call."""
        self._solve(facts, since, again)
        return _run(self._made)

    def derive_all(self, facts: Delta, since: int) -> Delta:
        """The same, with the facts themselves."""
        if not self._solve(facts, since, False):
            return facts
        self._given.put(facts)
        return _run(self._all)

    def _solve(self, facts: Delta, since: int, again: bool) -> bool:
        self.standing.feed(facts)
        self.standing.step(since, int(facts.at[0]), again=again)
        filled = [template.fill() for template in self._templates]
        return any(filled)


def _run(node: UnionNode) -> Delta:
    node.out.clear()
    node.step()
    return node.out.delta


class _Template:
    """What a rule makes of its solutions. `out`: of the last ones, as facts."""

    def __init__(
        self, template: Sequence[TriplePattern], names: Sequence[Variable], solutions: Buffer, terms: TermDictionary
    ) -> None:
        self._terms, self._solutions = terms, solutions
        self.out = Buffer(FACT)
        self._names = names
        self._blanks: list[BlankNode] = []
        parts = [self._part(t) for triple in template for t in (triple.subject, triple.predicate, triple.object)]
        self._read = Buffer(solutions.width + len(self._blanks)) if self._blanks else solutions
        """Solutions, with the blank nodes that are made for them."""
        self._memory = Pointers(k.Making(np.zeros(1, np.int64), np.array(parts, np.int64).reshape(-1, 2)))

    def _part(self, term: TermOrVariable) -> tuple[int, int]:
        """A column of the rows read, or -1, and a constant."""
        if isinstance(term, NamedNode | Literal):
            return -1, self._terms.constant(term)
        if isinstance(term, BlankNode):
            if term not in self._blanks:
                self._blanks.append(term)
            return INTERVAL + len(self._names) + self._blanks.index(term), 0
        return (INTERVAL + self._names.index(term), 0) if term in self._names else (-1, 0)

    def fill(self) -> bool:
        """Fill the template with each solution. Whether that makes a fact."""
        self.out.clear()
        if not self._solutions:
            return False
        if self._blanks:
            self._make_blanks()
        while call(k.make_facts, self._memory, self._terms, self._read, self.out) != DONE:
            self.out.grow()
        return bool(self.out)

    def _make_blanks(self) -> None:
        """New blank nodes for each solution, in an order that the history alone fixes; all are of one instant."""
        solutions = self._solutions.delta
        rows = solutions.rows
        values = np.ascontiguousarray(rows[:, INTERVAL:])
        order = in_order_of_time(values, times_at(rows, 0), times_at(rows, 2), self._terms)
        blanks = [self._terms.blanks(len(rows)) for _ in self._blanks]
        self._read.put(Delta(solutions.at, solutions.weight, np.column_stack([rows[order], *blanks])))
