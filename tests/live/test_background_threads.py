"""Threads in the background: what they raise neither ends them nor stays unseen."""

from __future__ import annotations

import ast
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from live_events import POWER
from live_services import eventually, live

import oxiseq
from oxiseq.engine.background import Background, Backgrounds
from oxiseq.journal import Appends
from oxiseq.live import LiveService, LiveSettings
from oxiseq.sinks import Allowed

PLUGIN = Path(oxiseq.__file__).resolve().parent  # a development install is links
QUERY = f"SELECT ?s FROM STREAM S <{POWER}> WHERE {{ SEQ(A) DEFINE GPM A ON S {{ ?s ?p ?o }} }}"
ON_DEMAND = {
    "api/standing/standings.py": "started anew at the next change, when it has ended; one for a question",
    "api/live_view.py": "of a notebook, not of the server",
    "served/query.py": "of a client",
    "cli/progress.py": "of a command",
    "bridges/nats.py": "runs an event loop, which survives its callbacks; the bridge opens its source again",
    "sparql/evaluation.py": "one for an answer",
    "sparql/processes.py": "starts a process, and ends",
    "sparql/child.py": "of a process of its own, which ends with it",
}
"""Threads that are not to live as long as the server: file → why."""


@pytest.fixture
def service(tmp_path: Path) -> Iterator[LiveService]:
    with live(tmp_path) as found:
        yield found


def test_what_a_turn_raises_is_told_until_one_comes_to_its_end() -> None:
    threads, faulty, seen = Backgrounds(), threading.Event(), list[str]()
    faulty.set()

    def turn() -> None:
        if faulty.is_set():
            raise SystemExit("by mistake")
        thread.rest(0.01)

    thread = threads.add(Background("t", turn, vital=True, failed=lambda error: seen.append(f"{error}")))
    thread.start()
    eventually(lambda: "by mistake" in threads.hindrance, 5)
    eventually(lambda: bool(seen), 5)
    assert thread.alive
    faulty.clear()
    eventually(lambda: not threads.troubles, 5)
    threads.end([thread])
    assert not thread.alive and not thread.dead and threads.names == []


def test_one_that_has_ended_by_itself_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ValueError

    threads = Backgrounds()
    thread = threads.add(Background("t", broken))
    monkeypatch.setattr(thread, "_note", broken)  # what keeps it alive fails itself
    monkeypatch.setattr(threading, "excepthook", lambda *_: None)
    thread.start()
    eventually(lambda: thread.dead, 5)
    assert "has ended" in threads.hindrance and "t" in threads.troubles


def test_an_error_outside_a_turn_of_the_worker_is_told_and_survived(
    service: LiveService, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.queries.register("q", QUERY)
    broken = threading.Event()
    clear = service.worker._wake.clear

    def clears() -> None:
        if broken.is_set():
            raise RuntimeError("outside of a turn")
        clear()

    monkeypatch.setattr(service.worker._wake, "clear", clears)
    broken.set()
    eventually(lambda: "outside of a turn" in str(service.health().get("reason")), 10)
    broken.clear()
    eventually(lambda: "reason" not in service.health() and service.ready, 10)
    assert service.queries.get("q").doing == "running"


def test_a_worker_that_has_ended_is_not_ready(service: LiveService, monkeypatch: pytest.MonkeyPatch) -> None:
    thread = service.worker._thread
    monkeypatch.setattr(type(thread), "alive", property(lambda self: self is not thread and self._thread.is_alive()))
    assert "oxiseq-live has ended" in str(service.health()["reason"])
    assert "oxiseq-live" in str(service.health()["failing"])


def test_what_upkeep_raises_keeps_nothing_else_from_being_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails() -> None:
        raise RuntimeError("not foreseen")

    retained = threading.Event()
    with live(tmp_path, LiveSettings(idle=None, upkeep=0.01)) as service:
        monkeypatch.setattr(service.graphs, "let_go", fails)
        monkeypatch.setattr(service.journal, "retain", retained.set)
        assert retained.wait(5)
        retained.clear()
        assert retained.wait(5)  # it goes on
        eventually(lambda: "not foreseen" in str(service.health()), 5)
        assert "reason" not in service.health()  # without it matches are right
        assert b'oxiseq_thread_failing{thread="oxiseq-upkeep"} 1.0' in service.metrics.text()


def test_a_sink_survives_what_nobody_has_foreseen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    allowed = Allowed.of((), (), tmp_path / "out", None)
    (tmp_path / "out").mkdir()
    with live(tmp_path, LiveSettings(idle=None, sinks_allowed=allowed)) as service:
        service.queries.register("q", QUERY)
        service.sinks.put("q", "s", {"kind": "file", "path": "m.ndjson"}, ("s",))
        at_work = service.sinks._at_work["q", "s"]

        def fails(*_: object) -> None:
            raise KeyError("not foreseen")

        monkeypatch.setattr(at_work, "_next", fails)
        monkeypatch.setattr(at_work, "_fail", fails)
        at_work.look()
        eventually(lambda: "not foreseen" in str(service.threads.troubles), 10)
        monkeypatch.undo()
        eventually(lambda: not service.threads.troubles, 10)
        assert {"oxiseq-live", "oxiseq-upkeep", "oxiseq-standing-journal", "oxiseq-sink-q-s"} <= {
            *service.threads.names
        }


def test_who_is_notified_of_a_write_and_fails_keeps_nobody_waiting(service: LiveService) -> None:
    service.streams.create(POWER)
    told = [threading.Event() for _ in range(4)]

    def notify(number: int) -> None:
        told[number].set()
        if number % 2 == 0:
            raise RuntimeError

    for number in range(4):
        append = Appends(POWER, advance=number)
        service.journal.log.submit(append, lambda number=number: notify(number))  # type: ignore[misc]
    assert all(each.wait(5) for each in told)
    assert "oxiseq-journal" in service.threads.names and not service.threads.troubles


def test_every_thread_that_is_to_live_as_long_as_the_server_is_guarded() -> None:
    found = set[str]()
    for file in PLUGIN.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("threading.Thread", "Thread"):
                found.add(file.relative_to(PLUGIN).as_posix())
    found = {each for each in found if not each.startswith(("engine/", "kb_loader/", "grammar/"))}
    assert found == ON_DEMAND.keys(), "a thread of the server is a Background (oxiseq.engine.background)"


def test_a_turn_without_an_end_is_well_again_after_a_while() -> None:
    threads, times = Backgrounds(), list[int]()

    def turn() -> None:
        times.append(1)
        if len(times) == 1:
            raise ValueError("once")
        thread.rest(None)

    thread = threads.add(Background("t", turn, again=False))
    thread.start()
    eventually(lambda: len(times) == 2 and not threads.troubles, 10)
    threads.end([thread])
    assert thread.gone
