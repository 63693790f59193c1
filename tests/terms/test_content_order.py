"""Rows are told in the order of their terms' texts."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from profiles import drawn
from pyoxigraph import Literal, NamedNode

from oxiseq.engine.terms.content import content_order
from oxiseq.engine.terms.dictionary import TermDictionary

TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=12)


@given(st.lists(TEXTS, min_size=1, max_size=6), st.integers(0, 2), st.data())
@drawn(100)
def test_rows_stand_as_their_texts_do(texts: list[str], of_kb: int, data: st.DataObject) -> None:
    terms = TermDictionary()
    iris = [NamedNode("http://e/" + "x" * n) for n in range(3)]
    ids = [0, *map(terms.intern, [*map(Literal, texts), *iris])]
    blanks = [terms.blank() for _ in range(4)]
    known = np.array(blanks[4 - of_kb :][::-1], np.uint32)
    rows = data.draw(st.lists(st.tuples(st.integers(0, 2), *[st.sampled_from([*ids, *blanks])] * 2), max_size=25))
    event = np.array([row[0] for row in rows], np.int64)
    values = np.array([row[1:] for row in rows], np.uint32).reshape(len(rows), 2)

    def key(i: int) -> tuple[int, str, int]:
        if i == 0:
            return 0, "", 0
        if i in known:
            return 2, "", known.tolist().index(i)
        return (3, "", blanks.index(i)) if i in blanks else (1, terms.text(i), 0)

    expected = sorted(range(len(rows)), key=lambda k: (rows[k][0], [key(i) for i in rows[k][1:]]))
    assert content_order(event, values, terms, known).tolist() == expected
