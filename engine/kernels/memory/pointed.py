"""Views (view.py) of memory at addresses, for kernels: intrinsics like the views of pointers.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types

from oxiseq.engine.kernels.compiling.as_python import intrinsic_or
from oxiseq.engine.kernels.memory.lent import array_at
from oxiseq.engine.kernels.memory.view import View, view_at

_I64S = View(types.int64, 1)
_U32_TABLE = View(types.uint32, 2)


@intrinsic_or(lambda address, count: array_at(address, np.dtype(np.int64), count))
def _i64_at(typing_context: Any, address: Any, count: Any) -> tuple[Any, Callable[..., Any]]:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return view_at(builder, context.get_value_type(_I64S), args[0], args[1], ir.IntType(64)(1))

    return _I64S(types.int64, types.int64), generate


@intrinsic_or(lambda address, *shape: array_at(address, np.dtype(np.uint32), *shape))
def _u32_at(typing_context: Any, address: Any, rows: Any, columns: Any) -> tuple[Any, Callable[..., Any]]:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return view_at(builder, context.get_value_type(_U32_TABLE), *args)

    return _U32_TABLE(types.int64, types.int64, types.int64), generate


i64_at: Any = _i64_at
"""i64[count] at an address."""
u32_at: Any = _u32_at
"""u32[rows, columns] at an address."""
