"""A sixth language, brought from outside by an entry point, works wherever ours do; no file of oxiseq knows it."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest
from click.testing import CliRunner, Result
from pyoxigraph import Store as RdfStore

import oxiseq
from oxiseq.cli import main
from oxiseq.engine.kb import StoreKb
from oxiseq.engine.snapshot.saving import save
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar import language_names, language_of, load, parse, render
from oxiseq.languages.registry import language_named
from oxiseq.live import LiveService, LiveSettings
from oxiseq.live.api import LiveRoutes
from oxiseq.options import Options
from oxiseq.server import ServerSettings, create_app
from oxiseq.sparql import SparqlEndpoint
from oxiseq.testing.run import run_file

S, E = "http://e/s", "http://e/"
TEXT = "on <http://e/s> of <http://e/>: Low then High within 10s by company"
SPASEQ = """SELECT * WITHIN 10 SECONDS SLIDING FROM STREAM S <http://e/s> WHERE { SEQ(E0; E1)
  DEFINE GPM E0 ON S { ?e0 a <http://e/Low> ; <http://e/company> ?company }
  DEFINE GPM E1 ON S { ?e1 a <http://e/High> ; <http://e/company> ?company } }"""
SECOND = 1_000_000


def event(number: int, kind: str, company: int) -> str:
    return (
        f"<http://e/q{number}> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://e/{kind}> .\n"
        f"<http://e/q{number}> <http://e/company> <http://e/c{company}> .\n"
    )


def events(count: int = 60, seed: int = 1) -> list[tuple[int, str]]:
    dice = random.Random(seed)
    return [(i * SECOND, event(i, dice.choice(["Low", "High"]), dice.randrange(3))) for i in range(count)]


def as_quads() -> str:
    return "".join(
        f'<urn:e{time}> <http://www.w3.org/ns/prov#generatedAtTime> "1970-01-01T00:00:{time // SECOND:02}Z"'
        "^^<http://www.w3.org/2001/XMLSchema#dateTime> .\n" + graph.replace(" .\n", f" <urn:e{time}> .\n")
        for time, graph in events()
    )


def told(found: Any) -> list[tuple[int, tuple[str, ...]]]:
    return sorted((m.at_us, tuple(sorted(f"{name}={term}" for name, term in m.items()))) for m in found)


def wanted() -> list[tuple[int, tuple[str, ...]]]:
    found = told(oxiseq.run(SPASEQ, {S: events()}))
    assert len(found) > 10
    return found


@pytest.fixture
def query(toy: Path, tmp_path: Path) -> Path:
    path = tmp_path / "rises.then"
    path.write_text(TEXT, encoding="utf-8")
    return path


@pytest.fixture
def quads(tmp_path: Path) -> Path:
    """The events as a file."""
    path = tmp_path / "events.nq"
    path.write_text(as_quads(), encoding="utf-8")
    return path


def command(*arguments: object, fails: bool = False) -> Result:
    result = CliRunner().invoke(main, list(map(str, arguments)))
    assert fails or result.exit_code == 0, result.output
    return result


# --- in Python ----------------------------------------------------------------------------------------


def test_it_is_found_by_name_ending_and_media_type(query: Path) -> None:
    assert "then" in language_names() and language_of("some.then") == "then"
    asked = oxiseq.Query(query)
    assert (asked.language, asked.variables, dict(asked.streams)) == ("then", ("e0", "company", "e1"), {"S": S})
    assert render(parse(TEXT, "then")) == TEXT
    assert oxiseq.Query(TEXT, "then") == asked


def test_it_is_run(query: Path) -> None:
    assert told(oxiseq.run(query, {S: events()})) == wanted()
    assert told(oxiseq.run(TEXT, {"S": events()}, language="then")) == wanted()


def test_what_is_wrong_with_a_text_is_told_with_its_place(toy: Path) -> None:
    (slip,) = oxiseq.Query("on <http://e/s> of <http://e/>: Low than High", "then").check()
    assert (slip.severity, slip.code, slip.line, slip.column) == ("error", "syntax", 1, 37)
    (error,) = oxiseq.Query("on <http://e/s> of <http://e/>: A then B within 0s", "then").check()
    assert (error.severity, error.code, error.line, error.column) == ("error", "window", 1, 49)
    (lint,) = oxiseq.Query("on <http://e/s> of <http://e/>: A then B", "then").check()
    assert (lint.severity, lint.code) == ("lint", "unbounded")
    with pytest.raises(oxiseq.QueryError, match="holds nothing"):
        oxiseq.run("on <http://e/s> of <http://e/>: A then B within 0s", {S: []}, language="then")


def test_it_is_explained_and_drawn(query: Path) -> None:
    ours, lowered = oxiseq.Query(query).explain(), oxiseq.Query(SPASEQ).explain()
    assert (str(ours), ours.json(), ours.svg(), ours.dot()) == (
        str(lowered),
        lowered.json(),
        lowered.svg(),
        lowered.dot(),
    )


def test_its_reasons_are_told(query: Path) -> None:
    ours, lowered = oxiseq.Query(query).why({S: events()}), oxiseq.Query(SPASEQ).why({S: events()})
    assert ours.language == "then" and ours.found == len(wanted())
    assert str(ours) == str(lowered) and ours.to_prov() == lowered.to_prov()
    assert {**ours.to_json(), "language": "spaseq"} == lowered.to_json()


def test_it_is_translated_and_others_are_not_translated_to_it(query: Path) -> None:
    assert told(oxiseq.Query(query).translate("spaseq").run({S: events()})) == wanted()
    with pytest.raises(oxiseq.QueryError, match=r"then is not translated to ceql: .*, not a query of Then"):
        oxiseq.Query(query).translate("ceql")
    with pytest.raises(oxiseq.QueryError, match="spaseq is not translated to then: Then queries differently"):
        oxiseq.Query(SPASEQ).translate("then")


def test_options_of_other_languages_are_refused(query: Path) -> None:
    with pytest.raises(oxiseq.OxiseqError, match=r"the option stream_operator is for .*: a query of Then has none"):
        oxiseq.run(query, {S: []}, stream_operator="RSTREAM")


def test_a_store_has_it_at_work(query: Path) -> None:
    with oxiseq.Store() as store:
        registered, plain = store.register(query), store.register(SPASEQ)
        store.stream(S).retain(100)
        store.stream(S).extend(events())
        store.advance(60 * SECOND)
        assert told(registered.matches()) == told(plain.matches()) == wanted()
        assert registered.why().language == "then" and "<svg" in registered._repr_html_()


def test_a_folder_keeps_it_over_a_restart(query: Path, tmp_path: Path) -> None:
    given = events()
    with oxiseq.open(tmp_path / "kept") as store:
        store.register(query, name="rises")
        for time, graph in given[:30]:
            store.stream(S).push(graph, time)
    with oxiseq.open(tmp_path / "kept") as store:
        registered = store.find("rises")
        assert registered.query.language == "then"
        for time, graph in given[30:]:
            store.stream(S).push(graph, time)
        store.stream(S).advance(60 * SECOND)
        until = monotonic() + 30
        while registered.match_count < len(wanted()) and monotonic() < until:
            sleep(0.01)
        assert told(registered.matches()) == wanted()


def test_its_runs_are_saved_and_go_on(query: Path) -> None:
    then, algebra = language_named("then"), load(TEXT, "then")
    driver = then.driver(algebra, None, Options())
    driver.attach(S, events()[:30])
    first = list(driver.batches())
    assert first
    terms = TermDictionary()
    run, _ = then.compile(algebra, terms, StoreKb(RdfStore()), Options())
    again = then.resume(save(driver.run, driver.terms), run, terms, StoreKb(RdfStore()))
    assert (again.events, again.late) == (30, 0)


# --- on the command line ------------------------------------------------------------------------------


def test_each_command_takes_it(query: Path, quads: Path) -> None:
    assert "0 errors, 0 lints" in command("check", query).output
    rows = command("run", query, "--stream", f"S={quads}", "--format", "csv", "--quiet").output.split()
    assert len(rows) == 1 + len(wanted())
    assert "E0; E1" in command("explain", query).output
    found = json.loads(command("why", query, "--stream", f"S={quads}", "--json").stdout)
    assert (found["language"], found["found"]) == ("then", len(wanted()))
    assert "SEQ(E0; E1)" in command("translate", query, "--to", "spaseq").output
    text = query.rename(query.with_suffix(".txt"))
    assert "0 errors" in command("check", text, "--language", "then").output
    assert "spaseq" in command("check", text, "--language", "no", fails=True).output


def test_another_process_finds_it_by_its_entry_point(query: Path, quads: Path) -> None:
    asked = [sys.executable, "-m", "oxiseq", "run", str(query), "--stream", f"S={quads}", "--format", "csv", "--quiet"]
    result = subprocess.run(asked, capture_output=True, text=True, timeout=600, check=False)
    assert (result.returncode, result.stderr) == (0, ""), result.stderr
    assert len(result.stdout.split()) == 1 + len(wanted())


def test_pattern_tests_take_it(query: Path, tmp_path: Path) -> None:
    file = tmp_path / "rises.oxitest.toml"
    file.write_text(
        """
query = "rises.then"
prefixes = { "" = "http://e/" }
[[case]]
events = '''
0s { :q1 a :Low ; :company :c }
9s { :q2 a :High ; :company :c }
30s { :q3 a :High ; :company :c }
'''
expect = '''
at | company | e0 | e1
9s | :c | :q1 | :q2
'''
""",
        encoding="utf-8",
    )
    (result,) = run_file(file)
    assert result.passed, result.failures
    assert "1 passed" in command("test", file).output


# --- over HTTP ----------------------------------------------------------------------------------------


def test_a_server_takes_it(query: Path, tmp_path: Path) -> None:
    store = oxiseq.Store()
    with LiveService(store, tmp_path, LiveSettings(), "normal") as service:
        endpoint = SparqlEndpoint(store)
        client = create_app(endpoint, ServerSettings(), LiveRoutes(service, endpoint.evaluations)).test_client()
        then = {"Content-Type": "application/then-query"}
        checked = client.post("/check", data="on <http://e/s> of <http://e/>: A then B", headers=then).get_json()
        assert [each["code"] for each in checked["findings"]] == ["unbounded"]
        refused = client.post("/queries", data="on", headers=then)
        assert (refused.status_code, refused.get_json()["code"]) == (400, "syntax")
        made = client.post("/queries?name=rises", data=TEXT, headers=then)
        assert (made.status_code, made.get_json()["language"]) == (201, "then")
        as_json = client.put("/queries/again", json={"text": TEXT, "language": "then"})
        assert as_json.status_code == 200, as_json.get_json()
        path = "/streams/http%3A%2F%2Fe%2Fs"
        pushed = client.post(path, data=as_quads(), headers={"Content-Type": "application/n-quads"})
        assert pushed.status_code < 300, pushed.get_json()
        for name in ("rises", "again"):
            found, until = [], monotonic() + 30
            while len(found) < len(wanted()) and monotonic() < until:
                found = client.get(f"/queries/{name}/matches").get_json()["results"]["bindings"]
            assert len(found) == len(wanted())
        explained = client.get("/queries/rises/explanation").get_json()
        assert (explained["language"], explained["picture"][:4]) == ("then", "<svg") and explained["waiting"]
        why = client.get("/queries/rises/why").get_json()
        assert (why["language"], why["found"]) == ("then", len(wanted()))
        made_of = client.get("/queries/rises/matches/1/provenance").get_json()
        assert len(made_of["events"]) == 2 and made_of["facts"] == []
        asked = client.post("/queries/rises/compare", data=TEXT.replace("10s", "5s"), headers=then).get_json()
        assert asked["lost"] and not asked["gained"]
        once = client.post("/query", data=TEXT, headers={**then, "Accept": "application/sparql-results+json"})
        assert len(once.get_json()["results"]["bindings"]) == len(wanted())
        known = client.get("/openapi.json").get_json()["components"]["schemas"]["Language"]
        assert "then" in known["enum"]
        told = next(each for each in known["x-languages"] if each["name"] == "then")
        assert (told["title"], told["media_type"], told["words"][0]) == ("Then", "application/then-query", "on")
