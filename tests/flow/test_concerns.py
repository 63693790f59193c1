"""What continuous queries ask of the knowledge base is asked again only when a change may matter to the answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pytest
from hypothesis import event, given, note
from hypothesis import strategies as st
from lowering_strategies import Drawing
from profiles import drawn
from store_changes import CHANGES, PREFIX, Change
from test_standing import Bag, bound, made

import oxiseq
from oxiseq.api import knowledge
from oxiseq.api.knowledge import ConcernedKb
from oxiseq.engine.kb import Solution

S = "http://e/s"
EACH = "REGISTER RSTREAM :out AS SELECT ?x ?y FROM NAMED WINDOW :w ON :s [RANGE 10] WHERE "
QUERIES = {
    "patterns": ("rspql", EACH + "{ WINDOW :w { ?x :v ?n } GRAPH :g { ?x :p ?y } }"),
    "a path": ("rspql", EACH + "{ WINDOW :w { ?x :v ?n } GRAPH :g { ?x :p+ ?y } }"),
    "a sequence": (
        "spaseq",
        "SELECT ?x ?y WITHIN 10 SECONDS SLIDING FROM STREAM S :s WHERE "
        "{ SEQ(A) DEFINE GPM A ON S { ?x :v ?n GRAPH :g { ?x :p ?y } } }",
    ),
    "intervals": ("epsparql", "SELECT ?x ?y FROM STREAM :s WHERE { ?x :v ?n GRAPH :g { ?x :p ?y } }"),
}


@st.composite
def questions(draw: st.DrawFn) -> str:
    """Patterns as deep as SPARQL goes."""
    return f"{PREFIX}SELECT * WHERE {{ {Drawing(draw, '').group(draw(st.sampled_from([0, 1, 2]))).text} }}"


def answered(kb: ConcernedKb, text: str) -> Bag:
    found = kb.solutions(text)
    names = [variable.value for variable in found.variables]
    return Counter(bound({name: solution[name] for name in names}) for solution in found)


@drawn(100)
@given(st.lists(questions(), min_size=1, max_size=3), st.lists(CHANGES, max_size=8))
def test_an_answer_that_is_said_to_hold_does(texts: list[str], changes: list[Change]) -> None:
    store = oxiseq.Store()
    kb = store.kb
    before = {text: answered(kb, text) for text in texts}
    kb.watch(texts)
    first = kb.version
    for change in changes:
        made(store, change)
        for text in texts:
            note(text)
            if kb.unchanged_since(first, [text]):
                event("holds")
                assert answered(kb, text) == before[text]


class Counting(ConcernedKb):
    """How often it is asked."""

    asked = 0

    def solutions(self, query_text: str) -> Iterable[Solution]:  # type: ignore[override]
        Counting.asked += 1
        return super().solutions(query_text)


@pytest.mark.parametrize("name", QUERIES)
def test_only_what_it_reads_is_asked_again(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oxiseq.api.store.ConcernedKb", Counting)
    language, text = QUERIES[name]
    store = oxiseq.Store()
    store.update(PREFIX + "INSERT DATA { GRAPH :g { :a :p :b } }")
    query = store.register(PREFIX + text, language=language)  # type: ignore[call-overload]
    stream, told = store.stream(S), list[list[str]]()

    def push(second: int) -> None:
        before, known = Counting.asked, query.match_count
        stream.push("<http://e/a> <http://e/v> 1 .", second * 20_000_000)
        stream.advance(second * 20_000_000 + 1)
        told.append(sorted(str(match["y"].value)[9:] for match in query.matches(known)))
        asked.append(Counting.asked > before)

    asked: list[bool] = []
    push(1)
    for second, update in enumerate(
        [
            "INSERT DATA { :a :p :c . GRAPH :h { :a :p :d } . GRAPH :g { :a :q :e } }",
            "INSERT DATA { GRAPH :g { :a :p :c } }",
            "DELETE WHERE { GRAPH :g { ?x :q ?y } }",
            "DELETE DATA { GRAPH :g { :a :p :b } }",
            "CLEAR DEFAULT",
        ],
        2,
    ):
        store.update(PREFIX + update)
        push(second)
    assert asked == [True, False, True, False, True, False]
    assert told == [["b"], ["b"], ["b", "c"], ["b", "c"], ["c"], ["c"]]
    store.touch()
    push(9)
    assert asked[-1]


def test_a_store_forgets_what_it_watches_when_that_is_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(knowledge, "MOST", 100)
    kb = oxiseq.Store().kb
    kb.watch([f"SELECT * {{ ?x <urn:{number}> ?y }}" for number in range(101)])
    assert kb.watches
    assert len(kb._read) == 1
    assert not kb.unchanged_since(kb.version, ["SELECT * { ?x <urn:0> ?y }"])
