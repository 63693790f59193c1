"""Queries over windows through `oxiseq.run`, `Store.register` and the command line."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from pyoxigraph import Literal, NamedNode, Quad

import oxiseq

sys.path.insert(0, str(Path(__file__).parents[1] / "cli"))
from cli_files import oxiseq as cli
from cli_files import write

S, T = "http://e/S", "http://e/T"
PREFIX = "PREFIX : <http://e/>\n"
PLAIN = f"{PREFIX}SELECT ?a ?b FROM STREAM <{S}> [RANGE 10 SLIDE 1] WHERE {{ ?a :p ?b }}"
MEAN = f"{PREFIX}SELECT (AVG(?b) AS ?mean) FROM STREAM <{S}> [RANGE 10 SLIDE 1] WHERE {{ ?a :p ?b }}"
SEQUENCE = f"""{PREFIX}SELECT * FROM NAMED <{S}> WIN [RANGE 10 SLIDE 1] AS :w
EVENT ON :w {{ ?a :p ?b }} AS E1 EVENT ON :w {{ ?a :p ?c }} AS E2 WHERE {{ MATCH {{ E1 SEQ E2 }} }}"""


def at(time: int, value: int, predicate: str = "p") -> tuple[int, str]:
    return time, f"<http://e/x> <http://e/{predicate}> {value} ."


def values(answers: object, name: str) -> list[tuple[int, str]]:
    return [(a.at_us, a[name].value) for a in answers]  # type: ignore[attr-defined]


# --- run ------------------------------------------------------------------------------------------


def test_continuous_sparql_tells_new_answers() -> None:
    assert values(oxiseq.run(PLAIN, {S: [at(1, 5), at(2, 6)]}, language="rspql"), "b") == [(1, "5"), (2, "6")]


@pytest.mark.parametrize(
    ("report", "rows"),
    [
        ("RSTREAM", [(1, "2"), (2, "3"), (11, "4")]),
        ("istream", [(1, "2"), (2, "3"), (11, "4")]),
        ("DSTREAM", [(2, "2"), (11, "3")]),
    ],
)
def test_aggregates(report: str, rows: list[tuple[int, str]]) -> None:
    events = [at(1, 2), at(2, 4), at(11, 1, "q")]
    assert values(oxiseq.run(MEAN, {S: events}, language="spectra", stream_operator=report), "mean") == rows


def test_answers_as_tables() -> None:
    answers = oxiseq.run(SEQUENCE, {S: [at(1, 5), at(2, 6)]}, language="rsepql")
    table = answers.to_arrow()
    assert table.column_names == ["at", "start", "end", "a", "b", "c"]
    assert table["b"].to_pylist() == [5]
    assert json.loads(answers.write(format="json"))["head"]["vars"] == ["a", "b", "c"]
    assert len(answers[:0]) == 0 and "1 of (a, b, c)" in repr(answers)


def test_ask_and_construct() -> None:
    asked = oxiseq.run(PLAIN.replace("SELECT ?a ?b", "ASK"), {S: [at(1, 5), at(20, 5, "q")]}, language="rspql")
    assert [a.at_us for a in asked] == [1] and asked and json.loads(asked.write(format="json"))["boolean"]
    text = PLAIN.replace("SELECT ?a ?b", "CONSTRUCT { ?a :was ?b }")
    (made,) = oxiseq.run(text, {S: [at(1, 5)]}, language="rspql")
    assert [str(t.predicate) for t in made.graph] == ["<http://e/was>"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"stream_operator": "ALL"}, "stream_operator='ALL' is not known; known: RSTREAM, ISTREAM, DSTREAM"),
        ({"consumption": "SOME"}, "consumption='SOME' is not known"),
        ({"stream_names": {"S": "http://e/S"}}, "stream_names is for CEQL"),
    ],
)
def test_options_that_are_not_known(options: dict[str, object], message: str) -> None:
    with pytest.raises(oxiseq.OxiseqError, match=message):
        oxiseq.run(PLAIN, {S: []}, language="rspql", **options)  # type: ignore[call-overload]


def test_options_that_contradict_the_text() -> None:
    with pytest.raises(oxiseq.OxiseqError, match="REGISTER RSTREAM, but stream_operator=ISTREAM"):
        oxiseq.run(
            PLAIN.replace("SELECT", "REGISTER RSTREAM :o AS SELECT"),
            {S: []},
            language="rspql",
            stream_operator="ISTREAM",
        )
    with pytest.raises(oxiseq.OxiseqError, match="leave out evaluation_times"):
        oxiseq.run(f"{SEQUENCE} REPORT EVERY 5", {S: []}, language="rsepql", evaluation_times=[1])


def test_other_languages_take_no_stream_operator() -> None:
    text = f"SELECT * FROM STREAM S <{S}> WHERE {{ SEQ(A) DEFINE GPM A ON S {{ ?s ?p ?o }} }}"
    with pytest.raises(
        oxiseq.OxiseqError, match="stream_operator is for RSP-QL, SPECTRA, RSEP-QL: a query of SPAseq has none"
    ):
        oxiseq.run(text, {S: []}, stream_operator="RSTREAM")  # type: ignore[call-overload]


def test_late_events_are_handed_out() -> None:
    late = [at(5, 1), at(3, 2)]
    answers = oxiseq.run(PLAIN, {S: iter(late)}, language="rspql", late="ignore")
    assert answers.late == 1 and [e.time_us for e in answers.late_events()] == [3]
    assert len(oxiseq.run(PLAIN, {S: iter(late)}, language="rspql", lateness="2us")) == 2


# --- a store --------------------------------------------------------------------------------------


def test_a_registered_query() -> None:
    store = oxiseq.Store()
    query = store.register(SEQUENCE, language="rsepql", stream_operator="ISTREAM")
    stream = store.stream(S)
    for time, graph in (at(1, 5), at(2, 6), at(3, 7)):
        stream.push(graph, time)
    found = [(m.at_us, m.start_us, m.end_us) for m in query.poll("1s")]
    assert found == [(2, 1, 2), (3, 1, 3), (3, 2, 3)]
    assert query.state["mappings"] == 6


def test_results_feed_a_stream() -> None:
    store = oxiseq.Store()
    store.register(
        PLAIN.replace("SELECT ?a ?b", f"REGISTER ISTREAM <{T}> AS CONSTRUCT {{ ?a :twice ?b }}"), language="rspql"
    )
    query = store.register(
        f"{PREFIX}SELECT ?b FROM STREAM <{T}> [RANGE 100] WHERE {{ ?a :twice ?b }}", language="rspql"
    )
    assert query.reads == (T,)
    for time, graph in (at(1, 5), at(2, 6)):
        store.stream(S).push(graph, time)
    store.advance(50)
    assert values(query.poll("1s"), "b") == [(1, "5"), (2, "6")]


def test_the_knowledge_base_changes() -> None:
    store = oxiseq.Store()
    text = f"""{PREFIX}SELECT ?n FROM NAMED WINDOW :w ON <{S}> [RANGE 100]
               WHERE {{ WINDOW :w {{ ?a :p ?b }} GRAPH :g {{ ?a :name ?n }} }}"""
    query = store.register(text, language="rspql", stream_operator="RSTREAM")
    name = Quad(NamedNode("http://e/x"), NamedNode("http://e/name"), Literal("old"), NamedNode("http://e/g"))
    store.add(name)
    store.stream(S).push(at(1, 5)[1], 1)
    store.advance(2)
    store.remove(name)
    store.add(Quad(name.subject, name.predicate, Literal("new"), name.graph_name))
    store.stream(S).push(at(3, 6)[1], 3)
    store.advance(4)
    assert values(query.poll("1s"), "n") == [(1, "old"), (3, "new"), (3, "new")]


# --- the command line -----------------------------------------------------------------------------


def test_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "mean.rspql", MEAN.replace("RANGE 10 SLIDE 1", "RANGE 10 SECONDS SLIDE 1 SECONDS"))
    stamp = "<http://www.w3.org/ns/prov#generatedAtTime>"
    kind = "^^<http://www.w3.org/2001/XMLSchema#dateTime>"
    number = "^^<http://www.w3.org/2001/XMLSchema#integer>"
    write(
        tmp_path,
        "s.nq",
        "".join(
            f'<http://e/e{i}> {stamp} "2024-05-01T10:00:0{i}Z"{kind} .\n'
            f'<http://e/x> <http://e/p> "{i}"{number} <http://e/e{i}> .\n'
            for i in (1, 2)
        ),
    )
    result = cli("run", "mean.rspql", "-s", "s.nq", "--stream-operator", "rstream", "-f", "csv")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.split() == ["mean", "1", "1.5"]
    once = cli("run", "mean.rspql", "-s", "s.nq", "--evaluation-times", "2024-05-01T10:00:05Z", "-f", "csv")
    assert once.stdout.split() == ["mean", "1.5"]
    assert cli("check", "mean.rspql").exit_code == 0
    assert "a row for each group" in cli("explain", "mean.rspql", "--json").stdout
    assert json.loads(cli("explain", "mean.rspql", "--json").stdout)["evaluation"].startswith("incremental")
    assert cli("explain", "mean.rspql", "--dot").stdout.startswith("digraph query {")


@pytest.mark.parametrize(
    ("text", "language", "words"),
    [
        (PLAIN, "rspql", ["evaluation: incremental", "patterns  ?a :p ?b  in window 0"]),
        (
            PLAIN.replace("{ ?a :p ?b }", "{ ?a :p ?b GRAPH :g { ?b :k ?c } }"),
            "rspql",
            ["evaluation: incremental", "?a :p ?b  in window 0", "?b :k ?c  in <http://e/g> of the knowledge base"],
        ),
        (
            PLAIN.replace("?b }", "?b GRAPH :g { ?b :k+ ?c } }"),
            "rspql",
            ["is queried from it (`asked` below), again when a quad of it is added or removed", "asked  SELECT ?b ?c"],
        ),
        (
            PLAIN.replace("?b }", "?b } ORDER BY ?a LIMIT 3"),
            "rspql",
            ["evaluation: incremental", "best of", "from 0 to 3"],
        ),
        (
            PLAIN.replace("?b }", "?b OPTIONAL { ?b :q ?c } }"),
            "rspql",
            ["evaluation: incremental", "join of", "union of"],
        ),
        (
            SEQUENCE,
            "rsepql",
            [
                "evaluation: incremental",
                "follows of 1, 0  ?a = ?a",
                "MATCH { E1 SEQ E2 }",
                "E1 on window 0: ?a, ?b, by the match kernel",
            ],
        ),
    ],
)
def test_explain(tmp_path: Path, text: str, language: str, words: list[str]) -> None:
    write(tmp_path, f"q.{language}", text)
    shown = cli("explain", str(tmp_path / f"q.{language}")).stdout
    assert all(word in shown for word in words), shown


def test_an_event_without_variables_can_be_asked_for() -> None:
    text = f"""{PREFIX}ASK FROM NAMED <{S}> WIN [RANGE 10 SLIDE 1] AS :w
EVENT ON :w {{ :x :p 5 }} AS E1 WHERE {{ MATCH {{ E1 }} }}"""
    assert [a.at_us for a in oxiseq.run(text, {S: [at(1, 4), at(2, 5)]}, language="rsepql")] == [2]
