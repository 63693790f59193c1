"""Texts that are almost queries, and what must come of any text."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hypothesis import strategies as st

from oxiseq.grammar import QueryError, check, load, parse, render


def pieces(text: str) -> list[str]:
    """Its words, blanks and marks."""
    return re.findall(r"\w+|\s+|.", text, re.DOTALL)


@st.composite
def broken_texts(draw: st.DrawFn, texts: Sequence[str], words: Sequence[str]) -> str:
    """One of the texts with one to three pieces dropped, added, replaced or cut off; `words` are what may be added."""
    broken = pieces(draw(st.sampled_from(texts)))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(broken)))
        match draw(st.sampled_from(["drop", "add", "replace", "cut"])):
            case "drop":
                del broken[at : at + 1]
            case "add":
                broken.insert(at, draw(st.sampled_from(words)))
            case "replace":
                broken[at : at + 1] = [draw(st.sampled_from(words))]
            case _:
                del broken[at:]
    return "".join(broken)


def assert_read_or_refused(text: str, language: str) -> None:
    """It is a query, which is written as it was read, or a QueryError whose place lies in the text."""
    try:
        query = parse(text, language)
        check(query, text)
        assert parse(render(query), language) == query
        load(text, language)
    except QueryError as error:
        assert 0 <= error.span.start <= error.span.end <= len(text) + 1
        assert error.line == text.count("\n", 0, error.span.start) + 1
        assert str(error)
