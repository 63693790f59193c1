"""A compiled CEQL query: immutable, with all that a run needs (text → algebra → **plan** → run)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.cea.positions import Letter, Positions, bits, build_positions
from oxiseq.engine.errors import QueryError
from oxiseq.grammar.algebra import Expression, Strategy
from oxiseq.grammar.ceql_algebra import CeqlQuery, variables


@dataclass(frozen=True, slots=True)
class Atom:
    """The conditions on a single event: bit number i of its symbol is atom i of the plan."""

    type: str
    """IRI."""
    predicates: tuple[Expression, ...]
    """All must hold; attribute names are variables."""


@dataclass(frozen=True, slots=True, weakref_slot=True)
class CeaPlan:
    """A query ready to run.

    `streams`: IRIs in the order of FROM. `variables`: those that SELECT keeps; bit number i of `held` is
    variable i. `atom_of`: the atom that each letter of `positions` needs. `kept`: the set of letters that some
    kept variable holds (the others are silent). `masks[n]`: the kept variables that hold letter n.
    """

    query: CeqlQuery
    streams: tuple[str, ...]
    atoms: tuple[Atom, ...]
    variables: tuple[str, ...]
    positions: Positions
    atom_of: tuple[int, ...]
    kept: int
    masks: tuple[int, ...]

    @property
    def words(self) -> int:
        """64-bit words of a symbol."""
        return max(1, -(-len(self.atoms) // 64))

    @property
    def last(self) -> tuple[Atom, ...]:
        """The conditions on the events at which complex events end."""
        return tuple(dict.fromkeys(self.atoms[self.atom_of[n]] for n in bits(self.positions.last)))

    @property
    def strict(self) -> bool:
        """Whether D has to be contiguous (STRICT)."""
        return self.query.selection is not None and self.query.selection.strategy is Strategy.STRICT

    @property
    def ambiguous(self) -> bool:
        """Whether an event may be held by these or those variables, according to the rest of its match."""
        seen: dict[str, int] = {}
        for n, letter in enumerate(self.positions.letters):
            if self.masks[n] and seen.setdefault(letter.type, self.masks[n]) != self.masks[n]:
                return True
        return False


def compile_ceql(query: CeqlQuery, stream_names: Mapping[str, str] = {}) -> CeaPlan:
    """Compile a checked query. Names in FROM are looked up in `stream_names`, else they are VOCAB + name.

    QueryError without VOCAB, LimitError if the formula has too many letters.
    """
    if query.vocab is None:
        raise QueryError("the query has no VOCAB", query.span, query.text, code="vocab")
    vocab = query.vocab
    positions = build_positions(query.formula)
    atoms: dict[Atom, int] = {}
    atom_of = tuple(atoms.setdefault(_atom(letter, vocab), len(atoms)) for letter in positions.letters)
    kept = tuple(dict.fromkeys(c.name for c in query.columns)) if query.columns else variables(query.formula)
    masks = tuple(sum(1 << i for i, v in enumerate(kept) if v in letter.names) for letter in positions.letters)
    return CeaPlan(
        query=query,
        streams=tuple(stream_names.get(s.name, vocab + s.name) for s in query.streams),
        atoms=tuple(atoms),
        variables=kept,
        positions=positions,
        atom_of=atom_of,
        kept=reduce(int.__or__, (1 << n for n, mask in enumerate(masks) if mask), 0),
        masks=masks,
    )


def _atom(letter: Letter, vocab: str) -> Atom:
    """The same conditions in another order are the same atom."""
    return Atom(vocab + letter.type, tuple(sorted(letter.predicates, key=repr)))


def as_words(members: int, words: int) -> NDArray[np.uint64]:
    """A set as u64[words], the lowest members first."""
    return np.frombuffer(members.to_bytes(8 * words, "little"), "<u8").astype(np.uint64)
