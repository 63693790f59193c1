"""A column that can never be what a query compares it with is told of, once, at `run` and on the command line."""

from __future__ import annotations

import sys
import warnings
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import oxiseq
from oxiseq.sources.unmet import UnmetWarning
from oxiseq.sources.warned import ColumnWarning

sys.path.insert(0, str(Path(__file__).parents[1] / "cli"))
from cli_files import oxiseq as command

EX = "http://example.org/"


def query(rest: str) -> str:
    return f"VOCAB <{EX}> SELECT * FROM S WHERE A AS x {rest}"


def told(rest: str, **columns: list[Any]) -> list[str]:
    """The warnings of a run over a table of these columns."""
    count = len(next(iter(columns.values())))
    table = pa.table({"time": list(range(count)), "type": ["A"] * count, **columns})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", oxiseq.LintWarning)
        warnings.simplefilter("ignore", UnmetWarning)
        found = oxiseq.run(query(rest), {"S": table}, language="ceql")
    if caught:
        assert not len(found)
        assert {(each.category, each.filename) for each in caught} == {(ColumnWarning, __file__)}
    return [str(each.message) for each in caught]


def test_text_compared_with_a_number() -> None:
    assert told("FILTER x[price > 5]", price=["7", None, "n/a", "9"]) == [
        "the column 'price' holds text (such as 'n/a'), and price > 5 asks for numbers: none of its rows can be it; "
        "give the column as numbers (in CSV one cell that is no number makes a column text)"
    ]


@pytest.mark.parametrize(
    ("rest", "columns", "words"),
    [
        ("FILTER x[5 < price]", {"price": pa.array(["7"]).dictionary_encode()}, "holds text (such as '7')"),
        ("FILTER x[price = 'x']", {"price": [1]}, "holds numbers, and price = 'x' asks for text"),
        ("FILTER x[on = 1]", {"on": [True]}, "holds true and false, and on = 1 asks for numbers"),
        ("FILTER x[day > '2026']", {"day": [datetime(2026, 1, 1, tzinfo=UTC)]}, "holds times with a date"),
        ("FILTER x[NOT price > 5 AND price < 9]", {"price": ["7"]}, "price > 5 asks for numbers"),
        ("WITHIN 4 [clock]", {"clock": ["1"]}, "holds text (such as '1'), and WITHIN ... [clock] asks for numbers"),
    ],
)
def test_other_columns_and_places(rest: str, columns: dict[str, Any], words: str) -> None:
    assert words in told(rest, **columns)[0]


@pytest.mark.parametrize(
    ("rest", "columns"),
    [
        ("FILTER x[price > 5]", {"price": [1.5]}),
        ("FILTER x[price > 5.0]", {"price": [1]}),
        ("FILTER x[price > 5]", {"other": ["x"]}),
        ("FILTER x[price > 5]", {"price": pa.array([None, None], pa.string())}),
        ("FILTER x[name > 'a']", {"name": ["a"]}),
        ("WITHIN 4 [clock]", {"clock": [1]}),
    ],
)
def test_nothing_is_said_of_columns_that_can_be_it(rest: str, columns: dict[str, Any]) -> None:
    assert told(rest, **columns) == []


def test_the_command_line_says_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("dear.ceql").write_text(query("FILTER x[price > 5]"), encoding="utf-8")
    Path("prices.csv").write_text("time,type,price\n1,A,7\n2,A,seven\n", encoding="utf-8")
    result = command("run", "dear.ceql", "--stream", "S=prices.csv", "-f", "json")
    assert result.exit_code == 0, result.stderr
    assert "note: the column 'price' holds text (such as 'seven'), and price > 5 asks for numbers" in result.stderr
    quiet = command("run", "dear.ceql", "--stream", "S=prices.csv", "-f", "json", "--quiet")
    assert "note:" not in quiet.stderr
