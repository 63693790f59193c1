"""Arrays behind one pointer table.

A Numba call that takes fifty arrays costs microseconds, and minutes to compile, since each array is seven
arguments all the way down, and each call counts references. So the kernels take the address of one table per
group (tables `T`, memory `S`, rows `R`, term columns `C`) of (address, rows, columns) triples, and each function
looks at the arrays that it needs (engine.md, section 9, rule 4). A `Pointers` keeps all alive.

An address says nothing of who owns it: when the owner goes, the kernel reads memory that another thread may have by
then. So kernels are called by `call`, which takes the owners (`Addressed`) and holds them until the kernel returns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from ctypes import addressof, c_char
from functools import partial
from typing import Any, Final, Generic, TypeAlias, TypeVar, cast

import numpy as np
from llvmlite import ir
from numba import from_dtype, types
from numba.core import cgutils
from numpy.typing import NDArray

from oxiseq.engine.kernels.compiling.as_python import intrinsic_or, then
from oxiseq.engine.kernels.memory.lent import array_in, lend_array, lend_table
from oxiseq.engine.kernels.memory.view import View, view_at

Array: TypeAlias = NDArray[Any]
I32: TypeAlias = NDArray[np.int32]
I64: TypeAlias = NDArray[np.int64]
AS_I64: Final = np.dtype(np.int64)
AS_U32: Final = np.dtype(np.uint32)
"""What `plain` takes."""

WORDS = 3
"""Of each array in the table: address, rows, columns."""

_first_byte: Final[Callable[[Any], c_char]] = c_char.from_buffer
G = TypeVar("G")
G_co = TypeVar("G_co", covariant=True)
"""A group of arrays, a named tuple of them; or what several of those have in common."""
Group = TypeVar("Group", bound=Sequence[Array])


class Ptr(int, Generic[G_co]):
    """The address of a group's pointer table: an integer to Numba; mypy knows of which group it is."""


class Addressed(Generic[G_co]):
    """What kernels take by its address, which is good as long as this is alive."""

    address: Ptr[G_co]


class Pointers(Addressed[Group], Generic[Group]):
    """The pointer table of arrays of one or two dimensions, C-contiguous and writable; keeps them alive."""

    def __init__(self, arrays: Group) -> None:
        self.arrays = arrays
        self._table = _table(arrays)
        self.address = _pointer(self._table, self, arrays)
        """What the kernels take."""

    def of(self, arrays: Group) -> Pointers[Group]:
        """The table of these arrays. Those that this one has in the same places are not looked at again."""
        made = copy(self)
        made.arrays, made._table = arrays, self._table.copy()
        made.address = _pointer(made._table, made, arrays)
        _replace(made._table, self.arrays, arrays)
        return made

    def shorten(self, rows: int) -> None:
        """The kernels see so many rows of each array, no more than it has."""
        self._table[1::WORDS] = rows


def _table(arrays: Sequence[Array]) -> I64:
    return np.array([word for i, array in enumerate(arrays) for word in _words(i, array)], np.int64)


def _replace(table: I64, known: Sequence[Array], arrays: Sequence[Array]) -> None:
    """Those that a table has in the same places are not looked at again."""
    others = [(i, _words(i, array)) for i, array in enumerate(arrays) if array is not known[i]]
    for i, words in others:
        table[WORDS * i : WORDS * (i + 1)] = words


def _words(i: int, array: Array) -> tuple[int, int, int]:
    if not (array.flags.c_contiguous and array.flags.writeable):
        raise ValueError(f"array {i} is not C-contiguous and writable")
    return address_of(array), len(array), array.shape[1] if array.ndim == 2 else 1


class PointerTables:
    """The pointer tables of groups that others replace: one of each type, built when its group is another."""

    def __init__(self) -> None:
        self._known: dict[type, tuple[object, Pointers[Any]]] = {}

    def of(self, arrays: Group) -> Pointers[Group]:
        """The table of this group."""
        known = self._known.get(type(arrays))
        if known is None:
            return self.put(arrays, Pointers(arrays))
        return known[1] if known[0] is arrays else self.put(arrays, known[1].of(arrays))

    def put(self, arrays: Group, pointers: Pointers[Group]) -> Pointers[Group]:
        """Have this one for the group."""
        self._known[type(arrays)] = arrays, pointers
        return pointers


class Replaceable(Addressed[Group], Generic[Group]):
    """The pointer table of a named tuple of arrays, which stays where it is when others take their place."""

    def __init__(self, arrays: Group) -> None:
        self._table, self.arrays = _table(arrays), arrays
        self.address = _pointer(self._table, self, arrays)
        """What the kernels take."""

    def set(self, arrays: Group) -> None:
        """Have these instead. Raises ValueError for one that is not C-contiguous and writable."""
        _replace(self._table, self.arrays, arrays)
        self.arrays = arrays


@then(lend_array)
def address_of(array: Array) -> int:
    """The address of an array's first element, for kernels; the caller keeps the array alive."""
    try:
        return addressof(_first_byte(array))  # a quarter of what NumPy's own ways take
    except (TypeError, ValueError):  # it is empty, read-only, or not contiguous
        return array.ctypes.data


@then(lend_table)
def _pointer(table: I64, owner: Addressed[Group], arrays: Group) -> Ptr[Group]:
    """Of the owner's table of these arrays."""
    return cast(Ptr[Group], address_of(table))


def call(kernel: Callable[..., Any], *args: Addressed[Any] | Array | int) -> Any:
    """Call a kernel with the addresses of their owners, which stay alive until it returns."""
    return kernel(*[arg.address if isinstance(arg, Addressed) else arg for arg in args])


def plain(array: Array, dtype: np.dtype[Any]) -> Array:
    """It as kernels take it, C-contiguous, writable and of that type: Numba compiles again for anything else.
    `np.require` alone takes as long as a kernel, and comparing types as long as all else here."""
    flags = array.flags
    if array.dtype is dtype and flags.c_contiguous and flags.writeable:
        return array
    return np.require(array, dtype, ("C", "W"))


class Bound(partial[Any]):
    """A kernel with the addresses of its first arguments, whose owners it keeps alive: a call is no dearer than the
    kernel's own."""

    def __new__(cls, kernel: Callable[..., Any], *owners: Addressed[Any]) -> Bound:
        made = super().__new__(cls, kernel, *[owner.address for owner in owners])
        made.owners = owners
        return made

    owners: tuple[Addressed[Any], ...]


def view_of(
    group: type[G], name: str, dtype: Any, ndim: int = 1, columns: int | None = None
) -> Callable[[Ptr[G]], Array]:
    """The function from a pointer table's address to the array `name` of the named tuple `group`. columns: how many it
    has, if the compiler is to know."""
    view = View(from_dtype(np.dtype(dtype)), ndim)
    first = WORDS * cast(Any, group)._fields.index(name)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word = ir.IntType(64)
        table = builder.inttoptr(args[0], word.as_pointer())
        address, rows, wide = (builder.load(cgutils.gep_inbounds(builder, table, first + i)) for i in range(WORDS))
        known = wide if columns is None else word(columns)
        return view_at(builder, context.get_value_type(view), address, rows, known)

    def typed(typing_context: Any, table: Any) -> tuple[Any, Callable[..., Any]]:
        return view(types.int64), generate

    typed.__name__ = name
    return cast(Callable[[Ptr[G]], Array], intrinsic_or(array_in(np.dtype(dtype), ndim, first, columns))(typed))
