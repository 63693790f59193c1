"""Where kernels run as Python: which memory has been lent to them by its address, and whose it is.

`address_of` and the pointer tables (pointers.py) enter what they give an address of. Access to any other memory raises
`NotLentError`, to memory whose owner is gone `FreedError`: compiled kernels read there what others have by then. That a
table is gone is found out, unless 10,000 others have come since; that an array is, unless another one lies there.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import deque
from collections.abc import Callable
from ctypes import c_char
from struct import Struct
from typing import Any, Final
from weakref import ref

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.kernels.compiling.as_python import Checked, checked

_FREED_TABLES: Final = 10_000
"""So many are kept."""


class NotLentError(IndexError):
    """A kernel reads or writes where it was given nothing."""


class FreedError(NotLentError):
    """A kernel reads or writes what was given to it, but is no more."""


class _Lent:
    """Bytes from `start` on, good as long as one of the owners is there."""

    __slots__ = ("arrays", "bytes", "end", "owners", "start")

    def __init__(self, start: int, end: int, *, writable: bool) -> None:
        self.start, self.end = start, end
        found = memoryview((c_char * (end - start)).from_address(start)).cast("B")
        self.bytes = found if writable else found.toreadonly()
        self.owners: list[ref[Any]] = []
        self.arrays: dict[Any, Checked] = {}
        """Those that were asked for, by address, dtype and shape."""

    @property
    def lives(self) -> bool:
        """Whether one of them is there."""
        for owner in self.owners:  # noqa: SIM110  a generator would take most of the time
            if owner() is not None:
                return True
        return False


_lent: dict[tuple[int, int], _Lent] = {}
_places: list[tuple[int, int]] = []
"""Where what is lent begins and ends, sorted."""
_freed: Final[deque[Any]] = deque(maxlen=_FREED_TABLES)
"""Tables, the latest ones of all: their memory is nobody else's yet when their owner is gone."""


def lend(start: int, size: int, owner: Any, *, writable: bool = True) -> None:
    """Kernels may access these bytes, as long as there is the owner, or another one of the same bytes."""
    place = start, start + size
    known = _lent.get(place)
    if known is None and len(_lent) >= 2 * _kept:
        _forget()
    if known is None or not known.lives or (writable and known.bytes.readonly):
        made = _lent[place] = _Lent(*place, writable=writable)
        if known is None:
            insort(_places, place)
        else:
            made.owners = known.owners
        known = made
    if all(each() is not owner for each in known.owners):
        known.owners = [each for each in known.owners if each() is not None] + [ref(owner)]


_kept = 10_000
"""So many, or as many as there were when `_forget` was last called: beyond twice that it is called again."""


def _forget() -> None:
    """Drops what is no more."""
    global _lent, _places, _kept
    _lent = {place: each for place, each in _lent.items() if each.lives}
    _places, _kept = sorted(_lent), max(_kept, len(_lent))


def lend_array(address: int, array: NDArray[Any]) -> None:
    """Kernels may access an array of which they get the address, and the one that it is a part of."""
    whole = array
    while isinstance(whole.base, np.ndarray):
        whole = whole.base
    start, end = np.lib.array_utils.byte_bounds(whole)
    lend(start, end - start, whole, writable=whole.flags.writeable)


def lend_table(address: int, table: NDArray[Any], owner: Any, arrays: Any) -> None:
    """Kernels may access a pointer table, as long as there is its owner."""
    lend(address, table.nbytes, owner)
    _lent[address, address + table.nbytes].owners = [ref(owner)]  # for `address_of` it is the table itself
    _freed.append(table)


def _at(address: int, size: int) -> _Lent:
    """What these bytes are in."""
    places = _places
    number = bisect_right(places, (address, _END))
    gone = False
    while number > 0:  # it is the nearest that begins before it, nearly always
        number -= 1
        found = _lent.get(places[number])
        if found is not None and address + size <= found.end:
            if found.lives:
                return found
            gone = True
    raise (FreedError if gone else NotLentError)(f"{size} bytes at {address:#x}")


_END: Final = 1 << 64


def array_at(address: int, kind: np.dtype[Any], *shape: int) -> Checked:
    """The array at an address."""
    size = kind.itemsize
    for length in shape:
        size *= length
    if size == 0:
        return checked(np.zeros(shape, kind))
    lent = _at(address, size)
    key = address, kind, shape
    found = lent.arrays.get(key)
    if found is None:
        part = lent.bytes[address - lent.start : address - lent.start + size]
        found = lent.arrays[key] = checked(np.frombuffer(part, kind).reshape(shape))
    return found


def array_in(kind: np.dtype[Any], ndim: int, place: int, columns: int | None = None) -> Callable[[int], Checked]:
    """The function from a pointer table's address to the array of which its words from `place` on tell."""
    place *= _WORDS.size // 3

    def found(table: int) -> Checked:
        lent = _at(table + place, _WORDS.size)
        address, rows, width = _WORDS.unpack_from(lent.bytes, table + place - lent.start)
        if ndim == 1:
            return array_at(address, kind, rows)
        return array_at(address, kind, rows, width if columns is None else columns)

    return found


_WORDS: Final = Struct("=qqq")


def reader(format_: str, answer: Callable[[Any], Any]) -> Callable[..., Any]:
    """The function from an address, and an index where there is one, to a number that is stored in this way."""
    layout = Struct(f"={format_}")
    size, unpack = layout.size, layout.unpack_from

    def read(address: int, index: int = 0) -> Any:
        at = address + index * size
        lent = _at(at, size)
        return answer(unpack(lent.bytes, at - lent.start)[0])

    return read


def writer(format_: str, given: Callable[[Any], Any]) -> Callable[..., None]:
    """The function that stores a number in this way at an address, or at an index from there on."""
    layout = Struct(f"={format_}")
    size, pack = layout.size, layout.pack_into

    def write(address: int, *place_and_value: Any) -> None:
        *place, value = place_and_value
        at = address + (place[0] if place else 0) * size
        lent = _at(at, size)
        pack(lent.bytes, at - lent.start, given(value))

    return write


def copy_bytes(target: int, source: int, count: int) -> None:
    """Copy bytes from one address to another, the parts may overlap."""
    if count != 0:
        to, given = _at(target, count), _at(source, count)
        bytes_ = bytes(given.bytes[source - given.start : source - given.start + count])
        to.bytes[target - to.start : target - to.start + count] = bytes_
