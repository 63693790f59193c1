"""Arrays of a pointer table by their number: for kernels whose tables hold many arrays of few types.

`P` is the address of a `views.Pointers`; `n` the place of the array among those it was made of.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import carray, types  # type: ignore[attr-defined]  # Numba does not list carray
from numba.core import cgutils
from numba.extending import intrinsic

from oxiseq.engine.kernels.options import inner


@intrinsic
def _to_pointer(typing_context: Any, address: Any) -> tuple[Any, Callable[..., Any]]:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], cgutils.voidptr_t)

    return types.voidptr(types.int64), generate


@intrinsic
def _load_word(typing_context: Any, table: Any, index: Any) -> tuple[Any, Callable[..., Any]]:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        base = builder.inttoptr(args[0], ir.IntType(64).as_pointer())
        return builder.load(builder.gep(base, [args[1]]))

    return types.int64(types.int64, types.int64), generate


_pointer: Any = _to_pointer  # typed as what a kernel sees: without the typing context
_word: Any = _load_word


@inner
def i32s(P: Any, n: int) -> Any:
    """i32[k]."""
    return carray(_pointer(_word(P, 3 * n)), (_word(P, 3 * n + 1),), np.int32)


@inner
def i32_table(P: Any, n: int) -> Any:
    """i32[k, columns]."""
    return carray(_pointer(_word(P, 3 * n)), (_word(P, 3 * n + 1), _word(P, 3 * n + 2)), np.int32)


@inner
def i64s(P: Any, n: int) -> Any:
    """i64[k]."""
    return carray(_pointer(_word(P, 3 * n)), (_word(P, 3 * n + 1),), np.int64)


@inner
def i64_table(P: Any, n: int) -> Any:
    """i64[k, columns]."""
    return carray(_pointer(_word(P, 3 * n)), (_word(P, 3 * n + 1), _word(P, 3 * n + 2)), np.int64)


@inner
def i32_rows(P: Any, n: int, columns: int) -> Any:
    """i32[k, columns], the number of columns known to the compiler."""
    return carray(_pointer(_word(P, 3 * n)), (_word(P, 3 * n + 1), columns), np.int32)


@inner
def i64_rows(P: Any, n: int, columns: int) -> Any:
    """i64[k, columns], the number of columns known to the compiler."""
    return carray(_pointer(_word(P, 3 * n)), (_word(P, 3 * n + 1), columns), np.int64)


@inner
def u32_table(P: Any, n: int) -> Any:
    """u32[k, columns]."""
    return carray(_pointer(_word(P, 3 * n)), (_word(P, 3 * n + 1), _word(P, 3 * n + 2)), np.uint32)


@inner
def u8s(P: Any, n: int) -> Any:
    """u8[k]."""
    return carray(_pointer(_word(P, 3 * n)), (_word(P, 3 * n + 1),), np.uint8)


@inner
def u8_table(P: Any, n: int) -> Any:
    """u8[k, columns]."""
    return carray(_pointer(_word(P, 3 * n)), (_word(P, 3 * n + 1), _word(P, 3 * n + 2)), np.uint8)


@inner
def f64s(P: Any, n: int) -> Any:
    """f64[k]."""
    return carray(_pointer(_word(P, 3 * n)), (_word(P, 3 * n + 1),), np.float64)


@inner
def f64_table(P: Any, n: int) -> Any:
    """f64[k, columns]."""
    return carray(_pointer(_word(P, 3 * n)), (_word(P, 3 * n + 1), _word(P, 3 * n + 2)), np.float64)


@inner
def i64_at(address: int, count: int) -> Any:
    """i64[count] at an address."""
    return carray(_pointer(address), (count,), np.int64)


@inner
def u32_at(address: int, rows: int, columns: int) -> Any:
    """u32[rows, columns] at an address."""
    return carray(_pointer(address), (rows, columns), np.uint32)
