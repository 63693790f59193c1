"""What is no snapshot of this query and this version is refused."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "engine"))
from engine_runs import Driven, Reading, query
from loaded import load

from oxiseq.engine.cea.plan import compile_ceql
from oxiseq.engine.errors import OxiseqError, SnapshotError
from oxiseq.engine.run import fingerprints
from oxiseq.engine.run.fingerprints import fingerprint
from oxiseq.engine.run.query import QueryRun
from oxiseq.engine.run.tuples import TupleRun
from oxiseq.engine.snapshot import container
from oxiseq.engine.snapshot.container import pack, unpack
from oxiseq.engine.snapshot.saving import restore, save
from oxiseq.engine.terms.dictionary import TermDictionary

TEXT = query("A; B", "WITHIN PT0.00001S SLIDING", A="KEYED", B="KEYED FILTER(?bv > ?av)")


@pytest.fixture(scope="module")
def small() -> bytes:
    driven = Driven(TEXT)
    driven.push([Reading(1, "a"), Reading(2, "a", 2), Reading(3, "b")])
    driven.advance()
    return save(driven.run, driven.terms)


def restored(data: bytes, text: str = TEXT) -> QueryRun:
    other = Driven(text)
    return restore(data, other.plan, other.terms, other.kb)


def test_it_is_restored_undamaged(small: bytes) -> None:
    assert restored(small).events == 3


@pytest.mark.parametrize("bits", [0xFF, 0x01, 0x80])
def test_every_byte_counts(small: bytes, bits: int) -> None:
    for at in range(len(small)):
        damaged = bytearray(small)
        damaged[at] ^= bits
        with pytest.raises(SnapshotError):
            unpack(bytes(damaged))


def test_every_length_counts(small: bytes) -> None:
    other = Driven(TEXT)
    for length in range(len(small)):
        with pytest.raises(SnapshotError):
            restore(small[:length], other.plan, other.terms, other.kb)
    with pytest.raises(SnapshotError, match="damaged"):
        restored(small + b"\0")


def test_it_says_what_is_wrong(small: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SnapshotError, match="this is no snapshot"):
        restored(b"something else")
    with pytest.raises(SnapshotError, match="another query"):
        restored(small, query("A; B", "WITHIN PT0.00001S SLIDING", A="KEYED", B="KEYED FILTER(?bv >= ?av)"))
    with pytest.raises(SnapshotError, match="another version"):
        restored(pack({"plan": fingerprint(Driven(TEXT).plan), "state": {}, "terms": {}}))
    monkeypatch.setattr(container, "FORMAT", container.FORMAT + 1)
    with pytest.raises(SnapshotError, match="is of format"):
        restored(small)
    assert issubclass(SnapshotError, OxiseqError)


def test_spaces_make_no_other_query(small: bytes) -> None:
    assert restored(small, TEXT.replace(" ", "  ").replace("# ", "#")).events == 3


def test_one_language_is_not_the_other(small: bytes) -> None:
    driven = Driven(TEXT)
    tuples = compile_ceql(load("VOCAB <http://e/> SELECT * FROM s1 WHERE A; B", "ceql"))
    with pytest.raises(SnapshotError, match="another query"):
        restore(small, tuples, driven.terms)
    with pytest.raises(SnapshotError, match="another query"):
        restore(save(TupleRun(tuples, TermDictionary()), TermDictionary()), driven.plan, driven.terms, driven.kb)


def test_other_layouts_of_records_are_another_version(small: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fingerprints.sequence, "SCALARS", fingerprints.sequence.SCALARS + 1)
    with pytest.raises(SnapshotError, match="compiles it otherwise"):
        restored(small)
