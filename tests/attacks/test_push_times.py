"""Pushes with times that no calendar has: refused at every door, and what waits in an old log stops nobody."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import pytest
from asked_service import BEGIN, EX, LANGUAGES, NQUADS, PATH, STREAM, TURTLE, Asked, asked, settled
from profiles import in_the_gate

import oxiseq
from oxiseq.engine.events.encode import encode_events
from oxiseq.engine.events.open import write_events
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.journal import FILE_NAME, Journal, pack_events

WRONG = (
    "9223372036854775807",
    "-9223372036854775808",
    str(1 << 62),
    str(-(1 << 62)),
    "253402300800000000",
    "10000-01-01T00:00:00Z",
    "0000-06-01T00:00:00Z",
    "99999999999999999999999999",
)
LAST = "9999-12-31T23:59:59.999999Z"
GRAPH = f"<{EX}h> <{EX}watts> 5 .".encode()


def still_works(here: Asked) -> None:
    """Every query goes on finding matches."""
    before = {name: here.matches(name) for name in LANGUAGES}
    newest = int(here.service.journal.log.position())
    for second, watts in enumerate((10, 30, 100, 300, 1000)):
        assert here.push(newest * 100 + second * 6, watts) == 200
    assert here.ask("POST", f"{PATH}?watermark={BEGIN + (newest * 100 + 100) * 1_000_000}")[0] == 200
    settled(here)
    for name in LANGUAGES:
        assert here.query(name)["state"] == "running"
        assert here.matches(name) > before[name], name
    assert here.ask("GET", "/ready")[0] == 200


def event_file(folder: Path, name: str, time: int) -> bytes:
    """Three events, the second at this time; as a table that no reader of ours has checked."""
    terms = TermDictionary()
    batch = encode_events([(BEGIN, GRAPH.decode()), (BEGIN + 1, GRAPH.decode()), (BEGIN + 2, GRAPH.decode())], terms)
    batch.time[1] = time
    path = folder / name
    write_events([batch], terms, path)
    return path.read_bytes()


def test_no_door_lets_a_time_in_that_is_outside_of_the_years_1_to_9999(tmp_path: Path) -> None:
    with asked(tmp_path) as here:
        for wrong in WRONG:
            for target in (f"{PATH}?watermark={wrong}", f"{PATH}?time={wrong}"):
                status, told = here.ask("POST", target, GRAPH if "time=" in target else None, TURTLE)
                assert status == 400
                assert "outside of the years 1 to 9999" in told["detail"] or "not a valid time" in told["detail"]
            kind = "dateTime" if "T" in wrong else "integer"
            body = (
                f'<{EX}e> <http://www.w3.org/ns/prov#generatedAtTime> "{wrong}"^^'
                f'<http://www.w3.org/2001/XMLSchema#{kind}> .\n<{EX}h> <{EX}watts> "5" <{EX}e> .\n'
            )
            for media_type in ("application/n-quads", "application/trig"):
                text = (
                    body
                    if "n-quads" in media_type
                    else body.replace(
                        f'<{EX}h> <{EX}watts> "5" <{EX}e> .', f'GRAPH <{EX}e> {{ <{EX}h> <{EX}watts> "5" }}'
                    )
                )
                status, told = here.ask("POST", PATH, text.encode(), {"Content-Type": media_type})
                assert status == 400, (wrong, media_type, told)
                assert "the time of event" in told["reasons"][0]["reason"]
            headers = {"Content-Type": "application/spaseq-query"}
            text = LANGUAGES["spaseq"].encode()
            assert here.ask("POST", f"/queries?name=x&origin={quote(wrong)}", text, headers)[0] == 400
        still_works(here)


@pytest.mark.parametrize("name", ["e.arrow", "e.parquet", "e.jelly"])
@pytest.mark.parametrize("time", [1 << 62, -(1 << 62), (1 << 63) - 1])
def test_event_tables_and_jelly_are_checked_alike(tmp_path: Path, name: str, time: int) -> None:
    kinds = {"e.arrow": "vnd.apache.arrow.file", "e.parquet": "vnd.apache.parquet", "e.jelly": "x-jelly-rdf"}
    body = event_file(tmp_path, name, time)
    with asked(tmp_path) as here:
        status, told = here.ask("POST", PATH, body, {"Content-Type": f"application/{kinds[name]}"})
        assert "outside of the years 1 to 9999" in str(told) or "not a valid time" in str(told)
        assert status == 400 or (told["accepted"] == 2 and told["rejected"])
        still_works(here)


def test_python_refuses_them_too(tmp_path: Path) -> None:
    store = oxiseq.Store()
    query = store.register(LANGUAGES["spaseq"])
    stream = store.stream(STREAM)
    doors: tuple[Callable[[int], object], ...] = (
        lambda wrong: stream.push(GRAPH.decode(), wrong),
        stream.advance,
        store.advance,
        lambda wrong: store.register(LANGUAGES["spaseq"], origin=wrong),
        lambda wrong: list(oxiseq.run(LANGUAGES["spaseq"], {"S": [(wrong, GRAPH.decode())]})),
    )
    for wrong in (1 << 62, (1 << 63) - 1, -(1 << 62), 10**30):
        for door in doors:
            with pytest.raises(oxiseq.OxiseqError, match="outside of the years 1 to 9999"):
                door(wrong)
    stream.push(f"<{EX}h> <{EX}watts> 5 .", BEGIN)
    stream.push(f"<{EX}h> <{EX}watts> 50 .", BEGIN + 1)
    stream.advance(BEGIN + 2)
    assert [match["after"].value for match in query.poll("0s")] == ["50"]


def test_the_last_moment_of_all_may_come_and_nothing_after_it(tmp_path: Path) -> None:
    for _ in range(2):  # a restart reads it again
        with asked(tmp_path, None) as here:
            assert here.ask("POST", f"{PATH}?time={LAST}", GRAPH, TURTLE)[0] == 200
            status, told = here.ask("POST", f"{PATH}?time=arrival", GRAPH, TURTLE)
            assert (status, told["title"]) == (409, "conflict")
            assert "end of the year 9999" in told["detail"]
            assert here.ask("POST", f"{PATH}?watermark={LAST}")[0] == 200
            settled(here)
            assert {here.query(name)["state"] for name in LANGUAGES} == {"running"}


@pytest.mark.parametrize(
    "text",
    [
        "WITHIN 99999999999999999999 SECONDS",
        "WITHIN 9223372036854775807 DAYS SLIDING",
        "WITHIN 99999999999999999999 EVENTS",
    ],
)
def test_windows_whose_sum_with_a_time_overflows_are_refused(tmp_path: Path, text: str) -> None:
    query = LANGUAGES["spaseq"].replace("WITHIN 30 SECONDS SLIDING", text)
    with asked(tmp_path) as here:
        headers = {"Content-Type": "application/spaseq-query"}
        status, told = here.ask("PUT", "/queries/long", query.encode(), headers)
        assert (status, told["code"]) == (400, "window")
        longest = query.replace(text, "WITHIN 3650000 DAYS SLIDING")
        assert here.ask("PUT", "/queries/long?lateness=9999999999s", longest.encode(), headers)[0] == 200
        still_works(here)


OLD = (  # events of a stream, or a punctuation
    [1 << 62],
    [(1 << 63) - 1],
    [-(1 << 63)],
    [BEGIN, 1 << 62],
    [1 << 62, BEGIN],
    (1 << 63) - 1,
    -(1 << 63),
    1 << 62,
)


@pytest.mark.parametrize(
    "old", in_the_gate([[(1 << 63) - 1], [BEGIN, 1 << 62], (1 << 63) - 1, -(1 << 63)], OLD), ids=str
)
def test_an_old_log_that_holds_such_an_entry_stops_nobody(tmp_path: Path, old: int | list[int]) -> None:
    with asked(tmp_path) as here:
        assert here.push(0, 10) == 200
    with Journal(tmp_path / FILE_NAME, "normal") as journal:  # as an earlier version has let it in
        if isinstance(old, int):
            journal.log.advance(STREAM, old)
        else:
            terms = TermDictionary()
            batch = encode_events([(BEGIN, GRAPH.decode())] * len(old), terms)
            batch.time[:] = old
            journal.log.append(STREAM, pack_events(batch, terms))
    make_older(tmp_path / FILE_NAME)
    for again in (False, True):
        with asked(tmp_path) as here:
            settled(here)
            for name in LANGUAGES:
                told = here.query(name)
                assert told["quarantined"]["entries"] == 1
                assert told["quarantined"]["events"] == (0 if isinstance(old, int) else len(old))
                assert "outside of the years 1 to 9999" in told["quarantined"]["last"]["reason"]
            status, told = here.ask("GET", "/ready")
            assert (status, told["quarantined"]) == (200, len(LANGUAGES))
            headers = {"Content-Type": "application/spaseq-query"}  # to look back passes over it, too
            assert here.ask("POST", "/query", LANGUAGES["spaseq"].encode(), headers)[0] == 200
            assert here.ask("GET", "/queries/spaseq/why?since=2024-01-01T00:00:00Z")[0] == 200
            assert "oxiseq_quarantined_entries" in here.ask("GET", "/metrics")[1].decode()
            still_works(here)
            if again:  # the last of all: it is of today
                assert here.ask("POST", f"{PATH}?time=arrival", GRAPH, TURTLE)[0] == 200


def make_older(path: Path) -> None:
    """The tables of version 2, which did not know what is quarantined, nor what came with later versions."""
    with closing(sqlite3.connect(path)) as connection, connection:
        for table in ("set_aside", "sink", "session"):
            connection.execute(f"DROP TABLE {table}")
        for column in ("mapping", "checksum"):
            connection.execute(f"ALTER TABLE stream DROP COLUMN {column}")
        for column in ("begun", "rebuilt", "omitted", "checksum"):
            connection.execute(f"ALTER TABLE query DROP COLUMN {column}")
        connection.execute("PRAGMA user_version = 2")


FINE = "2024-05-01T10:00:00.1234567Z"
"""As .NET writes it."""
SEEN = f'<{EX}h> <{EX}seen> "{FINE}"^^<http://www.w3.org/2001/XMLSchema#dateTime> .'
TIMED = f'<urn:g> <http://www.w3.org/ns/prov#generatedAtTime> "{FINE}"^^<http://www.w3.org/2001/XMLSchema#dateTime> .\n'
TIMED += SEEN.removesuffix(".") + "<urn:g> .\n"


def test_pushed_times_are_cut_off_below_a_microsecond(tmp_path: Path) -> None:
    """An event's time, and those of parameters; a literal in a triple keeps its digits."""
    pushes = [
        (f"{PATH}?time={FINE}", SEEN, TURTLE),
        (f"{PATH}?time=2024-05-01T12:00:00.123456789%2B02:00", SEEN, TURTLE),
        (PATH, TIMED, NQUADS),
        (PATH, TIMED + "# not small\n" + TIMED.replace("urn:g", "urn:g2"), NQUADS),
    ]
    with asked(tmp_path) as here:
        for target, body, headers in pushes:
            status, told = here.ask("POST", target, body.encode(), headers)
            assert (status, told["rejected"], told["late"]) == (200, 0, 0), told
            first = told["offsets"]["first"]
            events = here.raw("GET", f"{PATH}/events?offset={first}&limit=1", headers={"Accept": "application/n-quads"})
            assert b'generatedAtTime> "2024-05-01T10:00:00.123456Z"' in events.data
            assert f'seen> "{FINE}"'.encode() in events.data
        assert here.ask("POST", f"{PATH}?watermark={FINE}")[0] == 200
        assert here.ask("GET", f"/queries/spaseq/why?since={FINE}&until=2024-05-01T10:00:01.0000001Z")[0] == 200
