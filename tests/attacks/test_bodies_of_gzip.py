"""Gzip data of very many members, of members that hold nothing, and of what grows: time and memory are bounded."""

from __future__ import annotations

import gzip
import io
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kb_doors import STREAM, ask, server

from oxiseq.engine.events.bytes import ByteSource, unpacked
from oxiseq.engine.events.gzip_members import inflated
from oxiseq.engine.events.open import open_events
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.kb_loader import load as load_kb

EMPTY = gzip.compress(b"", mtime=0)
EVENT = b"""<http://e/1> <http://www.w3.org/ns/prov#generatedAtTime> "2026-11-20T10:00:00Z"^^<http://www.w3.org/2001/XMLSchema#dateTime> .
<http://e/a> <http://e/p> <http://e/b> <http://e/1> .
"""  # noqa: E501  a line of N-Quads
QUADS = [("Content-Type", "application/n-quads"), ("Content-Encoding", "gzip")]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with server(tmp_path_factory.mktemp("live")) as given:
        yield given


def took(begun: float) -> float:
    return time.process_time() - begun


@pytest.mark.parametrize("target", ["/store?default", STREAM, "/query"])
def test_hundreds_of_thousands_of_empty_members_are_refused(address: str, target: str) -> None:
    begun = time.process_time()
    answer = ask(address, "POST", target, QUADS, EMPTY * 200_000 + gzip.compress(EVENT))
    assert (answer.status, b"more than 10,000 gzip members" in answer.body) == (400, True)
    assert took(begun) < 5


def test_thousands_of_members_are_one_body(address: str) -> None:
    lines = EVENT.splitlines(keepends=True)
    body = EMPTY * 5000 + b"\0" * 10 + b"".join(gzip.compress(line) for line in lines) + EMPTY * 4000 + b"\0\0"
    answer = ask(address, "POST", STREAM, QUADS, body)
    assert answer.status in (200, 201, 202)
    assert b'"accepted": 1' in answer.body.replace(b'":1', b'": 1')


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\x1f",
        b"\x1f\x8b",
        EMPTY[:-1],
        EMPTY + EMPTY[:10],
        b"\0" + EMPTY,
        EMPTY + b"x",
        b"hello",
        gzip.compress(bytes(range(256)) * 999)[:-9],
        gzip.compress(b"x" * 99) + b"\x1f\x8b\x09" + b"\0" * 99,
        EMPTY[:-4] + b"\0\0\0\1",
    ],
    ids=[
        "nothing",
        "a byte",
        "two bytes",
        "an end without its last byte",
        "half a member",
        "a zero in front",
        "a byte behind",
        "text",
        "a member cut off",
        "another method",
        "a wrong sum",
    ],
)
def test_what_is_damaged_is_refused(address: str, body: bytes) -> None:
    assert ask(address, "POST", "/store?default", QUADS, body).status in ((204,) if not body else (400,))


def test_what_grows_beyond_the_limit_is_refused(address: str) -> None:
    packer = zlib.compressobj(9, wbits=31)
    body = b"".join(packer.compress(b"#" * (1 << 20)) for _ in range(256)) + packer.flush()
    begun = time.process_time()
    assert ask(address, "POST", "/store?default", QUADS, body).status == 413
    assert ask(address, "POST", "/store?default", QUADS, gzip.compress(b"#" * (1 << 20)) * 140).status == 413
    assert took(begun) < 10


# --- files ----------------------------------------------------------------------------------------------


def test_a_file_of_many_members_takes_as_long_as_it_is() -> None:
    begun = time.process_time()
    parts = list(unpacked(io.BytesIO(EMPTY * 200_000 + gzip.compress(b"end"))))
    assert [part for part, _ in parts] == [b"end"]
    assert took(begun) < 5


def test_events_and_kb_of_many_members(tmp_path: Path) -> None:
    events, kb = tmp_path / "events.nq.gz", tmp_path / "kb.nq.gz"
    events.write_bytes(EMPTY * 100_000 + gzip.compress(EVENT))
    kb.write_bytes(EMPTY * 100_000 + gzip.compress(EVENT))
    begun = time.process_time()
    assert sum(map(len, open_events(events, TermDictionary()))) == 1
    assert load_kb(kb, tmp_path / "kb").stored == 2
    assert took(begun) < 10


@given(
    parts=st.lists(st.binary(max_size=3000), max_size=6),
    zeros=st.lists(st.integers(0, 3), min_size=6, max_size=6),
    cut=st.integers(1, 5000),
)
def test_it_is_what_was_packed(parts: list[bytes], zeros: list[int], cut: int) -> None:
    """However the file gives it: in pieces of `cut` bytes."""
    packed = b"".join(gzip.compress(part) + b"\0" * count for part, count in zip(parts, zeros, strict=False))
    file = io.BytesIO(packed)
    assert b"".join(inflated(lambda size: file.read(min(size, cut)))) == b"".join(parts)


def test_a_source_of_bytes_is_what_was_packed(tmp_path: Path) -> None:
    content = [bytes([n % 256]) * (n * 997 % 70_000) for n in range(60)]
    (tmp_path / "a.gz").write_bytes(b"".join(map(gzip.compress, content)))
    with ByteSource(tmp_path / "a.gz") as source:
        assert source.read() == b"".join(content)
