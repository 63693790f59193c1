"""The conditions of a plan's atoms, taken apart: each distinct one once; and answered on the stack machine.

In the flow: atoms → **facts and gates** → symbols of events (term_marks.py, table_marks.py).

A predicate is brought to leaves joined by "all of" and "any of". In SPARQL's three-valued logic a NOT passes through
both (De Morgan), and the rest depends only on which leaves are true; the others may be false or errors.
So a *fact* about an event is one bit: the leaf, or its negation, is true.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Variable

from oxiseq.engine.cea.plan import Atom, words_of
from oxiseq.engine.expressions.exact import holds
from oxiseq.engine.expressions.program import compile_program
from oxiseq.engine.kernels.cea import facts as kernels
from oxiseq.engine.kernels.terms.columns import TermColumns
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.texts import Term
from oxiseq.grammar.algebra import Call, Expression
from oxiseq.grammar.records import dataclass
from oxiseq.grammar.scope import expression_variables

Words = NDArray[np.uint64]
_OPPOSITE = {"=": "!=", "!=": "="}
"""Comparisons whose negation is another; not so for `<`, since NaN compares with nothing."""


@dataclass(frozen=True, slots=True)
class FactPlan:
    """Fact i is `leaves[i]`; after them comes one fact for each gate. `words`: 64 facts in each.

    The atoms of type t are `atom_of[first_atom[t] : first_atom[t + 1]]`, with a row of `masks` (u64[atoms, words], the
    facts that all must be) at the same place; the leaves that they need `leaf_of[first_leaf[t] : first_leaf[t + 1]]`.
    Gate g is true when all (any, where `any_of` is 1) of the facts in `gates[g]` (u64[gates, words]) are.
    """

    types: tuple[str, ...]
    leaves: tuple[Expression, ...]
    words: int
    gates: Words
    any_of: NDArray[np.uint8]
    first_atom: NDArray[np.int64]
    atom_of: NDArray[np.int64]
    masks: Words
    first_leaf: NDArray[np.int64]
    leaf_of: NDArray[np.int64]

    @property
    def atoms(self) -> int:
        """How many there are."""
        return len(self.atom_of)

    @property
    def attributes(self) -> tuple[Variable, ...]:
        """The facts that some leaf needs."""
        return tuple(dict.fromkeys(v for leaf in self.leaves for v in sorted(expression_variables(leaf), key=str)))

    def of_leaves(self, wanted: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """`first_leaf` and `leaf_of` of some leaves only."""
        kept = [
            [leaf for leaf in self.leaf_of[a:b].tolist() if leaf in wanted]
            for a, b in zip(self.first_leaf, self.first_leaf[1:], strict=False)
        ]
        return _ranges(kept)


def compile_facts(atoms: Sequence[Atom]) -> FactPlan:
    """Take the atoms apart."""
    types = tuple(dict.fromkeys(atom.type for atom in atoms))
    compiler = _Compiler()
    asked = [[fact for p in atom.predicates for fact in compiler.conjuncts(p)] for atom in atoms]
    leaves = tuple(compiler.leaves)
    words = words_of(len(leaves) + len(compiler.gates))
    numbers = [[i for i, atom in enumerate(atoms) if atom.type == t] for t in types]
    first_atom, atom_of = _ranges(numbers)
    first_leaf, leaf_of = _ranges(
        [sorted({leaf for i in mine for f in asked[i] for leaf in compiler.below(f)}) for mine in numbers]
    )
    place = compiler.places()
    return FactPlan(
        types,
        leaves,
        words,
        _masks([[place(f) for f in facts] for _, facts in compiler.gates], words),
        np.array([any_of for any_of, _ in compiler.gates], np.uint8),
        first_atom,
        atom_of,
        _masks([[place(f) for f in asked[i]] for i in atom_of], words),
        first_leaf,
        leaf_of,
    )


class _Compiler:
    """Facts are numbered apart while they are found: leaves 0, 1, 2... and gates -1, -2..."""

    def __init__(self) -> None:
        self.leaves: dict[Expression, int] = {}
        self.gates: dict[tuple[bool, tuple[int, ...]], int] = {}

    def conjuncts(self, predicate: Expression) -> tuple[int, ...]:
        """Facts that are all true just when the predicate holds."""
        fact = self.fact(predicate, negated=False)
        if fact < 0:
            any_of, facts = list(self.gates)[-1 - fact]
            if not any_of and -fact == len(self.gates):  # the newest gate, which nothing else needs
                del self.gates[any_of, facts]
                return facts
        return (fact,)

    def fact(self, e: Expression, *, negated: bool) -> int:
        """The fact that `e`, or its negation, is true."""
        match e:
            case Call("!", (inner,)):
                return self.fact(inner, negated=not negated)
            case Call("&&" | "||" as name, args):
                facts = tuple(dict.fromkeys(self.fact(arg, negated=negated) for arg in args))
                gate = ((name == "||") is not negated, facts)
                return facts[0] if len(facts) == 1 else self.gates.setdefault(gate, -1 - len(self.gates))
            case Call("=" | "!=" as name, args) if negated:
                return self.fact(Call(_OPPOSITE[name], args), negated=False)
        leaf = Call("!", (e,)) if negated else e
        return self.leaves.setdefault(leaf, len(self.leaves))

    def below(self, fact: int) -> set[int]:
        """The leaves that a fact rests on."""
        if fact >= 0:
            return {fact}
        _, facts = list(self.gates)[-1 - fact]
        return {leaf for f in facts for leaf in self.below(f)}

    def places(self) -> _Places:
        return _Places(len(self.leaves))


@dataclass(frozen=True, slots=True)
class _Places:
    """Gates come after the leaves."""

    leaves: int

    def __call__(self, fact: int) -> int:
        return fact if fact >= 0 else self.leaves - 1 - fact


def _ranges(lists: Sequence[Sequence[int]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    starts = np.array([0, *accumulate(map(len, lists))], np.int64)
    return starts, np.array([x for numbers in lists for x in numbers], np.int64)


def _masks(rows: Sequence[Sequence[int]], words: int) -> Words:
    masks = np.zeros((len(rows), words), np.uint64)
    for row, bits in enumerate(rows):
        for bit in bits:
            masks[row, bit >> 6] |= np.uint64(1 << (bit & 63))
    return masks


class LeafMachine:
    """Some leaves of a plan, compiled. `slots`: the attributes' columns in a row of ids; column 0 holds 0."""

    def __init__(
        self, facts: FactPlan, leaves: tuple[int, ...], slots: Mapping[Variable, int], terms: TermDictionary
    ) -> None:
        self._facts = facts
        self._slots = slots
        self._first, self._leaf_of = facts.of_leaves(leaves)
        code = [
            compile_program(leaf, slots, terms).code if i in leaves else np.zeros(0, np.int32)
            for i, leaf in enumerate(facts.leaves)
        ]
        self._code = np.concatenate([*code, np.zeros(1, np.int32)])
        self._starts = np.cumsum([0, *map(len, code)]).astype(np.int64)

    def mark(
        self,
        values: NDArray[np.int64],
        type_of: NDArray[np.int64],
        columns: TermColumns,
        term: Callable[[int], Term],
        facts: NDArray[np.uint64],
    ) -> None:
        """Set the leaves' facts. values: i64[n, slots] of ids of `columns`; `term`: the term of an id."""
        if not len(self._leaf_of):
            return
        undecided = np.zeros_like(facts)
        program = self._first, self._leaf_of, self._code, self._starts
        worth = columns.kind, columns.number, columns.exact, columns.quality
        left = kernels.leaf_facts(values, type_of, *program, *worth, facts, undecided)
        if not left:
            return
        for leaf in np.unique(self._leaf_of).tolist():
            word, bit = leaf >> 6, np.uint64(1 << (leaf & 63))
            rows = np.flatnonzero(undecided[:, word] & bit)
            if len(rows):
                facts[rows[self._decide(leaf, values[rows], term)], word] |= bit

    def _decide(self, leaf: int, values: NDArray[np.int64], term: Callable[[int], Term]) -> NDArray[np.bool_]:
        expression = self._facts.leaves[leaf]
        asked = [(v, self._slots[v]) for v in expression_variables(expression)]
        distinct, inverse = np.unique(values[:, [slot for _, slot in asked]], axis=0, return_inverse=True)
        decided = [
            holds(expression, {v: term(i) for (v, _), i in zip(asked, row, strict=True) if i})
            for row in distinct.tolist()
        ]
        return np.array(decided, np.bool_)[inverse.reshape(-1)]


def symbols(plan: FactPlan, facts: NDArray[np.uint64], type_of: NDArray[np.int64]) -> NDArray[np.uint64]:
    """u64[n, words of atoms], from the facts about leaves (u64[n, plan.words], changed) and the numbers of types."""
    out = np.zeros((len(type_of), words_of(plan.atoms)), np.uint64)
    kernels.symbols(
        facts, type_of, len(plan.leaves), plan.gates, plan.any_of, plan.first_atom, plan.atom_of, plan.masks, out
    )
    return out
