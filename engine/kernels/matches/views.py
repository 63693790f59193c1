"""The arrays that every runner's memory begins with, each by the address of its pointer table: `nodes(S)`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np

from oxiseq.engine.kernels.matches import records as k
from oxiseq.engine.kernels.memory.pointers import Array, Ptr, view_of


def _view(name: str, dtype: Any, ndim: int = 1) -> Callable[[Ptr[k.HasMatches]], Array]:
    return view_of(cast(type[k.HasMatches], k.MatchMemory), name, dtype, ndim)


scalars = _view("scalars", np.int64)
nodes = _view("nodes", k.NODE)
weights = _view("weights", np.uint64, 2)
spans = _view("spans", np.int32, 2)
finals = _view("finals", np.int64, 2)
stack = _view("stack", np.int64, 2)
path = _view("path", np.int64)
out_rows = _view("out_rows", np.int64)
out_ends = _view("out_ends", np.int64)
out_marks = _view("out_marks", np.int64, 2)
spine = _view("spine", np.int64)
