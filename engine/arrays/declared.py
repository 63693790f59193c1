"""An array group is declared once: a line for each array says its name, its type, its rows and columns, and what of it
is saved. All that is done with every array follows from it.

    class Memory(Arrays):
        ...

    scalars = array(Memory, "scalars", np.int64, rows=SCALARS, used=WHOLE)
    groups = array(Memory, "groups", GROUP, rows="groups", used=GROUP_TOP)
    keys = array(Memory, "keys", np.int64, 2, rows="groups", columns="width", used=GROUP_TOP, ids=True)
    table = array(Memory, "table", np.int32, rows="groups", slots=table_size, fill=-1)

In Python `S.keys` is the array, in a kernel that has the group's address (pointers.py) `keys(S)`. A subclass begins
with the arrays of its base, so kernels that take the base take it, too.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self, TypeAlias, TypeVar

import numpy as np

from oxiseq.engine.kernels.memory.growing import lines
from oxiseq.engine.kernels.memory.pointers import Array, Ptr, view_of
from oxiseq.grammar.records import dataclass

WHOLE: Final = -1
"""All rows of an array are in use."""
_NOTHING: Final[Mapping[Any, Any]] = MappingProxyType({})
_Getters = namedtuple("_Getters", [f"array{i}" for i in range(64)])  # type: ignore[misc]  # mypy counts no further
"""Has what gets an item of a tuple, in C."""

Saved: TypeAlias = Mapping[str, Any]
"""Saved arrays by name; other values may be among them."""
Where: TypeAlias = Callable[[Saved], Mapping[str, Array]]
"""Saved arrays → by name which values of one are ids (bool, of its shape), where not all are."""


@dataclass(frozen=True, slots=True)
class Declared:
    """What is known of an array: see `array`."""

    dtype: np.dtype[Any]
    ndim: int
    rows: str | int
    each: str | None
    columns: str | int
    slots: Callable[[int], int] | None
    fill: Mapping[Any, int]
    used: int | None
    ids: bool
    lined: bool
    of: str | None

    def make(self, rows: int, *columns: int) -> Array:
        """It, empty."""
        made = lines(rows, *columns) if self.lined else np.zeros((rows, *columns), self.dtype)
        for place, value in self.fill.items():
            made[place] = value
        return made

    def allocate(self, sizes: Mapping[str, int]) -> Array:
        """It, empty, in a group of these sizes."""
        rows = sizes[self.rows] if isinstance(self.rows, str) else self.rows
        if self.each is not None:
            rows *= sizes[self.each]
        if self.slots is not None:
            rows = self.slots(rows)
        columns = sizes[self.columns] if isinstance(self.columns, str) else self.columns
        return self.make(rows, *([columns] if self.ndim == 2 else []))

    def with_rows(self, array: Array, rows: int) -> Array:
        """The array with so many rows, at least as many as before, itself if it has them; a hash table is empty."""
        if self.slots is not None:
            return self.make(self.slots(rows), *array.shape[1:])
        if rows == len(array):
            return array
        made = self.make(rows, *array.shape[1:])
        made[: len(array)] = array
        return made


class Arrays(tuple[Array, ...]):
    """A group of arrays, in the order in which they are declared."""

    __slots__ = ()
    _fields: ClassVar[tuple[str, ...]] = ()
    _views: ClassVar[tuple[tuple[int, int], ...]] = ()
    """The places of arrays that are the memory of others, and the places of these."""
    declared: ClassVar[Mapping[str, Declared]] = _NOTHING

    def __new__(cls, *arrays: Array, **named: Array) -> Self:
        if len(arrays) + len(named) != len(cls._fields):
            raise TypeError(f"{cls.__name__} consists of {', '.join(cls._fields)}")
        return tuple.__new__(cls, (*arrays, *[named[name] for name in cls._fields[len(arrays) :]]))

    if TYPE_CHECKING:
        count: Any  # an array may have this name

        def __getattr__(self, name: str) -> Array: ...

    @classmethod
    def allocate(cls, **sizes: int) -> Self:
        """An empty group. sizes: numbers of rows and columns by the names that the declarations have for them; an array
        that is given has no rows yet (`_replace`)."""
        return cls._made([each.allocate(sizes) for each in cls.declared.values()])

    @classmethod
    def _made(cls, arrays: list[Array]) -> Self:
        """The group of these, but for those that are the memory of others."""
        for place, of in cls._views:
            arrays[place] = arrays[of].view(arrays[place].dtype)
        return tuple.__new__(cls, arrays)

    def _replace(self, **arrays: Array) -> Self:
        """The group with these arrays in place of its own."""
        made = self._made([*map(arrays.pop, self._fields, self)])
        if arrays:
            raise TypeError(f"{type(self).__name__} has no {', '.join(arrays)}")
        return made

    def room(self, name: str) -> int:
        """For how many of the records of this name there are rows."""
        return next((len(a) for a, d in self._pairs if d.rows == name and d.each is None and d.slots is None), 0)

    def grow(self, name: str, size: int | None = None) -> Self:
        """The group with room for so many records of this name, for twice as many as before if no number is given. Hash
        tables of them are empty then."""
        before = self.room(name)
        size = 2 * before if size is None else size
        return self._made(
            [d.with_rows(a, _times(a, before, d) * size) if d.rows == name else a for a, d in self._pairs]
        )

    @property
    def bytes(self) -> int:
        """The size of its arrays, spare room included."""
        return sum([array.nbytes for array, declared in self._pairs if declared.of is None])

    @property
    def _pairs(self) -> Iterable[tuple[Array, Declared]]:
        return zip(self, self.declared.values(), strict=True)

    def _used(self, array: Array, declared: Declared) -> Array:
        if declared.used is None or declared.used == WHOLE:
            return array
        each = 1 if declared.each is None else _times(array, self.room(str(declared.rows)), declared)
        return array[: int(self.scalars[declared.used]) * each]

    def held_ids(self) -> list[Array]:
        """The arrays in which ids of terms are, other values among them (see `TermDictionary`)."""
        return [self._used(array, declared) for array, declared in self._pairs if declared.ids]

    def save(self, ids: Callable[[Array], Any] = len, where: Where = lambda saved: _NOTHING) -> dict[str, Array]:
        """Its arrays by name, as far as they are saved and in use, not copied; `ids` takes the ids in them."""
        saved = {
            name: self._used(self[i], d) for i, (name, d) in enumerate(self.declared.items()) if d.used is not None
        }
        some = where(saved)
        for name, array in saved.items():
            if self.declared[name].ids:
                ids(array[some.get(name, ...)])
        return saved

    def restore(
        self, state: Saved, ids: Callable[[Array], Array] | None = None, where: Where = lambda saved: _NOTHING
    ) -> Self:
        """The group with saved arrays, in which `ids` renames ids, in place of its own, and with more room where they
        need it: hash tables are empty then. Raises ValueError where records have another layout."""
        made = self
        saved = {name: array for name, array in state.items() if name in self.declared}
        for name, array in saved.items():
            declared, own = self.declared[name], getattr(made, name)
            if array.dtype != own.dtype or array.shape[1:] != own.shape[1:]:
                raise ValueError(f"records of another layout: {name} {array.dtype} {array.shape}")
            if len(array) > len(own) and isinstance(declared.rows, str):
                each = max(_times(own, made.room(declared.rows), declared), 1)
                made = made.grow(declared.rows, -(-len(array) // each))
        some = where(saved) if ids else _NOTHING
        for name, array in saved.items():
            part = getattr(made, name)[: len(array)]
            part[:] = array
            if ids and self.declared[name].ids:
                chosen = some.get(name, ...)
                part[chosen] = ids(part[chosen])
        return made


def _times(array: Array, room: int, declared: Declared) -> int:
    """How many rows it has for each record."""
    return 1 if declared.each is None else len(array) // max(room, 1)


G = TypeVar("G", bound=Arrays)


def array(
    group: type[G],
    name: str,
    dtype: Any,
    ndim: int = 1,
    *,
    rows: str | int = 0,
    each: str | None = None,
    columns: str | int = 0,
    slots: Callable[[int], int] | None = None,
    fill: int | Mapping[Any, int] = _NOTHING,
    used: int | None = None,
    ids: bool = False,
    known: bool = False,
    lined: bool = False,
    of: str | None = None,
) -> Callable[[Ptr[G]], Array]:
    """Declare the group's next array. Answers its view, the function from the group's address to it, for kernels.

    rows, columns: how many, or the name of their number (`Arrays.allocate`, `grow`); without `rows` the array is given.
    each: the name of a factor: so many rows for each record. slots: it is a hash table, with so many rows for a number
    of records. fill: what an empty one holds, or by place or field what it holds there. used: the place in the group's
    `scalars` that says how many records are in use, which are saved; WHOLE; None: it is not saved. ids: it holds ids of
    terms. known: the compiler knows how many columns it has. lined: it begins with a line of the cache. of: it is the
    memory of the array of that name, read as this type.
    """
    assert not group.__subclasses__(), "a subclass begins with the arrays of its base"
    places = {...: fill} if isinstance(fill, int) else fill
    declared = Declared(np.dtype(dtype), ndim, rows, each, columns, slots, places, used, ids, lined, of)
    setattr(group, name, vars(_Getters)[f"array{len(group._fields)}"])
    if of is not None:
        group._views += ((len(group._fields), group._fields.index(of)),)
    group._fields += (name,)
    group.declared = MappingProxyType({**group.declared, name: declared})
    return view_of(group, name, dtype, ndim, int(columns) if known else None)
