"""A checkpoint that does not fit, or is damaged: the query's state is made anew from the log, never `failed`."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from live_events import POWER, RISES, batches
from live_services import Rows, live, push, rest, rows
from many_queries import QUERIES, found, register
from profiles import in_the_gate

from oxiseq.journal import FILE_NAME, Journal, Retention

SENT = batches(60, seed=9)


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Rows]:
    with live(tmp_path_factory.mktemp("expected")) as service:
        register(service)
        for batch in SENT:
            push(service, batch)
        return found(service)


def flipped(state: bytes) -> bytes:
    drawn, changed = random.Random(len(state)), bytearray(state)
    changed[drawn.randrange(len(state))] ^= 0xFF
    return bytes(changed)


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "a byte is flipped": flipped,
    "it is cut off": lambda state: state[: len(state) // 2],
    "it is something else": lambda state: b"another program's",
    "a single byte": lambda state: b"\0",
    "zeros": lambda state: bytes(len(state)),
}


def damage(path: Path, change: Callable[[bytes], bytes]) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        for owner, state in connection.execute("SELECT owner, state FROM checkpoint").fetchall():
            assert state
            connection.execute("UPDATE checkpoint SET state = ? WHERE owner = ?", (change(state), owner))


@pytest.mark.parametrize("kind", in_the_gate({"a byte is flipped", "it is cut off"}, DAMAGE))
def test_the_matches_are_those_of_before(
    tmp_path: Path, expected: dict[str, Rows], kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    with live(tmp_path) as service:
        register(service)
        for batch in SENT[:30]:
            push(service, batch)
        rest(service)
    damage(tmp_path / FILE_NAME, DAMAGE[kind])
    with live(tmp_path) as service:
        for name in QUERIES:
            status = service.queries.get(name)
            assert status.doing == "running"
            assert "its state was rebuilt from the log" in status.record.rebuilt
            if name != "fell":  # EP-SPARQL may ask the knowledge base, which may have changed
                assert "missing" not in status.record.rebuilt
            assert f"query {name}: its checkpoint cannot be used" in caplog.text
    caplog.clear()
    with live(tmp_path) as service:  # the new checkpoints can be used
        assert "cannot be used" not in caplog.text
        for batch in SENT[30:]:
            push(service, batch)
        assert found(service) == expected


def test_a_log_whose_beginning_is_gone_is_said_so(tmp_path: Path, expected: dict[str, Rows]) -> None:
    with live(tmp_path) as service:
        register(service)
        for batch in SENT[:40]:
            push(service, batch)
        rest(service)
    with Journal(tmp_path / FILE_NAME, "normal") as journal:
        journal.streams.create(POWER, Retention(count=10))
        assert journal.retain() > 5
    damage(tmp_path / FILE_NAME, flipped)
    with live(tmp_path) as service:
        for name in ("rises", "opened", "high"):
            status = service.queries.get(name)
            assert status.doing == "running"
            assert "a match may be missing or come twice" in status.record.rebuilt
        before = service.queries.get("rises").record.next
        for batch in SENT[40:]:
            push(service, batch)
        answers = found(service)
        assert [number for number, _ in answers["rises"]] == list(range(1, len(answers["rises"]) + 1))
        assert len(answers["rises"]) > before
        assert len({row for _, row in answers["rises"]} & {row for _, row in expected["rises"]}) > before


def test_a_checkpoint_of_an_earlier_version_is_rebuilt_from_when_the_query_was_made(tmp_path: Path) -> None:
    with live(tmp_path) as service:
        service.streams.create(POWER)
        power = [batch for batch in SENT if batch.stream == POWER]
        for batch in power[:5]:
            push(service, batch)
        service.queries.register("rises", RISES)
        for batch in power[5:15]:
            push(service, batch)
        rest(service)
        expected = rows(service, "rises")
    damage(tmp_path / FILE_NAME, flipped)
    with closing(sqlite3.connect(tmp_path / FILE_NAME)) as connection, connection:
        connection.execute("UPDATE query SET begun = NULL")
    with live(tmp_path) as service:
        assert "may be missing" in service.queries.get("rises").record.rebuilt  # it is not sure
        assert service.queries.get("rises").doing == "running"
        assert rows(service, "rises") == expected
