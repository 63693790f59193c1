"""A column, or a template's variable, that nothing binds: legal, unbound and linted in the languages that extend
SPARQL's SELECT, refused in SPAseq and CEQL (semantics.md 2.2). The same from Python, the command line and over HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from http_client import ask
from test_live_http import server

import oxiseq
from oxiseq.cli import main
from oxiseq.grammar import QueryError

P = "PREFIX : <http://e/>\n"
WINDOW = "FROM NAMED WINDOW :w ON <http://e/s> [RANGE PT10S STEP PT10S]"
RSP = f"{WINDOW} WHERE {{ WINDOW :w {{ ?x :p ?v }} }}"
SPECTRA = "FROM STREAM <http://e/s> [RANGE 10 SECONDS SLIDE 1 SECONDS] WHERE { ?x :p ?v }"
RSEP = "FROM NAMED <http://e/s> WIN [LND 0] AS :w EVENT ON :w { ?x :p ?v } AS E1 WHERE { MATCH { E1 } }"
EP = "FROM STREAM <http://e/s> WHERE { ?x :p ?v }"
TEMPLATE = "{ ?x :is ?nobody . ?x :has ?v }"
LEGAL = {
    "rspql": f"{P}REGISTER RSTREAM <http://e/o> AS SELECT ?x ?nobody {RSP}",
    "rspql, expression": f"{P}REGISTER RSTREAM <http://e/o> AS SELECT ?x (?v + ?nobody AS ?sum) {RSP}",
    "rspql, template": f"{P}REGISTER RSTREAM <http://e/o> AS CONSTRUCT {TEMPLATE} {RSP}",
    "spectra": f"{P}SELECT ?x ?nobody {SPECTRA}",
    "spectra, expression": f"{P}SELECT ?x (?v + ?nobody AS ?sum) {SPECTRA}",
    "spectra, groups": f"{P}SELECT ?nobody (SAMPLE(?x) AS ?some) {SPECTRA} GROUP BY ?nobody",
    "spectra, template": f"{P}CONSTRUCT {TEMPLATE} {SPECTRA}",
    "rsepql": f"{P}SELECT ?x ?nobody {RSEP}",
    "rsepql, expression": f"{P}SELECT ?x (?v + ?nobody AS ?sum) {RSEP}",
    "rsepql, template": f"{P}CONSTRUCT {TEMPLATE} {RSEP}",
    "epsparql": f"{P}SELECT ?x ?nobody {EP}",
    "epsparql, expression": f"{P}SELECT ?x (?v + ?nobody AS ?sum) {EP}",
    "epsparql, template": f"{P}CONSTRUCT {TEMPLATE} {EP}",
}
GPM = "FROM STREAM S <http://e/s> WHERE { SEQ(A) DEFINE GPM A ON S { ?x :p ?v } }"
REFUSED = {
    "spaseq": (f"{P}SELECT ?x ?nobody {GPM}", "no GPM of SEQ binds ?nobody", (2, 11)),
    "spaseq, expression": (f"{P}SELECT ?x (?v + ?nobody AS ?sum) {GPM}", "no GPM of SEQ binds ?nobody", (2, 17)),
    "spaseq, template": (f"{P}CONSTRUCT {TEMPLATE} {GPM}", "no GPM of SEQ binds ?nobody", (2, 20)),
    "ceql": ("VOCAB <http://e/> SELECT a, nobody FROM S WHERE T AS a", "WHERE has no nobody", (1, 29)),
}
ASKS = {
    "rspql": f"{P}REGISTER RSTREAM <http://e/o> AS ASK {RSP}",
    "spectra": f"{P}ASK {SPECTRA}",
    "rsepql": f"{P}ASK {RSEP}",
    "epsparql": f"{P}ASK {EP}",
}
EVENTS = [(1_000_000, '<http://e/a> <http://e/p> "1"^^<http://www.w3.org/2001/XMLSchema#integer> .')]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with server(tmp_path_factory.mktemp("unbound")) as given:
        yield given


def language(name: str) -> str:
    return name.partition(",")[0]


def by_command(folder: Path, name: str, text: str) -> tuple[int, list[dict[str, Any]]]:
    """Exit code and findings of `oxiseq check`."""
    path = folder / f"query.{language(name)}"
    path.write_text(text)
    result = CliRunner().invoke(main, ["check", "--json", str(path)])
    return result.exit_code, json.loads(result.stdout)


def by_http(address: str, name: str, text: str) -> list[dict[str, Any]]:
    """The findings of `POST /check`."""
    media = [("Content-Type", f"application/{language(name)}-query")]
    found: list[dict[str, Any]] = json.loads(ask(address, "POST", "/check", media, text.encode()).body)["findings"]
    return found


@pytest.mark.parametrize("name", LEGAL)
def test_it_is_unbound_and_linted(address: str, tmp_path: Path, name: str) -> None:
    text = LEGAL[name]
    found = list(oxiseq.run(text, {"http://e/s": EVENTS}, language=language(name)))
    assert found
    if "template" in name:
        assert {str(t.predicate) for m in found for t in m.graph} == {"<http://e/has>"}
    else:
        column = "sum" if "expression" in name else "nobody"
        assert [m.get(column) for m in found] == [None] * len(found)
        assert {str(m["some" if "groups" in name else "x"]) for m in found} == {"<http://e/a>"}
    code, told = by_command(tmp_path, name, text)
    assert code == 0
    for findings in (told, by_http(address, name, text)):
        (lint,) = [f for f in findings if f["code"] == "unbound"]
        assert (lint["severity"], lint["message"]) == ("lint", "nothing binds ?nobody")
        assert text[lint["start"] : lint["end"]] == "?nobody"
        assert not any(f["severity"] == "error" for f in findings)


@pytest.mark.parametrize("name", REFUSED)
def test_it_is_refused(address: str, tmp_path: Path, name: str) -> None:
    text, message, place = REFUSED[name]
    with pytest.raises(QueryError, match=message.replace("?", r"\?")) as caught:
        oxiseq.run(text, {"S": []}, language=language(name))
    assert (caught.value.line, caught.value.column) == place
    code, told = by_command(tmp_path, name, text)
    assert code == 1
    for findings in (told, by_http(address, name, text)):
        (error,) = [f for f in findings if f["severity"] == "error"]
        assert (error["message"], (error["line"], error["column"])) == (message, place)


@pytest.mark.parametrize("name", ASKS)
def test_ask_shows_no_variable(address: str, name: str) -> None:
    assert [f for f in by_http(address, name, ASKS[name]) if f["code"] == "unbound"] == []
    assert list(oxiseq.run(ASKS[name], {"http://e/s": EVENTS}, language=name))
