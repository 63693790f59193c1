"""Every construct of every language can be explained, in each form."""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path

import pytest
from corpus_cases import FOLDER
from hypothesis import given
from loaded import load
from profiles import drawn
from pyoxigraph import NamedNode

from oxiseq.grammar import LANGUAGES, parse, render
from oxiseq.grammar.checks import check
from oxiseq.grammar.ep_algebra import EpQuery
from oxiseq.grammar.languages import AnyQuery
from oxiseq.languages.registry import language_for, language_named

sys.path.insert(0, str(Path(__file__).parents[1] / "intervals"))
sys.path.insert(0, str(Path(__file__).parents[1] / "rsp"))
from ep_strategies import queries
from rsp_strategies import Setting, continuous, event_queries

P = "PREFIX : <http://e/> "


def explained(query: AnyQuery) -> dict[str, str]:
    found = language_for(query).explain(query, None)
    assert found.svg().startswith("<svg")
    return {"text": str(found), "dot": found.dot(), "json": json.dumps(found.json())}


def assert_explained(query: AnyQuery) -> None:
    found = explained(query)
    assert found["text"].strip()
    assert found["dot"].startswith("digraph")
    assert found["dot"].count("{") >= 1 and found["dot"].rstrip().endswith("}")
    assert json.loads(found["json"])


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_corpus_is_explained(language: str) -> None:
    folder = FOLDER if language == "spaseq" else FOLDER / language
    cases = [tomllib.loads(path.read_text()) for path in sorted(folder.glob("*.toml"))]
    texts = [case.get("query") for case in cases if not case.get("refused")]
    assert texts or language == "rspql"
    for text in texts:
        if text is not None:
            assert_explained(load(text, language))
    assert language_named(language).name == language


@drawn(40)
@given(queries)
def test_patterns_of_ep_sparql_are_explained(query: EpQuery) -> None:
    again = parse(render(query), "epsparql")
    if not any(f.severity == "error" for f in check(again, render(query))):
        assert_explained(again)


@drawn(30)
@given(continuous() | event_queries())
def test_queries_over_windows_are_explained(setting: Setting) -> None:
    query = load(setting.text, setting.language)
    assert_explained(query)


def test_what_answers_use_up_and_where_they_go_is_told() -> None:
    text = (
        P
        + """CONSTRUCT { ?x :r ?z } INTO STREAM <http://e/T> FROM STREAM <http://e/S>
    WHERE { { ?x :p ?y } SEQ { ?y !:q ?z } FILTER EXISTS { ?x :r ?v FILTER(?v > 1) } } CONSUME RECENT"""
    )
    found = explained(load(text, "epsparql"))
    assert "into stream: http://e/T\nconsumption: triples of an answer are not used again, of which" in found["text"]
    assert "NOT IN (:q)" in found["text"]
    assert "EXISTS on ?x" in found["text"] and " > 1" in found["text"]
    assert json.loads(found["json"])["into"] == NamedNode("http://e/T").value
    rows = (
        P
        + """REGISTER RSTREAM <http://e/T> AS CONSTRUCT { ?x :r ?y } FROM STREAM <http://e/S> [RANGE 5 SLIDE 1]
    WHERE { ?x :p ?y }"""
    )
    assert "into stream: http://e/T" in explained(load(rows, "rspql"))["text"]
