"""Whatever the text, the answer is a query or a QueryError whose place lies in the text."""

from __future__ import annotations

import re

from grammar_queries import QUERIES
from hypothesis import given
from hypothesis import strategies as st

from oxiseq.grammar import QueryError, check, load, parse, render

PIECES = re.compile(r"\w+|\s+|.", re.DOTALL)
TEXTS = sorted(QUERIES.values())
WORDS = sorted({p for text in TEXTS for p in PIECES.findall(text)})


@st.composite
def broken_texts(draw: st.DrawFn) -> str:
    """A query with one to three pieces dropped, added, replaced or cut off."""
    pieces = PIECES.findall(draw(st.sampled_from(TEXTS)))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(pieces)))
        match draw(st.sampled_from(["drop", "add", "replace", "cut"])):
            case "drop":
                del pieces[at : at + 1]
            case "add":
                pieces.insert(at, draw(st.sampled_from(WORDS)))
            case "replace":
                pieces[at : at + 1] = [draw(st.sampled_from(WORDS))]
            case _:
                del pieces[at:]
    return "".join(pieces)


@given(st.one_of(broken_texts(), st.text(max_size=30)))
def test_any_text_is_a_query_or_a_query_error(text: str) -> None:
    try:
        query = parse(text)
        check(query, text)
        assert parse(render(query)) == query
        load(text)
    except QueryError as error:
        assert 0 <= error.span.start <= error.span.end <= len(text) + 1
        assert error.line == text.count("\n", 0, error.span.start) + 1
        assert str(error)
