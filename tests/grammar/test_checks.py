"""What the checks accept, and the lints, each with its place."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from oxiseq.grammar import Finding, QueryError, check, load, parse, render

HEAD = "PREFIX : <http://e/>\nSELECT * FROM STREAM S <http://e/s> WITHIN 1 HOUR\nWHERE {\n"
A = "  DEFINE GPM A ON S { ?a :p ?x }\n"
CORPUS = sorted((Path(__file__).parents[1] / "corpus").glob("*.toml"))


def findings(text: str) -> tuple[Finding, ...]:
    return check(parse(text), text)


def query(seq: str, *gpms: str) -> str:
    return HEAD + f"  SEQ({seq})\n" + "".join(f"  DEFINE GPM {g}\n" for g in gpms) + "}\n"


@pytest.mark.parametrize("path", CORPUS, ids=lambda p: p.stem)
def test_queries_of_the_corpus_hold_no_error(path: Path) -> None:
    case = tomllib.loads(path.read_text(encoding="utf-8"))
    if refused := case.get("refused"):
        with pytest.raises(QueryError, match=refused):
            load(case["query"])
    else:
        load(case["query"])


ACCEPTED = {
    "partners of & see each other": (
        "A & B",
        "A ON S { ?a :p ?x FILTER(?x < ?y) }",
        "B ON S { ?a :q ?y FILTER(?y > ?x) }",
    ),
    "a negated pair sees each other": (
        "C; (A & B)!; D",
        "A ON S { ?a :p ?x FILTER(?x < ?y) }",
        "B ON S { ?a :q ?y }",
        "C ON S { ?a :c ?c }",
        "D ON S { ?a :d ?d }",
    ),
    "an inner negation sees what stands left": (
        "A; N!; B",
        "A ON S { ?a :p ?x }",
        "N ON S { ?a :n ?n FILTER(?n > ?x) }",
        "B ON S { ?a :q ?y }",
    ),
    "an optional part stays beside a leading negation": (
        "N!; B?; C",
        "N ON S { ?a :n ?n }",
        "B ON S { ?a :b ?b }",
        "C ON S { ?a :c ?c }",
    ),
    "prev in a repeated group": ("(A; B)+", "A ON S { ?a :p ?x }", "B ON S { ?a :q ?y FILTER(?y > PREV(?x)) }"),
    "EXISTS sees what stands left, however deep": (
        "A; B+",
        "A ON S { ?a :p ?x }",
        "B ON S { ?a :q ?y FILTER(?y > PREV(?y) || NOT EXISTS { ?a :r ?z { ?a :s ?w FILTER(?w > ?x) } }) }",
    ),
    "in EXISTS a sub-SELECT may show it": (
        "A; B",
        "A ON S { ?a :p ?x }",
        "B ON S { ?a :q ?y FILTER EXISTS { { SELECT ?x (COUNT(*) AS ?n) { ?a :r ?x } GROUP BY ?x } } }",
    ),
    "OPTIONAL may bind another's variable": (
        "A; B",
        "A ON S { ?a :p ?x }",
        "B ON S { ?a :q ?y OPTIONAL { ?a :r ?x FILTER(?x > ?y) } }",
    ),
    "a sub-SELECT has its own variables": (
        "A; B",
        "A ON S { ?a :p ?x }",
        "B ON S { ?a :q ?y { SELECT ?a (MAX(?z) AS ?m) { ?a :r ?z } GROUP BY ?a HAVING (?m > 1 && MAX(?z) > 1) } }",
    ),
    "blank node labels are scoped to their GPM": ("A; B", "A ON S { _:x :p ?x }", "B ON S { _:x :q ?x }"),
    "GRAPH with a variable at the top": ("A", "A ON S { ?a :p ?x GRAPH ?g { ?a :name ?n } }"),
    "GRAPH in a negated GPM": (
        "A; N!; B",
        "A ON S { ?a :p ?x }",
        "N ON S { ?a :n ?n GRAPH :g { ?a :q ?n } }",
        "B ON S { ?a :q ?y }",
    ),
    "FILTER does not end a basic graph pattern": ("A", "A ON S { _:x :p ?x FILTER(?x > 1) _:x :q ?y }"),
    "everything may be skipped but not everything is": ("A?; B", "A ON S { ?a :p ?x }", "B ON S { ?a :q ?y }"),
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_accepted(name: str) -> None:
    assert [str(f) for f in findings(query(*ACCEPTED[name])) if f.severity == "error"] == []


RISING = ("A ON S { ?t :v ?a }", "B ON S { ?t :v ?b FILTER(?b > ?a) }", "C ON S { ?t :v ?c FILTER(?b < ?c) }")
TRAPS = {
    "a repeat that stands first": (
        query("F;{5,}; K", "F ON S { ?u :login :failed }", "K ON S { ?u :login :ok }"),
        [("fresh", 4, 7)],
    ),
    "a repeat alone": (query("F;{5,}", "F ON S { ?u :login :failed }"), [("fresh", 4, 7)]),
    "a repeat alone, linked by PREV": (query("F;+", "F ON S { ?u :v ?v FILTER(?v > PREV(?v)) }"), []),
    "a repeat that stands first, partitioned": (
        query("F;{5,}; K", "F ON S { ?u :login :failed }", "K ON S { ?u :login :ok }").replace(
            "WITHIN", "PARTITION BY ?u WITHIN"
        ),
        [],
    ),
    "a repeat that stands later": (query("K; F+", "K ON S { ?u :login :ok }", "F ON S { ?u :login :failed }"), []),
    "a second name whose subject joins, too": (
        query("H; H2", "H ON S { ?h :person ?p ; :bpm ?b }", "H2 AS H"),
        [("same-values", 4, 10)],
    ),
    "a second name of one variable": (query("H; H2", "H ON S { ?p :is :here }", "H2 AS H"), []),
    "a second name of an alternative": (query("H | H2", "H ON S { ?h :person ?p }", "H2 AS H"), []),
    "values that rise along ;": (query("A; B; C", *RISING), [("in-a-row", 4, 7)]),
    "values that rise in a row": (query("A, B, C", *RISING), []),
    "values that rise and fall": (query("A; B; C", *RISING[:2], RISING[2].replace("<", ">")), []),
    "at one instant": (query("A & B", "A ON S { ?t :v ?a }", "B ON S { ?t :w ?b }"), [("at-once", 4, 7)]),
    "a sum without the event itself": (
        query("K; F+; L", "K ON S { ?t :is 1 }", "F ON S { ?t :v ?a }", "L ON S { ?t :v ?b FILTER(SUM(?a) > 9) }"),
        [("own-event", 7, 39)],
    ),
    "a sum with the event itself": (
        query("K; F+; L", "K ON S { ?t :is 1 }", "F ON S { ?t :v ?a }", "L ON S { ?t :v ?b FILTER(SUM(?a) + ?b > 9) }"),
        [],
    ),
    "the last of all": (
        query("A; B", *RISING[:2]).replace("SELECT", "SELECT LAST"),
        [("over-all", 2, 8)],
    ),
    "the last of each": (
        query("A; B", *RISING[:2]).replace("SELECT", "SELECT LAST").replace("WITHIN", "PARTITION BY ?t WITHIN"),
        [],
    ),
    "a number in quotes": (query("A", 'A ON S { ?t :v ?a FILTER(?a > "60") }'), [("text", 5, 39)]),
    "a date in quotes": (query("A", 'A ON S { ?t :v ?a FILTER(?a > "2026-01-01") }'), [("text", 5, 39)]),
    "a text in quotes": (query("A", 'A ON S { ?t :v ?a FILTER(?a > "60th" || ?a < "007") }'), []),
}
LINTS = {
    **TRAPS,
    "unused gpm": (query("A", "A ON S { ?a :p ?x }", "B ON S { ?a :p ?x }"), [("unused-gpm", 6, 14)]),
    "unused stream": (
        query("A", "A ON S { ?a :p ?x }").replace("WITHIN", "FROM STREAM T <http://e/t> WITHIN"),
        [("unused-stream", 2, 37)],
    ),
    "no window": (
        query("A; B", "A ON S { ?a :p ?x }", "B ON S { ?a :q ?y }").replace("WITHIN 1 HOUR", ""),
        [("unbounded", 4, 7)],
    ),
    "no window, and nothing to wait for": (query("A", "A ON S { ?a :p ?x }").replace("WITHIN 1 HOUR", ""), []),
    "PREV falls back on a value": (
        query("A; B+", "A ON S { ?a :p ?x }", "B ON S { ?a :q ?y FILTER(?y > COALESCE(PREV(?y), ?x)) }"),
        [("first-value", 6, 44)],
    ),
    "PREV alone": (query("A; B+", "A ON S { ?a :p ?x }", "B ON S { ?a :q ?y FILTER(?y > PREV(?y)) }"), []),
    "PREV falls back in the second COALESCE": (
        query("B+", "B ON S { ?a :q ?y FILTER(?y > COALESCE(?a, 1) && ?y > COALESCE(PREV(?y), 1)) }"),
        [("first-value", 5, 68)],
    ),
    "COALESCE of nothing": (query("A", "A ON S { ?a :p ?x FILTER(COALESCE() = ?x) }"), []),
    "another value falls back": (
        query("A; B+", "A ON S { ?a :p ?x }", "B ON S { ?a :q ?y FILTER(?y > COALESCE(?x, PREV(?y))) }"),
        [],
    ),
    "`,` passes over what no pattern matches": (
        query("A, B", "A ON S { ?a :p ?x ; :k :one }", "B ON S { ?a :q 2 }").replace(
            "WITHIN", "PARTITION BY ?a WITHIN"
        ),
        [("skipped", 4, 7)],
    ),
    "one pattern takes all events of the partition": (
        query("A, B", "A ON S { ?a :p ?x ; :k :one }", "B ON S { ?a :q _:x }").replace(
            "WITHIN", "PARTITION BY ?a WITHIN"
        ),
        [],
    ),
    "`;` passes over events anyway": (
        query("A; B", "A ON S { ?a :p 1 }", "B ON S { ?a :q 2 }").replace("WITHIN", "PARTITION BY ?a WITHIN"),
        [],
    ),
    "unjoined": (query("A; B", "A ON S { ?a :p ?x }", "B ON S { ?b :p ?y }"), [("unjoined", 4, 10)]),
    "joined by a filter": (query("A; B", "A ON S { ?a :p ?x }", "B ON S { ?b :p ?y FILTER(?y > ?x) }"), []),
    "unjoined leading negation": (
        query("N!; A", "A ON S { ?a :p ?x }", "N ON S { ?b :p ?y }"),
        [("unjoined", 4, 7)],
    ),
    "joined leading negation": (query("N!; A", "A ON S { ?a :p ?x }", "N ON S { ?a :p ?y }"), []),
    "unjoined partner": (
        query("A & B", "A ON S { ?a :p ?x }", "B ON S { ?b :p ?y }"),
        [("unjoined", 4, 7), ("at-once", 4, 7), ("unjoined", 4, 11)],
    ),
    "alternatives need not join": (query("A | B", "A ON S { ?a :p ?x }", "B ON S { ?b :p ?y }"), []),
    "cross product": (query("A", "A ON S { ?a :p ?x . ?b :q ?y }"), [("cross-product", 5, 34)]),
    "linked by a filter": (query("A", "A ON S { ?a :p ?x . ?b :q ?y FILTER(?x = ?y) }"), []),
    "linked by a blank node": (query("A", "A ON S { ?a :p _:x . _:x :q ?y }"), []),
    "kb pattern apart": (query("A", "A ON S { ?a :p ?x GRAPH :g { ?b :q ?y } }"), [("kb-unjoined", 5, 32)]),
    "kb pattern linked": (query("A", "A ON S { ?a :p ?x GRAPH :g { ?a :q ?y } }"), []),
    "join over an optional variable": (
        query("A; B", "A ON S { ?a :p ?x OPTIONAL { ?a :q ?y } }", "B ON S { ?b :p ?y }"),
        [("loose-join", 4, 10)],
    ),
    "join over a variable of one branch": (
        query("A; B", "A ON S { ?a :p ?y }", "B ON S { { ?a :p ?x } UNION { ?a :q ?y } }"),
        [("loose-join", 4, 10)],
    ),
    "inner filter reads what stands outside": (
        query("A; B", "A ON S { ?a :p ?x }", "B ON S { ?a :p ?y { ?a :q ?z FILTER(?z > ?y) } }"),
        [("unbound", 6, 55)],
    ),
    "the filter of an optional part sees what stands before it": (
        query("A; B", "A ON S { ?a :p ?x }", "B ON S { ?a :p ?y OPTIONAL { ?a :q ?z FILTER(?z > ?y) } }"),
        [],
    ),
    "the filter of a kb pattern reads the event": (
        query("A; B", "A ON S { ?a :p ?x }", "B ON S { ?a :p ?y GRAPH :g { ?a :q ?z FILTER(?z > ?y) } }"),
        [("unbound", 6, 64)],
    ),
    "a variable of a gpm further right inside exists": (
        query("A; B", "A ON S { ?a :p ?x FILTER EXISTS { ?a :q ?y } }", "B ON S { ?a :p ?y }"),
        [("local", 5, 54)],
    ),
    "consume by partition without partitions": (
        query("A", "A ON S { ?a :p ?x }").replace("WITHIN", "CONSUME BY PARTITION WITHIN"),
        [("consume", 2, 37)],
    ),
    "partition by what a negated gpm does not bind": (
        query("A; N!; B", "A ON S { ?a :p ?x }", "N ON S { ?b :p ?x }", "B ON S { ?a :p ?y }").replace(
            "WITHIN", "PARTITION BY ?a WITHIN"
        ),
        [("partition", 2, 50)],
    ),
    "partition by what may be unbound": (
        query("A", "A ON S { ?a :p ?x OPTIONAL { ?a :q ?y } }").replace("WITHIN", "PARTITION BY ?a ?y WITHIN"),
        [("partition", 2, 53)],
    ),
    "everything may be skipped": (query("A?", "A ON S { ?a :p ?x }"), [("optional", 4, 7)]),
    "an iteration may be empty": (
        query("A; (B?)+", "A ON S { ?a :p ?x }", "B ON S { ?a :q ?y }"),
        [("optional", 4, 10)],
    ),
    "nothing to say": (query("A; B", "A ON S { ?a :p ?x }", "B ON S { ?a :q ?y }"), []),
}


@pytest.mark.parametrize("name", LINTS)
def test_lints(name: str) -> None:
    text, expected = LINTS[name]
    found = findings(text)
    assert [(f.code, f.line, f.column) for f in found] == expected
    assert all(f.severity == "lint" for f in found)
    assert all(f.message and f.hint for f in found)


def test_lint_is_shown_like_an_error() -> None:
    (found,) = findings(LINTS["unjoined"][0])
    assert str(found) == (
        "B shares no variable with the GPMs before it\n"
        "line 4, column 10\n"
        "  4 |   SEQ(A; B)\n"
        "    |          ^\n"
        "hint: every event of it combines with every match so far"
    )
    assert found.to_json() == {
        "severity": "lint",
        "code": "unjoined",
        "message": "B shares no variable with the GPMs before it",
        "expected": "",
        "hint": "every event of it combines with every match so far",
        "line": 4,
        "column": 10,
        "start": found.span.start,
        "end": found.span.end,
    }


def test_without_the_text_findings_point_at_the_clause() -> None:
    text = query("A", "A ON S { ?a :p ?x FILTER(?x > 1 && ?x < ?y) }")
    without, with_text = check(parse(text)), check(parse(text), text)
    assert [f.message for f in without] == [f.message for f in with_text]
    assert text[without[0].span.start : without[0].span.end] == "?x < ?y"
    assert text[with_text[0].span.start : with_text[0].span.end] == "?y"


def test_findings_come_in_the_order_of_the_text() -> None:
    text = query("A; B; X", "A ON S { ?a :p ?x FILTER(?x > ?y) }", "B ON T { ?a :q ?y }")
    places = [f.span.start for f in findings(text)]
    assert places == sorted(places)
    assert len(places) == 3


@pytest.mark.parametrize("nested", ["!" * 3000 + "?x", "?x = 1" + " || ?x = 2" * 3000])
def test_too_deep_nesting_is_an_error_with_a_message(nested: str) -> None:
    with pytest.raises(QueryError, match="the query is nested too deeply"):
        load(query("A", f"A ON S {{ ?a :p ?x FILTER({nested}) }}"))


def test_long_disjunction_is_fine() -> None:
    text = query("A", "A ON S { ?a :p ?x FILTER(" + " || ".join(f"?x = {i}" for i in range(200)) + ") }")
    assert parse(render(load(text))) == parse(text)


@pytest.mark.parametrize(
    ("seq", "kept"),
    [
        ("A; B", True),
        ("A; B WITHIN 5 SECONDS", False),
        ("A; B WITHIN 5 SECONDS; C", True),
        ("A, B WITHIN 5 SECONDS, C+", False),
        ("A, B;+", True),
        ("A; (B WITHIN 5 SECONDS);+", False),
        ("A; B;+ WITHIN 5 SECONDS", True),
        ("A+", True),
        ("(A WITHIN 5 SECONDS)+; C AFTER 1 SECOND WITHIN 1 MINUTE", False),
        ("(A; B; C) LASTING 5 SECONDS", False),
        ("A; (B; C) LASTING 5 SECONDS", True),
        ("A; N! WITHIN 5 SECONDS", False),
        ("A; N! WITHIN 5 SECONDS; B", True),
        ("N!; A", True),
        ("A?; B WITHIN 5 SECONDS", False),
        ("(A | (B; C))", True),
    ],
)
def test_what_is_kept_for_ever_is_told(seq: str, kept: bool) -> None:
    text = query(seq, *(f"{name} ON S {{ ?{name.lower()} :p ?p }}" for name in "ABCN" if name in seq))
    assert ("unbounded" in {f.code for f in findings(text.replace("WITHIN 1 HOUR", ""))}) is kept


def test_a_missing_stream_is_told_once() -> None:
    text = "SELECT * WITHIN 1 HOUR WHERE { SEQ(A; B) DEFINE GPM A ON S { ?a ?p ?x } DEFINE GPM B ON S { ?a ?q ?y } }"
    (found,) = (f for f in findings(text) if f.severity == "error")
    assert found.message == "the query declares no stream"
    assert found.hint == "add FROM STREAM S <iri of the stream> before WHERE"


def test_functions_are_known_wherever_they_are_called() -> None:
    head = "SELECT ?s (COUNT(*) AS ?n) WITHIN 1 HOUR FROM STREAM S <urn:s> WHERE { SEQ(A) "
    pattern = "DEFINE GPM A ON S { ?s <urn:p> ?o } }"
    clauses = ("GROUP BY ?s (<urn:f>(?o) AS ?k)", "GROUP BY ?s HAVING (<urn:f>(COUNT(*)) > 1)")
    texts = [f"{head}{pattern} {clause}" for clause in (*clauses, "GROUP BY ?s ORDER BY (<urn:f>(?n))")]
    for text in (*texts, f"{head}FILTER(<urn:f>(?o) > 1) {pattern} GROUP BY ?s"):
        assert "there is no function <urn:f>" in [f.message for f in findings(text)]


UNTIL = ("A ON S { ?a :p ?k }", "B ON S { ?b :q ?k }", "C ON S { ?c :q ?k }")


@pytest.mark.parametrize(
    ("seq", "ends"),
    [
        ("A; B) UNTIL (U", "U shares no variable with the other GPMs"),
        ("A, B) UNTIL (U", "every gap of SEQ is `,`, in which no event lies: UNTIL ends no run"),
        ("A, B, C+) UNTIL (U", "every gap of SEQ is `,`, in which no event lies: UNTIL ends no run"),
        ("A) UNTIL (U", "SEQ has no gap, so UNTIL ends no run"),
        ("A & B) UNTIL (U", "SEQ has no gap, so UNTIL ends no run"),
        ("A{1}) UNTIL (U", "SEQ has no gap, so UNTIL ends no run"),
    ],
)
def test_an_until_that_ends_nothing_or_everything_is_told(seq: str, ends: str) -> None:
    text = query(seq, *(g for g in UNTIL if f"{g[0]}" in seq), "U ON S { ?u :r ?x }")
    assert ends in {f.message for f in findings(text)}


@pytest.mark.parametrize("seq", ["A+", "A, B;+", "(A; B)", "A, (B | (B2: C))", "A, B; C", "A, N!; B", "A; N!; B"])
def test_until_may_end_runs_there(seq: str) -> None:
    gpms = (*UNTIL, "B2 ON S { ?b2 :q ?k }", "N ON S { ?n :q ?k }", "U ON S { ?u :r ?k }")
    assert "until" not in {f.code for f in findings(query(f"{seq}) UNTIL (U", *gpms))}


def test_until_outside_of_the_partitions_is_told() -> None:
    text = query("A; B) UNTIL (U", *UNTIL[:2], "U ON S { ?u :r ?x }").replace("WITHIN", "PARTITION BY ?k WITHIN")
    (finding,) = (f for f in findings(text) if f.code == "partition")
    assert finding.message == "?k is not bound by U of UNTIL: such events are in no partition by themselves"


def test_a_gpm_may_be_called_until() -> None:
    gpms = [f"{name} ON S {{ ?{name.lower()} :p ?k }}" for name in ("UNTIL", "A", "B")]
    read = load(query("UNTIL; B) UNTIL (A", *gpms))
    assert render(read).split("\n")[5].strip() == "SEQ(UNTIL; B) UNTIL A"
