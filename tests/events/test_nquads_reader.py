"""The byte reader against pyoxigraph, line by line: the same events, and the same faults in the same lines.

`python -m pytest tests/events/test_nquads_reader.py` with OXISEQ_PROFILE=nightly reads 100,000 lines changed by chance.
"""

from __future__ import annotations

import gzip
import random
import threading
from itertools import pairwise
from pathlib import Path

import pytest
from event_contents import Content, batch_contents
from hypothesis import given
from hypothesis import strategies as st
from nquads_lines import AT, SUITE, changed, mutated, random_line, suite_lines
from plain_reader import Faults, read_plainly
from profiles import NIGHTLY

from oxiseq.engine.events import assembler, quads
from oxiseq.engine.events.assembler import Block, EventAssembler
from oxiseq.engine.events.quads import GENERATED_AT, read_quads
from oxiseq.engine.events.report import ReadReport
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.normal import XSD

ONE = f'"1"^^<{XSD}integer>'
MUTATED = 100_000 if NIGHTLY else 5_000


def read(data: bytes, cuts: tuple[int, ...] = ()) -> tuple[Content, Faults]:
    """The reader's events and faults; the lines come in blocks that end behind the lines of these numbers."""
    faults: Faults = []
    terms = TermDictionary()
    reader = EventAssembler(terms, GENERATED_AT, lambda line, reason: faults.append((line, reason)), 3)
    lines = [line + b"\n" for line in data.split(b"\n")]
    bounds = sorted({0, len(lines), *(cut % len(lines) for cut in cuts)})
    batches = []
    for low, high in pairwise(bounds):
        batches += reader.read(Block.of(b"".join(lines[low:high])), low + 1)
    batches += reader.finish()
    return batch_contents(batches, terms), faults


def check(data: bytes, cuts: tuple[int, ...] = ()) -> None:
    assert read(data, cuts) == read_plainly(data)


# --- the W3C's suite --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(file.name for file in SUITE.glob("*.nq")))
def test_the_suite(name: str) -> None:
    data = (SUITE / name).read_bytes()
    events, faults = read(data)
    assert (events, faults) == read_plainly(data)
    malformed = [reason for _, reason in faults if "default graph" not in reason and "its time is not" not in reason]
    assert bool(malformed) == ("-bad-" in name)


def test_the_suite_as_one_file_in_a_graph() -> None:
    check(b"\n".join(suite_lines()))


def test_a_label_is_one_node_of_its_event() -> None:
    lines = ["_:a <urn:p> _:b <urn:{}> .", "_:b <urn:p> _:a <urn:{}> .", f"<urn:{{}}> {AT} {ONE} ."]
    check("\n".join(line.format(event) for event in "ef" for line in lines).encode())


# --- lines changed by chance ------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(MUTATED // 500))
def test_lines_changed_by_chance(seed: int) -> None:
    check(b"\n".join(mutated(500, seed)))


def test_each_line_alone() -> None:
    for line in mutated(400, 99):
        check(line)


@given(st.integers(0, 2**60), st.integers(0, 40), st.lists(st.integers(0, 40), max_size=4))
def test_blocks_and_batches_of_any_size(seed: int, size: int, cuts: list[int]) -> None:
    chance = random.Random(seed)
    lines = [random_line(chance).encode() for _ in range(size)]
    lines = [changed(line, chance) if chance.random() < 0.1 else line for line in lines]
    check(b"\n".join(lines), tuple(cuts))


# --- files ------------------------------------------------------------------------------------------


def read_file(path: Path, batch_events: int = 100) -> tuple[Content, Faults]:
    terms, report = TermDictionary(), ReadReport(str(path))
    batches = list(read_quads(path, terms, report, on_error="skip", batch_events=batch_events))
    return batch_contents(batches, terms), [(error.line, error.reason) for error in report.errors]


SHORT = (
    b"\xef\xbb\xbf"
    + f"<urn:e1> {AT} {ONE} .\r\n".encode()
    + b"""<urn:s> <urn:p> "a\\"\xc3\xa9" <urn:e1> .
# comment
_:b <urn:p> "12.50"^^<http://www.w3.org/2001/XMLSchema#decimal> <urn:e1> .
oops
<urn:s> <urn:p> <<( <urn:s> <urn:p> "x" )>> <urn:e1> ."""
)


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n", b"\n\n", b"\n ", b"\n#"])
def test_files_cut_at_every_byte(tmp_path: Path, end: bytes) -> None:
    path = tmp_path / "e.nq"
    for stop in range(0, len(SHORT) + 1, 1 if end == b"" else 7):
        data = SHORT[:stop] + end
        path.write_bytes(data)
        assert read_file(path) == read_plainly(data)


def test_reads_that_end_at_every_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "e.nq"
    path.write_bytes(SHORT)
    expected = read_plainly(SHORT)
    for size in range(1, len(SHORT) + 2):
        monkeypatch.setattr(quads, "BLOCK_BYTES", size)
        assert read_file(path) == expected


def test_huge_lines(tmp_path: Path) -> None:
    path = tmp_path / "e.nq"
    begin = SHORT.split(b"\n")[0] + b"\n"
    for text in (
        b"x" * 3_000_000,
        b"\\n" * 300_000,
        b"\xc3\xa9" * 300_000,
        b'"' * 5_000,
        b" " * 400_000,
        b"\\" * 300_001,
    ):
        data = begin + b'<urn:s> <urn:p> "' + text + b'" <urn:e1> .\n<urn:s> <urn:p> "' + text
        path.write_bytes(data)
        assert read_file(path) == read_plainly(data)


def test_a_great_event_and_many_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assembler, "REMEMBERED", 50)
    lines = [f'<urn:s> <urn:p> "{n}" <urn:great> .' for n in range(70_000)]
    for n in range(3000):
        lines += [f'<urn:{n}> {AT} "{n}"^^<http://www.w3.org/2001/XMLSchema#integer> .']
        lines += [f"_:{n % 7} <urn:{'p' * (n % 50)}> _:{m} <urn:{n}> ." for m in range(n % 60)]
        if n % 70 == 0:
            lines += [f'<urn:s> <urn:p> "{n}" <urn:great> .', f'<urn:s> <urn:p> "late" <urn:{n // 2}> .']
    lines += [f'<urn:great> {AT} "1"^^<http://www.w3.org/2001/XMLSchema#integer> .']
    data = "\n".join(lines).encode()
    assert read(data, tuple(range(0, len(lines), 997))) == read_plainly(data, 50)


def test_two_untimed_events_in_turns_cost_no_more_than_one_after_the_other() -> None:
    lines = [f'<urn:s> <urn:p> "{n}" <urn:{n % 2}> .' for n in range(40_000)]
    lines += [f'<urn:{n}> {AT} "{n}"^^<http://www.w3.org/2001/XMLSchema#integer> .' for n in range(2)]
    events, faults = read("\n".join(lines).encode())
    assert [len(triples) for _, triples in events] == [20_000, 20_000]
    assert faults == []


def test_terms_are_freed_while_events_wait() -> None:
    """Collections in between change nothing."""
    chance = random.Random(7)
    data = b"\n".join(random_line(chance).encode() for _ in range(3000))
    terms, faults = TermDictionary(), []
    reader = EventAssembler(terms, GENERATED_AT, lambda line, reason: faults.append((line, reason)), 1)
    events: Content = []
    for n, line in enumerate(data.split(b"\n"), 1):
        for batch in reader.read(Block.of(line + b"\n"), n):
            events += batch_contents([batch], terms)
            terms.collect()
        if n % 10 == 0:
            terms.collect()
    for batch in reader.finish():
        events += batch_contents([batch], terms)
    assert (events, faults) == read_plainly(data)


def test_a_reader_that_is_closed_early_stops_its_thread(tmp_path: Path) -> None:
    path = tmp_path / "e.nq.gz"
    text = "".join(
        f'<urn:{n}> {AT} "{n}"^^<http://www.w3.org/2001/XMLSchema#integer> <urn:{n}> .\n' for n in range(200_000)
    )
    path.write_bytes(gzip.compress(text.encode(), 1))
    before = threading.active_count()
    reader = read_quads(path, TermDictionary(), ReadReport("x"), batch_events=10)
    assert len(next(reader)) == 10
    assert threading.active_count() == before + 1
    reader.close()
    assert threading.active_count() == before
