"""A disk that is full to the last byte: 507 and not ready while it is, and well again by itself when there is room."""

from __future__ import annotations

import multiprocessing
import resource
import shutil
import subprocess
from collections.abc import Iterator
from multiprocessing.queues import Queue
from pathlib import Path
from urllib.parse import quote

import pytest
from asked_service import EX, LANGUAGES, Asked, asked, eventually, settled
from pyoxigraph import Store as RdfStore

import oxiseq
from oxiseq.api.reopening import NoRoomError
from oxiseq.api.store import Store

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
