"""Groups and their sums: right at every tick, whatever comes and goes."""

from __future__ import annotations

import math
import random
import struct
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from group_cases import Row, Running, Tick, check, in_store, integer, number, random_ticks
from hypothesis import given
from hypothesis import strategies as st
from profiles import drawn, thorough
from pyoxigraph import Literal, NamedNode, QuerySolutions, Store

from oxiseq.engine.flow import plan as p
from oxiseq.engine.terms.texts import Term
from oxiseq.engine.terms.value import term_value

COUNT, COUNT_V, SUM, AVG = (p.Sum("COUNT", None), *(p.Sum(name, 1) for name in ("COUNT", "SUM", "AVG")))  # type: ignore[arg-type]
CONCAT = p.Sum("GROUP_CONCAT", 1, "; ")
A, B = NamedNode("http://a"), NamedNode("http://b")
KEYS: tuple[Term | None, ...] = (A, B, Literal("c"), None)

INTEGERS = [integer(i) for i in (0, 1, -1, 7, 2**53 + 1, -(2**63), 2**63 - 1)]
DECIMALS = [
    number(t, "decimal")
    for t in (
        "0.1",
        "-0.1",
        "2.50",
        "19.99",
        "1.000000000000001",
        "9223372036854775.807",
        "-9223372036854775.807",
        "3",
    )
]
STRANGE = [
    number("99999999999999999999", "integer"),
    *(
        number(t, "decimal")
        for t in (
            "0.123456789012345678",
            "-0.1234567890123456789",
            "170141183460469231731.687303715884105727",
            "-170141183460469231731.687303715884105728",
        )
    ),
]
DOUBLES = [
    number(t, "double")
    for t in ("0.1", "-0.1", "1e16", "-1e16", "1", "-0.0", "1e308", "-1e308", "5e-324", "1.7976931348623157e308")
]
FLOATS = [number(t, "float") for t in ("0.1", "16777216", "1", "-3.4028235e38", "3.4028235e38", "1e-45")]
SPECIAL = [number(t, kind) for t in ("NaN", "INF", "-INF") for kind in ("double", "float")]
ODD: list[Term | None] = [Literal("x"), A, number("true", "boolean"), number("1 ", "integer"), None]
TEXTS: list[Term | None] = [
    Literal("a"),
    Literal("b"),
    Literal(""),
    Literal("ä"),
    Literal("a", language="en"),
    Literal("b", language="en"),
    Literal("a", language="fr"),
]


def rows_of(values: Sequence[Term | None], keys: Sequence[Term | None] = KEYS) -> list[Row]:
    """All pairs, as the store writes them."""
    return [(k, None if v is None else in_store(v)) for k in keys for v in values]


POOLS = [
    rows_of(values)
    for values in (
        INTEGERS,
        DECIMALS,
        DOUBLES,
        FLOATS,
        [*INTEGERS, *DECIMALS],
        [*INTEGERS, *DOUBLES],
        [*DOUBLES, *FLOATS],
        [*INTEGERS, *FLOATS],
        [*DOUBLES, *SPECIAL],
        [*INTEGERS, *STRANGE, *DECIMALS],
        [*INTEGERS, *DECIMALS, *DOUBLES],
        [*INTEGERS, *DECIMALS, *FLOATS, *SPECIAL],
        [*STRANGE, *DOUBLES, *FLOATS],
        [*INTEGERS, *ODD],
        [*DOUBLES, *ODD],
        [*INTEGERS, *DECIMALS, *STRANGE, *DOUBLES, *FLOATS, *SPECIAL, *ODD],
    )
]


# --- against arithmetic -----------------------------------------------------------------------------


@thorough()
@given(st.integers(0, 2**62))
def test_sums_are_exact_at_every_tick(seed: int) -> None:
    dice = random.Random(seed)
    sums = tuple(dice.sample((COUNT, COUNT_V, SUM, AVG), dice.randint(0, 4)))
    check(dice, p.Group(0, dice.choice(((0,), (0,), (), (0, 1))), sums), dice.choice(POOLS))


@drawn(50)
@given(st.integers(0, 2**62))
def test_few_groups_with_long_lives_are_exact(seed: int) -> None:
    """So many ticks that values meet again and again."""
    dice = random.Random(seed)
    pool = [row for row in dice.choice(POOLS) if row[0] in (A, None)]
    check(dice, p.Group(0, (0,), (SUM, AVG)), dice.sample(pool, min(len(pool), 5)), count=30)


def double_of(bits: int) -> Literal:
    value = struct.unpack("d", struct.pack("Q", bits))[0]
    return number(repr(value).replace("nan", "NaN").replace("inf", "INF"), "double")


def float_of(bits: int) -> Literal:
    value = np.frombuffer(struct.pack("I", bits), np.float32)[0]
    return number(str(value).replace("nan", "NaN").replace("inf", "INF"), "float")


@given(st.integers(0, 2**62))
def test_sums_of_any_doubles_and_floats_are_exact(seed: int) -> None:
    dice = random.Random(seed)
    near = dice.randrange(2**11) << 52
    some = [double_of((near ^ dice.getrandbits(54)) & (2**64 - 1) ^ dice.getrandbits(1) << 63) for _ in range(6)]
    narrow = [float_of(dice.getrandbits(32)) for _ in range(4)]
    check(dice, p.Group(0, (0,), (SUM, AVG)), rows_of(dice.choice((some, narrow, some + narrow)), (A,)), count=8)


@given(st.integers(0, 2**62))
def test_sums_of_any_integers_and_decimals_are_exact(seed: int) -> None:
    dice = random.Random(seed)
    whole = [integer(dice.getrandbits(dice.randint(1, 63)) * dice.choice((1, -1))) for _ in range(3)]
    sizes = [dice.randint(1, 50) for _ in range(3)]
    parts = [number(f"{dice.choice(('-', ''))}{dice.getrandbits(n)}.{dice.getrandbits(30)}", "decimal") for n in sizes]
    check(dice, p.Group(0, (0,), (SUM, AVG)), rows_of(whole + parts, (A, None)), count=10)


@drawn(50)
@given(st.integers(0, 2**62))
def test_values_are_joined_in_order(seed: int) -> None:
    dice = random.Random(seed)
    texts: list[Term | None] = dice.choice((TEXTS, [*TEXTS, None, A, integer(1)]))
    sums = dice.choice(((CONCAT,), (COUNT, CONCAT, COUNT_V), (CONCAT, p.Sum("GROUP_CONCAT", 1), SUM)))
    check(dice, p.Group(0, dice.choice(((0,), ())), sums), rows_of(texts), count=8)


@drawn(50)
@given(st.integers(0, 2**62))
def test_sums_of_several_columns_are_each_their_own(seed: int) -> None:
    dice = random.Random(seed)
    pool = [
        (*dice.choice(POOLS[dice.randrange(len(POOLS))]), dice.choice([*map(in_store, DOUBLES + STRANGE), *TEXTS]))
        for _ in range(12)
    ]
    some: list[p.Sum] = [
        COUNT,
        COUNT_V,
        SUM,
        AVG,
        p.Sum("COUNT", 2),
        p.Sum("SUM", 2),
        p.Sum("AVG", 2),
        CONCAT,
        p.Sum("GROUP_CONCAT", 2, ""),
    ]
    check(dice, p.Group(0, dice.choice(((0,), ())), tuple(dice.sample(some, 5))), pool, count=10)


# --- against the store ------------------------------------------------------------------------------


def asked(rows: Counter[Row]) -> Counter[Row]:
    """Oxigraph's aggregates over these rows, those with texts in their order."""
    each = sorted(rows.elements(), key=lambda row: tuple("" if t is None else str(t) for t in row))
    data = " ".join(f"({' '.join('UNDEF' if t is None else str(t) for t in row)})" for row in each)
    answer = Store().query(
        "SELECT ?k (COUNT(*) AS ?n) (COUNT(?v) AS ?c) (SUM(?v) AS ?s) (AVG(?v) AS ?a) "
        f'(GROUP_CONCAT(?v; separator="; ") AS ?t) WHERE {{ VALUES (?k ?v) {{ {data} }} }} GROUP BY ?k'
    )
    assert isinstance(answer, QuerySolutions)
    return Counter(tuple(solution[i] for i in range(6)) for solution in answer)


SIMPLE: list[list[Term | None]] = [
    [integer(i) for i in (0, 1, -2, 10**12)],
    [number(t, "decimal") for t in ("0.1", "-2.25", "1000000.001")] + [integer(3)],
    [number(t, "double") for t in ("0.5", "-0.25", "1024", "3")] + [integer(3)],
    [number(t, "float") for t in ("0.5", "-0.25", "1024", "3")] + [integer(3)],
    [number("0.5", "float"), number("0.25", "double"), number("0.125", "decimal"), integer(1), *SPECIAL],
    [integer(1), *ODD],
    TEXTS[:4],
    TEXTS[4:6],
]


@thorough()
@given(st.integers(0, 2**62))
def test_the_store_answers_the_same_at_every_tick(seed: int) -> None:
    """Where nothing overflows, and doubles are so round that their sums are exact in any order."""
    dice = random.Random(seed)
    pool = rows_of(dice.choice(SIMPLE))
    form = p.Group(0, (0,), (COUNT, COUNT_V, SUM, AVG, CONCAT))
    running, rows = Running(form, 2), Counter[Row]()
    for at, tick in enumerate(random_ticks(dice, pool, 6)):
        running.push([(at, tick)])
        for row, weight in tick:
            rows[row] += weight
        rows = +rows
        assert running.told == asked(rows)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20))
def test_the_store_sums_doubles_within_its_own_rounding(values: list[float]) -> None:
    """It rounds once for each value: n · 2^-53 of the sum of what they are without their signs."""
    rows = Counter[Row]((A, in_store(number(repr(v), "double"))) for v in values)
    running = Running(p.Group(0, (0,), (SUM,)), 2)
    running.push([(0, list(rows.items()))])
    (found,), (other,) = running.told, asked(rows)
    assert isinstance(found[1], Literal)
    assert isinstance(other[3], Literal)
    assert float(found[1].value) == math.fsum(values)
    bound = len(values) * 2.0**-52 * math.fsum(map(abs, values))
    assert abs(float(found[1].value) - float(other[3].value)) <= bound


# --- results as terms -------------------------------------------------------------------------------


@drawn(30)
@given(st.integers(0, 2**62))
def test_results_are_the_terms_that_the_store_would_write(seed: int) -> None:
    """The sum of one value is that value; its id is the one that it has."""
    dice = random.Random(seed)
    some = [double_of(dice.getrandbits(64)) for _ in range(60)] + [float_of(dice.getrandbits(32)) for _ in range(60)]
    some += [double_of(dice.getrandbits(12) << 52) for _ in range(5)] + [float_of(dice.getrandbits(9) << 23)]
    some += [number(repr(dice.getrandbits(60) / 2.0 ** dice.randint(0, 50)), "double") for _ in range(30)]
    values = [v for v in map(in_store, some) if isinstance(v, Literal) and v.value not in ("-0", "0")]
    keys = [NamedNode(f"http://k/{i}") for i in range(len(values))]
    running = Running(p.Group(0, (0,), (SUM,)), 2)
    running.push([(0, [((k, v), 1) for k, v in zip(keys, values, strict=True)])])
    assert running.told == Counter(dict.fromkeys(zip(keys, values, strict=True), 1))
    assert running.node.out.delta.rows[:, 1].tolist() == [running.terms.intern(v) for v in values]


@drawn(30)
@given(st.integers(0, 2**62))
def test_results_have_the_values_of_their_texts(seed: int) -> None:
    """What filters read of them: kind, number, exact part, quality."""
    dice = random.Random(seed)
    running = Running(p.Group(0, (0,), (COUNT, SUM, AVG)), 2)
    many = [row for pool in POOLS for row in pool]
    running.push(list(enumerate(random_ticks(dice, many, 30))))
    columns = running.terms.columns
    for i in set(running.node.out.delta.rows[:, 1:].ravel().tolist()) - {0}:
        value = term_value(running.terms.term(i))
        known = columns.kind[i], columns.number[i], columns.exact[i], columns.quality[i]
        assert np.array_equal(np.array(known), np.array(value), equal_nan=True), running.terms.term(i)


# --- facts ------------------------------------------------------------------------------------------


def test_without_keys_there_is_a_row_over_nothing() -> None:
    running = Running(p.Group(0, (), (COUNT, COUNT_V, SUM, AVG, CONCAT)), 2, first=3)
    assert running.begun
    nothing = Counter({(integer(0), integer(0), integer(0), integer(0), Literal("")): 1})
    assert running.push([]) == {3: nothing}
    assert running.push([]) == {}
    running.push([(4, [((A, integer(1)), 1)])])
    assert running.push([(5, [((A, integer(1)), -1)])]) == {5: nothing}


def test_with_keys_there_is_nothing_over_nothing() -> None:
    running = Running(p.Group(0, (0,), (COUNT,)), 2)
    assert not running.begun
    assert running.push([]) == {}


def test_the_row_over_nothing_is_not_told_if_rows_come_at_once() -> None:
    running = Running(p.Group(0, (), (COUNT,)), 2)
    running.push([(0, [((A, A), 2)])])
    assert running.node.out.delta.weight.tolist() == [1]
    assert running.told == Counter({(integer(2),): 1})


@pytest.mark.parametrize(
    ("tick", "rows"),
    [
        pytest.param([((A, integer(2)), 1), ((A, integer(2)), -1)], 0, id="a row that comes and goes"),
        pytest.param(
            [
                ((A, integer(1)), -1),
                ((A, number("1", "decimal")), 1),
                ((A, integer(1)), 1),
                ((A, number("1", "decimal")), -1),
            ],
            0,
            id="others that come and go",
        ),
        pytest.param([((A, integer(1)), -1), ((A, integer(-1)), 1), ((A, integer(2)), 1)], 2, id="a sum of more rows"),
    ],
)
def test_what_does_not_change_is_not_told(tick: Tick, rows: int) -> None:
    running = Running(p.Group(0, (0,), (COUNT, SUM)), 2)
    running.push([(0, [((A, integer(1)), 1)])])
    running.push([(1, tick)])
    assert len(running.node.out) == rows


@pytest.mark.parametrize(("guest", "total"), [("NaN", "NaN"), ("INF", "INF"), ("-INF", "-INF"), ("1e308", "1e308")])
def test_a_double_that_leaves_leaves_nothing_behind(guest: str, total: str) -> None:
    running = Running(p.Group(0, (0,), (SUM,)), 2)
    row = A, in_store(number(guest, "double"))
    running.push([(0, [((A, number("0.1", "double")), 3)])])
    before = Counter(running.told)
    assert before == Counter({(A, number("0.30000000000000004", "double")): 1})
    running.push([(1, [(row, 1)])])
    assert running.told == Counter({(A, in_store(number(total, "double"))): 1})
    running.push([(2, [(row, -1)])])
    assert running.told == before


def test_a_sum_of_doubles_overflows_only_while_it_does() -> None:
    running = Running(p.Group(0, (0,), (SUM,)), 2)
    large, small = (in_store(number(t, "double")) for t in ("1e308", "-1e308"))
    running.push([(0, [((A, large), 2)])])
    assert running.told == Counter({(A, number("INF", "double")): 1})
    running.push([(1, [((A, small), 1)])])
    assert running.told == Counter({(A, large): 1})


@pytest.mark.parametrize(
    ("kind", "most", "one"),
    [
        ("integer", str(2**63 - 1), "1"),
        ("decimal", "170141183460469231731.687303715884105727", "0.000000000000000001"),
    ],
)
def test_beyond_what_the_store_holds_there_is_no_sum_while_it_is_beyond(kind: str, most: str, one: str) -> None:
    running = Running(p.Group(0, (0,), (SUM, AVG)), 2)
    running.push([(0, [((A, number(most, kind)), 1)])])
    before = Counter(running.told)
    running.push([(1, [((A, number(one, kind)), 1)])])
    assert running.told == Counter({(A, None, None): 1})
    assert asked(Counter({(A, number(most, kind)): 1, (A, number(one, kind)): 1})).popitem()[0][3:5] == (None, None)
    running.push([(2, [((A, number(one, kind)), -1)])])
    assert running.told == before


def test_weights_of_many_bits_are_multiplied_exactly() -> None:
    running = Running(p.Group(0, (0,), (COUNT, SUM, AVG)), 2)
    many = 2**40 + 1
    running.push([(0, [((A, number("0.1", "double")), many)])])
    total = float(many * 3602879701896397) / 2**55
    assert running.told == Counter(
        {(A, integer(many), in_store(number(repr(total), "double")), in_store(number(repr(total / many), "double"))): 1}
    )
    running.push([(1, [((A, number("0.1", "double")), -many), ((A, number("0.01", "decimal")), many)])])
    assert running.told == Counter(
        {(A, integer(many), number("10995116277.77", "decimal"), number("0.01", "decimal")): 1}
    )


def test_a_group_that_vanishes_leaves_its_memory_to_others() -> None:
    running = Running(p.Group(0, (0,), (COUNT, SUM, CONCAT)), 2)
    row = [(NamedNode(f"http://k/{i}"), v) for i, v in enumerate([DOUBLES[0], DECIMALS[0], STRANGE[1], TEXTS[0]])]
    sizes = set()
    for at in range(40):
        running.push([(at, [(row[at % 4], 1), *([(row[(at - 1) % 4], -1)] if at else [])])])
        sizes.add(running.node.bytes)
        assert running.node.records == 1
        assert running.told.total() == 1
    assert len(sizes) < 8


def test_memory_shrinks_after_a_burst() -> None:
    running = Running(p.Group(0, (0,), (COUNT, SUM)), 2)
    burst: Tick = [((NamedNode(f"http://k/{i}"), DOUBLES[0]), 1) for i in range(6000)]
    running.push([(0, burst)])
    most = running.node.bytes
    assert running.node.records == 6000
    running.push([(1, [(row, -1) for row, _ in burst[5:]])])
    assert running.node.records == 5
    assert running.node.bytes < most / 100
    running.push([(2, [(burst[0][0], 1)])])
    assert running.told.total() == 5
    assert (burst[0][0][0], integer(2), number("0.2", "double")) in running.told


def test_terms_that_are_needed_are_held() -> None:
    running = Running(p.Group(0, (0,), (COUNT, SUM, CONCAT)), 2)
    running.push([(0, [((A, integer(20)), 1), ((B, TEXTS[1]), 1)])])
    running.terms.register(running.node)
    running.terms.collect()
    running.push([(1, [((A, integer(3)), 1), ((B, TEXTS[0]), 1)])])
    assert running.told == Counter({(A, integer(2), integer(23), None): 1, (B, integer(2), None, Literal("a; b")): 1})


def test_a_state_of_another_group_is_refused() -> None:
    small, large = Running(p.Group(0, (0,), (COUNT,)), 2), Running(p.Group(0, (0,), (COUNT, SUM)), 2)
    large.form = small.form
    with pytest.raises(ValueError, match="another group"):
        large.carried_over()
