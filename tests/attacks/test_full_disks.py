"""A disk that is full to the last byte: 507 and not ready while it is, and well again by itself when there is room."""

from __future__ import annotations

import multiprocessing
import resource
import shutil
import subprocess
from collections.abc import Callable, Iterator
from multiprocessing.queues import Queue
from pathlib import Path
from urllib.parse import quote

import pytest
from asked_service import EX, LANGUAGES, PATH, TURTLE, Asked, asked, eventually, settled
from attacked_server import attacked
from pyoxigraph import Store as RdfStore

import oxiseq
from oxiseq.api.knowledge import NoRoomError
from oxiseq.api.store import Store
from oxiseq.bridges import BridgeError, DeadLetters, Message
from oxiseq.live import LiveSettings
from oxiseq.options import room
from oxiseq.sinks import Allowed

UPDATE = {"Content-Type": "application/sparql-update"}


def insert(here: Asked, number: int, size: int = 10) -> int:
    """A change of the knowledge base; the status."""
    text = f'INSERT DATA {{ <{EX}n{number}> <{EX}text> "{"x" * size}" }}'
    status, told = here.ask("POST", "/update", text.encode(), UPDATE)
    if status != 204:
        assert (status, told["title"]) == (507, "no room"), told
    return status


def known(here: Asked, number: int) -> bool:
    status, told = here.ask("GET", "/query?query=" + quote(f"ASK {{ <{EX}n{number}> ?p ?o }}"))
    assert status == 200
    return bool(told["boolean"])


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 160 megabytes; skipped where mounting is not allowed (the test below needs no disk)."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=160m", "tmpfs", str(folder)]
    if shutil.which("mount") is None or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("no disk can be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(path: Path) -> None:
    with path.open("wb", buffering=0) as file:
        try:
            for size in (1 << 16, 1):
                try:
                    while file.write(bytes(size)):
                        pass
                except OSError:
                    continue
        except OSError:
            pass


def test_a_disk_that_is_full_and_has_room_again(disk: Path) -> None:
    with asked(disk, store=Store(str(disk / "kb"))) as here:
        assert insert(here, 0) == 204
        assert here.push(0, 10) == here.push(1, 30) == 200
        assert here.ask("GET", "/ready")[0] == 200
        fill(disk / "ballast")
        number = 1
        while insert(here, number, 5000) == 204:
            number += 1
            assert number < 1000
        for _ in range(3):
            assert insert(here, number) == 507
            assert here.push(2, 100) == 507
            status, told = here.ask("GET", "/ready")
            assert (status, told["status"]) == (503, "not ready")
            assert "room" in told["reason"]
        assert known(here, 0) and not known(here, number)  # what reads goes on
        assert here.ask("GET", "/queries/spaseq/matches")[0] == 200

        (disk / "ballast").unlink()
        eventually(lambda: here.ask("GET", "/ready")[0] == 200)
        assert insert(here, number) == 204
        assert known(here, 0) and known(here, number - 1) and known(here, number)
        for second, watts in ((2, 100), (6, 300), (40, 1000)):
            assert here.push(second, watts) == 200
        settled(here)
        assert {here.query(name)["state"] for name in LANGUAGES} == {"running"}
        assert here.matches("spaseq") > 1
    assert len(RdfStore.read_only(str(disk / "kb"))) == number + 1


@pytest.mark.slow
def test_a_killed_server_on_a_disk_full_to_the_last_byte_starts_and_deletes(disk: Path) -> None:
    """Also where another program has filled it: the server holds a reserve that it lets go."""
    kb = disk / "kb"
    with attacked("--location", str(kb)) as server:
        assert server.update(f'INSERT DATA {{ <{EX}a> <{EX}p> "{"x" * 1000}" . <{EX}b> <{EX}p> 1 }}') == 204
        assert server.ask("PUT", PATH)[0] == 200
        assert (kb / room.HELD).stat().st_size == room.KEEP_FREE
        fill(disk / "ballast")
        assert server.update(f"INSERT DATA {{ <{EX}c> <{EX}p> 1 }}") == 507
        assert server.ask("POST", f"{PATH}?time=1", TURTLE, b"<http://e/a> <http://e/p> 1 .")[0] == 507
        server.process.kill()
    with attacked("--location", str(kb)) as server:
        assert server.query("SELECT ?s { ?s ?p ?o } ORDER BY ?s")[1].count(EX.encode()) == 2
        assert server.update(f"DELETE WHERE {{ <{EX}a> ?p ?o }}") == 204
        assert server.update(f"INSERT DATA {{ <{EX}c> <{EX}p> 1 }}") == 507
        assert server.ask("PATCH", PATH, {"Content-Type": "application/json"}, b'{"retention":{"count":1}}')[0] == 200
        assert server.ask("GET", "/ready")[0] == 503
        server.process.kill()
    (disk / "ballast").unlink()
    with attacked("--location", str(kb)) as server:
        assert server.update(f"INSERT DATA {{ <{EX}c> <{EX}p> 1 }}") == 204
        assert server.ask("POST", f"{PATH}?time=1", TURTLE, b"<http://e/a> <http://e/p> 1 .")[0] == 200
        assert (kb / room.HELD).exists()


@pytest.fixture
def left(monkeypatch: pytest.MonkeyPatch) -> Callable[[int | None], None]:
    """Say how many bytes beside the reserve every disk has left; None: as many as it has."""

    def say(more: int | None) -> None:
        monkeypatch.undo()
        if more is not None:
            found = shutil._ntuple_diskusage(1 << 40, 1 << 40, room.KEEP_FREE + more)  # type: ignore[attr-defined]
            monkeypatch.setattr("oxiseq.options.room.disk_usage", lambda _: found)

    return say


DELETING = (
    f"DELETE DATA {{ <{EX}n0> <{EX}text> 'no' }}",
    f"DELETE WHERE {{ <{EX}n1> ?p ?o }}",
    "DELETE { ?s ?p ?o } WHERE { ?s ?p ?o FILTER(?o = 'INSERT') }",
    "# INSERT\nCLEAR SILENT GRAPH <http://e/INSERT>",
    f"DROP SILENT GRAPH <{EX}g> ; DELETE WHERE {{ <{EX}n2> ?p ?o }}",
)
GROWING = (
    f"INSERT DATA {{ <{EX}n3> <{EX}text> 1 }}",
    f"INSERT {{ ?s <{EX}more> ?o }} WHERE {{ ?s ?p ?o }}",
    f"DELETE WHERE {{ <{EX}n0> ?p ?o }} ; insert data {{ <{EX}n4> <{EX}text> 1 }}",
    f"COPY DEFAULT TO <{EX}g>",
    f"CREATE GRAPH <{EX}g>",
)


def test_the_reserve_is_for_all_who_write_and_deleting_goes_on(
    tmp_path: Path, left: Callable[[int | None], None]
) -> None:
    def updated(text: str) -> int:
        return here.ask("POST", "/update", text.encode(), UPDATE)[0]

    with asked(tmp_path, store=Store(str(tmp_path / "kb"))) as here:
        assert [insert(here, number) for number in range(3)] == [204] * 3
        assert here.push(0, 10) == 200
        left(-1)
        assert [updated(text) for text in GROWING] == [507] * len(GROWING)
        assert here.ask("PUT", f"/store?graph={quote(EX)}", b"<http://e/a> <http://e/p> 1 .", TURTLE)[0] == 507
        assert here.push(1, 10) == 507
        assert here.ask("GET", "/ready")[0] == 503
        assert [known(here, number) for number in range(5)] == [True] * 3 + [False] * 2
        assert [updated(text) for text in DELETING] == [204] * len(DELETING)
        assert here.ask("DELETE", f"/store?graph={quote(EX)}")[0] in (204, 404)
        assert here.ask("PATCH", PATH, b'{"retention":{"count":1}}', {"Content-Type": "application/json"})[0] == 200
        assert [known(here, number) for number in range(3)] == [True, False, False]
        left(1 << 20)  # there is room for a little, not for much
        statements = " ".join(f"<{EX}m{number}> <{EX}p> 1 ." for number in range(20_000))
        assert updated(f"INSERT DATA {{ {statements} }}") == 507
        assert here.ask("POST", "/store?default", statements.encode(), TURTLE)[0] == 507
        assert insert(here, 5) == 204
        left(None)
        assert updated(f"INSERT DATA {{ {statements} }}") == 204
        assert here.push(2, 10) == 200


def test_sinks_and_dead_letters_leave_the_reserve(tmp_path: Path, left: Callable[[int | None], None]) -> None:
    letters = DeadLetters(tmp_path / "letters")
    left(-1)
    with pytest.raises(BridgeError, match="no room on the disk"):
        letters.add(Message(b"x", "key"), "source", "reason")
    left(None)
    allowed = Allowed.of(folder=tmp_path / "out")
    with asked(tmp_path, LiveSettings(idle=None, sinks_allowed=allowed, sink_pauses=(0.01, 0.05))) as here:
        assert here.push(0, 10) == here.push(1, 30) == here.push(2, 100) == 200
        settled(here)
        matches = here.matches("spaseq")
        assert matches > 0
        left(20)  # the journal may write, and a sink has more to
        for format_ in ("jsonl", "parquet"):
            config = {"kind": "file", "path": format_, "format": format_, "every": "0s"}
            here.service.sinks.put("spaseq", format_, config, ("house",), after=0)
        sinks = here.service.sinks
        eventually(lambda: all("no room on the disk" in each.row.error for each in sinks.all("spaseq")))
        left(None)
        eventually(lambda: [each.row.delivered for each in sinks.all("spaseq")] == [matches] * 2)


def limited(folder: str, told: Queue[str]) -> None:
    """In a process whose files cannot grow, and then can again."""
    store = oxiseq.Store(folder)
    store.update("INSERT DATA { <urn:a> <urn:b> 1 }")
    held = store.query("SELECT * { ?s ?p ?o }")  # an evaluation that has not ended holds the store of before
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, hard))
    refused = 0
    for number in range(200):
        try:
            store.update(f'INSERT DATA {{ <urn:x{number}> <urn:b> "{"y" * 5000}" }}')
        except NoRoomError:
            refused += 1
            break
    told.put(f"refused {refused} writable {store.writable} reads {bool(store.query('ASK { <urn:a> ?p ?o }'))}")
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    told.put(f"writable {store.writable} reads {bool(store.query('ASK { <urn:a> ?p ?o }'))}")
    del held
    store.update("INSERT DATA { <urn:c> <urn:b> 1 }")
    told.put(f"writable {store.writable} written {bool(store.query('ASK { <urn:c> ?p ?o }'))}")


@pytest.mark.full
@pytest.mark.slow
def test_a_store_from_python_comes_back_too(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    told: Queue[str] = context.Queue()
    child = context.Process(target=limited, args=(str(tmp_path / "kb"), told))
    child.start()
    first, second, third = (told.get(timeout=60) for _ in range(3))
    child.join(30)
    assert first == "refused 1 writable False reads True"
    assert second == "writable False reads True"
    assert third == "writable True written True"
    assert child.exitcode == 0


def test_files_that_are_not_there_are_no_full_disk(tmp_path: Path) -> None:
    store = oxiseq.Store(str(tmp_path / "kb"))
    with pytest.raises(FileNotFoundError):
        store.load(path=str(tmp_path / "missing.nt"))
    assert store.writable
    store.update("INSERT DATA { <urn:a> <urn:b> 1 }")
    assert len(store) == 1
