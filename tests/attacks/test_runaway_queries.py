"""Queries that never end, or take all memory: they end with their processes, and everybody else is answered."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

import pytest
from attacked_server import Attacked, attacked

pytest.importorskip("httpx", reason="httpx is not installed: pip install 'oxiseq[server]'")

TRIPLES = "INSERT DATA {" + " ".join(f"<http://e/{i}> <http://e/p> {i} ." for i in range(1000)) + "}"
ENDLESS = (
    "SELECT (COUNT(*) AS ?n) { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l "
    "FILTER(CONCAT(STR(?a), STR(?d), STR(?g), STR(?j)) = '') }"
)
SMALL = "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }"
PLAIN = "SELECT ?o { <http://e/7> ?p ?o } LIMIT 1"
GREEDY = "SELECT ?a ?d ?g { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i } ORDER BY STR(?c)"


@contextmanager
def filled(*arguments: str) -> Iterator[Attacked]:
    """A server with a thousand triples."""
    with attacked(*arguments) as server:
        assert server.update(TRIPLES) == 204
        assert server.query(SMALL) == (200, b"n\r\n1000\r\n")
        yield server


@pytest.fixture(scope="module", params=["disk", pytest.param("memory", marks=pytest.mark.full)])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attacked]:
    """One for several tests, over a store on disk or in memory."""
    place = ["--location", str(tmp_path_factory.mktemp("data") / "kb")] if request.param == "disk" else []
    with filled("--timeout", "4s", "--query-memory", str(64 << 20), *place) as running:
        yield running


@pytest.mark.slow
def test_forty_endless_queries_leave_room_for_small_ones(server: Attacked) -> None:
    answers: list[int] = []
    asking = [threading.Thread(target=lambda: answers.append(server.query(ENDLESS, 60)[0])) for _ in range(40)]
    for thread in asking:
        thread.start()
    time.sleep(2)  # at first forty are there before us
    assert min(timed(server, SMALL) for _ in range(3)) < 1
    assert min(timed(server, PLAIN) for _ in range(3)) < 1
    assert server.update("INSERT DATA { <http://e/7> <http://e/p> 7 }") == 204
    for thread in asking:
        thread.join(60)
    assert Counter(answers) == {503: 40}
    assert server.query(SMALL) == (200, b"n\r\n1000\r\n")
    assert min(timed(server, SMALL) for _ in range(3)) < 1
    assert wait_until(lambda: len(children(server)) <= 2, 5)


@pytest.mark.parametrize("place", ["disk", pytest.param("memory", marks=pytest.mark.full)])
@pytest.mark.slow
def test_a_query_that_takes_all_memory_ends_alone(place: str, tmp_path: Path) -> None:
    """With time enough to take it, however busy the machine is."""
    location = ["--location", str(tmp_path / "kb")] if place == "disk" else []
    with filled("--timeout", "120s", "--query-memory", str(64 << 20), *location) as patient:
        status, body = patient.query(GREEDY, 120)
        assert status == 507
        assert b"--query-memory" in body
        assert patient.query(SMALL)[0] == 200


def test_nobody_evaluates_for_a_client_that_has_left(server: Attacked) -> None:
    with socket.create_connection(server.place, timeout=10) as client:
        client.sendall(f"GET /query?query={quote(ENDLESS)} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        assert wait_until(lambda: busy(server) == 1, 3)
        left = time.monotonic()
    assert wait_until(lambda: busy(server) == 0, 3)
    assert time.monotonic() - left < 2.5  # before its time limit


@pytest.mark.full
@pytest.mark.slow
def test_a_killed_process_fails_one_request_only(server: Attacked) -> None:
    found: list[int] = []
    asking = threading.Thread(target=lambda: found.append(server.query(ENDLESS, 30)[0]))
    begin = time.monotonic()
    asking.start()
    assert wait_until(lambda: busy(server) == 1, 3)
    for pid in children(server):  # those that wait, too
        os.kill(pid, signal.SIGKILL)
    asking.join(10)
    assert found == [503]
    assert time.monotonic() - begin < 3.5  # before its time limit
    assert server.query(SMALL)[0] == 200


def test_every_update_is_in_the_answers_that_are_asked_for_after_it(server: Attacked) -> None:
    wrong: list[str] = []

    def write(writer: int) -> None:
        for number in range(8):
            assert server.update(f"INSERT DATA {{ <http://w/{writer}> <http://w/n> {number} }}") == 204
            asked = f"SELECT (COUNT(?n) AS ?all) {{ <http://w/{writer}> <http://w/n> ?n }}"
            if (answer := server.query(asked, 30)) != (200, f"all\r\n{number + 1}\r\n".encode()):
                wrong.append(f"{writer}, {number}: {answer}")

    writers = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in writers:
        thread.start()
    for thread in writers:
        thread.join(60)
    assert wrong == []
    assert server.update("DELETE WHERE { ?w <http://w/n> ?n }") == 204


def test_what_is_checked_before_is_not_evaluated(server: Attacked) -> None:
    """A table crossed with itself needs no data to take for ever; the word makes the text looked at."""
    table = " ".join(f"VALUES ?v{i} {{ {' '.join(map(str, range(99)))} }}" for i in range(7))
    text = f"SELECT (COUNT(*) AS ?n) {{ {table} FILTER(CONCAT(STR(?v0), STR(?v6)) = 'service') }}"
    begin = time.monotonic()
    assert server.query(text)[0] == 503
    sent = {"Content-Type": "application/sparql-query"}
    assert server.ask("POST", "/check", sent, text.encode())[0] == 200
    assert time.monotonic() - begin < 9
    assert not is_busy(server.process.pid)


@pytest.mark.slow
def test_processes_end_with_a_server_that_is_killed_and_nothing_is_left(tmp_path: Path) -> None:
    location = tmp_path / "kb"
    with filled("--location", str(location)) as server:
        cut: list[bool] = []

        def ask() -> None:
            with pytest.raises(OSError):
                server.query(ENDLESS, 30)
            cut.append(True)

        asking = threading.Thread(target=ask)
        asking.start()
        assert wait_until(lambda: busy(server) == 1, 5)
        processes = children(server)
        server.process.kill()
        server.process.wait(10)
        assert wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in processes), 5)
        asking.join(10)
        assert cut == [True]
    with attacked("--location", str(location)) as server:
        assert server.query(SMALL) == (200, b"n\r\n1000\r\n")
        assert len(list((location / "oxiseq-snapshots").iterdir())) == 1
        server.process.terminate()
        assert server.process.wait(20) == 0
    assert not (location / "oxiseq-snapshots").exists()


def timed(server: Attacked, query: str) -> float:
    """Seconds until it is answered: the machine has other work, too, so the best of some counts."""
    begin = time.monotonic()
    assert server.query(query)[0] == 200
    return time.monotonic() - begin


def children(server: Attacked) -> list[int]:
    """Ids of its processes."""
    found: list[int] = []
    for task in Path(f"/proc/{server.process.pid}/task").iterdir():
        with suppress(FileNotFoundError):  # a thread that has just ended
            found += map(int, (task / "children").read_text().split())
    return found


def busy(server: Attacked) -> int:
    """How many of them work."""
    return sum(is_busy(pid) for pid in children(server))


def is_busy(pid: int) -> bool:
    """Whether a thread of it wants a processor all the time."""
    try:
        return all(_runs(pid) for _ in range(5))
    except OSError:
        return False


def _runs(pid: int) -> bool:
    time.sleep(0.05)
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return any((task / "stat").read_text().rpartition(")")[2].split()[0] == "R" for task in tasks)


def wait_until(true: Callable[[], bool], seconds: float) -> bool:
    """Whether it becomes true in time."""
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True
