"""The running state after every instant: engine.md, section 4, invariants 3 and 4."""

from __future__ import annotations

import pytest
from engine_cases import CASES
from engine_runs import Driven, random_readings

from oxiseq.engine.kernels.matches import records as matches
from oxiseq.engine.kernels.sequence import records as k
from oxiseq.engine.sequence.memory import Capacities

INDEXED = (k.LIST, k.HEAP, k.STAMP)


def assert_groups(state: k.Memory, tables: k.Tables) -> None:
    """Each group is in the hash table once, in the expiry queue once unless it waits for a window's end, and in one
    bucket per indexed probe; what is counted is what is there."""
    live = [g for g in range(int(state.scalars[k.GROUP_TOP])) if state.groups[g]["edge"] >= 0]
    assert len(live) == state.scalars[k.GROUP_COUNT]
    found = state.table["number"]
    assert sorted((found[found > 0] - 1).tolist()) == live
    assert 2 * len(live) <= len(state.table)
    edges = tables.edges[state.groups["edge"]]
    assert sorted(queue(state)) == [g for g in live if not edges[g]["waits"]]
    members: dict[int, int] = {}
    probes = int(tables.sizes[k.PROBES])
    for g in live:
        group = state.groups[g]
        # a collection takes a dead group's node before the queue reaches the group
        assert group["node"] < 0 or state.nodes[group["node"]]["maxs"] == group["maxs"]
        for probe in tables.probes[edges[g]["probe0"] : edges[g]["probe1"]]:
            if probe["index"] in INDEXED:
                bucket = int(state.links[g * probes + int(probe["local"])]["bucket"])
                assert state.buckets[bucket]["signature"] == probe["signature"]
                members[bucket] = members.get(bucket, 0) + 1
    buckets = [b for b in range(int(state.scalars[k.BUCKET_TOP])) if state.buckets[b]["signature"] >= 0]
    assert len(buckets) == state.scalars[k.BUCKET_COUNT]
    assert {b: int(state.buckets[b]["count"]) for b in buckets} == members
    found = state.bucket_table["number"]
    assert sorted((found[found > 0] - 1).tolist()) == buckets


def queue(state: k.Memory) -> list[int]:
    """The expiry queue, asserting that it is linked both ways and in order of queueing."""
    found: list[int] = []
    before, g = -1, int(state.scalars[k.QUEUE_FRONT])
    while g >= 0:
        assert state.groups[g]["prev"] == before
        assert before < 0 or state.groups[before]["queued"] <= state.groups[g]["queued"]
        found.append(g)
        before, g = g, int(state.groups[g]["next"])
    assert state.scalars[k.QUEUE_BACK] == before
    return found


def assert_nodes(state: k.Memory) -> None:
    """Children are older than their parents and start no later; heaps lean to the left."""
    nodes = state.nodes[: state.scalars[matches.NODE_TOP]]
    for number, node in enumerate(nodes):
        children = [int(c) for c in (node["left"], node["right"], node["leaf"]) if c >= 0]
        assert all(child < number for child in children)
        if node["leaf"] < 0:
            continue
        assert nodes[node["leaf"]]["leaf"] < 0
        assert nodes[node["leaf"]]["maxs"] == node["maxs"]
        assert all(nodes[child]["maxs"] <= node["maxs"] for child in children)


@pytest.mark.parametrize("capacities", [None, Capacities.smallest()], ids=["ample", "smallest"])
@pytest.mark.parametrize("name", CASES)
def test_invariants_hold_after_every_instant(name: str, capacities: Capacities | None) -> None:
    driven = Driven(CASES[name][1], capacities)
    for number, reading in enumerate(random_readings(11, 120, "abcn")):
        driven.push([reading])
        driven.count()
        state = driven.run.finder.sequence._memory
        assert_groups(state, driven.plan.runner.sequence.tables)
        if number % 10 == 0:
            assert_nodes(state)
