"""Terms of windows: held while they are stored, given back when their last entry has left."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st
from profiles import drawn
from pyoxigraph import Literal, NamedNode, Triple
from window_cases import decoded, query_of, random_case
from window_run import WindowRun

from oxiseq.engine.events.encode import encode_events
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.window import Window

E = "http://e/"
P = NamedNode(E + "p")


@drawn(20)
@given(st.integers(0, 2**62))
def test_collecting_after_every_push_changes_nothing(seed: int) -> None:
    case = random_case(random.Random(seed), most_events=12, blank=False)
    lasting, collected = TermDictionary(), TermDictionary()
    runs = [(terms, WindowRun(case.queries, terms, case.window, tiny=case.tiny)) for terms in (lasting, collected)]
    for start, time in enumerate(sorted({time for time, _ in case.events})):
        events = [event for event in case.events if event[0] == time]
        found = []
        for terms, run in runs:
            answers = run.push(encode_events(events, terms))
            found.append(
                [
                    [
                        sorted(sorted(map(_shown, match)) for match in matches)
                        for matches in decoded(rows, key, 1, terms)
                    ]
                    for kind in (answers.new, answers.ended, answers.all)
                    for rows, key in zip(kind, run.keys, strict=True)
                ]
            )
        assert found[0] == found[1], start
        collected.collect()


def _shown(item: tuple[object, object]) -> str:
    return f"{item[0]} {item[1]}"


def test_a_term_is_given_back_when_its_last_triple_has_left() -> None:
    terms = TermDictionary()
    run = WindowRun([query_of("?x :p ?y")], terms, Window(2, counted=True), ["GO"])
    for i in range(500):
        value = NamedNode(f"{E}{i // 3}")
        run.push(encode_events([(i, [Triple(value, P, Literal(str(i)))])], terms))
        terms.collect()
        assert terms.find(value)
        assert terms.live < 16
    assert terms.find(NamedNode(f"{E}1")) == 0


def test_the_memo_is_asked_again_when_ids_have_new_terms() -> None:
    terms = TermDictionary()
    query = query_of("?x :p ?y FILTER(STRLEN(STR(?y)) = 2)")
    run = WindowRun([query], terms, Window(1, counted=True))
    for i in range(300):
        text = str(i % 12)
        answers = run.push(encode_events([(i, [Triple(P, P, Literal(text))])], terms))
        assert len(answers.new[0]) == (len(text) == 2), text
        del answers
        terms.collect()
