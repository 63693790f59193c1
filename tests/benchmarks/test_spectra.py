"""SPECTRA's experiments at a tiny size: all ways have the same rows, and pyoxigraph's delta finds what is new."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from profiles import in_the_gate
from pyoxigraph import Quad, Store

from benchmarks.spectra import __main__ as command
from benchmarks.spectra.page import Found, missed
from benchmarks.spectra.queries import QUERIES, WindowQuery
from benchmarks.spectra.streams import batch, stream
from benchmarks.spectra.ways import DELTA, NEW, WHOLE, Coded, Rate, Setting, Summary, filled, stores, substituted
from oxiseq.grammar.rsp_algebra import Report


@pytest.fixture(scope="module")
def coded() -> dict[str, Coded]:
    return {name: Coded(stream(name, 3_000)) for name in ("lubm", "seas")}


def test_streams_are_the_same_every_time() -> None:
    first, again = stream("lubm", 500), stream.__wrapped__("lubm", 500)
    assert first.texts == again.texts
    assert np.array_equal(first.columns, again.columns)


@pytest.mark.parametrize("query", in_the_gate(QUERIES[::3], QUERIES), ids=lambda q: q.name)
def test_the_delta_of_the_store_is_what_is_new(query: WindowQuery, coded: dict[str, Coded]) -> None:
    data, setting = coded[query.stream], Setting(600, 1, False)
    run = filled(query, data, setting, Report.ISTREAM)
    summary, store = Summary(query, data, setting), Store()
    store.extend(Quad(*t) for t in summary.filled())  # type: ignore[arg-type]
    for i in range(600, 1_600):
        added, removed = summary.step()
        store.extend(Quad(*t) for t in added)  # type: ignore[arg-type]
        for t in removed:
            store.remove(Quad(*t))  # type: ignore[arg-type]
        found = sum(len(list(store.query(text))) for t in added for text in substituted(query, summary.patterns, t))  # type: ignore[arg-type]
        assert found == run.push(batch(data.ids, i, i + 1, 1)), i


def test_stores_follow_the_window(coded: dict[str, Coded]) -> None:
    query = QUERIES[1]
    found = stores(query, coded["lubm"], Setting(1_000, 20, True), 0.001)
    assert found[DELTA].events < found[WHOLE].events
    assert all(rate.rate > 0 for rate in found.values())


def test_the_command_writes_its_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.md"
    options = ["--quick", "--most", "1000", "--budget", "0.001", "--triples", "2000", "--only", "Q9"]
    assert command.main([*options, "--output", str(page)]) == 0
    assert page.read_text().count("| Q9 | 1,000 |") == 4
    assert "Sliding by one event, 20 triples per event" in capsys.readouterr().out


def test_what_is_not_as_asked_is_said() -> None:
    slow = Found(QUERIES[0], Setting(1_000, 1, False), {NEW: Rate(9e5, 0, 1), DELTA: Rate(8e5, 0, 1)})
    assert len(missed([slow])) == 2
    steep = [Found(QUERIES[0], Setting(w, 1, False), {NEW: Rate(r, 0, 1)}) for w, r in ((1_000, 9e6), (10_000, 3e6))]
    assert missed(steep) == ["Q1, sliding, events of 1: 3.0 times more per triple"]
