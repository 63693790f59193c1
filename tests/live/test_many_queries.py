"""Many queries of a live service: a push, and silence after it, touch those that they concern."""

from __future__ import annotations

import time
from math import inf
from pathlib import Path

import pytest
from live_events import DOORS, EX, POWER, RISES, Batch, event
from live_services import eventually, live, push, rest, rows

from oxiseq.engine.run.intervals import IntervalRun
from oxiseq.engine.run.rsp import RspRun
from oxiseq.engine.sharing import together
from oxiseq.engine.sharing.apart import ApartRuns
from oxiseq.live import LiveService, LiveSettings
from oxiseq.live.live_query import Budget
from oxiseq.live.reading import Silences

SECOND = 1_000_000
BYTES = LiveSettings(idle=None, budget=Budget(bytes=1 << 30))


def in_time(name: str, value: object = "?v") -> str:
    return (
        f"PREFIX : <{EX}> SELECT ?h FROM STREAM <{POWER}> WHERE {{ {{ ?h :watts {value} }} SEQ {{ ?h :{name} ?u }} }}"
    )


def windows(value: object) -> str:
    return (
        f"PREFIX : <{EX}> SELECT ?h FROM NAMED WINDOW :w ON <{POWER}> [RANGE PT10S] "
        f"WHERE {{ WINDOW :w {{ ?h :watts {value} }} }}"
    )


def said(name: str, value: int) -> str:
    return f'<{EX}h> <{EX}{name}> "{value}"^^<http://www.w3.org/2001/XMLSchema#integer>'


def send(service: LiveService, number: int, name: str = "watts", value: int = 1) -> None:
    """An event a second, and wait until it has been worked through."""
    push(service, Batch(POWER, str(number), event(f"e{number}", number * SECOND, said(name, value)).encode()))
    rest(service)


def test_queries_that_sleep_are_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither events without effect, nor silence, nor budgets, nor checkpoints rouse them."""
    steps: list[object] = []
    step = ApartRuns._stepped_once

    def counted(self: ApartRuns, member: object, *args: object, **named: object) -> object:
        steps.append(member)
        return step(self, member, *args, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(ApartRuns, "_stepped_once", counted)
    budget = Budget(records=1_000_000)
    with live(tmp_path, LiveSettings(idle=0.01, checkpoint=0.01, budget=budget)) as service:
        for number in range(12):
            service.queries.register(f"q{number}", in_time(f"never{number}"), "epsparql")
        for number in range(1, 4):
            send(service, number)
            eventually(lambda: service.worker._silences.due == inf)
        assert steps
        steps.clear()
        for number in range(4, 10):
            send(service, number)
            eventually(lambda: service.worker._silences.due == inf)
        assert not steps
        send(service, 10, "never3")
        send(service, 11)
        assert len(rows(service, "q3")) == 9
        assert [number for number in range(12) if rows(service, f"q{number}")] == [3]


def test_states_are_saved_while_there_is_always_something_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with live(tmp_path, LiveSettings(idle=None, checkpoint=0.01)) as service:
        turn = service.worker.turn
        monkeypatch.setattr(service.worker, "turn", lambda: turn() or True)
        service.queries.register("q", RISES)
        for number in range(1, 4):
            send(service, number)

        def saved() -> bool:
            checkpoint = service.journal.checkpoints.latest("q")
            return checkpoint is not None and checkpoint.position == service.journal.log.position()

        eventually(saved)


def test_queries_whose_streams_bring_nothing_are_where_the_log_is(tmp_path: Path) -> None:
    with live(tmp_path, LiveSettings(idle=None, checkpoint=0.01)) as service:
        service.streams.create(POWER)
        service.queries.register("q", in_time("amps").replace(POWER, f"{EX}other"), "epsparql")
        for number in range(1, 4):
            send(service, number)
        head = service.journal.log.position()
        eventually(lambda: {each.position for each in service.journal.checkpoints.all()} == {head})


def test_queries_with_a_budget_of_bytes_share(tmp_path: Path) -> None:
    with live(tmp_path, BYTES) as service:
        for number in range(4):
            service.queries.register(f"w{number}", windows(number), "rspql")
            service.queries.register(f"t{number}", in_time("amps", number), "epsparql")
        for number in range(1, 40):
            send(service, number, value=number % 4)
        send(service, 40, "amps")
        send(service, 41)
        for number in range(4):
            over, within = service.worker.find(f"w{number}"), service.worker.find(f"t{number}")
            assert over is not None and within is not None
            assert isinstance(over.run, RspRun) and over.run.shares_with == 3
            assert isinstance(within.run, IntervalRun) and len(within.run._family) == 4
            assert len(rows(service, f"w{number}")) == 1  # the same until the last event, ten seconds wide
            assert len(rows(service, f"t{number}")) == 9 + (number > 0)


def test_each_query_that_shares_a_state_has_its_part_of_the_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(together, "_TOLD", 1)
    with live(tmp_path, LiveSettings(idle=None, budget=Budget(bytes=60_000))) as service:
        for number in range(3):
            service.queries.register(
                f"w{number}",
                windows("?v").replace("PT10S", "PT10000S").replace("SELECT ?h", f"SELECT (?v + {number} AS ?n)"),
                "rspql",
            )
        number = 0
        while len([query for query in service.queries.all() if query.doing == "failed"]) < 3:
            number += 100
            assert number < 10_000
            body = [event(f"e{n}", n * SECOND, said("watts", n)) for n in range(number, number + 100)]
            push(service, Batch(POWER, str(number), "".join(body).encode()))
            rest(service)
        assert all("bytes" in query.error for query in service.queries.all())
        assert number > 100


def test_what_queries_leave_out_is_told_for_each(tmp_path: Path) -> None:
    late = '"2030-01-01T00:00:00Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>'
    started = f"<urn:oxiseq:event> <http://www.w3.org/ns/prov#startedAtTime> {late} <{EX}e> ."
    with live(tmp_path) as service:
        for number in range(3):
            service.queries.register(f"q{number}", in_time("amps"), "epsparql")
        body = event("e", SECOND, said("watts", 1)) + started
        pushed = push(service, Batch(POWER, "1", body.encode()))
        assert pushed.ignored == 1
        told = [reason.reason for reason in pushed.reasons]
        assert all(f"the query q{number}" in told[number] for number in range(3)), told


def test_time_is_not_told_again_and_again_where_another_stream_may_not_be_hurried(tmp_path: Path) -> None:
    """Of two streams one has a patient reader: silence never completes that one, and what both would stays due."""
    waits = (
        f"PREFIX : <{EX}> SELECT ?h FROM STREAM S <{POWER}> FROM STREAM D <{DOORS}> "
        "WHERE { SEQ(A; N! WITHIN 1 SECONDS) "
        "DEFINE GPM A ON S { ?h :watts ?v } DEFINE GPM N ON D { ?h :opens ?d } }"
    )
    patient = (
        f"PREFIX : <{EX}> SELECT ?h FROM STREAM D <{DOORS}> WHERE {{ SEQ(A) DEFINE GPM A ON D {{ ?h :opens ?d }} }}"
    )
    with live(tmp_path, LiveSettings(idle=0.01)) as service:
        service.queries.register("waits", waits)
        service.queries.register("patient", patient, options={"lateness": "5s"})
        send(service, 1)
        told = [(POWER, SECOND, 1), (POWER, SECOND + 1, 0)]  # the instant is over, as far as this stream can say
        eventually(lambda: len(service.journal.log.follow(0)) >= len(told))
        time.sleep(0.3)
        assert [(entry.stream, entry.time, entry.count) for entry in service.journal.log.follow(0)] == told
        assert rows(service, "waits") == []
        service.streams.advance(DOORS, 2 * SECOND + 1)
        eventually(lambda: len(rows(service, "waits")) == 1)  # the clock passes the second of silence


def test_a_stream_is_looked_at_when_it_is_due_and_no_earlier() -> None:
    silences = Silences(10)
    silences.came("s")
    since = silences.since(("s",))
    assert silences.take(since + 9) == []
    assert silences.due == since + 10
    assert silences.take(since + 10) == ["s"]
    assert silences.due == inf
    silences.later(("s", "r"), since + 50)
    silences.later(("s",), since + 70)
    assert silences.take(since + 50) == ["s", "r"]
    silences.changed(("s",))
    assert silences.due == since + 10
    silences.forget("s")
    assert silences.due == inf
