"""FILTER and BIND in a WINDOW block see what the block binds; what only stands outside is refused at its place."""

from __future__ import annotations

import pytest

import oxiseq
from oxiseq.grammar import QueryError, load

HEAD = """PREFIX : <http://e/>
SELECT * FROM NAMED WINDOW :w ON <http://e/S> [RANGE 10 SLIDE 1]
FROM NAMED WINDOW :v ON <http://e/S> [RANGE 10 SLIDE 1]
WHERE {
"""
REFUSED = {
    "a block before": "WINDOW :v { ?s :p ?x } WINDOW :w { ?s :q ?y FILTER(?y > ?x) }",
    "a block behind": "WINDOW :w { ?s :q ?y FILTER(?y > ?x) } WINDOW :v { ?s :p ?x }",
    "the knowledge base": "GRAPH :g { ?s :p ?x } WINDOW :w { ?s :q ?y FILTER(?y > ?x) }",
    "VALUES": "WINDOW :w { ?s :q ?y FILTER(?y > ?x) } VALUES ?x { 1 2 }",
    "BIND outside": "WINDOW :w { ?s :q ?y FILTER(?y > ?x) } BIND(3 AS ?x)",
    "BIND inside": "WINDOW :v { ?s :p ?x } WINDOW :w { ?s :q ?y BIND(?x AS ?z) }",
    "a block in OPTIONAL": "WINDOW :v { ?s :p ?x } OPTIONAL { WINDOW :w { ?s :q ?y FILTER(?y > ?x) } }",
    "a block in braces": "WINDOW :v { ?s :p ?x } { { WINDOW :w { ?s :q ?y FILTER(?y > ?x) } } }",
    "OPTIONAL in a block": "WINDOW :v { ?s :p ?x } WINDOW :w { ?s :q ?y OPTIONAL { ?s :r ?z FILTER(?z > ?x) } }",
    "UNION in a block": "WINDOW :v { ?s :p ?x } WINDOW :w { { ?s :q ?y FILTER(?y > ?x) } UNION { ?s :r ?y } }",
    "EXISTS in a block": "WINDOW :v { ?s :p ?x } WINDOW :w { ?s :q ?y FILTER EXISTS { ?s :r ?z FILTER(?z > ?x) } }",
    "a condition of several": "WINDOW :v { ?s :p ?x } WINDOW :w { ?s :q ?y FILTER(?y > 1 && (?y < 3 || ?y > ?x)) }",
}
ACCEPTED = {
    "after the block": "WINDOW :v { ?s :p ?x } WINDOW :w { ?s :q ?y } FILTER(?y > ?x)",
    "bound in the block too": "WINDOW :v { ?s :p ?x } WINDOW :w { ?s :p ?x ; :q ?y FILTER(?y > ?x) }",
    "OPTIONAL sees the block": "WINDOW :v { ?s :p ?x } WINDOW :w { ?s :p ?x OPTIONAL { ?s :q ?y FILTER(?y > ?x) } }",
    "EXISTS sees the block": "WINDOW :v { ?s :p ?x } WINDOW :w { ?s :p ?x FILTER EXISTS { ?s :q ?y FILTER(?y > ?x) } }",
    "EXISTS around a block": "WINDOW :v { ?s :p ?x } FILTER EXISTS { WINDOW :w { ?s :q ?y FILTER(?y > ?x) } }",
    "a variable of EXISTS": "WINDOW :v { ?s :p ?x } WINDOW :w { ?s :q ?y FILTER NOT EXISTS { ?s :r ?x } }",
    "bound nowhere": "WINDOW :w { ?s :q ?y FILTER(!BOUND(?x)) }",
    "outside of blocks": "WINDOW :v { ?s :p ?x } GRAPH :g { ?s :q ?y FILTER(?y > ?x) }",
}


@pytest.mark.parametrize("case", [*REFUSED])
def test_a_variable_from_outside_is_refused_at_its_place(case: str) -> None:
    text = f"{HEAD}  {REFUSED[case]} }}"
    with pytest.raises(QueryError) as raised:
        load(text, "rspql")
    error = raised.value
    assert error.code == "scope" and error.message.startswith("?x is bound outside this WINDOW block")
    line = text.split("\n")[error.line - 1]
    word = "BIND" if "?x AS" in line else "FILTER"
    assert line[error.column - 1 :].startswith("?x") and word in line[: error.column]
    shown = str(error).split("\n")
    assert shown[-2].index("^") == shown[-3].index("|") + 2 + error.column - 1
    assert shown[-1] == f"hint: put it after the block: WINDOW ... {{ ... }} {word}(...)"


@pytest.mark.parametrize("case", [*ACCEPTED])
def test_what_the_block_sees_is_accepted(case: str) -> None:
    assert load(f"{HEAD}  {ACCEPTED[case]} }}", "rspql")


def test_rsepql_and_match() -> None:
    text = """PREFIX : <http://e/> SELECT * FROM NAMED <http://e/S> WIN [LND 0] AS :w
              EVENT ON :w { ?s :p ?x } AS E WHERE { MATCH { E } WINDOW :w { ?s :q ?y FILTER(?x < ?y) } }"""
    with pytest.raises(QueryError, match=r"\?x is bound outside this WINDOW block"):
        load(text, "rsepql")


def test_what_the_hint_says_answers() -> None:
    text = f"{HEAD} WINDOW :v {{ ?s :p ?x }} WINDOW :w {{ ?s :q ?y }} FILTER(?y > ?x) }}"
    events = [(1, "<http://e/a> <http://e/p> 1 . <http://e/a> <http://e/q> 0 , 2 .")]
    (found,) = oxiseq.run(text, {"http://e/S": events}, language="rspql")
    assert found["y"].value == "2"
