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
