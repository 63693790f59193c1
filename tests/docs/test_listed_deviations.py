"""What docs/languages/continuous-sparql.md and docs/standing-queries.md say of `/query`, tried on both sides."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

import oxiseq

DATA = "<e:a> <e:p> <e:b> ; <e:q> <e:b> . <e:c> <e:p> 'x' ."
DOCS = Path(__file__).parents[2] / "docs"
PAGES = (DOCS / "languages" / "continuous-sparql.md", DOCS / "standing-queries.md")
CASES = {
    "each alternative": ("{ <e:a> (<e:p>|<e:q>) ?x }", "?s (:p|:q) ?x", [{"x": "e:b"}], [{"x": "e:b"}] * 2),
    "an absent term": ("{ <e:absent> <e:p>* ?x }", ":a :p* ?x", [], [{"x": "e:absent"}]),
    "COUNT of an error": ("{ ?s <e:p> ?x }", "COUNT of an expression", [{"n": None}], [{"n": "0"}]),
}


@pytest.mark.parametrize("case", CASES)
def test_where_query_differs(case: str) -> None:
    where, words, by_query, by_us = CASES[case]
    shown = "(COUNT(?x / 0) AS ?n)" if "?s" in where else "?x"
    store = oxiseq.Store()
    store.update(f"INSERT DATA {{ {DATA} }}")
    name = shown.removesuffix(")")[-1]
    asked = [row[0] for row in store.query(f"SELECT {shown} {where}")]
    assert [{name: None if value is None else value.value} for value in asked] == by_query
    standing = store.register(f"SELECT {shown} {where}", "sparql").snapshot().rows
    assert [{key: value.value for key, value in row.items()} for row in standing] == by_us
    window = f"SELECT {shown} FROM STREAM <e:s> [RANGE 3 SLIDE 1] WHERE {where}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        matches = oxiseq.run(window, {"e:s": [(1, DATA)]}, language="spectra")
    assert [{name: match[name].value} for match in matches][: len(by_us)] == by_us
    assert all(words in page.read_text() for page in PAGES)


@pytest.mark.parametrize("language", ["spectra", "rsepql"])
def test_blank_nodes_of_two_events_never_join(language: str) -> None:
    text = {
        "spectra": "SELECT ?x ?y FROM STREAM <e:s> [RANGE 9 SLIDE 1] WHERE { ?n <e:p> ?x . ?n <e:q> ?y }",
        "rsepql": "SELECT ?x ?y FROM NAMED <e:s> WIN [RANGE 9 SLIDE 1] AS <e:w> "
        "WHERE { WINDOW <e:w> { ?n <e:p> ?x . ?n <e:q> ?y } }",
    }[language]
    apart = {"e:s": [(1, "_:n <e:p> 1 ."), (2, "_:n <e:q> 2 .")]}
    together = {"e:s": [(1, "_:n <e:p> 1 . _:n <e:q> 2 .")]}
    assert [len(oxiseq.run(text, given, language=language)) for given in (apart, together)] == [0, 1]  # type: ignore[call-overload]


def test_rsepql_consumes_items_and_epsparql_triples() -> None:
    def graph(text: str) -> str:
        return " ".join(f"{' '.join(f'<e:{word}>' for word in triple.split())} ." for triple in text.split(", "))

    stream = {"e:s": [(2, graph("a1 p b1, a2 p b2")), (4, graph("b1 q c1")), (6, graph("b2 q c2"))]}
    windows = "FROM NAMED <e:s> WIN [LND 1] AS <e:w> EVENT ON <e:w> { ?x <e:p> ?y } AS E1"
    rsepql = f"SELECT * {windows} EVENT ON <e:w> {{ ?y <e:q> ?z }} AS E2 WHERE {{ MATCH {{ E1 SEQ^c E2 }} }}"
    epsparql = "SELECT * WHERE { { ?x <e:p> ?y } SEQ { ?y <e:q> ?z } }"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        items = oxiseq.run(f"{rsepql} CONSUME CHRONOLOGICAL", stream, language="rsepql", evaluation_times=[4, 6])
        triples = oxiseq.run(f"{epsparql} CONSUME CHRONOLOGICAL", stream, language="epsparql")
    assert [(row.start_us, row.end_us) for row in items] == [(2, 4)]
    assert [(row.start_us, row.end_us) for row in triples] == [(2, 4), (2, 6)]
    assert "b2 q c2" in (DOCS / "languages" / "rsep-ql.md").read_text()
