"""`oxiseq explain`: automaton, live keys, how graph patterns are answered."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from cli_files import EX, GPMS, oxiseq, query, write
from corpus_cases import Case, load_cases

from oxiseq.engine.plan.query import compile_query
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar import load
from oxiseq.languages.sequences.explain import as_text, explain

RICH = query(
    "SELECT ?who",
    "WITHIN 90 SECONDS SLIDING",
    "N!; A; B+, C; (D | E)?; M!",
    GPMS
    + """
  DEFINE GPM C ON S { ?who :paid ?c . ?who :at ?place FILTER(?c + ?first > 2) FILTER(STRLEN(?place) > 2) }
  DEFINE GPM D ON S { ?who :paid|:owed ?d OPTIONAL { ?who :at ?e } FILTER(?d > 1) }
  DEFINE GPM E ON S { { SELECT ?who (SUM(?x) AS ?sum) { ?who :paid ?x } GROUP BY ?who } }
  DEFINE GPM M ON S { ?who :left ?m . GRAPH <http://example.org/kb> { ?who :name ?n } FILTER(?n != "Bob") }
  DEFINE GPM N ON S { }
""",
)


@pytest.fixture
def rich(folder: Path) -> Path:
    """A query with every kind of wait and pattern."""
    return Path(write(folder, "rich.spaseq", RICH))


def facts(*arguments: object) -> dict[str, Any]:
    """The explanation as JSON values."""
    result = oxiseq("explain", *arguments, "--json")
    assert result.exit_code == 0, result.stderr
    made: dict[str, Any] = json.loads(result.stdout)
    return made


def test_the_text_tells_automaton_keys_and_patterns(folder: Path) -> None:
    text = oxiseq("explain", folder / "jumps.spaseq").stdout
    assert "SEQ(A; B)" in text
    assert "window: 1 HOUR tumbling" in text
    assert "A on S: columnar, 1 triple pattern" in text
    assert "A → state 0: begins a run" in text
    assert "B at the next one (;) → state 1: ordered index, same ?who, ?second >= 10 * ?first" in text
    assert "runs are distinguished by ?first, ?who" in text
    assert "state 1, after B, a match" in text


def test_what_each_pattern_is_answered_by(rich: Path) -> None:
    gpms = {gpm["name"]: gpm for gpm in facts(rich)["gpms"]}
    assert {name: gpm["answered"] for name, gpm in gpms.items()} == {
        "A": "columns",
        "B": "columns",
        "C": "columns",
        "D": "operators",
        "E": "operators",
        "M": "columns",
        "N": "always",
    }
    assert gpms["D"]["reason"] == "it has a property path, OPTIONAL"
    assert "operators over" in oxiseq("explain", rich).stdout
    assert [gpm["name"] for gpm in gpms.values() if gpm["negated"]] == ["M", "N"]
    assert [f["how"] for f in gpms["C"]["filters"]] == ["once per term"]


def test_the_kb_is_joined_where_a_filter_reads_it_and_else_late(folder: Path, rich: Path) -> None:
    (joined,) = [gpm["kb"] for gpm in facts(rich)["gpms"] if gpm["kb"]]
    assert (joined["how"], joined["shared"], joined["rows"]) == ("join", ["?who"], None)
    (late,) = [gpm["kb"] for gpm in facts(folder / "named.spaseq")["gpms"] if gpm["kb"]]
    assert late["how"] == "late enrichment"
    checked = folder / "checked.spaseq"
    text = (folder / "named.spaseq").read_text().replace("GRAPH ?g { ?who :name ?name }", "GRAPH :kb { ?who :name 1 }")
    checked.write_text(text.replace("?second ?name", "?second"))
    assert "knowledge base: semi-join" in oxiseq("explain", checked).stdout


def test_kb_rows_are_told_with_a_kb(folder: Path) -> None:
    named = folder / "named.spaseq"
    assert [g["kb"]["rows"] for g in facts(named, "--kb", folder / "names.nq")["gpms"] if g["kb"]] == [2]
    assert "rows not known without --kb" in oxiseq("explain", named).stdout
    assert ", 2 rows" in oxiseq("explain", named, "--kb", folder / "names.nq").stdout


def test_a_kb_that_does_not_exist(folder: Path) -> None:
    result = oxiseq("explain", folder / "named.spaseq", "--kb", folder / "no.nq")
    assert result.exit_code == 1
    assert "there is no such file" in result.stderr


def test_waits_of_a_rich_query(rich: Path) -> None:
    made = facts(rich)
    assert made["window"] == "90 SECONDS sliding"
    assert {edge["op"] for edge in made["edges"]} == {",", ";", "window"}
    assert [g["letter"] for edge in made["edges"] if edge["source"] == -1 for g in edge["guards"]] == ["N"]
    closing = [edge for edge in made["edges"] if edge["op"] == "window"]
    assert all([g["letter"] for g in edge["guards"]] == ["M"] for edge in closing)
    assert all("start of the match" in edge["live"] for edge in made["edges"] if edge["source"] >= 0)
    text = oxiseq("explain", rich).stdout
    assert "waits for the window's end, then is a match" in text
    assert "not N: looked up at the start" in text


def test_dot_is_one_digraph_with_all_states_and_waits(rich: Path) -> None:
    made = facts(rich)
    dot = oxiseq("explain", rich, "--dot").stdout
    assert dot.startswith("digraph query {\n")
    assert dot.endswith("}\n")
    assert set(re.findall(r"^  (s\d+) \[", dot, re.M)) == {f"s{state['number']}" for state in made["states"]}
    arrows = sum(max(1, len(edge["arms"])) for edge in made["edges"])
    assert dot.count(" -> ") == arrows
    for line in dot.splitlines()[1:-1]:  # every string is closed: quotes that are not escaped come in pairs
        assert len(re.findall(r'(?<!\\)"', line)) % 2 == 0, line


def test_quotes_in_filters_are_escaped_in_dot(folder: Path) -> None:
    gpms = GPMS.replace(">= 10 * ?first", '> ?first || ?second = "a\\"b\\n"')
    dot = oxiseq("explain", write(folder, "quotes.spaseq", query(gpms=gpms)), "--dot").stdout
    (line,) = [line for line in dot.splitlines() if "s0 -> s1" in line]
    assert '\\"a\\\\\\"b\\\\n\\"' in line


def test_a_wrong_query_is_refused(folder: Path) -> None:
    path = write(folder, "wrong.spaseq", query(seq="A; Bb"))
    result = oxiseq("explain", path)
    assert result.exit_code == 1
    assert f"{path}: " in result.stderr


def test_prefixes_shorten_conditions(folder: Path) -> None:
    gpms = GPMS.replace("?second >= 10 * ?first", f"?second != ?first && ?first != <{EX}x>")
    assert "?first != :x" in oxiseq("explain", write(folder, "p.spaseq", query(gpms=gpms))).stdout


@pytest.mark.parametrize("case", load_cases(), ids=lambda c: c.name)
def test_every_corpus_query_can_be_explained(case: Case) -> None:
    made = explain(compile_query(load(case.query), TermDictionary()))
    for state in made.states:
        assert f"state {state.number}, after {state.letter}" in as_text(made)
    targets = {arm.target for edge in made.edges for arm in edge.arms}
    assert targets == {state.number for state in made.states}
    assert made.dot().count(" -> ") == sum(len(edge.arms) + (edge.op == "window") for edge in made.edges)


def test_the_clauses_and_what_is_done_for_them(folder: Path) -> None:
    text = query("SELECT LAST ?who", "WITHIN 1 HOUR PARTITION BY ?who CONSUME BY PARTITION", "A; B")
    lines = oxiseq("explain", write(folder, "clauses.spaseq", text.rstrip() + " LIMIT 2\n")).stdout.splitlines()
    assert "PARTITION BY ?who: an event is split by its values, all partitions share one run" in lines
    assert "SELECT LAST: chosen before matches are enumerated" in lines
    assert "CONSUME BY: after a match all partial matches of its partition are discarded" in lines
    assert "LIMIT 2: ends the enumeration" in lines
    assert any("same partition" in line for line in lines)


def test_the_picture_goes_to_a_file(folder: Path) -> None:
    told = oxiseq("explain", folder / "jumps.spaseq", "--svg", folder / "jumps.svg")
    assert (told.exit_code, told.stdout) == (0, "")
    assert (folder / "jumps.svg").read_text().startswith("<svg ")
    ceql = write(folder, "a.ceql", "VOCAB <http://e/> SELECT * FROM S WHERE SELL ; BUY")
    assert ">BUY<" in oxiseq("explain", ceql, "--svg", "-").stdout


def test_bounds_of_gaps_and_filters_behind_seq_are_told(folder: Path) -> None:
    text = query(seq="A; B AFTER 5 SECONDS WITHIN 10 MINUTES").replace("DEFINE", "FILTER(?first < 3)\n  DEFINE", 1)
    path = write(folder, "bounds.spaseq", text)
    lines = [line.strip() for line in oxiseq("explain", path).stdout.splitlines()]
    assert "a run that has waited less than 5 SECONDS; older, it continues to wait" in lines
    assert "a run that has waited from 5 SECONDS on, up to 10 MINUTES; older, it is dropped" in lines
    assert "FILTER ?first < 3: evaluated on each match that is found" in lines
    assert "\\nfrom 5 SECONDS on, up to 10 MINUTES\\nkey" in oxiseq("explain", path, "--dot").stdout
    alarm = query(window="", seq="A; B LASTING 1 MINUTE; N! WITHIN 2 MINUTES").replace(
        "\n}", "\n  DEFINE GPM N ON S { ?n :q ?m }\n}"
    )
    told = oxiseq("explain", write(folder, "alarm.spaseq", alarm)).stdout
    assert "a run that has waited up to 2 MINUTES; older, it is a match" in told


def test_sparql_over_the_store_is_explained(folder: Path) -> None:
    over_store = write(folder, "names.rq", "SELECT ?n { ?x <http://example.org/name> ?n }")
    kb = write(folder, "names.nq", '<urn:a> <http://example.org/name> "Ann" .')
    text = oxiseq("explain", over_store, "--kb", kb).stdout
    assert "<http://example.org/name> ?n  in the default graph" in text
    assert "rows: 1" in text
    wrong = oxiseq("explain", write(folder, "wrong.rq", "SELECT ?n { ?x }"))
    assert (wrong.exit_code, "wrong.rq: " in wrong.stderr) == (1, True)


JOINED = """PREFIX : <http://e/>
SELECT ?c ?s {
  SERVICE :trades { GRAPH ?e { ?t :of ?c } }
  ?c :sector ?s
}"""


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("q.rq", JOINED, ["  VALUES (...) { ... }", "answered here: <http://e/trades>", "in parts where it is long"]),
        ("q.rq", JOINED + " ORDER BY ?s", ["in one request, of at most 16 MB: ORDER BY is of all solutions together"]),
        ("q.rq", "SELECT ?s { ?s <http://e/p> ?o }", ["when it is registered", "<http://e/p>"]),
        ("q.spaseq", RICH, ["when it is registered", "<http://example.org/kb>"]),
        (
            "q.spaseq",
            "SELECT * FROM STREAM S <u:s> WHERE { SEQ(A) DEFINE GPM A ON S { ?a <u:b> ?c } }",
            ["sent to the endpoint: nothing"],
        ),
    ],
)
def test_what_is_sent_to_an_endpoint(folder: Path, name: str, text: str, expected: list[str]) -> None:
    file = write(folder, name, text)
    told = oxiseq("explain", file, "--upstream")
    assert told.exit_code == 0, told.output
    assert all(each in told.output for each in expected), told.output
    values = json.loads(oxiseq("explain", file, "--upstream", "--json").output)
    assert all(line.strip() in told.output for each in values["texts"] for line in each.splitlines())
    assert oxiseq("explain", file, "--upstream", "--dot").exit_code == 2
