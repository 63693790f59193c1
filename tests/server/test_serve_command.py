"""`oxiseq serve` as a process: it listens, keeps what it was given, and ends when told."""

from __future__ import annotations

import http.client
import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest
from click.testing import CliRunner
from http_client import ask
from pyoxigraph import Store as RdfStore

from oxiseq.cli import main

pytest.importorskip("httpx", reason="httpx is not installed: pip install 'oxiseq[server]'")

MAIN = "from oxiseq.cli import main; main(prog_name='oxiseq')"
UPDATE = ("Content-Type", "application/sparql-update")


@contextmanager
def process(*arguments: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """The command listening at a free port, and its address; killed if the test has not ended it."""
    command = [sys.executable, "-c", MAIN, "serve", "--bind", "127.0.0.1:0", *arguments]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as running:
        try:
            assert running.stderr is not None
            found = re.search(r"listening at (\S+)", running.stderr.readline())
            assert found is not None
            yield found[1], running
        finally:
            running.kill()


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.full)])
@pytest.mark.slow
def test_it_ends_when_told_and_keeps_what_it_was_given(tmp_path: Path, number: signal.Signals) -> None:
    location = str(tmp_path / "kb")
    with process("--location", location) as (address, running):
        assert ask(address, "POST", "/update", [UPDATE], b"INSERT DATA { <http://e/a> <http://e/p> 1 }").status == 204
        running.send_signal(number)
        assert running.wait(30) == 0
    with process("--location", location, "--read-only") as (address, running):
        assert ask(address, "GET", "/query?query=" + quote("ASK { ?s ?p 1 }")).body.endswith(b"true}")
        assert ask(address, "POST", "/update", [UPDATE], b"CLEAR ALL").status == 403


def test_what_is_being_answered_is_ended_before_it_stops() -> None:
    with process() as (address, running):
        data = "INSERT DATA {" + " ".join(f"<http://e/{i}> <http://e/p> {i} ." for i in range(600)) + "}"
        assert ask(address, "POST", "/update", [UPDATE], data.encode()).status == 204
        query = "/query?query=" + quote("SELECT * { ?s ?p ?o . ?t ?p ?q }")
        with closing(http.client.HTTPConnection(urlsplit(address).netloc, timeout=60)) as client:
            client.request("GET", query, headers={"Accept": "text/csv"})
            answer = client.getresponse()  # it has begun, and the rest is more than sockets hold
            running.send_signal(signal.SIGTERM)
            assert answer.read().count(b"\n") == 360_001
        assert running.wait(30) == 0


def test_it_ends_though_an_evaluation_cannot_be_interrupted(tmp_path: Path) -> None:
    with process("--timeout", "500ms", "--location", str(tmp_path / "kb")) as (address, running):
        data = "INSERT DATA {" + " ".join(f"<http://e/{i}> <http://e/p> {i} ." for i in range(1000)) + "}"
        assert ask(address, "POST", "/update", [UPDATE], data.encode()).status == 204
        slow = "SELECT (COUNT(*) AS ?n) { ?s ?p ?o . ?t ?p ?q . ?u ?p ?r FILTER(CONCAT(?s, ?t, ?u) = '') }"
        assert ask(address, "GET", "/query?query=" + quote(slow)).status == 503
        running.send_signal(signal.SIGTERM)
        assert running.wait(30) == 0


def test_tokens_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OXISEQ_WRITE_TOKEN", "secret")
    with process() as (address, _):
        assert ask(address, "POST", "/update", [UPDATE], b"CLEAR ALL").status == 401
        token = ("Authorization", "Bearer secret")
        assert ask(address, "POST", "/update", [UPDATE, token], b"CLEAR ALL").status == 204


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["--bind", "nonsense"], 2, "is not HOST:PORT"),
        (["--bind", "127.0.0.1:99999"], 2, "is not HOST:PORT"),
        (["--bind", "203.0.113.1:7878"], 1, "cannot listen on"),
        (["--upstream", "nonsense"], 1, "not an http address"),
        (["--read-only", "--location", "missing"], 1, "cannot be opened as a store"),
    ],
)
def test_what_cannot_be_served(arguments: list[str], status: int, message: str, tmp_path: Path) -> None:
    given = [str(tmp_path / a) if a == "missing" else a for a in arguments]
    result = CliRunner().invoke(main, ["serve", *given])
    assert result.exit_code == status
    assert message in " ".join(result.stderr.split())


def test_a_store_that_is_open_is_told(tmp_path: Path) -> None:
    store = RdfStore(str(tmp_path / "data"))
    result = CliRunner().invoke(main, ["serve", "--location", str(tmp_path / "data")])
    assert result.exit_code == 1
    assert "cannot be opened as a store: it is open already, perhaps in a server" in " ".join(result.stderr.split())
    del store


def test_the_log_can_be_json() -> None:
    query = "SELECT ?x FROM STREAM S <http://e/s> WHERE { SEQ(A) DEFINE GPM A ON S { ?x <http://e/p> ?y } }"
    with process("--log-format", "json") as (address, running):
        kind = ("Content-Type", "application/spaseq-query")
        assert ask(address, "POST", "/queries?name=q", [kind], query.encode()).status == 201
        running.send_signal(signal.SIGTERM)
        assert running.wait(30) == 0
        assert running.stderr is not None
        lines = [json.loads(line) for line in running.stderr if line.startswith("{")]
    (told,) = [line for line in lines if line["message"] == "query q registered"]
    assert (told["level"], told["logger"], told["query"]) == ("INFO", "oxiseq.live", "q")
    assert datetime.fromisoformat(told["time"]).tzinfo is not None
