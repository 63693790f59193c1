"""Each wrong query is refused with exactly the text and place that the data file says."""

from __future__ import annotations

import pickle
import tomllib
from pathlib import Path

import pytest

from oxiseq.grammar import QueryError, load


def cases(file: str) -> list[dict[str, str]]:
    return tomllib.loads(Path(__file__).with_name(file).read_text(encoding="utf-8"))["case"]


CASES = cases("wrong_queries.toml")
CEQL = cases("wrong_ceql.toml")


@pytest.mark.parametrize("case", CASES, ids=[c["name"] for c in CASES])
def test_wrong_query(case: dict[str, str]) -> None:
    with pytest.raises(QueryError) as caught:
        load(case["query"])
    assert str(caught.value) == case["shown"]
    assert (caught.value.line, caught.value.column) == (case["line"], case["column"])


@pytest.mark.parametrize("case", CEQL, ids=[c["name"] for c in CEQL])
def test_wrong_ceql_query(case: dict[str, str]) -> None:
    with pytest.raises(QueryError) as caught:
        load(case["query"], "ceql")
    assert str(caught.value) == case["shown"]
    assert (caught.value.line, caught.value.column) == (case["line"], case["column"])


def test_error_survives_pickling_and_is_json() -> None:
    with pytest.raises(QueryError) as caught:
        load("SELECT")
    error = caught.value
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    assert error.to_json()["line"] == 1
    assert error.to_json()["severity"] == "error"


def test_caret_stands_under_the_text_after_tabs() -> None:
    with pytest.raises(QueryError) as caught:
        load("SELECT *\n\tWHER {")
    lines = str(caught.value).split("\n")
    assert lines[2] == "  2 | \tWHER {"
    assert lines[3] == "    | \t^^^^"


def test_carriage_returns_do_not_shift_lines() -> None:
    with pytest.raises(QueryError) as caught:
        load("SELECT *\r\nWHER {\r\n")
    assert (caught.value.line, caught.value.column, caught.value.source_line) == (2, 1, "WHER {")
