"""The class tree of the case `reasoning`: its depth, and who is an instance of its root."""

from __future__ import annotations

from pathlib import Path

import oxiseq
from benchmarks.data import NS
from benchmarks.reasoning import CLASSES, PATTERNS, depth, loaded, query


def test_the_tree_has_depth_8() -> None:
    assert depth(CLASSES) == 8


def test_only_instances_of_the_root_match(tmp_path: Path) -> None:
    report, _ = loaded(tmp_path, 400, companies=30)
    assert (report.stored, report.duplicates) == (399 + 60, 0)
    ends = [
        (time * 1_000_000, f"[] <{NS}company> <{NS}company/{c}> ; <{NS}price> {9 - time} .")
        for time in (0, 1)
        for c in range(60)
    ]
    streams = {"S": [(time + place, graph) for place, (time, graph) in enumerate(ends)]}
    found = {
        name: sorted(match["c"].value for match in oxiseq.run(query(pattern), streams=streams, kb=tmp_path / "kb"))
        for name, pattern in PATTERNS.items()
    }
    root, asserted, everything = found.values()
    assert root == asserted == sorted(f"{NS}company/{c}" for c in range(30))
    assert len(everything) == 60
