"""Bodies of rows: what is taken, and what is said of each row that is not."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mapped_rows import events_of, rows_of

from oxiseq.engine.errors import EventError, LimitError
from oxiseq.mappings.declared import StreamMapping
from oxiseq.mappings.plan import _PLAIN_IRI, MappingError, is_iri
from oxiseq.mappings.rows import csv_table, json_table, lines_table, read_table, senml_table

FLAT: Final[dict[str, Any]] = {
    "subject": "http://ex/{id}",
    "predicates": {"http://ex/t": {"column": "temp", "datatype": "xsd:double"}},
    "time": "ts",
    "unit": "s",
}
MAPPING: Final = StreamMapping(FLAT)


def _bad(rows: list[Any], **other: Any) -> list[tuple[int | None, str | None, str]]:
    return [(each.place, each.column, each.reason) for each in rows_of(rows, {**FLAT, **other})[1]]


def test_good_rows_are_taken_and_bad_ones_named() -> None:
    rows = [
        {"id": 1, "temp": 20.5, "ts": 10},
        {"id": 2, "temp": "warm", "ts": 11},
        {"temp": 1, "ts": 12},
        5,
        {"id": 3, "temp": 21, "ts": "soon"},
        {"id": 4, "ts": 14},
        {"id": "a b", "temp": " 22 ", "ts": "15"},
    ]
    events, bad = rows_of(rows, FLAT)
    assert [at for at, _ in events] == [10_000_000, 15_000_000]
    assert "<http://ex/a%20b>" in "".join(events[1][1])
    assert [(each.place, each.column) for each in sorted(bad, key=lambda b: b.place or 0)] == [
        (2, "temp"),
        (3, "id"),
        (4, None),
        (5, "ts"),
        (6, None),
    ]


@pytest.mark.parametrize("value", ['a"b', "a b", "a>b", "a> <b", "a> . #", "x\\u0020", "a\nb", "{", "\x00"])
def test_no_value_leaves_its_iri(value: str) -> None:
    assert _bad([{"id": value, "temp": 1, "ts": 1}], subject="http://ex/{+id}") == [
        (1, "id", f"{('http://ex/' + value)!r} is no IRI")
    ]
    (event,), bad = rows_of([{"id": value, "temp": 1, "ts": 1}], FLAT)
    assert not bad and len(event[1]) == 1


@pytest.mark.parametrize("value", ["ex:b/", "ex/a#b#c", "a@b@c/", "a:b@c:d/"])
def test_a_text_of_usual_characters_that_is_no_iri_is_none(value: str) -> None:
    assert _bad([{"id": value, "temp": 1, "ts": 1}], subject="http://{+id}") == [
        (1, "id", f"{('http://' + value)!r} is no IRI")
    ]


@given(st.text(alphabet="ab1.-:/?#@[]$&", max_size=12).map("a:".__add__))
def test_what_is_taken_for_an_iri_is_one(text: str) -> None:
    assert not _PLAIN_IRI.fullmatch(text) or is_iri(text)


@pytest.mark.parametrize(
    "declared",
    [
        {"predicates": {"http://ex/a": {"value": "\ud800"}}},
        {"predicates": {"http://ex/a": "\ud800"}},
        {"type": "http://ex/a", "time": "\ud800"},
        "CONSTRUCT { <a:b> <a:c> '\ud800' } WHERE {}",
    ],
)
def test_half_a_character_is_in_no_mapping(declared: Any) -> None:
    with pytest.raises(MappingError, match="surrogates not allowed"):
        StreamMapping(declared)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"id": 1, "temp": NaN, "ts": 1}', "NaN is no JSON"),
        ('{"id": 1, "temp": 1e999, "ts": 1}', "beyond a double"),
        ('{"id": 1, "id": 2, "temp": 1, "ts": 1}', "twice"),
        ('{"id": 1, "temp": 1, "ts": 1, "x": [{"a": 1, "a": 2}]}', "twice"),
        ('{"id": "\\ud800", "temp": 1, "ts": 1}', "half a character"),
        ("[" * 100_000, "nested too deeply"),
        ('{"a":' * 100_000, "nested too deeply"),
        ('{"id": ' + "9" * 10_000 + "}", "digits"),
        ('{"a": {"' + "n" * 2_000 + '": 1}}', "1000 characters"),
        ('{"id": 5, "temp": 1, "ts": 1, "temp": "x"}', "twice"),
        ("5", "an object is expected"),
        ("{", "no JSON"),
    ],
)
def test_a_hostile_line_is_left_out_alone(text: str, reason: str) -> None:
    good = '{"id": 1, "temp": 1, "ts": 1}'
    table = lines_table(f"{good}\n{text}\n\n{good}\r\n".encode(), MAPPING.key)
    events, bad = events_of(table, MAPPING)
    assert len(events) == 2
    assert [each.place for each in bad] == [2]
    assert reason in str(bad[0])


def test_very_many_columns_cost_no_more_than_their_text() -> None:
    row = {f"c{number}": 1 for number in range(200_000)} | {"id": 1, "temp": 2, "ts": 3}
    table = json_table(json.dumps([row, {"id": 2, "temp": 2, "ts": 3}]).encode(), MAPPING.key)
    assert set(table.columns) == {"id", "temp", "ts"}
    assert len(events_of(table, MAPPING)[0]) == 2


def test_names_do_not_multiply() -> None:
    row = {"n" * 900: {f"m{number}": 1 for number in range(10_000)}}
    assert len(json_table(json.dumps(row).encode(), MAPPING.key)) == 1
    deep = {"n" * 900: {"m" * 200: 1}}
    assert "1000 characters" in json_table(json.dumps(deep).encode(), MAPPING.key).bad[0].reason


def test_a_mapping_that_multiplies_its_rows_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oxiseq.mappings.plan.MOST_TEXT", 256 << 10)
    given = {"predicates": {f"http://ex/{number}": "x" for number in range(600)}, "time": None}
    with pytest.raises(LimitError, match="characters of the terms"):
        rows_of([{"x": "x" * 1_000}], given, 5)


@pytest.mark.parametrize("body", [b"", b" \n", b"[]", b"\xef\xbb\xbf"])
def test_nothing_is_no_row(body: bytes) -> None:
    assert len(read_table(body, "application/json", MAPPING.key)) == 0


def test_csv_rows() -> None:
    body = 'id;temp;ts;"more"\n1;20.5;10;x\n2;warm;11;\n3;1;12\n"4\n5";7;13;"a;b"\n\n6;;14;\n'
    events, bad = events_of(csv_table(body.encode(), MAPPING.key), MAPPING)
    assert [at for at, _ in events] == [10_000_000, 13_000_000]
    assert sorted((each.place or 0, each.column, each.reason) for each in bad) == [
        (3, "temp", "'warm' is no xsd:double"),
        (4, None, "3 columns, 4 expected"),
        (8, None, "the mapping makes no triple from it"),
    ]


def test_a_table_without_a_column_of_the_mapping_is_refused() -> None:
    with pytest.raises(EventError, match="no column 'temp', which the mapping reads; there are id, tmp, ts"):
        events_of(csv_table(b"id,tmp,ts\n1,2,3\n", MAPPING.key), MAPPING)


def test_csv_that_is_not_utf8() -> None:
    table = csv_table(b"id,temp,ts\n1,2,3\n\xff,2,4\n", MAPPING.key)
    assert (len(table), [(b.place, b.reason) for b in table.bad]) == (1, [(3, "not UTF-8")])


@pytest.mark.parametrize("body", [b"," * 20_000, b"a,b\n" + b"," * 20_000, b"a,a\n1,2", b'"a'])
def test_hostile_csv_is_refused(body: bytes) -> None:
    with pytest.raises(EventError):
        csv_table(body, MAPPING.key)


def test_numbers_that_seem_to_be_of_another_unit_are_refused() -> None:
    with pytest.raises(EventError, match=r"seems to hold seconds: .* say the mapping's unit"):
        rows_of([{"id": 1, "temp": 1, "ts": 1_714_557_600}], {**FLAT, "unit": None})


SENML: Final = [
    {"bn": "urn:dev:1:", "bt": 1_276_020_076, "bu": "A", "n": "voltage", "u": "V", "v": 120.1},
    {"n": "current", "t": -5, "v": 1.2},
    {"n": "on", "vb": True},
    {"n": "both", "v": 1, "vs": "x"},
    {"must_": 1, "v": 1},
    {"bv": 100, "n": "sum", "v": 1},
    {"t": 1},
]


def test_senml_records_are_resolved() -> None:
    mapping = StreamMapping("senml")
    events, bad = events_of(senml_table(json.dumps(SENML).encode(), mapping.key, 0), mapping)
    assert [at // 1_000_000 for at, _ in events] == [1_276_020_076, 1_276_020_071, 1_276_020_076, 1_276_020_076]
    texts = ["\n".join(graph) for _, graph in events]
    assert '"urn:dev:1:current"' in texts[1] and '"A"' in texts[1] and '"V"' in texts[0]
    assert '"true"' in texts[2] and '"101"' in texts[3]
    assert [each.place for each in bad] == [4, 5, 7]
