"""A record batch as kernels read it: by the Arrow C data interface, all columns in one call, nothing copied.

Taking the columns one by one costs more than a microsecond each, which is most of the time of a batch of few rows.
"""

from __future__ import annotations

from collections.abc import Callable
from ctypes import PYFUNCTYPE, addressof, c_int64, c_void_p
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from oxiseq.engine.extras import needed
from oxiseq.engine.kernels.compiling.as_python import either
from oxiseq.engine.kernels.events.arrow import BUFFER_COUNT, BUFFERS, CHILD_COUNT, CHILDREN, DICTIONARY, RELEASE, WORDS
from oxiseq.engine.kernels.memory.lent import lend
from oxiseq.engine.kernels.memory.pointers import Addressed, Ptr

if TYPE_CHECKING:
    import pyarrow as pa
else:
    pa = needed("pyarrow")

_Struct: Final = c_int64 * WORDS


@lru_cache
def _function(address: int) -> Callable[[int], Any]:
    """The function that frees a struct."""
    return PYFUNCTYPE(None, c_void_p)(address)


def _lend_struct(owner: Exported, at: int, column: Any) -> None:
    """Kernels that run as Python may read the struct of a column or of a record batch, and what it has addresses of."""
    struct = _Struct.from_address(at)
    lend(at, 8 * WORDS, owner)
    lend(struct[BUFFERS], 8 * struct[BUFFER_COUNT], owner)
    lend(struct[CHILDREN], 8 * struct[CHILD_COUNT], owner)
    if not isinstance(column, pa.RecordBatch):
        for buffer in filter(None, column.buffers()):
            lend(buffer.address, buffer.size, owner, writable=False)
        if isinstance(column, pa.DictionaryArray):
            _lend_struct(owner, struct[DICTIONARY], column.dictionary)
        return
    for child, each in zip((c_int64 * struct[CHILD_COUNT]).from_address(struct[CHILDREN]), column.columns, strict=True):
        _lend_struct(owner, child, each)


_lend: Final[Callable[..., None]] = either(lambda *args: None, _lend_struct)


class Exported(Addressed[Any]):
    """The struct ArrowArray of a record batch, which it keeps alive. `address`: of the struct, for kernels."""

    __slots__ = ("_free", "_struct", "address")

    def __init__(self, rows: pa.RecordBatch) -> None:
        self._free: Callable[[int], Any] | None = None
        self._struct = _Struct()
        self.address = Ptr[Any](addressof(self._struct))
        rows._export_to_c(self.address)
        self._free = _function(self._struct[RELEASE])
        _lend(self, self.address, rows)

    def __del__(self) -> None:
        if self._free is not None:
            self._free(self.address)
