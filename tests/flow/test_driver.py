"""Operators driven by a table do what they do when each is stepped."""

from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np
import pytest
from bags import Change, many_changes
from hypothesis import given
from hypothesis import strategies as st
from profiles import drawn
from pyoxigraph import Literal, NamedNode

from oxiseq.engine.flow import plan as p
from oxiseq.engine.flow.delta import KEPT_ROOM, Buffer, Delta
from oxiseq.engine.flow.flow import Flow
from oxiseq.engine.flow.operators.sources import Fed
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.normal import XSD
from oxiseq.grammar.algebra import Call

A, B, LINKS, KEPT, GONE, BOTH, ALL, SUMS, TOP, PATHS, LARGE, MORE = 0, 1, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13
PLAN = p.FlowPlan(
    forms=(
        p.Given("a", 2),
        p.Given("b", 2),
        p.Arrange(A, (0,)),
        p.Arrange(B, (0,)),
        p.Join(2, 3),
        p.Pick(LINKS, ((0,), (3, 1))),
        p.Negate(B),
        p.Union((KEPT, GONE)),
        p.Consolidate(BOTH),
        p.Group(A, (0,), (p.Sum("COUNT", None), p.Sum("SUM", 1))),
        p.Best(A, (), (p.Rank(1),), 0, 3),
        p.Distinct(A),
        p.Filter(A, (Call(">", (p.column(1), Literal(1))),)),
        p.Extend(A, Call("+", (p.column(1), Literal(100)))),
    ),
    widths=(2, 2, 2, 2, 4, 2, 2, 2, 2, 3, 2, 2, 2, 3),
    root=ALL,
    raw=((),) * 14,
)


class Plain(Flow):
    """Each operator is stepped from Python."""

    def _step(self, tick: int) -> None:
        for node in self.nodes:
            node.out.clear()
        self._put_fed()
        begun, self._begun = self._begun, True
        for node in self.nodes:
            begins = not begun and node.begin(tick)
            if not isinstance(node, Fed) and (begins or any(node.inputs)):
                node.step()


def terms_of(values: int) -> tuple[TermDictionary, list[int]]:
    """0 for unbound, then numbers."""
    terms = TermDictionary(16)
    return terms, [0, *(terms.constant(Literal(str(n), datatype=NamedNode(f"{XSD}integer"))) for n in range(values))]


def delta_of(changed: list[Change], ids: list[int]) -> Delta:
    rows = np.array([[ids[v] for v in row] for _, _, row in changed], np.uint32).reshape(len(changed), 2)
    return Delta(np.array([c[0] for c in changed], np.int64), np.array([c[1] for c in changed], np.int64), rows)


def shown(flow: Flow, terms: TermDictionary) -> list[Counter[tuple[object, ...]]]:
    """What each operator has brought."""
    found = []
    for place in range(len(PLAN.forms)):
        delta = flow.rows(place)
        total: Counter[tuple[object, ...]] = Counter()
        for at, weight, row in zip(delta.at.tolist(), delta.weight.tolist(), delta.rows.tolist(), strict=True):
            total[(at, *(terms.text(i) if i else None for i in row))] += weight
        found.append(total)
    return found


@given(st.integers(0, 1 << 30), st.integers(1, 5))
@drawn(15)
def test_driven_operators_do_what_stepped_ones_do(seed: int, size: int) -> None:
    dice = Random(seed)
    changed = [many_changes(dice, 2, 12) for _ in "ab"]
    (terms, ids), (other_terms, other_ids) = terms_of(4), terms_of(4)
    driven, plain = Flow(PLAN, terms), Plain(PLAN, other_terms)
    for first in range(0, 12, size):
        for flow, known in ((driven, ids), (plain, other_ids)):
            for place in (A, B):
                some = [c for c in changed[place] if first <= c[0] < first + size]
                flow.feed(place, delta_of(some, known))
            flow.step(first)
        assert shown(driven, terms) == shown(plain, other_terms)
    assert driven.records == plain.records


def test_operators_find_a_dictionary_that_has_grown() -> None:
    terms, ids = terms_of(4)
    flow = Flow(PLAN, terms)
    flow.step(0)
    for tick in range(1, 40):
        terms.reserve(1 << tick // 3, 1 << 12)  # its tables move
        flow.feed(A, delta_of([(tick, 1, (1, 1 + tick % 4))], ids))
        flow.step(tick)
        (row,) = [row for w, row in zip(flow.rows(SUMS).weight, flow.rows(SUMS).rows, strict=True) if w > 0]
        assert terms.text(int(row[1])) == f'"{tick}"^^<{XSD}integer>'


def test_room_that_one_batch_needed_is_given_back() -> None:
    terms, ids = terms_of(2)
    flow = Flow(PLAN, terms)
    flow.step(0)
    count = 4 * KEPT_ROOM
    some = delta_of([(1, 1, (1, 1))], ids)
    flow.feed(A, Delta(np.full(count, 1), np.ones(count, np.int64), np.repeat(some.rows, count, axis=0)))
    flow.step(1)
    made = flow.nodes[MORE].out
    assert len(made) == count
    for tick in range(2, 400):
        flow.feed(A, delta_of([(tick, 1, (1, 1))], ids))
        flow.step(tick)
    assert len(made) == 1
    assert len(made._arrays.at) <= KEPT_ROOM


def test_an_operator_that_fails_fails_for_good() -> None:
    terms, ids = terms_of(2)
    flow = Flow(PLAN, terms)
    flow.step(0)
    for node in flow.nodes:
        node.out.most = 16
    flow.feed(A, delta_of([(1, 1, (n % 2, 1)) for n in range(40)], ids))
    with pytest.raises(Exception, match="rows that an operator makes") as first:
        flow.step(1)
    with pytest.raises(type(first.value)) as second:
        flow.step(2)
    assert second.value is first.value


def test_a_buffer_shows_what_another_held_and_grows_apart_from_it() -> None:
    source, shows = Buffer(1), Buffer(1)
    for count in (3, 40, 0, 7):
        rows = np.arange(count, dtype=np.uint32).reshape(count, 1)
        source.append(Delta(np.arange(count), np.ones(count, np.int64), rows))
        shows.take_over(source)
        assert not source
        assert shows.delta.rows.tolist() == rows.tolist()
    shows.grow()
    shows.append(Delta(np.array([7]), np.array([1]), np.array([[9]], np.uint32)))
    source.append(Delta(np.array([8]), np.array([1]), np.array([[5]], np.uint32)))
    assert shows.delta.rows[:, 0].tolist() == [*range(7), 9]
