"""Bytes that have changed on the disk: an error of what they belong to, and of nothing else."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from asked_service import EX, LANGUAGES, PATH, STREAM, Asked, asked, settled

from oxiseq.journal import FILE_NAME

EVENTS = 10


def flip(folder: Path, table: str, first: int) -> None:
    """A byte of a batch."""
    with closing(sqlite3.connect(folder / FILE_NAME)) as connection, connection:
        number, data = connection.execute(
            f"SELECT id, data FROM {table} WHERE first <= ? AND first + count > ? ORDER BY first DESC", (first, first)
        ).fetchone()
        changed = bytearray(data)
        changed[len(data) // 2] ^= 0xFF
        connection.execute(f"UPDATE {table} SET data = ? WHERE id = ?", (bytes(changed), number))


def pages(here: Asked, target: str, header: str) -> tuple[bytes, list[dict[str, object]]]:
    """All that can be read, by pages, and the errors between them."""
    found, faults, at = b"", list[dict[str, object]](), 0
    for _ in range(10 * EVENTS):
        answer = here.raw("GET", f"{target}={at}&limit=4")
        if answer.status_code == 500:
            assert answer.content_type == "application/problem+json"
            assert answer.json is not None
            faults.append(answer.json)
            at = int(answer.json["next"]) - (1 if header == "oxiseq-last-id" else 0)
            continue
        assert answer.status_code == 200, answer.data
        following = int(answer.headers[header])
        if following == at:
            return found, faults
        found, at = found + answer.data, following
    raise AssertionError("it does not come to an end")


def test_a_damaged_event_costs_itself_alone(tmp_path: Path) -> None:
    with asked(tmp_path) as here:
        for number in range(EVENTS):
            assert here.push(number, 10 + number) == 200
        settled(here)
        flip(tmp_path, "entry", 5)
        found, faults = pages(here, f"{PATH}/events?offset", "oxiseq-next-offset")
        for number in range(EVENTS):
            assert (f'"{10 + number}"'.encode() in found) == (number != 5)
        assert [(fault["status"], fault["title"], fault["first"], fault["next"]) for fault in faults] == [
            (500, "damaged", 5, 6)
        ]
        assert "checksum" in str(faults[0]["detail"])
        status, told = here.ask("GET", f"{PATH}/events")  # a page ends before it
        assert status == 200 and told.count(b"watts") == 5
        for target in ("/queries/spaseq/why?since=2024-05-01T10:00:00Z", "/streams", "/queries"):
            assert here.ask("GET", target)[0] == (500 if "why" in target else 200)
        text = LANGUAGES["spaseq"].encode()
        assert here.ask("POST", "/query", text, {"Content-Type": "application/spaseq-query"})[0] == 500
        assert here.push(EVENTS, 100) == 200
        settled(here)
        assert {here.query(name)["state"] for name in LANGUAGES} == {"running"}
    with asked(tmp_path) as here:  # the queries had seen it: nothing is quarantined
        assert here.ask("GET", "/ready")[1]["quarantined"] == 0


def test_damaged_matches_cost_themselves_alone(tmp_path: Path) -> None:
    with asked(tmp_path) as here:
        for number in range(6):
            assert here.push(number, 10 * 3**number) == 200
            assert here.ask("POST", f"{PATH}?watermark={1_714_557_600_000_001 + number * 1_000_000}")[0] == 200
            settled(here)
        last = here.matches("spaseq")
        with closing(sqlite3.connect(tmp_path / FILE_NAME)) as connection:
            (number,) = connection.execute("SELECT id FROM query WHERE name = 'spaseq'").fetchone()
            first, count = connection.execute(
                "SELECT first, count FROM match_batch WHERE query = ? AND first > 3 ORDER BY first", (number,)
            ).fetchone()
            connection.execute("DELETE FROM match_batch WHERE query <> ?", (number,))
            connection.commit()
        flip(tmp_path, "match_batch", first)
        _, faults = pages(here, "/queries/spaseq/matches?after", "oxiseq-last-id")
        assert [(fault["first"], fault["next"]) for fault in faults] == [(first, first + count)]
        here.service.topics.close_all("")  # what is in memory is whole: live readers read the journal from now on
        live = here.service.subscriptions.subscribe("spaseq", 0)
        told = b"".join(live.take(0) for _ in range(last + 3))
        live.close()
        assert told.count(b"event: damaged") == 1
        assert told.count(b"event: match") == last - count
    assert EX in STREAM
