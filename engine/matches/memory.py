"""The arrays that every runner's memory begins with: allocation and growth (kernels/matches/records.py)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeVar

import numpy as np

from oxiseq.engine.kernels.cea import records as cea
from oxiseq.engine.kernels.matches import records as k
from oxiseq.engine.kernels.matches.nodes import SPINE
from oxiseq.engine.kernels.memory.growing import filled, longer
from oxiseq.engine.kernels.memory.pointers import Array
from oxiseq.engine.kernels.sequence import records as sequence
from oxiseq.engine.terms.saved import State

FOR_WORK: Final = tuple(name for name in k.MatchMemory._fields if name not in ("scalars", "nodes", "weights", "spans"))
"""Arrays that are empty between batches."""
EMPTY_BETWEEN_BATCHES: Final = (k.FINALS, k.STACK, k.OUT_ROWS, k.OUT_MATCHES)
"""Scalars that say so."""
_MOST_OUT = 1 << 20


M = TypeVar("M", cea.Memory, sequence.Memory)
"""The memories of runners, which begin with `MatchMemory`."""


def match_arrays(
    scalars: int, nodes: int, finals: int, stack: int, out: int, limbs: int = 0, *, family: int = 0
) -> dict[str, Array]:
    """Empty arrays of `MatchMemory`, with room for so many records of each; `limbs`: of the counts, 0 for none;
    `family`: how many queries nodes have spans of, 0: there are no spans."""
    return k.MatchMemory(
        scalars=np.zeros(scalars, np.int64),
        nodes=np.zeros(nodes, k.NODE),
        weights=np.zeros((nodes * max(family, 1), limbs), np.uint64),
        spans=np.zeros((nodes if family else 0, 2), np.int32),
        finals=np.zeros((finals, 2), np.int64),
        stack=np.zeros((stack, 4 if family else 2), np.int64),
        path=np.zeros(stack, np.int64),
        out_rows=np.zeros(out, np.int64),
        out_ends=np.zeros(out, np.int64),
        out_marks=np.zeros((out, 2), np.int64),
        spine=np.zeros(SPINE, np.int64),
    )._asdict()


def with_saved(S: M, state: State, empty: Sequence[int]) -> M:
    """Memory with the arrays of a saved state; `empty`: scalars that are 0 between batches, beside those above."""
    S = S._replace(**{name: filled(getattr(S, name), array) for name, array in state.items() if name in S._fields})
    S.scalars[[*EMPTY_BETWEEN_BATCHES, *empty]] = 0
    return S


def widen(S: M, *names: str) -> M:
    """Memory with twice the room in these arrays."""
    return S._replace(**{name: longer(getattr(S, name), 2 * len(getattr(S, name))) for name in names})


def more_out(S: M) -> M:
    """Twice the room for output, up to a limit unless one match needs it."""
    if len(S.out_ends) >= _MOST_OUT and S.scalars[k.OUT_MATCHES]:
        return S
    return widen(S, "out_rows", "out_ends", "out_marks")


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
        size = max(2 * len(S.nodes), top + count)
        S = S._replace(nodes=longer(S.nodes, size), weights=_weights(S, size))
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
        S = S._replace(finals=np.zeros((2 * len(picked), 2), np.int64))
    S.finals[: len(picked), 0], S.finals[: len(picked), 1] = picked, cut
    S.scalars[k.FINALS] = len(picked)
    return S


def with_room_for_nodes(S: M, again: bool, least: int = 0) -> M:
    """After a collection: twice the room if more than half is still in use, or if it did not help before (`again`)."""
    if again or 2 * int(S.scalars[k.NODE_TOP]) + SPINE > len(S.nodes) or len(S.nodes) < least:
        size = max(2 * len(S.nodes), 2 * SPINE)
        spans = longer(S.spans, size) if len(S.spans) else S.spans
        return S._replace(nodes=longer(S.nodes, size), weights=_weights(S, size), spans=spans)
    return S


def _weights(S: M, size: int) -> Array:
    """Room for those of so many nodes."""
    return longer(S.weights, max(len(S.weights) // len(S.nodes), 1) * size)
