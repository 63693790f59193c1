"""Whatever the text, the answer is a query or a QueryError whose place lies in the text."""

from __future__ import annotations

from broken_texts import assert_read_or_refused, broken_texts, pieces
from grammar_queries import QUERIES
from hypothesis import given
from hypothesis import strategies as st

TEXTS = sorted(QUERIES.values())
WORDS = sorted({p for text in TEXTS for p in pieces(text)})


@given(st.one_of(broken_texts(TEXTS, WORDS), st.text(max_size=30)))
def test_any_text_is_a_query_or_a_query_error(text: str) -> None:
    assert_read_or_refused(text, "spaseq")
