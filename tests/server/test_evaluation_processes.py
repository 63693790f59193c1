"""Answers of processes are those of the store itself, in all formats, failures too."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from asking import DATA, ask, limited, problem, update
from profiles import crossed
from pyoxigraph import Store as RdfStore

from oxiseq.api.store import Store
from oxiseq.sparql import Problem, Response, SparqlEndpoint, SparqlSettings
from oxiseq.sparql.processes import Processes, Worker, Workers
from oxiseq.sparql.snapshots import SMALL, Following, Unchanging, in_memory, on_disk

MORE = "INSERT DATA { <http://e/one> <http://e/q> 9 . _:b <http://e/p> _:c . GRAPH <http://e/empty> {} } ; CREATE GRAPH <http://e/none>"
QUERIES = [
    "SELECT * { ?s ?p ?o } ORDER BY ?o",
    "SELECT DISTINCT ?g { GRAPH ?g {} } ORDER BY ?g",
    "SELECT (COUNT(*) AS ?n) { { ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } } }",
    "ASK { ?s ?p 1 . ?s ?p 2 }",
    "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o FILTER(?o = 9) }",
    "DESCRIBE <http://e/one>",
    "SELECT * { <relative> ?p ?o }",
    "SELECT * { ?s ?p ?o . FILTER(?o > }",
    "SELECT (SUM(?o) AS ?all) { ?s ?p ?o }",
    'SELECT (<urn:oxiseq:weekday>("2026-12-01"^^<http://www.w3.org/2001/XMLSchema#date>) AS ?day) { ?s ?p ?o }',
]
COUNTED = "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }"
"""No plain query: those are answered in the server itself."""
ACCEPTED = [
    None,
    "text/csv",
    "application/sparql-results+xml",
    "application/n-triples",
    "application/ld+json",
    "image/png",
    'application/ld+json;profile="http://www.w3.org/ns/json-ld#streaming"',
]


@pytest.fixture(scope="module", params=["disk", "memory", "read-only"])
def both(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[SparqlEndpoint, ...]]:
    """Two endpoints over one store: in processes, and in this one."""
    folder = tmp_path_factory.mktemp("kb")
    store = Store() if request.param == "memory" else Store(str(folder))
    store.update(DATA)
    store.update(MORE)
    if request.param == "read-only":
        del store
        store = Store(inner=RdfStore.read_only(str(folder)))
    snapshots = {
        "disk": lambda: on_disk(store, folder),
        "memory": lambda: in_memory(store),
        "read-only": lambda: Unchanging(folder),
    }[request.param]()
    processes = Processes(Workers(256 << 20), snapshots)
    yield SparqlEndpoint(store, None, processes), SparqlEndpoint(store)
    processes.close()


def wait_until(condition: Callable[[], bool]) -> None:
    """Within ten seconds."""
    end = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def seen(response: Response) -> tuple[object, ...]:
    """What a client sees; lines in any order."""
    return response.status, response.header("content-type"), sorted(response.content().splitlines())


@pytest.mark.parametrize(("query", "accept"), crossed(QUERIES, ACCEPTED, ways=3))
def test_a_process_answers_as_the_store_does(both: tuple[SparqlEndpoint, ...], query: str, accept: str | None) -> None:
    theirs, ours = (seen(ask(to, query, accept=accept)) for to in both)
    assert theirs == ours


@pytest.mark.parametrize(
    "more",
    [
        [("default-graph-uri", "http://e/g")],
        [("named-graph-uri", "http://e/g")],
        [("union-default-graph", "true")],
        [("default-graph-uri", "http://e/g"), ("default-graph-uri", "http://e/h"), ("named-graph-uri", "http://e/h")],
    ],
)
def test_datasets_are_the_same(both: tuple[SparqlEndpoint, ...], more: list[tuple[str, str]]) -> None:
    query = "SELECT * { { ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } } }"
    theirs, ours = (seen(ask(to, query, *more, accept="text/csv")) for to in both)
    assert theirs == ours


def with_processes(settings: SparqlSettings | None = None) -> tuple[SparqlEndpoint, Processes]:
    """Over a store in memory."""
    store = Store()
    store.update(DATA)
    processes = Processes(Workers(256 << 20), in_memory(store))
    return SparqlEndpoint(store, settings, processes), processes


def test_row_limits_hold_for_processes() -> None:
    to, processes = with_processes(limited(rows=1))
    try:
        assert ask(to, "SELECT ?o { ?s ?p ?o FILTER(?o > 0) }").status == 403
        assert "at most 1 triples" in problem(ask(to, "CONSTRUCT WHERE { ?s ?p ?o }"))["detail"]
        assert ask(to, "SELECT ?o { ?s ?p ?o FILTER(?o > 1) }").status == 200
    finally:
        processes.close()


def test_a_query_goes_to_another_process_where_the_one_that_waited_was_killed(tmp_path: Path) -> None:
    store = Store(str(tmp_path))
    store.update(DATA)
    workers = Workers(256 << 20)
    processes = Processes(workers, on_disk(store, tmp_path))
    endpoint = SparqlEndpoint(store, None, processes)
    wait_until(lambda: bool(workers._ready))
    for waiting in [*workers._ready]:
        process = waiting._process
        os.kill(process.pid, signal.SIGKILL)
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        process.poll = lambda: None  # type: ignore[method-assign]  # as if it ended right after it was looked at
    assert ask(endpoint, COUNTED).status == 200
    processes.close()


def test_a_large_store_in_memory_is_asked_here_and_a_small_one_again_in_a_process() -> None:
    to, processes = with_processes()
    try:
        assert processes.possible
        many = " ".join(f"<http://e/{i}> <http://e/q> {i} ." for i in range(SMALL))
        assert update(to, f"INSERT DATA {{ {many} }}").status == 204
        assert not processes.possible
        assert b'"%d"' % (SMALL + 2) in ask(to, "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }").content()
    finally:
        processes.close()


def test_a_full_disk_is_told_and_leaves_nothing_behind(tmp_path: Path) -> None:
    store = Store()

    def full(path: Path) -> None:
        path.mkdir()
        raise OSError(28, "No space left on device")

    following = Following(store, tmp_path, full)
    with pytest.raises(Problem, match="no room"), following.current():
        pass
    assert list(tmp_path.iterdir()) == []


def test_snapshots_that_nobody_reads_are_gone(tmp_path: Path) -> None:
    store = Store(str(tmp_path / "kb"))
    snapshots = on_disk(store, tmp_path / "kb")
    with snapshots.current() as first:
        store.update(DATA)
        with snapshots.current() as second, snapshots.current() as third:
            assert first != second == third
            assert first is not None and Path(first["folder"]).exists()
    assert not Path(first["folder"]).exists()
    assert second is not None and Path(second["folder"]).exists()
    snapshots.close()
    assert not (tmp_path / "kb" / "oxiseq-snapshots").exists()


def test_one_that_works_for_long_yields_to_others_of_all_sessions() -> None:
    worker = Worker(64 << 20)
    pid = worker._process.pid
    worker.yield_to_others()
    assert os.getpriority(os.PRIO_PROCESS, pid) == 10
    group = Path(f"/proc/{pid}/autogroup")
    assert not group.exists() or group.read_text().endswith("nice 10\n")
    worker.kill()
