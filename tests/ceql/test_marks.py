"""Which atoms an event satisfies, its partition and its window's attribute: against the reference."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from ceql_strategies import PREDICATES, TYPES, VOCAB, CeqlOptions, as_tuples, ceql_events
from hypothesis import given
from hypothesis import strategies as st
from loaded import load
from pyoxigraph import Literal, NamedNode, Variable
from reference.tuples import TupleEvent
from reference.values import Number, holds, normal, value_of
from strategies import Dice

from oxiseq.engine.cea.facts import compile_facts
from oxiseq.engine.cea.plan import Atom
from oxiseq.engine.cea.table_marks import TableMarker
from oxiseq.engine.cea.term_marks import TermMarker
from oxiseq.engine.events.encode import encode_events
from oxiseq.engine.events.tuples import TupleRows, read_rows
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.algebra import Expression
from oxiseq.grammar.ceql_algebra import Filtered, Holds

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


def partition_classes(values: list[list[int]]) -> list[int | None]:
    """For each event the first one of its partition."""
    return [None if 0 in ids else values.index(ids) for ids in values]


def expected_classes(events: list[TupleEvent]) -> list[int | None]:
    keys = [tuple(e.attributes(VOCAB).get(v) for v in BY) for e in events]
    return [None if None in key else keys.index(key) for key in keys]


@given(st.integers(0, 2**62))
def test_rdf_events_are_marked_as_the_reference_reads_them(seed: int) -> None:
    dice = Dice(seed)
    events = ceql_events(dice, ("S",), CeqlOptions(most=12))
    atoms = drawn_atoms(dice, PREDICATES)
    terms = TermDictionary()
    marker = TermMarker(compile_facts(atoms), VOCAB, terms, BY, WINDOW)
    cut = dice.between(0, len(events))
    symbol, partition, attribute, held = [], [], [], []
    for part in (events[:cut], events[cut:]):
        marks = marker.mark(encode_events([(e.time, e.graph) for e in part], terms))
        symbol += bits(marks.symbol)
        partition += marks.values.tolist()
        attribute += marks.attribute.tolist()
        held.append(marks.values)
        terms.hold(marks.values)
        terms.collect()
    tuples = as_tuples(events)
    assert symbol == expected_symbols(atoms, tuples)
    assert partition_classes(partition) == expected_classes(tuples)
    wanted = [float(e.attributes(VOCAB)[WINDOW].value) if WINDOW in e.attributes(VOCAB) else None for e in tuples]
    assert [None if np.isnan(a) else a for a in attribute] == wanted


# --- tables -----------------------------------------------------------------------------------------

COLUMNS: dict[str, list[tuple[pa.DataType, list[Any]]]] = {
    "numbers": [
        (pa.int64(), [1, 2, 3, 0, -1, 2**53, 2**53 + 1, 2**63 - 1, -(2**63)]),
        (pa.int32(), [1, 2, 3, -1]),
        (pa.int16(), [1, 2, 3, -1]),
        (pa.int8(), [1, 2, 3, -1]),
        (pa.uint32(), [1, 2, 3, 2**32 - 1]),
        (pa.uint16(), [1, 2, 3, 2**16 - 1]),
        (pa.uint8(), [1, 2, 3, 255]),
        (pa.uint64(), [1, 2, 3, 2**64 - 1]),
        (pa.uint64(), [1, 2, 3]),
        (pa.float64(), [1.0, 2.0, 3.0, 2.5, float("nan"), float("inf"), -0.0, 0.0, 2.0**53]),
        (pa.float32(), [1.0, 2.0, 0.1, float("nan"), -1.0]),
        (pa.decimal128(20, 3), [Decimal("1.000"), Decimal("2.500"), Decimal("0.100"), Decimal("2")]),
        (pa.dictionary(pa.int8(), pa.int64()), [1, 2, 3]),
    ],
    "others": [
        (pa.string(), ["x", "y", "", "2", "ä"]),
        (pa.large_string(), ["x", "y", "z"]),
        (pa.string_view(), ["x", "y", "2"]),
        (pa.dictionary(pa.int16(), pa.string()), ["x", "y", "2"]),
        (pa.dictionary(pa.uint8(), pa.large_string()), ["x", "y", "2"]),
        (pa.dictionary(pa.int64(), pa.string()), ["x", "y", "2"]),
        (pa.bool_(), [True, False]),
        (pa.null(), [None]),
        (pa.timestamp("us", "UTC"), [datetime(2020, 1, 1, tzinfo=UTC), datetime(2020, 1, 2, 12, 0, 0, 500_000, UTC)]),
        (pa.timestamp("ms"), [datetime(2020, 1, 1), datetime(2020, 1, 1, 1)]),
        (pa.date32(), [date(2020, 1, 1), date(2021, 1, 1)]),
        (pa.time64("us"), [time(1, 2, 3), time(0, 0, 0, 5)]),
        (pa.duration("s"), [timedelta(days=1), timedelta(seconds=5)]),
    ],
}
XSD = "http://www.w3.org/2001/XMLSchema#"
TABLE_PREDICATES = [
    *PREDICATES,
    "v = 9007199254740992e0",
    "v > 9007199254740992",
    "v >= 9007199254740993",
    "v < 9.007199254740993e15",
    "v != 2.5",
    "v <= 0",
    "v > -0.0e0",
    "v = 0.1",
    "v = 1e999",
    f"v = 'NaN'^^<{XSD}double>",
    f"v != 'NaN'^^<{XSD}double>",
    f"v < '0.1'^^<{XSD}float>",
    "2 < v",
    "NOT 2 <= v",
    "NOT v > 1",
    "v = 'x'",
    "v != 'x'",
    "v < 'x'",
    "v",
    "NOT v",
    "v = v",
    "w - v > 0",
    "w * v >= 4 AND NOT k = 'x'",
    "k < 'y'",
    "k > ''",
    "k = w",
    "k = true",
    "NOT k",
    "k",
    f"k > '2020-01-01T00:00:00Z'^^<{XSD}dateTime>",
    f"k <= '2020-01-01T00:30:00'^^<{XSD}dateTime>",
    f"k < '2020-06-01'^^<{XSD}date>",
    f"k = '01:02:03'^^<{XSD}time>",
    f"k > 'PT10S'^^<{XSD}dayTimeDuration>",
    "k = 'x'@en",
    "k = '2'",
    "1 < 2",
    "k + 1 = 2",
    "k = w OR v > w",
    "NOT (k = w AND v > w)",
]


def drawn_table(dice: Dice, rows: int) -> pa.Table:
    """Columns of one type each, some of them missing."""
    columns: dict[str, pa.Array] = {
        "type": pa.array([dice.pick([*TYPES, "D", VOCAB + "A", None]) for _ in range(rows)], pa.string()),
        "time": pa.array(sorted(dice.between(0, 2 * rows) for _ in range(rows)), pa.timestamp("us")),
    }
    for name, kinds in (("v", "numbers"), ("w", "numbers"), ("k", "others"), ("t", "numbers")):
        kind, values = dice.pick(COLUMNS[kinds] if dice.chance(80) else [c for all_ in COLUMNS.values() for c in all_])
        if dice.chance(92):
            drawn = [dice.pick(values) if dice.chance(85) else None for _ in range(rows)]
            columns[name] = pa.array(drawn, kind)
    if dice.chance(50):
        columns["type"] = columns["type"].dictionary_encode()
    if dice.chance(30):  # nulls among the values of a dictionary, too
        columns["type"] = pa.array(columns["type"].to_pylist(), pa.string()).dictionary_encode(null_encoding="encode")
    return pa.table(columns)


def batches(dice: Dice, table: pa.Table) -> list[TupleRows]:
    """Parts of all sizes, some with dictionaries of their own."""
    parts, low = [], 0
    while low < len(table):
        high = dice.between(low, len(table)) if dice.chance(50) else low + 1
        part = table[low:high]
        if dice.chance(30):
            fresh = [pa.array(column.to_pylist(), column.type) for column in part.columns]
            part = pa.table(fresh, part.schema)
        parts += list(read_rows(part.combine_chunks() if dice.chance(50) else part))
        low = high
    return parts


def cell(kind: pa.DataType, value: Any) -> Literal:
    """What cells.py says that a cell stands for, written anew."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if isinstance(value, str):
        return Literal(value)
    if isinstance(value, bool):
        return Literal(value)
    if isinstance(value, float):
        name = "float" if pa.types.is_float32(kind) else "double"
        shown = str(np.float32(value)) if name == "float" else repr(value)
        text = {"nan": "NaN", "inf": "INF"}.get(shown, shown)
    elif isinstance(value, datetime):
        zone = "" if kind.tz is None else "Z"
        name, text = "dateTime", value.replace(tzinfo=None).isoformat() + zone
    elif isinstance(value, timedelta):
        name, text = "dayTimeDuration", f"PT{value // timedelta(seconds=1)}S"
    else:
        name = {int: "integer", Decimal: "decimal", date: "date", time: "time"}[type(value)]
        text = str(value)
    return normal(Literal(text, datatype=NamedNode(XSD + name)))


def tuples_of(table: pa.Table) -> list[TupleEvent]:
    return [
        TupleEvent(
            n,
            n,
            None if row["type"] is None else VOCAB + row["type"].removeprefix(VOCAB),
            {
                VOCAB + a: cell(table.schema.field(a).type, v)
                for a, v in row.items()
                if a not in ("type", "time") and v is not None
            },
        )
        for n, row in enumerate(table.to_pylist())
    ]


@given(st.integers(0, 2**62))
def test_rows_are_marked_as_the_reference_reads_the_same_events(seed: int) -> None:
    dice = Dice(seed)
    table = drawn_table(dice, dice.between(0, 12))
    atoms = drawn_atoms(dice, TABLE_PREDICATES)
    marker = TableMarker(compile_facts(atoms), VOCAB, TermDictionary(), BY, WINDOW)
    symbol, partition, attribute = [], [], []
    for batch in batches(dice, table):
        marks = marker.mark(batch)
        symbol += bits(marks.symbol)
        partition += marks.values.tolist()
        attribute += marks.attribute.tolist()
    tuples = tuples_of(table)
    assert symbol == expected_symbols(atoms, tuples)
    assert partition_classes(partition) == expected_classes(tuples)
    for found, event in zip(attribute, tuples, strict=True):
        value = value_of(event.attributes(VOCAB)[WINDOW]) if WINDOW in event.attributes(VOCAB) else None
        assert np.isnan(found) if not isinstance(value, Number) else np.array_equal(found, float(value.value), True)


def test_texts_of_any_layout_are_compared_with_texts() -> None:
    """By equality alone, which looks up the texts that are named."""
    atoms = [Atom(VOCAB + "A", (predicate("v = 'x'"),)), Atom(VOCAB + "A", (predicate("v != 'x'"),))]
    marker = TableMarker(compile_facts(atoms), VOCAB, TermDictionary())
    for kind in (pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())):
        table = pa.table({"type": ["A"] * 3, "time": [1, 2, 3], "v": pa.array(["x", "y", None], kind)})
        [rows] = read_rows(table)
        assert bits(marker.mark(rows).symbol) == [[0], [1], []], kind
