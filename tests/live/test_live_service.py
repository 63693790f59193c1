"""The service without HTTP: what is found is a function of the log, whatever comes between."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from pathlib import Path

import pytest
from live_events import (
    ALARM,
    ALARMED_TWICE,
    ALARMS,
    BEGIN,
    DOORS,
    EX,
    FALL,
    FALLS,
    FELL,
    FELL_TWICE,
    OPENED,
    POWER,
    RAISE,
    RAISED,
    RAISED_TWICE,
    RISES,
    Batch,
    batches,
    event,
    power,
)
from live_services import Rows, eventually, finish, live, push, rest, rows
from profiles import in_the_gate

import oxiseq
from oxiseq.api.store import Store
from oxiseq.engine.errors import OxiseqError, QueryError
from oxiseq.engine.events.time import LAST_TIME
from oxiseq.journal import ConflictError, FullError, Retention, UnknownError
from oxiseq.live import LiveService, LiveSettings
from oxiseq.live.engine import Engine
from oxiseq.live.intake import RejectedError, read_batch
from oxiseq.live.live_query import LiveQuery
from oxiseq.live.settings import BoundError, BusyError

QUERIES = {
    "rises": RISES,
    "opened": OPENED,
    "alarm": ALARM,
    "twice": ALARMED_TWICE,
    "fell": FELL,
    "fall": FALL,
    "falls": FELL_TWICE,
    "raise": RAISE,
    "raised": RAISED_TWICE,
}
LANGUAGES = {"fell": "epsparql", "fall": "epsparql", "falls": "epsparql", "raise": "rspql", "raised": "rsepql"}
SENT = batches(120, seed=3)
PAIRS = f"VOCAB <{EX}> SELECT x, y FROM ceql WHERE A AS x ; B AS y FILTER y[v > 1]"


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Rows]:
    """The matches of an uninterrupted run."""
    with live(tmp_path_factory.mktemp("expected")) as service:
        for name, text in QUERIES.items():
            service.queries.register(name, text, LANGUAGES.get(name, "spaseq"))
        for batch in SENT:
            push(service, batch)
        return answers(service)


def answers(service: LiveService) -> dict[str, Rows]:
    """When no event will come any more."""
    finish(service)
    for iri in (FALLS, RAISED):
        service.streams.advance(iri, LAST_TIME)
        rest(service)
    return {name: rows(service, name) for name in QUERIES}


def test_the_matches_are_those_of_a_plain_run(tmp_path: Path, expected: dict[str, Rows]) -> None:
    files = {}
    for iri in (POWER, DOORS):
        files[iri] = tmp_path / f"{len(files)}.nq"
        files[iri].write_bytes(b"".join(batch.body for batch in SENT if batch.stream == iri))
    matches = oxiseq.run(RISES, streams={POWER: files[POWER]})
    plain = [tuple(str(term) for term in match.values()) for match in matches]
    assert len(plain) > 50
    assert sorted(row for _, row in expected["rises"]) == sorted(plain)
    assert [number for number, _ in expected["rises"]] == list(range(1, len(plain) + 1))


@pytest.mark.parametrize("seed", in_the_gate({0}, range(3)))
def test_restarts_pauses_and_repeats_change_nothing(tmp_path: Path, expected: dict[str, Rows], seed: int) -> None:
    drawn = random.Random(seed)
    at = 0
    for number in range(4):
        with live(tmp_path) as service:
            if number == 0:
                for name, text in QUERIES.items():
                    service.queries.register(name, text, LANGUAGES.get(name, "spaseq"))
            paused = None
            while at < len(SENT) * (number + 1) // 4:
                push(service, SENT[at])
                if drawn.random() < 0.2:
                    assert push(service, SENT[at]).duplicates
                if paused is None and drawn.random() < 0.2:
                    paused = drawn.choice(["rises", "opened", "fell"])
                    service.queries.pause(paused)
                elif paused is not None and drawn.random() < 0.3:
                    service.queries.resume(paused)
                    paused = None
                at += 1
            if paused is not None:
                service.queries.resume(paused)
            if number == 3:
                assert answers(service) == expected
            assert service.worker.error is None
    assert all(len(expected[name]) > 5 for name in ("twice", "fell", "falls", "raised"))


def test_a_query_sees_what_comes_after_it(tmp_path: Path, expected: dict[str, Rows]) -> None:
    power = [batch for batch in SENT if batch.stream == POWER]
    with live(tmp_path) as service:
        service.streams.create(POWER)
        for batch in power[:30]:
            push(service, batch)
        service.queries.register("rises", RISES)
        for batch in power[30:]:
            push(service, batch)
        rest(service)
        found = rows(service, "rises")
    files = tmp_path / "rest.nq"
    files.write_bytes(b"".join(batch.body for batch in power[30:]))
    alone = [tuple(map(str, match.values())) for match in oxiseq.run(RISES, streams={POWER: files})]
    assert 0 < len(found) < len(expected["rises"])
    assert {row for _, row in found} <= set(alone)


def test_ids_go_on_when_a_query_is_replaced_and_deleted(tmp_path: Path) -> None:
    power = [batch for batch in SENT if batch.stream == POWER]
    with live(tmp_path) as service:
        service.queries.register("rises", RISES)
        for batch in power[:40]:
            push(service, batch)
        rest(service)
        last = rows(service, "rises")[-1][0]
        with pytest.raises(ConflictError):
            service.queries.register("rises", RISES)
        service.queries.register("rises", RISES, replace=True)
        service.queries.delete("rises")
        with pytest.raises(UnknownError):
            service.queries.get("rises")
        service.queries.register("rises", RISES)
        for batch in power[40:]:
            push(service, batch)
        rest(service)
        assert rows(service, "rises", last)[0][0] == last + 1


def tuples(*values: tuple[str, int]) -> bytes:
    """Tuple events of types and values."""
    types = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
    lines = []
    for i, (kind, value) in enumerate(values):
        name = f"e{i}-{kind}-{value}"
        quad = f'_:b{i} <{EX}v> "{value}"^^<http://www.w3.org/2001/XMLSchema#integer>'
        lines.append(event(name, 1_000_000 * (value + 1), quad) + f"_:b{i} <{types}> <{EX}{kind}> <{EX}{name}> .\n")
    return "".join(lines).encode()


def test_ceql_queries_are_stored_as_rows(tmp_path: Path) -> None:
    with live(tmp_path) as service:
        service.queries.register("pairs", PAIRS, "ceql")
        stream = f"{EX}ceql"
        push(service, Batch(stream, "1", tuples(("A", 1), ("B", 2), ("A", 3))))
        push(service, Batch(stream, "2", tuples(("B", 4), ("C", 5))))
        service.streams.advance(stream, 100_000_000)
        rest(service)
        (first, *_) = parts = service.journal.matches.read("pairs")
        assert first.heading.variables == ("at", "first", "last", "positions", "x", "y")
        found = [tuple(text and text.split('"')[1] for text in row) for part in parts for row in part.rows()]
        assert found[0] == ("1970-01-01T00:00:03Z", "0", "1", "0 1", "0", "1")
        assert len(found) == 3
        assert first.events(0) == {"x": ((stream, 2_000_000),), "y": ((stream, 3_000_000),)}


def test_aggregates_of_ceql_are_stored_as_rows_and_go_on_after_a_restart(tmp_path: Path) -> None:
    text = PAIRS.replace("SELECT x, y", "SELECT COUNT(*) AS n")
    stream = f"{EX}ceql"
    with live(tmp_path) as service:
        service.queries.register("counts", text, "ceql")
        push(service, Batch(stream, "1", tuples(("A", 1), ("A", 2), ("B", 3))))
        service.streams.advance(stream, 4_000_000)
        rest(service)
    with live(tmp_path) as service:
        push(service, Batch(stream, "2", tuples(("B", 4), ("C", 5))))
        service.streams.advance(stream, 100_000_000)
        rest(service)
        parts = service.journal.matches.read("counts")
        assert {part.heading.variables for part in parts} == {("n",)}
        assert [row[0] and row[0].split('"')[1] for part in parts for row in part.rows()] == ["2", "2"]


def test_silence_completes_the_newest_instant_and_stands_in_the_log(tmp_path: Path) -> None:
    with live(tmp_path, LiveSettings(idle=0.05)) as service:
        service.queries.register("alarm", ALARM)
        body = event("e", 1_000_000, f'<{EX}h> <{EX}watts> "999"^^<http://www.w3.org/2001/XMLSchema#integer>')
        push(service, Batch(POWER, "1", body.encode()))
        eventually(lambda: bool(rows(service, "alarm")))
        assert [e.count for e in service.journal.log.follow(0) if e.stream == POWER] == [1, 0]
        assert service.streams.text(ALARMS, None, 10, "nquads")[1] == 1


def test_nobody_waits_for_matches_while_there_is_no_room_for_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full() -> bool:
        raise FullError("no room")

    with live(tmp_path) as service:
        service.queries.register("alarm", ALARM)
        monkeypatch.setattr(service.worker, "turn", full)
        eventually(lambda: service.worker.full)  # a turn that had begun is over
        push(service, batches(1, seed=1)[0])
        assert not service.catch_up(600)


def test_a_query_with_lateness_is_not_hurried(tmp_path: Path) -> None:
    with live(tmp_path, LiveSettings(idle=0.02)) as service:
        service.queries.register("patient", ALARM.replace(ALARMS, f"{EX}other"), options={"lateness": "5s"})
        service.queries.register("alarm", ALARM)
        body = event("e", 1_000_000, f'<{EX}h> <{EX}watts> "999"^^<http://www.w3.org/2001/XMLSchema#integer>')
        push(service, Batch(POWER, "1", body.encode()))
        rest(service)
        service.worker._wake.wait(0.2)
        assert [e.count for e in service.journal.log.follow(0)] == [1]


@pytest.mark.parametrize("together", [False, True])
def test_events_behind_a_punctuation_are_late_also_in_its_turn(tmp_path: Path, together: bool) -> None:
    with live(tmp_path) as service:
        service.queries.register("rises", RISES)
        with service.worker.lock if together else nullcontext():  # no turn meanwhile
            push(service, Batch(POWER, "a", power(1, BEGIN + 1_000_000, 1, 9).encode()))
            service.streams.advance(POWER, BEGIN + 6_000_000)
            for number in (2, 3):
                if not together:
                    rest(service)
                push(service, Batch(POWER, f"b{number}", power(number, BEGIN + number * 1_000_000, 1, 9).encode()))
        rest(service)
        assert service.queries.get("rises").late == 2


def test_late_and_rejected_events_are_told(tmp_path: Path) -> None:
    power = [batch for batch in SENT if batch.stream == POWER]
    with live(tmp_path) as service:
        service.queries.register("rises", RISES)
        assert push(service, power[5]).late == 0
        late = push(service, power[0])
        assert late.late == late.accepted > 0
        assert late.reasons
        rest(service)
        assert service.queries.get("rises").late == late.late
        body = power[6].body + b"not a quad\n"
        partly = push(service, Batch(POWER, "partly", body))
        assert (partly.rejected, partly.reasons[0].line) == (1, body.count(b"\n"))
        assert b'oxiseq_rejected_lines_total{stream="' + POWER.encode() + b'"} 1.0' in service.metrics.text()
        with pytest.raises(RejectedError):
            push(service, Batch(POWER, "nothing", b"not a quad\n"))
        with pytest.raises(ConflictError):
            push(service, Batch(POWER, "partly", power[7].body))


def test_bounds(tmp_path: Path) -> None:
    settings = LiveSettings(idle=None, waiting=10, queries=1, streams=2, subscribers=1)
    with live(tmp_path, settings) as service:
        service.queries.register("rises", RISES)
        with pytest.raises(BoundError):
            service.queries.register("more", RISES)
        service.streams.create(f"{EX}one")
        with pytest.raises(BoundError):
            service.streams.create(f"{EX}two")
        with service.worker.lock:  # the worker stands still
            with pytest.raises(BusyError) as busy:
                for batch in SENT:
                    if batch.stream == POWER:
                        push(service, batch)
            assert busy.value.status == 429
        rest(service)
        assert service.worker.waiting == 0
        subscription = service.subscriptions.subscribe("rises", 0)
        with pytest.raises(BusyError) as busy:
            service.subscriptions.subscribe("rises", 0)
        assert busy.value.status == 503
        subscription.close()
        service.subscriptions.subscribe("rises", 0).close()
        assert service.subscriptions.count == 0


def test_a_query_that_is_refused_leaves_nothing(tmp_path: Path) -> None:
    with live(tmp_path) as service:
        with pytest.raises(QueryError):
            service.queries.register("bad", "SELECT ?x")
        with pytest.raises(OxiseqError):
            service.queries.register("bad/name", RISES)
        assert service.queries.all() == []
        assert service.streams.all() == []


def test_subscribers_read_from_memory_and_journal_without_a_gap(tmp_path: Path) -> None:
    settings = LiveSettings(idle=None, recent=5, heartbeat=0.05)
    with live(tmp_path, settings) as service:
        service.queries.register("rises", RISES)
        power = [batch for batch in SENT if batch.stream == POWER]
        for batch in power[:50]:
            push(service, batch)
        rest(service)
        last = service.queries.get("rises").record.next - 1
        subscription = service.subscriptions.subscribe("rises", 3)
        ids, kinds = [], []
        for piece in subscription:
            lines = piece.decode().splitlines()
            ids += [int(line[4:]) for line in lines if line.startswith("id: ")]
            kinds += [line for line in lines if line.startswith(("event", ":"))]
            if ids and ids[-1] == last and ": still here" in kinds:
                break
        subscription.close()
        assert ids == list(range(4, last + 1))


def test_a_subscriber_that_falls_behind_misses_nothing_and_an_old_cursor_is_told(tmp_path: Path) -> None:
    settings = LiveSettings(idle=None, recent=5, heartbeat=0.05, matches=10)
    with live(tmp_path, settings) as service:
        service.queries.register("rises", RISES)
        power = [batch for batch in SENT if batch.stream == POWER]
        reading = iter(subscription := service.subscriptions.subscribe("rises", None))
        assert b"listening" in next(reading)
        assert next(reading) == b": still here\n\n"  # it is live now
        for batch in power[:60]:
            push(service, batch)
        rest(service)
        last, ids = service.queries.get("rises").record.next - 1, list[int]()
        assert last > 5 * settings.recent
        while not ids or ids[-1] < last:
            ids += [int(line[4:]) for line in next(reading).decode().splitlines() if line.startswith("id: ")]
        assert ids == list(range(1, last + 1))
        subscription.close()
        assert b"oxiseq_slow_subscribers_disconnected_total 0.0" in service.metrics.text()
        service.journal.retain()
        first = service.queries.get("rises").record.first
        assert first > 1
        old = service.subscriptions.subscribe("rises", 0)
        pieces = iter(old)
        next(pieces)
        assert b"event: cursor-too-old" in (told := next(pieces))
        assert f"id: {first - 1}\n".encode() in told
        assert f"id: {first}\n".encode() in next(pieces)
        old.close()


def test_readers_end_when_the_query_is_deleted_or_the_service_closed(tmp_path: Path) -> None:
    with live(tmp_path) as service:
        for name in ("a", "b"):
            service.queries.register(name, RISES)
        readers = [service.subscriptions.subscribe(name, None) for name in ("a", "b")]
        service.queries.delete("a")
        assert b"deleted" in b"".join(readers[0])
        service.end_subscriptions()
        assert b"stopping" in b"".join(readers[1])


def test_the_kb_is_asked_as_it_was_when_the_event_came(tmp_path: Path) -> None:
    text = f"""PREFIX : <{EX}>
    SELECT ?house ?owner FROM STREAM S <{POWER}>
    WHERE {{ SEQ(A) DEFINE GPM A ON S {{ ?house :watts ?w GRAPH :kb {{ ?house :owner ?owner }} }} }}"""
    store = oxiseq.Store()
    store.update(f"INSERT DATA {{ GRAPH <{EX}kb> {{ <{EX}h> <{EX}owner> <{EX}ann> }} }}")
    with live(tmp_path, store=store) as service:
        service.queries.register("owners", text)
        for i, owner in enumerate(("bob", "cid")):
            body = event(f"e{i}", 1_000_000 * (i + 1), f'<{EX}h> <{EX}watts> "{i}"')
            push(service, Batch(POWER, f"{i}", body.encode()))
            rest(service)
            store.update(
                f"DELETE WHERE {{ GRAPH <{EX}kb> {{ ?h <{EX}owner> ?o }} }}; "
                f"INSERT DATA {{ GRAPH <{EX}kb> {{ <{EX}h> <{EX}owner> <{EX}{owner}> }} }}"
            )
        service.streams.advance(POWER, 10_000_000)
        rest(service)
        assert [row[1] for _, row in rows(service, "owners")] == [f"<{EX}ann>", f"<{EX}bob>"]


def test_a_stream_that_is_read_cannot_be_deleted(tmp_path: Path) -> None:
    with live(tmp_path) as service:
        service.queries.register("rises", RISES)
        with pytest.raises(ConflictError):
            service.streams.delete(POWER)
        service.queries.delete("rises")
        service.streams.delete(POWER)
        assert service.streams.all() == []
        assert service.streams.create(POWER, Retention(count=3)).keep.count == 3


def test_reading_a_batch_agrees_for_small_and_large_bodies() -> None:
    small = [read_batch(batch.body, "nquads") for batch in SENT]
    whole = read_batch(b"".join(batch.body for batch in SENT), "nquads")
    assert sum(len(each.time) for each in small) == len(whole.time)
    large = b"".join(batch.body for batch in batches(3000, seed=1))
    assert len(read_batch(large, "nquads").time) == large.count(b"generatedAtTime")
    events, dated = live_events_as_trig()
    assert read_batch(events, "trig").time.tolist() == dated


def live_events_as_trig() -> tuple[bytes, list[int]]:
    """Two events, and their times."""
    prefix = f"@prefix : <{EX}> . @prefix prov: <http://www.w3.org/ns/prov#> .\n"
    lines = [f":e{i} prov:generatedAtTime {i} . :e{i} {{ :h :watts {i} }}\n" for i in (5, 7)]
    return (prefix + "".join(lines)).encode(), [5, 7]


def found_so_far(service: LiveService, number: int) -> bool:
    return service.queries.get("alarm").record.next == number + 1


def test_silence_is_noticed_again_for_a_stream_that_was_deleted(tmp_path: Path) -> None:
    with live(tmp_path, LiveSettings(idle=0.02)) as service:
        for number in range(2):
            service.queries.register("alarm", ALARM)
            body = event("e", 1_000_000, f'<{EX}h> <{EX}watts> "999"^^<http://www.w3.org/2001/XMLSchema#integer>')
            push(service, Batch(POWER, "1", body.encode()))
            eventually(partial(found_so_far, service, number + 1))
            service.queries.delete("alarm")
            service.streams.delete(POWER)


def test_a_restart_reads_the_log_from_the_last_checkpoint(tmp_path: Path, expected: dict[str, Rows]) -> None:
    with live(tmp_path) as service:
        for name, text in QUERIES.items():
            service.queries.register(name, text, LANGUAGES.get(name, "spaseq"))
        for batch in SENT[:60]:
            push(service, batch)
        rest(service)
        head = service.journal.log.position()
    with live(tmp_path) as service:
        assert {checkpoint.position for checkpoint in service.journal.checkpoints.all()} == {head}
        for batch in SENT[60:]:
            push(service, batch)
        assert answers(service) == expected


def test_a_query_that_has_seen_nothing_is_not_saved(tmp_path: Path) -> None:
    """Its place in the log moves on, and after a restart it finds what it would have found."""
    doors, power = ([batch for batch in SENT if batch.stream == iri] for iri in (DOORS, POWER))

    for folder in ("whole", "parts"):
        (tmp_path / folder).mkdir()

    def begun(service: LiveService) -> None:
        for iri in (DOORS, POWER):
            service.streams.create(iri)
        for batch in power[:10]:
            push(service, batch)
        service.queries.register("rises", RISES)
        for batch in doors:
            push(service, batch)
        rest(service)

    with live(tmp_path / "whole") as service:
        begun(service)
        for batch in power[10:]:
            push(service, batch)
        rest(service)
        whole = rows(service, "rises")
    with live(tmp_path / "parts", LiveSettings(checkpoint=0.01)) as service:
        begun(service)
        seen = service.queries.get("rises")
        assert seen.state is not None and seen.state["bytes"] == 0
        assert set(service.queries.waiting("rises") or ()) == {0}
        head = service.journal.log.position()
        eventually(lambda: service.journal.checkpoints.all()[0].position == head)
        assert service.journal.checkpoints.all()[0].state == b""
    with live(tmp_path / "parts") as service:
        for batch in power[10:]:
            push(service, batch)
        rest(service)
        assert rows(service, "rises") == whole and whole


def test_a_stream_that_comes_again_is_counted_from_the_beginning(tmp_path: Path) -> None:
    with live(tmp_path) as service:
        service.streams.create(DOORS, Retention(count=100))
        for stream in (POWER, DOORS):  # the second time the query has seen nothing of its own stream
            service.queries.register("rises", RISES)
            for batch in (batch for batch in SENT[:20] if batch.stream == stream):
                push(service, batch)
            rest(service)
            query = service.worker.find("rises")
            assert query is not None
            with service.worker.lock:
                service.worker.checkpointer.save(query)  # its place is one that the log has
            service.queries.delete("rises")
            service.streams.delete(POWER)


def test_epsparql_queries_have_rules_and_tell_their_intervals(tmp_path: Path) -> None:
    rule = f"PREFIX : <{EX}> CONSTRUCT {{ ?h :high ?w }} WHERE {{ ?h :watts ?w FILTER(?w > 500) }}"
    text = f"PREFIX : <{EX}> SELECT ?h ?a ?b WHERE {{ {{ ?h :high ?a }} SEQ {{ ?h :high ?b }} }}"
    with live(tmp_path) as service:
        service.streams.create(POWER)
        service.queries.register("highs", text, "epsparql", {"rules": [rule]})
        for batch in SENT[:40]:
            if batch.stream == POWER:
                push(service, batch)
    with live(tmp_path) as service:
        service.streams.advance(POWER, LAST_TIME)
        rest(service)
        (part, *_) = service.journal.matches.read("highs", 0)
        assert part.heading.variables == ("h", "a", "b")
        (_, start), (_, end) = (part.events(0)[name][0] for name in ("start", "end"))
        assert start < end == int(part.time[0])
        assert service.queries.get("highs").reads == (POWER,)


def test_queries_come_and_go_with_the_stores_lock_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A status is asked for with that lock alone: it met a query that a turn had added by half."""
    store = Store()
    held: list[tuple[str, bool]] = []

    def watched(name: str, change: Callable[[Engine, LiveQuery], None]) -> None:
        def with_lock(engine: Engine, query: LiveQuery) -> None:
            held.append((name, store.lock._is_owned()))  # type: ignore[attr-defined]
            change(engine, query)

        monkeypatch.setattr(Engine, name, with_lock)

    watched("add", Engine.add)
    watched("remove", Engine.remove)
    with live(tmp_path, store=store) as service:
        service.queries.register("early", RISES)
        for batch in batches(9, seed=1):
            if batch.stream == POWER:
                push(service, batch)
        rest(service)
        service.queries.register("late", RISES)
        service.queries.pause("late")
        service.queries.resume("late")
    with live(tmp_path, store=store) as service:
        rest(service)
        service.queries.delete("early")
    assert {what for what, _ in held} == {"add", "remove"}
    assert all(owned for _, owned in held), held


def test_nobody_reads_the_matches_of_a_query_that_is_gone_under_its_name(tmp_path: Path) -> None:
    """Pages of matches are held for many readers: not for those of another query of the same name."""
    where = "SEQ(A) DEFINE GPM A ON S { ?house :watts ?w }"
    text = f"PREFIX : <{EX}> SELECT ?house FROM STREAM S <{POWER}> WHERE {{ {where} }}"
    body = "".join(event(f"p{i}", i, f'<{EX}h{i}> <{EX}watts> "5"') for i in range(1, 1002))
    with live(tmp_path) as service:
        service.queries.register("mine", text, "spaseq")
        service.streams.push(POWER, lambda: read_batch(body.encode(), "nquads"), body.encode(), "1")
        service.streams.advance(POWER, LAST_TIME)
        rest(service)
        last, page = service.subscriptions.stored("mine", 0)
        assert (last, b"h7" in page) == (1000, True)
        assert service.subscriptions.stored("mine", 0) == (last, page)
        service.queries.delete("mine")
        service.queries.register("mine", text, "spaseq")
        with pytest.raises(OxiseqError, match="1002"):
            service.subscriptions.stored("mine", 0)
