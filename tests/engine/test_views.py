"""Views of arrays by their address."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba import njit

from oxiseq.engine.kernels.matches import records as matches
from oxiseq.engine.kernels.memory.pointers import Pointers
from oxiseq.engine.kernels.sequence import records as k
from oxiseq.engine.kernels.sequence import records as v

OUTSIDE = """
from test_views import copy, memory
from oxiseq.engine.kernels.memory.pointers import Pointers
state = memory()
for i, j in ((-1, 0), (3, 0), (0, -1), (0, 2)):
    try:
        copy(Pointers(state).address, i, j)
    except IndexError:
        continue
    raise SystemExit(f"{i, j} was not refused")
"""


@njit(error_model="numpy")
def copy(S: Any, i: Any, j: Any) -> Any:
    """A key's value into a record and into a scalar; the shapes."""
    v.nodes(S)[i].maxs = v.keys(S)[i, j]
    v.scalars(S)[np.uint32(i)] = v.nodes(S)[i].maxs
    return v.keys(S).shape, v.scalars(S).shape


def memory() -> k.Memory:
    arrays = dict.fromkeys(k.Memory._fields, np.zeros(4, np.int64))
    keys = np.arange(6, dtype=np.int64).reshape(3, 2)
    return k.Memory(**{**arrays, "keys": keys, "nodes": np.zeros(3, matches.NODE), "scalars": np.zeros(5, np.int64)})


def test_elements_records_and_shapes() -> None:
    state = memory()
    assert copy(Pointers(state).address, 1, 1) == ((3, 2), (5,))
    assert state.nodes["maxs"].tolist() == [0, 3, 0]
    assert state.scalars.tolist() == [0, 3, 0, 0, 0]


def test_the_bounds_check_holds(tmp_path: Path) -> None:
    path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    environment = {**os.environ, "PYTHONPATH": path, "NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path)}
    result = subprocess.run(
        [sys.executable, "-c", OUTSIDE], env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    assert result.returncode == 0, result.stderr


def test_arrays_that_an_address_does_not_describe_are_refused() -> None:
    with pytest.raises(ValueError, match="array 1"):
        Pointers([np.zeros(2), np.zeros(4)[::2]])
