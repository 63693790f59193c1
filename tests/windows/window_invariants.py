"""What must hold of a window's memory between pushes (windows.md, section 6)."""

from __future__ import annotations

from collections import Counter
from typing import Any

from oxiseq.engine.kernels.windows import records as k
from oxiseq.engine.windows.run import WindowRun

_POSITIONS = (("s", "sn", "sp", 1), ("p", "pn", "pp", 2), ("o", "on", "op", 4))


def check(run: WindowRun) -> None:
    """Assert all of it."""
    memory, tables = run._memory, run._tables.arrays
    s, entries = memory.scalars, memory.entries
    views, listed = tables[k.Tables._fields.index("views")], []
    for source, (ends, low) in enumerate(zip(memory.listed, run._low, strict=True)):
        chain = _chain(entries, int(ends["first"]), "ln", "lp")
        assert (chain[-1] if chain else -1) == ends["last"]
        assert all(views[int(entries[e]["of"])]["source"] == source for e in chain)
        last = [int(entries[e]["last"]) for e in chain]
        assert last == sorted(last)
        assert not last or last[0] > low
        listed += chain
    assert len(listed) == s[k.COUNT] == memory.stored["count"].sum() == len(run)
    assert sorted(memory.pairs["number"][memory.pairs["number"] != 0].tolist()) == sorted(e + 1 for e in listed)
    assert 2 * s[k.COUNT] <= len(memory.pairs)
    free = _chain(entries, int(s[k.FREE]), "ln", None)
    assert len(set(listed) | set(free)) == len(listed) + len(free) == s[k.TOP]
    assert all(entries[e]["of"] == -1 for e in free)
    triples = Counter((*(int(entries[e][x]) for x in "spo"), int(entries[e]["of"])) for e in listed)
    assert all(n == 1 for n in triples.values())
    _check_views(memory, listed)
    _check_buckets(memory, views, listed)
    assert [s[x] for x in (k.NOTES, k.ROWS, k.DOUBTFUL)] == [0, 0, 0]
    assert [s[x] for x in (k.ENTRY_AT, k.DEPTH)] == [-1, -1]


def _check_views(memory: k.Memory, listed: list[int]) -> None:
    members: dict[int, list[int]] = {}
    for e in listed:
        members.setdefault(int(memory.entries[e]["of"]), []).append(e)
    for view, stored in enumerate(memory.stored):
        chain = _chain(memory.entries, int(stored["head"]), "vn", "vp")
        assert sorted(chain) == sorted(members.get(view, []))
        assert len(chain) == stored["count"]


def _check_buckets(memory: k.Memory, views: Any, listed: list[int]) -> None:
    expected: dict[int, set[int]] = {}
    for e in listed:
        entry = memory.entries[e]
        for position, (name, _, _, bit) in enumerate(_POSITIONS):
            if views[int(entry["of"])]["index"] & bit:
                key = (3 * int(entry["of"]) + position) << 32 | int(entry[name])
                expected.setdefault(key, set()).add(e)
    buckets = memory.buckets[memory.buckets["count"] != 0]
    assert sorted(buckets["key"].tolist()) == sorted(expected)
    assert len(buckets) == memory.scalars[k.BUCKETS]
    assert 2 * len(buckets) <= len(memory.buckets)
    for bucket in buckets:
        _, following, previous, _ = _POSITIONS[(int(bucket["key"]) >> 32) % 3]
        chain = _chain(memory.entries, int(bucket["head"]), following, previous)
        assert set(chain) == expected[int(bucket["key"])]
        assert len(chain) == bucket["count"]


def _chain(entries: Any, head: int, following: str, previous: str | None) -> list[int]:
    found, before = [], -1
    while head >= 0:
        if previous is not None:
            assert entries[head][previous] == before
        found.append(head)
        assert len(found) <= len(entries)
        before, head = head, int(entries[head][following])
    return found
