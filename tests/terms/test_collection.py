"""Freeing of terms: what is held stays, what is not gives its id back, no id ever means two terms at once."""

from __future__ import annotations

import gc
import random
from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from pyoxigraph import Literal, NamedNode

from oxiseq.engine import kinds
from oxiseq.engine.terms import dictionary
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.normal import XSD
from oxiseq.engine.terms.texts import Term
from oxiseq.engine.terms.value import term_value


def written(number: int) -> Term:
    """Terms of all sorts; 3n and 3n + 1 are sometimes one term in two forms."""
    match number % 4:
        case 0:
            return NamedNode(f"http://example.org/{number}")
        case 1:
            return Literal(f"{number // 8}", datatype=NamedNode(XSD + "integer"))
        case 2:
            return Literal(f"0{number // 8}", datatype=NamedNode(XSD + "integer"))
    return Literal("x" * (number % 50) + str(number))


class Holding:
    def __init__(self) -> None:
        self.arrays: list[NDArray[np.integer]] = []

    def held_ids(self) -> Iterable[NDArray[np.integer]]:
        return self.arrays


@given(st.integers(0, 2**62))
def test_ids_mean_what_they_meant_while_they_are_held(seed: int) -> None:
    dice = random.Random(seed)
    terms = TermDictionary(capacity=1)
    holding = Holding()
    terms.register(holding)
    expected: dict[int, Term] = {}  # what must be alive, in normal form
    arrays: list[NDArray[np.uint32]] = []
    for _ in range(60):
        roll = dice.random()
        if roll < 0.6:
            ids = terms.intern_all(written(dice.randrange(400)) for _ in range(dice.randrange(8)))
            if dice.random() < 0.3:
                ids = np.concatenate([ids, terms.blanks(2)])
            expected |= {i: terms.term(i) for i in ids.tolist()}
            arrays.append(ids)
            if dice.random() < 0.5:
                terms.hold(ids[1:])
            else:
                holding.arrays.append(ids)
            del ids
        elif roll < 0.8 and arrays:
            gone = arrays.pop(dice.randrange(len(arrays)))
            holding.arrays = [a for a in holding.arrays if a is not gone]
            del gone
        else:
            gc.collect()
            before, freed = terms.live, terms.collect()
            alive = {i for array in arrays for i in array.tolist()}
            expected = {i: term for i, term in expected.items() if i in alive}
            assert terms.live == before - freed == len(expected)
        for i, term in expected.items():
            assert terms.term(i) == term
            assert terms.columns.kind[i] == term_value(term).kind
            if terms.columns.kind[i] != kinds.BLANK:
                assert terms.intern(term) == i
                assert terms.intern_written(terms.text(i).encode()) == i


def test_a_freed_id_is_no_term() -> None:
    terms = TermDictionary()
    known = terms.intern(NamedNode("http://example.org/a"))
    assert terms.collect() == 1
    assert terms.find(NamedNode("http://example.org/a")) == 0
    assert terms.lookup(NamedNode("http://example.org/a")) is None
    assert terms.generation == 1
    with pytest.raises(KeyError):
        terms.term(known)
    assert terms.intern(NamedNode("http://example.org/b")) == known
    assert terms.term(known) == NamedNode("http://example.org/b")


def test_constants_and_what_views_show_are_kept() -> None:
    terms = TermDictionary()
    constant = terms.constant(Literal("constant"))
    ids = terms.intern_all(Literal(str(n)) for n in range(10))
    terms.hold(ids[2:4])
    view = ids[5:]
    del ids
    assert terms.collect() == 0
    del view
    assert terms.collect() == 10
    assert terms.term(constant) == Literal("constant")


def test_a_blank_node_keeps_its_label_and_no_other_gets_it() -> None:
    terms = TermDictionary()
    labels = set()
    for _ in range(5):
        blank = terms.blank()
        labels.add(terms.text(blank))
        assert terms.term(blank).value == terms.text(blank)[2:]  # type: ignore[union-attr]  # a blank node
        terms.collect()
    assert len(labels) == 5
    assert len(terms) == 2


def test_one_off_terms_need_no_more_and_more_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dictionary, "COLLECT_FROM", 1000)
    terms = TermDictionary()
    kept = terms.intern_all(Literal(f"kept {n}") for n in range(100))
    terms.hold(kept)
    for number in range(20_000):
        terms.collect_if_due()
        terms.intern(Literal(f"once {number}"))
    assert len(terms) < 2500
    assert [terms.text(i) for i in kept.tolist()] == [f'"kept {n}"' for n in range(100)]
