"""Which atoms an event satisfies, its partition and its window's attribute: against the reference."""

from __future__ import annotations

import numpy as np
from ceql_strategies import PREDICATES, TYPES, VOCAB, CeqlEvent, CeqlOptions, ceql_events
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import Variable
from reference.tuples import TupleEvent
from reference.values import holds
from strategies import Dice

from oxiseq.engine.cea.facts import compile_facts
from oxiseq.engine.cea.partitions import Partitions
from oxiseq.engine.cea.plan import Atom
from oxiseq.engine.cea.term_marks import TermMarker
from oxiseq.engine.events.encode import encode_events
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar import load
from oxiseq.grammar.algebra import Expression
from oxiseq.grammar.ceql_algebra import CeqlQuery, Filtered, Holds
from oxiseq.grammar.ceql_algebra import Condition
from ceql_strategies import as_tuples

BY = (Variable("k"), Variable("v"))
WINDOW = Variable("t")


def predicate(text: str) -> Expression:
    query = load(f"VOCAB <{VOCAB}> SELECT * FROM S WHERE A FILTER A[{text}]", "ceql")
    assert isinstance(query.formula, Filtered) and isinstance(query.formula.condition, Holds)
    return query.formula.condition.predicate


def drawn_atoms(dice: Dice, predicates: list[str]) -> list[Atom]:
    """Some; sometimes more than 64, with more than 64 facts."""
    atoms = []
    for i in range(dice.pick([1, 3, 8, 70])):
        texts = [dice.pick(predicates) for _ in range(dice.pick([0, 1, 2, 4]))]
        if dice.chance(20):
            texts.append(f"v > {i} OR NOT ({dice.pick(predicates)} AND w < {i})")
        atoms.append(Atom(VOCAB + dice.pick(TYPES), tuple(predicate(t) for t in texts)))
    return atoms


def expected_symbols(atoms: list[Atom], events: list[TupleEvent]) -> list[list[int]]:
    """Per event the numbers of its atoms."""
    return [
        [
            i
            for i, atom in enumerate(atoms)
            if atom.type == e.type and all(holds(p, e.attributes(VOCAB)) for p in atom.predicates)
        ]
        for e in events
    ]


def bits(symbol: np.ndarray) -> list[list[int]]:
    return [[64 * w + i for w, word in enumerate(row) for i in range(64) if word >> i & 1] for row in symbol.tolist()]


def partition_classes(numbers: list[int]) -> list[int | None]:
    """For each event the first one of its partition."""
    return [None if n < 0 else numbers.index(n) for n in numbers]


def expected_classes(events: list[TupleEvent]) -> list[int | None]:
    keys = [tuple(e.attributes(VOCAB).get(v) for v in BY) for e in events]
    return [None if None in key else keys.index(key) for key in keys]


@given(st.integers(0, 2**62))
def test_rdf_events_are_marked_as_the_reference_reads_them(seed: int) -> None:
    dice = Dice(seed)
    events = ceql_events(dice, ("S",), CeqlOptions(most=12))
    atoms = drawn_atoms(dice, PREDICATES)
    terms = TermDictionary()
    partitions = Partitions(2)
    marker = TermMarker(compile_facts(atoms), VOCAB, terms, partitions, BY, WINDOW)
    cut = dice.between(0, len(events))
    symbol, partition, attribute = [], [], []
    for part in (events[:cut], events[cut:]):
        marks = marker.mark(encode_events([(e.time, e.graph) for e in part], terms))
        symbol += bits(marks.symbol)
        partition += marks.partition.tolist()
        attribute += marks.attribute.tolist()
        terms.collect()
    tuples = as_tuples(events)
    assert symbol == expected_symbols(atoms, tuples)
    assert partition_classes(partition) == expected_classes(tuples)
    wanted = [float(e.attributes(VOCAB)[WINDOW].value) if WINDOW in e.attributes(VOCAB) else None for e in tuples]
    assert [None if np.isnan(a) else a for a in attribute] == wanted
