"""What must hold of windows' memory between pushes (windows.md, section 6)."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from window_run import WindowRun

from oxiseq.engine.kernels.flow import arrangement as a
from oxiseq.engine.kernels.flow import windowing as k


def check(run: WindowRun, low: list[int] | None = None) -> None:
    """Assert all of it. low: clocks up to which rows are out."""
    leaves = run.leaves
    memory, kept = leaves._memory.arrays, [rows._memory.arrays for rows in leaves._rows]
    sources = leaves._tables.arrays.views["source"]
    listed = [_listed(kept[view], int(ends["first"])) for view, ends in enumerate(memory.listed)]
    oldest = {source: int(a.NEVER) for source in range(len(memory.oldest))}
    for view, (ends, chain) in enumerate(zip(memory.listed, listed, strict=True)):
        assert (chain[-1] if chain else -1) == ends["last"]
        assert ends["source"] == sources[view]
        last = [int(kept[view].words[e, k.LAST]) for e in chain]
        assert last == sorted(last)
        assert ends["clock"] == (last[0] if last else a.NEVER)
        assert low is None or not last or last[0] > low[sources[view]]
        oldest[int(sources[view])] = min(oldest[int(sources[view])], int(ends["clock"]))
    assert all(memory.oldest[source] <= clock for source, clock in oldest.items())
    assert sum(map(len, listed)) == memory.scalars[k.COUNT] == leaves.triples
    assert memory.scalars[k.NOTES] == memory.scalars[k.NOTE] == 0
    for arrays, chain in zip(kept, listed, strict=True):
        assert len({*chain}) == len(chain)
        _check_rows(arrays, {*chain})


def _listed(arrays: Any, at: int) -> list[int]:
    found: list[int] = []
    before, width = -1, int(arrays.scalars[a.WIDTH])
    place = a.ROW + width + width % 2
    while at >= 0:
        assert arrays.links[at, place + 1] == before
        found.append(at)
        before, at = at, int(arrays.links[at, place])
    return found


def _check_rows(arrays: Any, live: set[int]) -> None:
    s = arrays.scalars
    there = [e for e in range(int(s[a.TOP])) if arrays.words[e, a.DIED] == a.NEVER]
    dead = [e for e in range(int(s[a.TOP])) if arrays.words[e, a.DIED] not in (a.NEVER, a.FREED)]
    assert set(there) == live
    assert len(there) == s[a.LIVE] and len(dead) == s[a.SPENT]
    slots = arrays.by_row["number"]
    for table in (slots, arrays.by_key["number"]):  # a full one would be looked through for ever
        assert 2 * np.count_nonzero(table) <= len(table)
    assert sorted(slots[slots != 0].tolist()) == sorted(e + 1 for e in there + dead)
    width = int(s[a.WIDTH])
    rows = [tuple(arrays.halves[e, a.ROW : a.ROW + width].tolist()) for e in there]
    assert all(n == 1 for n in Counter(rows).values())
    mask = (1 << width) - 1
    for number in range(int(arrays.asked[mask])):
        _check_chains(arrays, number, set(there) | set(dead))


def _check_chains(arrays: Any, number: int, members: set[int]) -> None:
    place = int(arrays.scalars[a.LINK0]) + 2 * number
    shift = int(arrays.scalars[a.SHIFT])
    heads = [int(n - 1) for n in arrays.by_key["number"] if n]
    found = list[int]()
    for head in (h >> shift for h in heads if h & ((1 << shift) - 1) == number):
        length, before, e = -int(arrays.links[head, place + 1]), None, head
        while e >= 0:
            if before is not None:
                assert arrays.links[e, place + 1] == before
            found.append(e)
            length -= 1
            before, e = e, int(arrays.links[e, place])
        assert length == 0
    assert len(found) == len(set(found)) and set(found) == members
