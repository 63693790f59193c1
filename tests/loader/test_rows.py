"""Rows of tables as programs write them, and what of them is bad."""

from __future__ import annotations

import datetime as dt
import gzip
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyoxigraph import Literal

from oxiseq.kb_loader.quarantine import Fault
from oxiseq.kb_loader.rows import Rows, table_rows
from oxiseq.kb_loader.sources import BROKEN, source_of
from oxiseq.kb_loader.tables import Mapping

XSD = "http://www.w3.org/2001/XMLSchema#"


def read(file: Path, content: bytes | pa.Table) -> tuple[list[dict[str, Any]], list[int | None], list[Fault]]:
    """Rows without what is None, their lines, and faults; an error while reading is the last fault."""
    if isinstance(content, bytes):
        file.write_bytes(content)
    else:
        pq.write_table(content, file)
    rows: list[dict[str, Any]] = []
    lines: list[int | None] = []
    faults: list[Fault] = []
    unpacked, raw = source_of(file).open()
    with raw, unpacked:
        try:
            for part in table_rows(source_of(file), unpacked, faults.append):
                named = (zip(part.names, row, strict=True) for row in part.values)
                rows += [{name: value for name, value in row if value is not None} for row in named]
                lines += part.lines
        except BROKEN as error:
            faults.append(Fault(None, None, str(error)))
    return rows, lines, faults


ROW = [{"a": "1", "b": "2"}]


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("t.csv", b"\xef\xbb\xbfa,b\n1,2\n", ROW),
        ("t.csv", b"a;b\r\n1;2\r\n", ROW),
        ("t.csv", b"a\tb\n1\t2", ROW),
        ("t.csv", b"a,b\r1,2\r", ROW),
        ("t.csv", b'"a",b,\n"1",2,\n\n', ROW),
        ("t.tsv", b"a\tb,c\n1\t2,3\n", [{"a": "1", "b,c": "2,3"}]),
        ("t.csv.gz", gzip.compress(b"a,b\n1,2\n", mtime=0), ROW),
        ("t.csv", b'"a\nb",c\n"x\n""y""",\n', [{"a\nb": 'x\n"y"'}]),
        ("t.csv", b'a,b\n"","' + b"x" * 300_000 + b'"\n', [{"b": "x" * 300_000}]),
        ("t.csv", b"a,b\n", []),
        ("t.csv", b"", []),
        ("t.json", b'[{"a": 1},\n {"b": [1, {"c": null}]}]', [{"a": 1}, {"b": [1, {"c": None}]}]),
        (
            "t.jsonl",
            b'\n{"a": {"b": {"c": 1}, "d": "2020-01-01"}}\n{"e": 1.5, "a": true}',
            [{"a.b.c": 1, "a.d": "2020-01-01"}, {"e": 1.5, "a": True}],
        ),
        ("t.jsonl", b"", []),
    ],
)
def test_tables_as_programs_write_them(
    tmp_path: Path, name: str, content: bytes, expected: list[dict[str, Any]]
) -> None:
    rows, _, faults = read(tmp_path / name, content)
    assert (rows, faults) == (expected, [])


def test_bad_rows_are_told_with_their_lines_and_others_read(tmp_path: Path) -> None:
    text = b'a,b\n1,"x\ny"\n2\n3,\xff\n4,"z"z\n\n5,6\n6,7,8\n7,"open\n8,9\n'
    rows, lines, faults = read(tmp_path / "t.csv", text)
    assert (rows, lines) == ([{"a": "1", "b": "x\ny"}, {"a": "5", "b": "6"}], [2, 8])
    assert [(f.line, f.last, f.text) for f in faults] == [
        (4, 4, "2"),
        (5, 5, "3,\ufffd"),
        (6, 6, '4,"z"z'),
        (9, 9, "6,7,8"),
        (10, 11, '7,"open\n8,9'),
    ]
    assert [f.reason for f in faults[:2]] == ["1 columns, 2 expected", "not UTF-8"]
    text = b'{"a": 1}\n{"a": }\n[1]\n{"a": "\\ud800"}\n{"a": "\xff"}\n{"a": 2}\n'
    rows, lines, faults = read(tmp_path / "t.jsonl", text)
    assert (rows, lines) == ([{"a": 1}, {"a": 2}], [1, 6])
    assert [f.line for f in faults] == [2, 3, 4, 5]
    assert [f.reason for f in faults] == [
        "Expecting value at character 7",
        "an object expected",
        "not Unicode: surrogates not allowed",
        "not UTF-8",
    ]


def test_what_is_read_before_a_file_is_cut_off_is_kept(tmp_path: Path) -> None:
    many = b"a,b\n" + b"".join(b"%d,%d\n" % (i, i * 7919 % 9973) for i in range(20_000))
    rows, _, faults = read(tmp_path / "t.csv.gz", gzip.compress(many)[:-1000])
    assert len(rows) > 15_000
    assert [f.line for f in faults] == [None]
    rows, _, faults = read(tmp_path / "t.json", b'[{"a": 1}, 2]')
    assert (rows, [f.reason for f in faults]) == ([], ["an array of objects expected"])


def test_values_of_parquet_become_literals_of_their_types(tmp_path: Path) -> None:
    at = dt.datetime(2020, 1, 2, 3, 4, 5, 6000)
    table = pa.table(
        {
            "a": [at],
            "b": pa.array([at], pa.timestamp("us", tz="Europe/Berlin")),
            "c": [at.date()],
            "d": [at.time()],
            "e": [dt.timedelta(days=-1, seconds=-2, microseconds=-500_000)],
            "f": [Decimal("1.50")],
            "g": [b"\xff"],
            "h": pa.array([2**64 - 1], pa.uint64()),
            "i": [[1, None]],
            "j": [{"k": 1, "l": {"m": at.date()}}],
            "n": pa.array([None], pa.int8()),
            "o": ["C:\\u0041"],
            "p": pa.array([at], pa.date64()),
            "q": [[at.date()]],
        }
    )
    rows, lines, faults = read(tmp_path / "t.parquet", table)
    assert (lines, faults) == ([None], [])
    (row,) = rows
    mapping = Mapping(
        f"CONSTRUCT {{ {' '.join(f'<a:a> <a:{n}> ?{n}.' for n in 'abcdefghinopq')} <a:a> <a:k> ?j_k ; "
        "<a:m> ?j_l_m } WHERE {}"
    )
    values = Rows(tuple(row), [tuple(row.values())], [None])
    found = {t.predicate.value[2:]: t.object for t in mapping.triples(values)}
    texts = {name: (o.value, o.datatype.value.removeprefix(XSD)) for name, o in found.items() if isinstance(o, Literal)}
    assert texts == {
        "a": ("2020-01-02T03:04:05.006", "dateTime"),
        "b": ("2020-01-02T04:04:05.006+01:00", "dateTime"),
        "c": ("2020-01-02", "date"),
        "d": ("03:04:05.006", "time"),
        "e": ("-P1DT2.5S", "dayTimeDuration"),
        "f": ("1.5", "decimal"),
        "g": ("/w==", "base64Binary"),
        "h": ("18446744073709551615", "integer"),
        "i": ("[1, null]", "string"),
        "k": ("1", "integer"),
        "m": ("2020-01-02", "date"),
        "o": ("C:\\u0041", "string"),
        "p": ("2020-01-02", "date"),
        "q": ('["2020-01-02"]', "string"),
    }
