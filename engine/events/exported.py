"""A record batch as kernels read it: by the Arrow C data interface, all columns in one call, nothing copied.

Taking the columns one by one costs more than a microsecond each, which is most of the time of a batch of few rows.
"""

from __future__ import annotations

from collections.abc import Callable
from ctypes import PYFUNCTYPE, addressof, c_int64, c_void_p
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from oxiseq.engine.kernels.events.arrow import RELEASE, WORDS
from oxiseq.engine.kernels.memory.pointers import Addressed, Ptr

if TYPE_CHECKING:
    import pyarrow as pa

_Struct: Final = c_int64 * WORDS


@lru_cache
def _function(address: int) -> Callable[[int], Any]:
    """The function that frees a struct."""
    return PYFUNCTYPE(None, c_void_p)(address)


class Exported(Addressed[Any]):
    """The struct ArrowArray of a record batch, which it keeps alive. `address`: of the struct, for kernels."""

    __slots__ = ("_free", "_struct", "address")

    def __init__(self, rows: pa.RecordBatch) -> None:
        self._free: Callable[[int], Any] | None = None
        self._struct = _Struct()
        self.address = Ptr[Any](addressof(self._struct))
        rows._export_to_c(self.address)
        self._free = _function(self._struct[RELEASE])

    def __del__(self) -> None:
        if self._free is not None:
            self._free(self.address)
