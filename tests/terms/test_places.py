"""Ids numbered as they first appear, beside dictionaries that do the same one by one."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from oxiseq.engine.events.batch import EventBatch, offsets
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.places import first_places, numbered
from oxiseq.journal import pack_events, unpack_events


@given(st.lists(st.integers(0, 9)))
def test_numbers_are_of_the_first_appearance(ids: list[int]) -> None:
    given_ids = np.array(ids, np.uint32)
    used, codes = numbered(given_ids, 10)
    order = list(dict.fromkeys(ids))
    assert used.tolist() == order
    assert codes.tolist() == [order.index(i) + 1 for i in ids]
    assert first_places(given_ids, 10).tolist() == [ids.index(i) for i in ids]


@given(st.lists(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=4), max_size=4))
def test_blank_nodes_of_several_events_are_told_apart_when_packed(graphs: list[list[tuple[int, int]]]) -> None:
    """Ids 0 and 1 are IRIs, the others blank nodes, which may stand in several events."""
    terms = TermDictionary()
    pool = np.concatenate([[terms.intern_written(b"<http://e/%d>" % i) for i in (0, 1)], terms.blanks(3)])
    subjects, objects = (
        pool[[pair[i] for graph in graphs for pair in graph]].astype(np.uint32)
        if any(graphs)
        else np.zeros(0, np.uint32)
        for i in (0, 1)
    )
    predicates = np.full(len(subjects), pool[0], np.uint32)
    batch = EventBatch(
        np.arange(len(graphs)), offsets(np.array([*map(len, graphs)], np.int64)), subjects, predicates, objects
    )
    found = unpack_events([pack_events(batch, terms)], terms)
    told: dict[tuple[int, int], int] = {}
    for number, graph in enumerate(graphs):
        low = found.offset[number]
        for at, pair in enumerate(graph):
            for place, column in zip(pair, (found.subject, found.object), strict=True):
                new = int(column[low + at])
                if place < 2:
                    assert new == pool[place]
                else:
                    assert told.setdefault((number, place), new) == new
    assert len(set(told.values())) == len(told)
    assert np.diff(found.offset).tolist() == [*map(len, graphs)]
