"""Names with characters that SPARQL allows beyond letters and digits: accents as macOS types them, vowel signs, `·`,
`‿`; in texts of every language, in events, and in what is sent to a store."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from profiles import EXAMPLES
from pyoxigraph import Store as RdfStore

import oxiseq
from oxiseq.changes.operations import tokens
from oxiseq.grammar import parse, render
from oxiseq.grammar.errors import QueryError
from oxiseq.grammar.name_chars import LETTERS, NAME_CHARS
from oxiseq.grammar.trees import UnreadableError, tree_parser

NAMES = ("cafe\u0301", "n\u0303o\u0308", "a\u00b7b", "a\u203fb", "x\u2040", "\u092e\u0942\u0932\u094d\u092f")
PREFIX = "p\u0301"
WINDOW = "[RANGE 10 SECONDS SLIDE 1 SECONDS]"
GENERATED_AT = "http://www.w3.org/ns/prov#generatedAtTime"


def texts(n: str) -> dict[str, str]:
    """A query of each language in which everything that has a name has this one."""
    head = f"PREFIX {PREFIX}: <http://e/> SELECT ?{n} "
    triple = f"?{n} {PREFIX}:{n} _:{n}"
    return {
        "spaseq": f"{head} FROM STREAM S{n} <urn:s> WHERE {{ SEQ({n}) DEFINE GPM {n} ON S{n} {{ {triple} }} }}",
        "ceql": f"VOCAB <http://e/> SELECT {n} FROM S{n} WHERE T{n} AS {n} FILTER {n}[{n} > 1]",
        "rspql": f"{head} FROM STREAM <urn:s> {WINDOW} WHERE {{ {triple} }}",
        "spectra": f"{head} FROM STREAM <urn:s> {WINDOW} WHERE {{ {triple} }}",
        "rsepql": f"{head} FROM NAMED <urn:s> WIN [RANGE 10 SLIDE 1] AS {PREFIX}:w EVENT ON {PREFIX}:w {{ {triple} }} "
        f"AS E{n} WHERE {{ MATCH {{ E{n} }} }}",
        "epsparql": f"{head} FROM STREAM S{n} <urn:s> WHERE {{ {triple} }}",
    }


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("language", list(texts("n")))
def test_each_language_takes_them_and_renders_them(language: str, name: str) -> None:
    query = parse(texts(name)[language], language)
    text = render(query)
    assert name in text
    assert parse(text, language) == query
    assert oxiseq.Query(text, language).variables[0] == name


@pytest.mark.parametrize("name", NAMES)
def test_translations_keep_them(name: str) -> None:
    text = (
        f"PREFIX {PREFIX}: <http://e/> SELECT ?{name} FROM STREAM <urn:s> WHERE {{ ?{name} {PREFIX}:{name} ?o{name} }}"
    )
    other = oxiseq.Query(text, "epsparql").translate("rsepql")
    assert name in other.variables
    assert name in other.translate("epsparql").variables


@pytest.mark.parametrize("name", NAMES)
def test_they_find_what_they_name(name: str) -> None:
    row = f"<urn:a> <http://e/{name}> 5 . <urn:b> <http://e/{name}x> 6 ."
    kb = f"<urn:a> <http://e/{name}> <urn:known> <urn:g> ."
    text = f"""PREFIX : <http://e/> SELECT ?{name} ?k{name} FROM STREAM S <urn:s> WHERE {{ SEQ(A)
      DEFINE GPM A ON S {{ ?{name} :{name} ?v FILTER(?v > 4) GRAPH <urn:g> {{ ?{name} :{name} ?k{name} }} }} }}"""
    (match,) = oxiseq.run(text, {"S": [(1, row)]}, kb=kb)
    assert [str(match[each]) for each in (name, f"k{name}")] == ["<urn:a>", "<urn:known>"]


@pytest.mark.parametrize("name", NAMES)
def test_events_have_them(name: str, tmp_path: Path) -> None:
    sequence = f"SEQ(A) DEFINE GPM A ON S {{ ?x :{name} ?y }}"
    text = f"PREFIX : <http://e/> SELECT ?x ?y FROM STREAM S <urn:s> WHERE {{ {sequence} }}"
    nquads, trig, messages = (tmp_path / f"events.{ending}" for ending in ("nq", "trig", "ttl"))
    integer = "http://www.w3.org/2001/XMLSchema#integer"
    nquads.write_text(
        f'<urn:e> <{GENERATED_AT}> "1"^^<{integer}> .\n_:{name} <http://e/{name}> _:{name} <urn:e> .\n'
        f"_:{name}x <http://e/{name}x> _:{name} <urn:e> .\n"
    )
    body = f"_:{name} {PREFIX}:{name} _:{name} . _:{name}x {PREFIX}:{name}x _:{name} ."
    trig.write_text(f"PREFIX {PREFIX}: <http://e/>\n<urn:e> <{GENERATED_AT}> 1 .\n<urn:e> {{ {body} }}")
    messages.write_text(
        f'VERSION "1.2-messages"\nPREFIX {PREFIX}: <http://e/>\n[] <{GENERATED_AT}> 1 .\n{body}\nMESSAGE\n'
    )
    for file in (nquads, trig, messages):
        for on_error in ("stop", "skip"):
            (match,) = oxiseq.run(text, {"S": file}, on_error=on_error)  # type: ignore[arg-type]
            assert match["x"] == match["y"]


@pytest.mark.parametrize("name", NAMES)
def test_updates_that_standing_queries_follow_have_them(name: str) -> None:
    store, plain = oxiseq.Store(), RdfStore()
    asked = f"PREFIX {PREFIX}: <http://e/> SELECT ?{name} ?o WHERE {{ ?{name} {PREFIX}:{name} ?o }}"
    standing = store.register(asked, "sparql")
    for update in (
        f"INSERT DATA {{ <urn:a> {PREFIX}:{name} 1 . _:{name} {PREFIX}:{name} 2 . _:{name}x {PREFIX}:{name} 3 }}",
        f"DELETE {{ ?{name} {PREFIX}:{name} ?o }} INSERT {{ ?{name} {PREFIX}:{name} 4 }} "
        f"WHERE {{ ?{name} {PREFIX}:{name} ?o FILTER(?o = 1) }}",
    ):
        store.update(f"PREFIX {PREFIX}: <http://e/> {update}")
        plain.update(f"PREFIX {PREFIX}: <http://e/> {update}")
    wanted = sorted(int(row["o"].value) for row in plain.query(asked))  # type: ignore[union-attr, index, call-overload]
    assert sorted(int(row["o"].value) for row in standing.snapshot().rows) == wanted == [2, 3, 4]


@pytest.mark.parametrize("name", NAMES)
def test_a_token_is_a_whole_name(name: str) -> None:
    text = f"?{name} {PREFIX}:{name} {name}"
    assert [token.text for token in tokens(text)] == text.split(" ")


@pytest.mark.parametrize("wrong", ["\u0301a", "\u00b7a", "\u203fa"])
def test_no_name_begins_with_them(wrong: str) -> None:
    for text in (texts(wrong)["spaseq"], texts(wrong)["rspql"]):
        with pytest.raises(QueryError):
            parse(text, "spaseq" if "SEQ" in text else "rspql")


def test_an_error_marks_the_whole_name() -> None:
    text = "SELECT ?cafe\u0301 FROM STREAM S <urn:s> WHERE { SEQ(A) DEFINE GPM A ON S { ?s ?p ?o } }"
    with pytest.raises(QueryError, match="cafe\u0301") as told:
        oxiseq.Query(text).explain()
    assert text[told.value.span.start : told.value.span.end] == "?cafe\u0301"


@settings(max_examples=10 * EXAMPLES)
@given(st.characters(min_codepoint=0x80, exclude_categories=["Cs"]))
def test_a_name_holds_what_the_table_says_and_nothing_else(character: str) -> None:
    """The parser takes whatever is not of ASCII for a part of a name, and looks at it afterwards."""
    begins, follows = (re.fullmatch(f"[{held}]", character) is not None for held in (LETTERS, NAME_CHARS))
    between = character in "\xa0\ufeff"
    for text, allowed in (
        (f"?{character}", begins),
        (f"?a{character} ", follows or between),
        (f"?a{character}b", follows),
        (f":{character}", begins or between),
        (f":a{character}b", follows),
        (f"p{character}:b", follows),
        (f"_:{character}", begins),
        (f"_:a{character}b", follows),
    ):
        query = f"SELECT * {{ ?s :p {text} }}"
        try:
            tree_parser("store").read(query, "query")
            taken = True
        except UnreadableError as error:
            taken = False
            assert query.index(text) <= error.unexpected.pos_in_stream <= len(query) - 1
        assert taken == allowed, (hex(ord(character)), text)
