"""`GRAPH <g>` of a KB that has no such graph: a lint that names those that there are, in every language."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from pyoxigraph import Literal, NamedNode, Quad, Store

import oxiseq
from oxiseq.cli.app import main
from oxiseq.languages.lints import MissingGraphWarning, missing_graphs
from oxiseq.sources.knowledge import knowledge_of

sys.path.insert(0, str(Path(__file__).parent.parent / "attacks"))
from kb_doors import ask, server

E = "http://e/"
P = f"PREFIX : <{E}>"
S = f"{E}S"
QUERIES = {
    "spaseq": f"{P} SELECT ?v FROM STREAM S <{S}> WHERE {{ SEQ(A) DEFINE GPM A ON S {{ ?k :p ?x %s }} }}",
    "spaseq, in OPTIONAL": f"{P} SELECT ?v FROM STREAM S <{S}> WHERE {{ SEQ(A)"
    " DEFINE GPM A ON S { ?k :p ?x OPTIONAL { %s } } }",
    "rspql": f"{P} SELECT ?v FROM NAMED WINDOW :w ON <{S}> [RANGE 3] WHERE {{ WINDOW :w {{ ?k :p ?x }} %s }}",
    "spectra": f"{P} SELECT ?v FROM STREAM <{S}> [RANGE 3 SLIDE 1] WHERE {{ ?k :p ?x %s }}",
    "rspql, in EXISTS": f"{P} SELECT ?x FROM STREAM <{S}> [RANGE 3 SLIDE 1]"
    " WHERE { ?k :p ?x FILTER EXISTS { %s } }",
    "rsepql": f"{P} SELECT ?v FROM NAMED <{S}> WIN [RANGE 3 SLIDE 1] AS :w EVENT ON :w {{ ?k :p ?x %s }} AS E"
    " WHERE { MATCH { E } }",
    "epsparql": f"{P} SELECT ?v FROM STREAM <{S}> WHERE {{ ?k :p ?x . %s }}",
}
KNOWN, TYPO = "GRAPH :people { ?k :v ?v }", "GRAPH :peopel { ?k :v ?v }"


def kb(*graphs: str) -> Store:
    store = Store()
    store.extend(Quad(NamedNode(f"{E}a"), NamedNode(f"{E}v"), Literal(1), NamedNode(E + graph)) for graph in graphs)
    return store


def run(name: str, graph: str, known: Store | None) -> None:
    text = QUERIES[name] % graph
    oxiseq.run(text, {S: []}, kb=known, language=name.partition(",")[0])  # type: ignore[call-overload]


@pytest.mark.parametrize("name", QUERIES)
def test_a_run_warns(name: str) -> None:
    known = kb("people", "places", "urn")
    known.add_graph(NamedNode("urn:oxiseq:statistics"))
    with pytest.warns(MissingGraphWarning) as told:
        run(name, TYPO, known)
    (warning,) = (each for each in told if each.category is MissingGraphWarning)
    assert str(warning.message).partition(": ")[2] == (
        f"the knowledge base has no graph <{E}peopel>: it has <{E}people>, <{E}places>, <{E}urn>"
    )
    assert warning.filename == __file__


@pytest.mark.parametrize("name", QUERIES)
def test_it_does_not_where_the_graph_is_there(name: str) -> None:
    empty = Store()
    empty.add_graph(NamedNode(f"{E}people"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(name, KNOWN, kb("people"))
        run(name, KNOWN, empty)


def test_graph_with_a_variable_names_none() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run("spaseq", "GRAPH ?g { ?k :v ?v }", kb("places"))
        run("rspql", "GRAPH ?g { ?k :v ?v }", kb())


def test_ten_of_many_are_named_the_nearest_first() -> None:
    query = oxiseq.grammar.load(QUERIES["spaseq"] % TYPO)
    (lint,) = missing_graphs(query, QUERIES["spaseq"] % TYPO, knowledge_of(kb("people", *(f"g{n}" for n in range(99)))))
    assert lint.hint.startswith(f"it has <{E}people>, ")
    assert lint.hint.endswith(" and 90 more")
    assert lint.hint.count("<") == 10
    assert QUERIES["spaseq"].replace("%s", TYPO)[lint.span.start :].startswith("GRAPH :peopel")


def test_a_kb_without_graphs_and_none() -> None:
    for known in (kb(), None):
        with pytest.warns(MissingGraphWarning, match="it has no named graphs"):
            run("spaseq", KNOWN, known)


def test_from_and_rules() -> None:
    text = f"{P} SELECT ?v FROM :peopel FROM STREAM <{S}> [RANGE 3 SLIDE 1] WHERE {{ ?k :p ?x }}"
    query = oxiseq.grammar.load(text, "rspql")
    assert [f.message for f in missing_graphs(query, text, knowledge_of(kb("people")))] == [
        f"the knowledge base has no graph <{E}peopel>"
    ]
    rule = f"{P} CONSTRUCT {{ ?k :q ?v }} FROM STREAM <{S}> WHERE {{ ?k :p ?x . {TYPO} }}"
    with pytest.warns(MissingGraphWarning, match="peopel"):
        oxiseq.run(QUERIES["epsparql"] % KNOWN, {S: []}, kb=kb("people"), language="epsparql", rules=[rule])


def test_the_command_line_says_it(tmp_path: Path) -> None:
    (tmp_path / "q.spaseq").write_text(f"{P}\n{(QUERIES['spaseq'] % TYPO).removeprefix(P)}")
    (tmp_path / "s.nq").write_text("")
    (tmp_path / "kb.nq").write_text(f"<{E}a> <{E}v> <{E}b> <{E}people> .\n")
    given = ["run", str(tmp_path / "q.spaseq"), "-s", f"S={tmp_path / 's.nq'}", "--kb", str(tmp_path / "kb.nq")]
    told = CliRunner().invoke(main, given)
    assert told.exit_code == 0
    assert "warning: line 2, column " in told.stderr
    assert f"the knowledge base has no graph <{E}peopel>: it has <{E}people>\n" in told.stderr
    assert "warning" not in told.stdout
    assert "warning" not in CliRunner().invoke(main, [*given, "--quiet"]).stderr


# --- HTTP -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    store = oxiseq.Store()
    store.extend(kb("people"))
    with server(tmp_path_factory.mktemp("live"), store) as given:
        yield given


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("method", ["POST", "PUT"])
def test_who_registers_is_told(address: str, name: str, method: str) -> None:
    kind = [("Content-Type", f"application/{name.partition(',')[0]}-query")]
    target = "/queries?name=q" if method == "POST" else "/queries/q"
    answer = ask(address, method, target, kind, (QUERIES[name] % TYPO).encode())
    ask(address, "DELETE", "/queries/q")
    lint = next(lint for lint in json.loads(answer.body)["lints"] if lint["code"] == "no-graph")
    assert lint["hint"] == f"it has <{E}people>"
    assert (lint["severity"], lint["line"]) == ("lint", 1)
    answer = ask(address, method, target, kind, (QUERIES[name] % KNOWN).encode())
    ask(address, "DELETE", "/queries/q")
    assert all(lint["code"] != "no-graph" for lint in json.loads(answer.body)["lints"])
