"""The plan of a CEQL query that determinised sets run (text → algebra → **plan** → run)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.cea.positions import Letter, Positions, bits, build_positions
from oxiseq.engine.cea.ranking import ranking_of
from oxiseq.engine.errors import QueryError
from oxiseq.engine.kernels.matches.records import NO_LIMIT
from oxiseq.engine.matches.plan import Clauses, SequencePlan, forgotten_by
from oxiseq.engine.matches.ranking import Ranking
from oxiseq.grammar.algebra import Expression, Strategy
from oxiseq.grammar.ceql_algebra import CeqlQuery, Totals, variables
from oxiseq.grammar.records import dataclass


@dataclass(frozen=True, slots=True)
class Atom:
    """The conditions on a single event: bit number i of its symbol is atom i of the plan."""

    type: str
    """IRI."""
    predicates: tuple[Expression, ...]
    """All must hold; attribute names are variables."""


@dataclass(frozen=True, slots=True)
class DeterminisedSets:
    """What determinised sets need of a plan.

    `variables`: those that SELECT keeps; bit number i of `held` is variable i. `atom_of`: the atom that each letter of
    `positions` needs. `words`: 64-bit words of a symbol. `kept`: the set of letters that some kept variable holds (the
    others are silent). `masks[n]`: the kept variables that hold letter n. `strict`: whether D has to be contiguous.
    """

    name: ClassVar[str] = "determinised sets"
    variables: tuple[str, ...]
    positions: Positions
    atom_of: tuple[int, ...]
    words: int
    kept: int
    masks: tuple[int, ...]
    strict: bool

    @property
    def last(self) -> tuple[int, ...]:
        """The atoms of the events at which complex events end."""
        return tuple(dict.fromkeys(self.atom_of[n] for n in bits(self.positions.last)))

    @property
    def ambiguous(self) -> bool:
        """Whether an event may be held by these or those variables, according to the rest of its match."""
        seen: dict[str, int] = {}
        for n, letter in enumerate(self.positions.letters):
            if self.masks[n] and seen.setdefault(letter.type, self.masks[n]) != self.masks[n]:
                return True
        return False


CeaPlan: TypeAlias = SequencePlan[CeqlQuery, Atom, Ranking, Totals, DeterminisedSets]
"""That of a CEQL query without joins and GRAPH: an atom is bit number i of an event's symbol."""


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
    strict = query.selection is not None and query.selection.strategy is Strategy.STRICT
    sets = DeterminisedSets(
        variables=kept,
        positions=positions,
        atom_of=atom_of,
        words=words_of(len(atoms)),
        kept=reduce(int.__or__, (1 << n for n, mask in enumerate(masks) if mask), 0),
        masks=masks,
        strict=strict,
    )
    return SequencePlan(
        query=query,
        streams=tuple(stream_names.get(s.name, vocab + s.name) for s in query.streams),
        letters=tuple(atoms),
        clauses=_clauses(query, strict),
        ranking=ranking_of(query, sets.ambiguous),
        summary=query.totals,
        runner=sets,
        because="no condition compares events of two variables or asks the knowledge base",
    )


def _clauses(query: CeqlQuery, strict: bool) -> Clauses:
    return Clauses(
        NO_LIMIT if query.limit is None else query.limit.count,
        None if query.selection is None or strict else query.selection.strategy,
        forgotten_by(query),
        query.partition is not None,
        query.order is not None or query.sample is not None,
    )


def _atom(letter: Letter, vocab: str) -> Atom:
    """The same conditions in another order are the same atom."""
    return Atom(vocab + letter.type, tuple(sorted(letter.predicates, key=repr)))


def words_of(members: int) -> int:
    """64-bit words of a set of so many at most."""
    return max(1, -(-members // 64))


def as_words(members: int, words: int) -> NDArray[np.uint64]:
    """A set as u64[words], the lowest members first."""
    return np.frombuffer(members.to_bytes(8 * words, "little"), "<u8").astype(np.uint64)
