"""The arrays that every runner's memory begins with: allocation and growth (kernels/matches/records.py)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, TypeVar

import numpy as np

from oxiseq.engine.kernels.matches import records as k
from oxiseq.engine.kernels.matches.records import SPINE
from oxiseq.engine.kernels.memory.pointers import Array

EMPTY_BETWEEN_BATCHES: Final = (k.FINALS, k.STACK, k.OUT_ROWS, k.OUT_MATCHES)
"""Scalars that say so."""
_MOST_OUT = 1 << 20

M = TypeVar("M", bound=k.MatchMemory)
"""The memories of runners, which begin with `MatchMemory`."""


def match_sizes(nodes: int, finals: int, stack: int, out: int, limbs: int = 0) -> dict[str, int]:
    """Sizes for `MatchMemory.allocate`. limbs: of the counts, 0 for none."""
    return {"nodes": nodes, "finals": finals, "stack": stack, "out": out, "limbs": limbs}


def more_out(S: M) -> M:
    """Twice the room for output, up to a limit unless one match needs it."""
    if len(S.out_ends) >= _MOST_OUT and S.scalars[k.OUT_MATCHES]:
        return S
    return S.grow("out")


def shift_links(records: Array, names: Iterable[str], by: int) -> None:
    """Links from record to record, -1 for none, lead so many places further."""
    for name in names:
        records[name] += np.where(records[name] >= 0, by, 0).astype(records[name].dtype)


def append_nodes(S: M, nodes: Array) -> tuple[M, int]:
    """Memory with more nodes, which name each other by their places among them, and the number of the first."""
    top = int(S.scalars[k.NODE_TOP])
    if top + len(nodes) > len(S.nodes):
        S = S.grow("nodes", max(2 * len(S.nodes), top + len(nodes)))
    made = S.nodes[top : top + len(nodes)]
    made[:] = nodes
    shift_links(made, ("left", "right", "leaf"), top)
    S.scalars[k.NODE_TOP] += len(nodes)
    return S, top


def begin_choice(S: M) -> None:
    """Of the finals of an instant some are to be chosen; nodes made for them are taken back when they have been
    enumerated."""
    S.scalars[k.CHOSEN], S.scalars[k.NODE_BASE] = 1, S.scalars[k.NODE_TOP]


def put_matches(S: M, found: Sequence[Array]) -> M:
    """These matches, each its rows' `pos`, become what the finals stand for, in this order; `begin_choice` has been
    called."""
    top, cut = int(S.scalars[k.NODE_TOP]), S.finals[0, 1]
    lengths = np.array([len(rows) for rows in found], np.int64)
    ends = np.cumsum(lengths)
    count = int(ends[-1]) if len(ends) else 0
    if top + count > len(S.nodes):
        S = S.grow("nodes", max(2 * len(S.nodes), top + count))
    made = S.nodes[top : top + count]
    made["pos"] = np.concatenate([np.zeros(0, np.int64), *found])
    made["left"] = np.arange(top - 1, top + count - 1)
    made["left"][ends - lengths] = -1
    made["right"], made["leaf"], made["rank"], made["maxs"] = -1, -1, 1, cut
    S.scalars[k.NODE_TOP] = top + count
    return put_finals(S, top + ends - 1)


def put_finals(S: M, picked: Array) -> M:
    """These nodes become the finals, of the cut that the first one has."""
    cut = S.finals[0, 1]
    if len(picked) > len(S.finals):
        S = S._replace(finals=np.zeros((2 * len(picked), S.finals.shape[1]), np.int64))
    S.finals[: len(picked), 0], S.finals[: len(picked), 1] = picked, cut
    S.scalars[k.FINALS] = len(picked)
    return S


def with_room_for_nodes(S: M, again: bool, least: int = 0) -> M:
    """After a collection: twice the room if more than half is still in use, or if it did not help before (`again`)."""
    if again or 2 * int(S.scalars[k.NODE_TOP]) + SPINE > len(S.nodes) or len(S.nodes) < least:
        return S.grow("nodes", max(2 * len(S.nodes), 2 * SPINE))
    return S
