"""Blocks of lines: a fault stays within its line, however the file is cut."""

from __future__ import annotations

import gzip
import io
import lzma
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import Quad, RdfFormat

from oxiseq.kb_loader import STATISTICS, load, open_kb
from oxiseq.kb_loader.lines import blocks, line_ends, valid_lines
from oxiseq.kb_loader.quarantine import Fault

GOOD = [b"<a:a> <a:b> <a:c> .", b'_:x <a:b> "x \\" # y"@en .', b"", b" # comment", b"<a:a> <a:b> <a:d> . # why", b"\t"]
BAD = [
    b"<a:a> <a:b> <a:c>",
    b'<a:a> <a:b> "open .',
    b"<a:a> <a:b",
    b'<a:a> <a:b> """x',
    b"<a:a> . <a:b> <a:c> .",
    b"<<(",
    b"<a:a> <a:b> <a:c> . <a:a> <a:b> <a:d> .",
    b'<a:a> <a:b> "\xff" .',
    b".",
]
LINES = st.lists(st.tuples(st.sampled_from([*GOOD, *BAD]), st.sampled_from([b"\n", b"\r\n", b"\r"])), max_size=12)


@given(LINES, st.booleans(), st.integers(1, 60))
def test_only_the_bad_lines_are_faults(lines: list[tuple[bytes, bytes]], ended: bool, size: int) -> None:
    text = b"".join(line + end for line, end in lines)
    if not ended and lines:
        text = text[: -len(lines[-1][1])]
    found: list[Quad] = []
    faults: list[Fault] = []
    at = 1
    for block in blocks(io.BytesIO(text), size):
        found += valid_lines(block, at, RdfFormat.N_TRIPLES, "a:", faults.append)
        at += line_ends(block)
    whole = text.splitlines()
    assert [f.line for f in faults] == [n for n, line in enumerate(whole, 1) if line in BAD]
    assert all(f.text == whole[f.line - 1].decode("utf-8", "replace") for f in faults if f.line)
    assert len(found) == sum(line in GOOD and line[:1] in (b"<", b"_") for line in whole)


@pytest.mark.parametrize(("ending", "pack"), [("gz", gzip.compress), ("xz", lzma.compress)])
def test_a_damaged_file_is_told_and_the_load_goes_on(tmp_path: Path, ending: str, pack: object) -> None:
    assert callable(pack)
    rng = random.Random(1)
    text = b"".join(b"<a:a> <a:b> <a:%x> .\n" % rng.getrandbits(64) for _ in range(20_000))
    packed = bytearray(pack(text))
    packed[len(packed) // 2 : len(packed) // 2 + 50] = bytes(50)
    (tmp_path / f"a.nt.{ending}").write_bytes(packed)
    (tmp_path / "b.nt").write_bytes(b"<a:z> <a:b> <a:c> .\n")
    report = load([tmp_path / f"a.nt.{ending}", tmp_path / "b.nt"], tmp_path / "kb")
    assert report.quarantine is not None
    assert any("cannot be read on" in file.read_text() for file in report.quarantine.iterdir())
    subjects = {str(q.subject) for q in open_kb(tmp_path / "kb") if q.graph_name != STATISTICS}
    assert {"<a:a>", "<a:z>"} <= subjects  # what was read before, and what comes after


def test_a_bad_line_does_not_take_its_neighbours_along(tmp_path: Path) -> None:
    lines = [b"<a:a> <a:b> <a:%d> .\n" % i for i in range(20)]
    lines[4] = b'<a:a> <a:b> "open .\n'
    lines[9] = b"<a:a> <a:b> <a:9>\n"
    (tmp_path / "a.nt").write_bytes(b"".join(lines))
    report = load(tmp_path / "a.nt", tmp_path / "kb")
    assert (report.read, report.quarantined) == (18, 2)
    assert [fault.split("a.nt:")[1].split(":")[0] for fault in report.faults] == ["5", "10"]
