"""What is told of SPARQL that the store has refused: our grammar takes all that the store does, and says it better."""

from __future__ import annotations

import random
import re
from typing import Any, Final

import pytest
from pyoxigraph import DefaultGraph, Store
from w3c_suites import absent, shared_suite

from oxiseq import OxiseqError, QueryError
from oxiseq.grammar import parse
from oxiseq.grammar.over_sparql import Kind, refusal
from oxiseq.grammar.trees import UnreadableError, tree_parser
from oxiseq.kb_loader.tables import Mapping

QUERIES: Final = [
    "SELECT * { ?s ?p <<( ?a ?b ?c )>> }",
    "PREFIX : <urn:> SELECT * { << ?s ?p ?o ~ :r >> ?q 1 . << ?s ?p << ?a ?b 1 >> >> ?x ?y . << ?s ?p ?o >> . }",
    "PREFIX : <urn:> SELECT * { ?s ?p ?o ~ :r {| :a :b ; :c 1 |} , 2 {| :a 3 |} . }",
    'VERSION "1.2" SELECT * { ?s ?p "x"@en--ltr FILTER(isTRIPLE(<<( ?s ?p ?o )>>)) }',
    "SELECT * { ?s ?p ?o LATERAL { SELECT * { ?a ?b ?o } LIMIT 1 } VALUES ?x { <<( <urn:a> <urn:b> 1 )>> UNDEF } }",
    'SELECT * { "a" ?p ?o . 1 ?p true . ?s (<urn:a>/<urn:b>)*|^<urn:c>|!(<urn:a>|^a) ?o }',
    "SELECT (COUNT(DISTINCT *) AS ?c) (1+2 AS ?x) {} GROUP BY (1 AS ?y) HAVING (COUNT(*) > 1) ORDER BY DESC(?x) ?y",
    "CONSTRUCT WHERE { ?s ?p ?o } LIMIT 1 OFFSET 2 VALUES ?x {1}",
    "CONSTRUCT { [] ?p (1 2) } FROM <urn:a> FROM NAMED <urn:b> { ?s ?p (1 [ <urn:a> () ]) . ( 1 ) ?p 2 }",
    "DESCRIBE ?x <urn:a> WHERE { } ",
    "DESCRIBE *{ ?s ?p ?o }",
    "ASK {}",
    "SELECT * { {} UNION {} MINUS {} GRAPH ?g {} BIND(1 AS ?z) FILTER NOT EXISTS {} FILTER(?x IN (1, 2) || -?y < 3) }",
]
UPDATES: Final = [
    "INSERT DATA { <urn:a> <urn:b> 1 . GRAPH <urn:g> { <urn:a> <urn:b> <<( <urn:a> <urn:b> 1 )>> {| <urn:c> 2 |} } }",
    "WITH <urn:g> DELETE { ?s ?p ?o } INSERT { ?s ?p ?o } USING <urn:a> USING NAMED <urn:b> WHERE { ?s ?p ?o }",
    "CLEAR SILENT ALL; DROP SILENT GRAPH <urn:g> ; CREATE SILENT GRAPH <urn:h> ;",
    "ADD SILENT <urn:a> TO DEFAULT; MOVE SILENT GRAPH <urn:b> TO <urn:c>; COPY DEFAULT TO <urn:d>",
    "PREFIX : <urn:> PREFIX x: <urn:x> INSERT DATA { :a :b 1 } ; DELETE DATA { x:a x:b 1 }",
    "DELETE WHERE { GRAPH ?g { ?s ?p ?o } . ?s ?p 1 } ; INSERT { ?s ?p ?o } WHERE { ?s ?p ?o }",
    "",
    "PREFIX : <urn:>",
]
_TOKEN: Final = re.compile(r"<[^<> ]*>|\"[^\"\n]*\"|[\w:?$@.-]+|\s+|.", re.DOTALL)
_GLUED: Final = re.compile(
    r"(?i)\ba:\w|\b(orderby|groupby|construct|describe|select|from|where|filter|not|prefix|optional|union|minus|graph|bind"
    r"|as|distinct|insert|delete|data|using|with|named|base|values|exists|having|by|order|group|limit|offset|ask|reduced"
    r"|in|asc|desc|default|clear|drop|create|to|copy|move|add|silent|all|version|lateral)(?=\w)"
)
"""Words that Oxigraph takes without a blank behind them: FILTERexists, `a:x` for `a :x`."""


def asked(text: str, kind: Kind) -> SyntaxError | None:
    """What the store says no with; nothing is fetched."""
    store, options = Store(), {"base_iri": "http://base/"}
    try:
        if kind == "update":
            store.update(text, **options)
        else:
            store.query(text, use_default_graph_as_union=True, default_graph=[DefaultGraph()], **options)
    except SyntaxError as error:
        return error
    except (ValueError, OSError, RuntimeError):
        return None
    return None


def taken(text: str, kind: Kind) -> bool:
    try:
        tree_parser("store").read(text, kind)
    except UnreadableError:
        return False
    return True


def told(text: str, kind: Kind = "query") -> QueryError:
    error = asked(text, kind)
    assert error is not None
    return refusal(text, error, kind)


def corpus() -> list[tuple[Kind, str]]:
    found: list[tuple[Kind, str]] = [("query", text) for text in QUERIES] + [("update", text) for text in UPDATES]
    if (folder := shared_suite("sparql11")) is not None:
        for file in sorted(folder.rglob("*.r[qu]")):
            text = file.read_text(errors="replace")
            if not re.search("load|service", text, re.IGNORECASE):
                found.append(("update" if file.suffix == ".ru" else "query", text))
    return found


def test_what_the_store_takes_our_grammar_takes() -> None:
    if shared_suite("sparql11") is None:
        pytest.skip(absent("sparql11"))
    texts = [(kind, text) for kind, text in corpus() if asked(text, kind) is None]
    assert len(texts) > 200
    assert [text for kind, text in texts if not taken(text, kind)] == []


@pytest.mark.parametrize("text", QUERIES)
def test_queries_of_all_forms_are_taken(text: str) -> None:
    assert asked(text, "query") is None
    assert taken(text, "query")


@pytest.mark.parametrize("text", UPDATES)
def test_updates_of_all_forms_are_taken(text: str) -> None:
    assert asked(text, "update") is None
    assert taken(text, "update")


@pytest.mark.parametrize("seed", range(4))
def test_changed_texts(seed: int) -> None:
    """A token left out, put in or another: what the store still takes, our grammar does; what it does not, is told."""
    dice, texts = random.Random(seed), corpus()
    tokens = [(kind, _TOKEN.findall(text)) for kind, text in texts]
    pool = [token for _, each in tokens for token in each]
    refused = 0
    for _ in range(600):
        kind, changed = dice.choice(tokens)
        changed = list(changed) or [""]
        for _ in range(dice.randint(1, 2)):
            at = dice.randrange(len(changed))
            new = dice.choice([[], [dice.choice(pool)], [changed[at], dice.choice(pool)]])
            changed = changed[:at] + new + changed[at + 1 :] or [""]
        text = "".join(changed)
        if re.search("load|service", text, re.IGNORECASE) or _GLUED.search(text):
            continue
        error = asked(text, kind)
        if error is None:
            assert taken(text, kind), text
            continue
        refused += 1
        said = refusal(text, error, kind)
        assert said.message
        assert 0 <= said.span.start <= len(text)
        assert said.line <= text.count("\n") + 1
        assert str(said)
    assert refused > 100


@pytest.mark.parametrize(
    ("text", "place", "message", "hint"),
    [
        ("SELEC * WHERE { ?s ?p ?o }", (1, 1), "unexpected `SELEC`", "did you mean SELECT?"),
        ("SELECT *\nWHERE { ?s ?p }", (2, 15), "unexpected `}`", "a triple is subject, predicate, object"),
        ("SELECT * { ?s ?p ?o FILTER ?o > 3 }", (1, 28), "unexpected `?o`", "put parentheses around the condition"),
        ("SELECT * { ?s ?p ?o FILTER(?o = 1 AND ?s) }", (1, 35), "unexpected `AND`", "write && for AND"),
        ('SELECT * { ?s ?p "abc }', (1, 18), "a string is not closed", 'close it with "'),
        ("SELECT * {\n ?s ?p ?o", (1, 10), "the { of line 1 is not closed", "close it with }"),
        ("SELECT * { ex:a ?p ?o }", (1, 12), "the prefix ex: is not declared", "put PREFIX ex:"),
        ("SELECT * { ?s foaf:name ?o }", (1, 15), "the prefix foaf: is not declared", "http://xmlns.com/foaf/0.1/"),
        ("SELECT (foor(?x) AS ?y) {}", (1, 9), "there is no function foor", "did you mean FLOOR?"),
        ("SELECT ?s (COUNT(?o) AS ?n) { ?s ?p ?o }", (1, 41), "The SELECT contains a variable that is unbound", ""),
        ("SELECT * { BIND(1 AS ?x) BIND(2 AS ?x) }", (1, 41), "the store rejects this: expected [_]", ""),
        ("INSERT DATA { <urn:a> <urn:b> 1 }", (1, 1), "this is an update, not a query", "send it to /update"),
        ("SELECT * {} LIMIT 1 ORDER BY ?s", (1, 21), "unexpected `ORDER`", "after WHERE come GROUP BY"),
        ("", (1, 1), "unexpected end of the query", "a query looks like SELECT"),
        (
            "REGISTER QUERY q COMPUTED EVERY 10m AS SELECT * {}",
            (1, 1),
            "REGISTER QUERY is C-SPARQL's",
            "AS SELECT ... FROM STREAM <...> [RANGE 10 MINUTES STEP 1 MINUTES], and REPORT EVERY 10 MINUTES at the end",
        ),
        (
            "SELECT * { STREAM <http://s> [RANGE 10s SLIDE 5s] { ?a ?b ?c } }",
            (1, 12),
            "STREAM <...> [...] { ... } is CQELS's",
            "ON <http://s> [RANGE 10 SECONDS SLIDE 5 SECONDS] before WHERE",
        ),
        ("SELECT * FROM t MATCH_RECOGNIZE (PATTERN (A B+))", (1, 17), "MATCH_RECOGNIZE is SQL's", "SEQ(A; B+; C)"),
    ],
)
def test_queries(text: str, place: tuple[int, int], message: str, hint: str) -> None:
    error = told(text)
    assert ((error.line, error.column), error.message) == (place, message)
    assert hint in error.hint


@pytest.mark.parametrize(
    ("text", "place", "message", "hint"),
    [
        ("INSERT DAT { <a> <b> <c> }", (1, 8), "unexpected `DAT`", "did you mean DATA?"),
        ("INSERT { ?s ?p 1 }", (1, 19), "unexpected end of the query", "need WHERE { ... }"),
        ("CLEAR", (1, 6), "unexpected end of the query", "CLEAR ALL"),
        ("CLEAR ALL DROP ALL", (1, 11), "unexpected `DROP`", "put ; between two operations"),
        ("SELECT * {}", (1, 1), "this is a query, not an update", "send it to /query"),
        ("INSERT DATA { ?s ?p ?o }", (1, 25), "Variables are not allowed in INSERT DATA", ""),
        ("PREFIX a: <urn:> ; INSERT DATA { b:a a:b 1 }", (1, 18), "unexpected `;`", ""),
        ("INSERT DATA { b:a <urn:b> 1 }", (1, 15), "the prefix b: is not declared", "put PREFIX b:"),
    ],
)
def test_updates(text: str, place: tuple[int, int], message: str, hint: str) -> None:
    error = told(text, "update")
    assert ((error.line, error.column), error.message) == (place, message)
    assert hint in error.hint


@pytest.mark.parametrize("language", ["rspql", "rsepql", "spectra", "epsparql", "spaseq"])
def test_words_of_other_languages_are_known_in_all_of_ours(language: Any) -> None:
    for text, whose in (
        ("REGISTER QUERY q COMPUTED EVERY 10m AS SELECT * FROM STREAM <urn:s> [RANGE 1h STEP 1m] WHERE {}", "C-SPARQL"),
        ("SELECT * WHERE { STREAM <urn:s> [RANGE 10s] { ?a ?b ?c } }", "CQELS"),
        ("SELECT * FROM t MATCH_RECOGNIZE (PATTERN (A B+))", "SQL"),
    ):
        with pytest.raises(QueryError, match=f"is {whose}'s"):
            parse(text, language)


def test_a_mapping_is_told_likewise() -> None:
    with pytest.raises(OxiseqError, match=r"(?s)m\.rq: unexpected `\}`\nline 2, column 9.*\^\nexpected: a variable"):
        Mapping("CONSTRUCT { ?s ?p ?o }\n{ ?s ?p }", "m.rq")


def test_texts_of_any_depth_and_length() -> None:
    deep = "SELECT * " + "{" * 3_000
    error = SyntaxError("error at 1:3009: expected one of [_]")
    assert refusal(deep, error, "query").message
    assert told("SELECT * {" + "?s ?p ?o . " * 1_000 + "}}").hint == "one } too many"
    long = told("SELECT * {" + "?s ?p ?o . " * 5_000 + "}}")  # not worth the time
    assert long.message.startswith("the store rejects this: expected")
