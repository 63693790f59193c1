"""Joins, OPTIONAL, MINUS and EXISTS of rows with intervals against bags that are computed anew at each tick."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from bags import Bag, Change, Row, at_tick, bag, batches, cuts, difference, up_to
from hypothesis import given
from hypothesis import strategies as st
from profiles import thorough
from pyoxigraph import Variable

from oxiseq.engine.flow import plan as p
from oxiseq.engine.flow.delta import Delta
from oxiseq.engine.flow.flow import Flow
from oxiseq.engine.flow.in_time import After, Before, Interval, InTime, Order, Same, interval, lasting
from oxiseq.engine.flow.relations import Relation, Relations
from oxiseq.engine.flow.times import halves_of, times_at
from oxiseq.engine.terms.dictionary import TermDictionary

X, Y, Z = (Variable(name) for name in "xyz")
LEFT, RIGHT = (X, Y), (X, Z)
"""Columns; x may be unbound on either side (`loose`)."""


@dataclass(frozen=True)
class Case:
    left: list[Change]
    right: list[Change]
    loose: bool
    order: str
    operator: str
    cut: list[int]


@st.composite
def changes(draw: st.DrawFn, loose: bool) -> list[Change]:
    """Rows that come, and may go: (x, y or z, start, end)."""
    found: list[Change] = []
    lowest = 0 if loose else 1
    times = st.tuples(st.integers(-1, 4), st.integers(0, 3)).map(lambda t: (t[0], t[0] + t[1]))
    for _ in range(draw(st.integers(0, 8))):
        row = (draw(st.integers(lowest, 2)), draw(st.integers(1, 2)), *draw(times))
        first = draw(st.integers(0, 4))
        found.append((first, 1, row))
        if draw(st.booleans()):
            found.append((draw(st.integers(first + 1, 5)), -1, row))
    return sorted(found, key=lambda change: change[0])


@st.composite
def cases(draw: st.DrawFn) -> Case:
    loose = draw(st.booleans())
    order = draw(st.sampled_from(["before", "after", "after or at", "same"]))
    operator = draw(st.sampled_from(["join", "left join", "minus", "exists"]))
    return Case(draw(changes(loose)), draw(changes(loose)), loose, order, operator, draw(cuts()))


# --- what it means -----------------------------------------------------------------------------------

ORDERS: dict[str, Callable[[Row, Row], bool]] = {
    "before": lambda a, b: a[3] < b[2],
    "after": lambda a, b: b[3] < a[2],
    "after or at": lambda a, b: b[3] <= a[3],
    "same": lambda a, b: a[2:] == b[2:],
}


def agree(case: Case, a: Row, b: Row) -> bool:
    return (a[0] == b[0] or 0 in (a[0], b[0])) and ORDERS[case.order](a, b)


def joined(a: Row, b: Row) -> Row:
    return a[0] or b[0], a[1], b[1], min(a[2], b[2]), max(a[3], b[3])


def answer(case: Case, tick: int) -> Bag:
    lefts, rights = up_to(case.left, tick), up_to(case.right, tick)
    pairs = [(v * w, joined(a, b)) for a, v in lefts.items() for b, w in rights.items() if agree(case, a, b)]
    met = {a for a in lefts if any(agree(case, a, b) for b in rights)}
    if case.operator == "minus":  # unbound is no shared value
        met = {a for a in lefts if any(agree(case, a, b) and a[0] and b[0] for b in rights)}
    alone = [(w, a) for a, w in lefts.items() if a not in met]
    match case.operator:
        case "join":
            return bag(pairs)
        case "left join":
            return bag([*pairs, *((w, (a[0], a[1], 0, a[2], a[3])) for w, a in alone)])
        case "minus":
            return bag(alone)
        case _:
            return {a: lefts[a] for a in met}


# --- at work -----------------------------------------------------------------------------------------


def sources(relations: Relations, case: Case) -> tuple[Relation, Interval, Relation, Interval]:
    found: list[Relation | Interval] = []
    for name, columns in (("left", LEFT), ("right", RIGHT)):
        node, of = relations.sheet.add(p.Given(name, 6, (2, 3, 4, 5))), interval(relations)
        certain = frozenset(columns[1:] if case.loose else columns)
        found += [Relation(node, (*columns, *of.columns), certain | {*of.columns}), of]
    return tuple(found)  # type: ignore[return-value]  # two of each


def order_of(case: Case, left: Interval, right: Interval) -> Order:
    match case.order:
        case "before":
            return Before(left.end, right.start)
        case "after":
            return After(left.start, right.end)
        case "same":
            return Same(left, right)
        case _:
            return After(left.end, right.end, meeting=True)


def answered(case: Case, relations: Relations) -> Relation:
    a, left, b, right = sources(relations, case)
    pairing = InTime(relations, order_of(case, left, right))
    match case.operator:
        case "join":
            made = pairing.join(a, b)
        case "left join":
            # where the right side has no row, its columns say the least: they are unbound, so zero
            made = pairing.left_join(a, b)
        case "minus":
            made = pairing.minus(a, b)
        case _:
            made = pairing.semijoin(a, b)
    return made


def rows_of(case: Case, delta: Delta) -> list[Change]:
    """As `answer` has them."""
    found = []
    if case.operator in ("minus", "exists"):
        first, values = 2, delta.rows[:, :2].tolist()
    else:  # x, y, the left interval, z, the right one
        first, values = 2, delta.rows[:, [0, 1, 6]].tolist()
    starts, ends = times_at(delta.rows, first).tolist(), times_at(delta.rows, first + 2).tolist()
    if case.operator in ("join", "left join"):
        some = delta.rows[:, 6] != 0
        starts = np.where(some, np.minimum(starts, times_at(delta.rows, 7)), starts).tolist()
        ends = np.where(some, np.maximum(ends, times_at(delta.rows, 9)), ends).tolist()
    for at, weight, row, start, end in zip(delta.at.tolist(), delta.weight.tolist(), values, starts, ends, strict=True):
        found.append((at, weight, (*row, start, end)))
    return found


def delta_of(changed: list[Change]) -> Delta:
    at, weight = (np.array([c[i] for c in changed], np.int64) for i in (0, 1))
    values = np.array([row[:2] for _, _, row in changed], np.uint32).reshape(len(changed), 2)
    times = [halves_of(np.array([row[i] for _, _, row in changed], np.int64)) for i in (2, 3)]
    return Delta(at, weight, np.concatenate([values, *times], axis=1))


@thorough()
@given(cases())
def test_pairs_in_time_are_joined_left_out_and_looked_for(case: Case) -> None:
    relations = Relations(p.Sheet())
    plan = relations.sheet.plan(answered(case, relations).node)
    flow, found = Flow(plan, TermDictionary()), list[Change]()
    places = {form.name: place for place, form in enumerate(plan.forms) if isinstance(form, p.Given)}
    parts = {"left": batches(case.cut, case.left), "right": batches(case.cut, case.right)}
    for number, tick in enumerate([0, *case.cut]):
        for name, place in places.items():
            flow.feed(place, delta_of(parts[name][number]))
        found += rows_of(case, flow.step(tick))
    for tick in range(6):
        assert at_tick(found, tick) == difference(answer(case, tick), answer(case, tick - 1))


def test_a_row_lasts_as_long_as_its_hull() -> None:
    relations = Relations(p.Sheet())
    case = Case([], [], False, "before", "join", [])
    a, left, b, right = sources(relations, case)
    pairs = InTime(relations, Before(left.end, right.start)).join(a, b)
    plan = relations.sheet.plan(lasting(relations, pairs, Interval(left.start, right.end), 0, 5).node)
    flow = Flow(plan, TermDictionary())
    for name, rows in (("left", [(0, 1, (1, 1, 0, 1)), (0, 1, (1, 2, 1, 2))]), ("right", [(0, 1, (1, 1, 3, 6))])):
        place = next(i for i, form in enumerate(plan.forms) if isinstance(form, p.Given) and form.name == name)
        flow.feed(place, delta_of(rows))
    assert rows_of(case, flow.step(0)) == [(0, 1, (1, 2, 1, 1, 6))]
