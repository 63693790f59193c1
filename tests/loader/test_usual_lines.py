"""A block in two: usual lines are valid statements, the others keep their numbers; a load that parts its blocks gives
the store, the faults and the counts of one that reads line by line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import Quad, RdfFormat, parse

from oxiseq.kb_loader import STATISTICS, LoadReport, load, open_kb, plain
from oxiseq.kb_loader.usual import parted

USUAL = [
    b"<http://e.org/a> <http://e.org:80/b?x=%20#c> <urn:x:y> .",
    b'<a:a> <a:b> "caf\xc3\xa9 _:x \t" .',
    b'<a:a> <a:b> "1"@en-GB .',
    b'<a:a> <a:b> "1"^^<http://e.org/t> .',
    b"<a:> <a:/> <a:///b> .",
]
NOT_USUAL = [
    b"_:x <a:b> <a:c> .",
    b"",
    b"# a",
    b'<a:a> <a:b> "\\u0041" .',
    b"<a:a> <a:b>  <a:d> .",
    "<http://e.org/\u00e9> <a:b> <a:c> .".encode(),
]
BAD = [
    b"oops",
    b'<a:a> <a:b> "\xff" .',
    b"<a:a> <b> <a:c> .",
    b"<a:a> <http://e.org:x/> <a:c> .",
    b'<a:a> <a:b> "x .',
    b"<a:%2> <a:b> <a:c> .",
    b'<a:a> <a:b> "x"@e .x',
    b"<a:a> <a:b> <a:c> <a:d> <a:e> .",
]


@given(st.lists(st.sampled_from(USUAL + NOT_USUAL + BAD), max_size=3), st.integers(0, 48), st.booleans())
def test_others_keep_their_place_and_usual_lines_are_valid(others: list[bytes], at: int, graphs: bool) -> None:
    usual = [USUAL[i % len(USUAL)] for i in range(48)]
    lines = [*usual[:at], *others, *usual[at:]]
    found = parted(b"".join(line + b"\n" for line in lines), graphs=graphs)
    assert found is not None
    assert found.numbers == [number for number, line in enumerate(lines) if line not in USUAL]
    assert found.others.splitlines() == [lines[number] for number in found.numbers]
    assert len(list(parse(found.usual, format=RdfFormat.N_QUADS))) == found.lines
    assert found.lines + len(found.numbers) == len(lines)


@pytest.mark.parametrize("line", BAD)
def test_a_fault_is_never_usual(line: bytes) -> None:
    found = parted(b"\n".join([USUAL[0]] * 40 + [line]), graphs=True)
    assert found is not None
    assert found.numbers == [40]


@given(st.lists(st.integers(0, 255), min_size=1, max_size=4).map(bytes))
def test_strings_are_utf_8(inside: bytes) -> None:
    line = b'<a:a> <a:b> "' + inside + b'" .'
    found = parted(b"\n".join([USUAL[0]] * 80 + [line]), graphs=False)
    if found is not None and not found.numbers:
        assert len(list(parse(line, format=RdfFormat.N_TRIPLES))) == 1
    elif not {*inside} & {*b'"\\\r\n', *range(32), 127}:
        with pytest.raises(SyntaxError):
            list(parse(line, format=RdfFormat.N_TRIPLES))


def test_graphs_are_usual_in_n_quads_only() -> None:
    text = b"<a:a> <a:b> <a:c> <a:g> .\n" * 3 + b"<a:a> <a:b> <a:c> .\n" * 60
    found = [parted(text, graphs=graphs) for graphs in (True, False)]
    assert [parts and parts.numbers for parts in found] == [[], [0, 1, 2]]


def test_many_unusual_lines_are_not_parted() -> None:
    assert parted(b"_:a <a:b> <a:c> .\n" * 20, graphs=False) is None
    assert parted(b"<a:a> <a:b> <a:c> .\r" * 20, graphs=False) is None


@pytest.mark.parametrize("ending", ["nt", "nq"])
def test_a_parted_load_gives_what_reading_line_by_line_gives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    monkeypatch.setattr(plain, "BIG_BLOCK", 4_000)
    monkeypatch.setattr(plain, "_SINGLES", 3)
    lines = [b'<http://e.org/s%d> <http://e.org/p> "v%d" .' % (i % 700, i) for i in range(1_000)]
    for place, line in enumerate([*NOT_USUAL, *BAD, b"_:x <a:b> _:y .", *USUAL]):
        lines.insert(17 + 45 * place, line)
    (tmp_path / f"a.{ending}").write_bytes(b"\n".join(lines))
    reports = [load(tmp_path / f"a.{ending}", tmp_path / "parted")]
    monkeypatch.setattr(plain, "_load_parted", lambda *given: None)
    reports.append(load(tmp_path / f"a.{ending}", tmp_path / "slow"))
    assert counts(reports[0]) == counts(reports[1])
    assert reports[0].quarantined == len(BAD)
    stores = [
        {str(quad) for quad in open_kb(tmp_path / name) if quad.graph_name != STATISTICS} for name in ("parted", "slow")
    ]
    assert stores[0] == stores[1]
    texts = [
        [file.read_bytes() for file in sorted((tmp_path / f"{name}.quarantine").iterdir())]
        for name in ("parted", "slow")
    ]
    assert texts[0] == texts[1]


def test_what_looks_like_a_blank_node_within_a_term_is_not_read_line_by_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    singly: list[bytes] = []
    real = plain.valid_lines

    def read(block: bytes, *given: Any) -> list[Quad]:
        singly.append(block)
        return real(block, *given)

    monkeypatch.setattr(plain, "valid_lines", read)
    lines = [b'<http://e.org/A_:_%d> <http://e.org/p> "_:%d" .\n' % (i, i) for i in range(40)]
    (tmp_path / "a.nt").write_bytes(b"".join([*lines, b"_:x <http://e.org/p> _:x .\n", b"oops\n"]))
    report = load(tmp_path / "a.nt", tmp_path / "kb")
    assert (report.read, report.quarantined) == (41, 1)
    assert singly == [b"_:x <http://e.org/p> _:x .\noops\n"]


def counts(report: LoadReport) -> tuple[object, ...]:
    return report.read, report.stored, report.quarantined, report.faults, report.statistics
