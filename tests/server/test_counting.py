"""Rows are counted in what pyoxigraph writes, however it is cut and whatever the terms hold."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import QueryResultsFormat, QuerySolutions, Store

from oxiseq.sparql.evaluation import counter_of

FORMATS = [QueryResultsFormat.JSON, QueryResultsFormat.XML, QueryResultsFormat.CSV, QueryResultsFormat.TSV]
PIECES = ["a", '"', "\\", ",", "{", "}", "[", "]", "\n", "\r", "\t", "<", ">", "'", "<result>", ",{", "é"]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=8).map("".join)


def literal(text: str) -> str:
    """As SPARQL writes it."""
    escapes = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
    return '"' + "".join(escapes.get(c, c) for c in text) + '"'


@pytest.mark.parametrize("format_", FORMATS, ids=lambda f: f.file_extension)
@given(
    rows=st.lists(st.tuples(st.none() | TEXTS, st.none() | TEXTS), max_size=6),
    cuts=st.lists(st.integers(0, 400), max_size=12),
)
def test_rows_are_counted(
    format_: QueryResultsFormat, rows: list[tuple[str | None, str | None]], cuts: list[int]
) -> None:
    terms = " ".join(f"({' '.join('UNDEF' if t is None else literal(t) for t in row)})" for row in rows)
    found = Store().query(f"SELECT ?x ?y {{ VALUES (?x ?y) {{ {terms} }} }}")
    assert isinstance(found, QuerySolutions)
    written = found.serialize(format=format_)
    assert written is not None
    places = sorted({0, len(written), *(cut for cut in cuts if cut < len(written))})
    counter = counter_of(format_)
    for start, end in pairwise(places):
        counter.add(written[start:end])
    assert counter.rows == len(rows)
