"""Array groups that are declared once: allocated, grown, saved and restored."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import njit

from oxiseq.engine.arrays.declared import WHOLE, Arrays, array
from oxiseq.engine.kernels.memory.pointers import Bound, Pointers

GROUP = np.dtype([("count", "i8"), ("next", "i4")], align=True)


class Bare(Arrays):
    """A group of arrays."""


scalars = array(Bare, "scalars", np.int64, rows=2, used=WHOLE, fill={1: -1})


class Keyed(Bare):
    """One that begins as another."""


groups = array(Keyed, "groups", GROUP, rows="groups", used=0, fill={"next": -1})
links = array(Keyed, "links", np.int32, rows="groups", each="probes", used=0)
keys = array(Keyed, "keys", np.int64, 2, rows="groups", columns="width", used=0, ids=True)
table = array(Keyed, "table", np.int32, rows="groups", slots=lambda groups: 4 * groups, fill=-1)
scratch = array(Keyed, "scratch", np.float64)


def some() -> Keyed:
    """Two groups of three that there is room for."""
    made = Keyed.allocate(groups=3, probes=2, width=2)
    made.scalars[0] = 2
    made.groups["count"] = 1, 2, 3
    made.links[:] = range(6)
    made.keys[:] = [[10, 0], [11, 12], [99, 99]]
    made.table[:] = 5
    return made


@njit
def first_count(S: Any) -> Any:
    return scalars(S)[1], groups(S)[1].count, keys(S).shape


def test_a_kernel_sees_what_is_declared_and_a_subclass_as_its_base() -> None:
    made = some()
    assert first_count(Pointers(made).address) == (-1, 2, (3, 2))
    assert Keyed._fields == ("scalars", "groups", "links", "keys", "table", "scratch")
    assert Bare._fields == ("scalars",)
    assert issubclass(Keyed, Bare)


def test_a_bound_kernel_keeps_the_tables_that_it_reads() -> None:
    counted = Bound(first_count, Pointers(some()))
    others = [Pointers(some()) for _ in range(100)]  # one of which would have its memory
    assert counted() == (-1, 2, (3, 2))
    del others


def test_all_arrays_of_a_record_grow_and_its_hash_table_is_empty() -> None:
    grown = some().grow("groups")
    assert [len(each) for each in grown] == [2, 6, 12, 6, 24, 0]
    assert grown.links.tolist() == [*range(6), 0, 0, 0, 0, 0, 0]
    assert grown.groups["next"].tolist() == [-1] * 6
    assert grown.table.tolist() == [-1] * 24
    assert grown.bytes == sum(each.nbytes for each in grown)
    assert grown.scalars is grown._replace(links=np.zeros(0, np.int32)).scalars


def test_what_is_in_use_is_saved_and_restored_with_other_ids() -> None:
    named: list[int] = []
    where = {"keys": np.array([[True, False], [True, True]])}
    state = some().save(lambda ids: named.extend(ids.tolist()), lambda saved: where)
    assert {name: len(each) for name, each in state.items()} == {"scalars": 2, "groups": 2, "links": 4, "keys": 2}
    assert named == [10, 11, 12]
    made = Keyed.allocate(groups=1, probes=2, width=2).restore(state, lambda ids: ids + 100, lambda saved: where)
    assert made.keys.tolist() == [[110, 0], [111, 112]]
    assert made.groups["count"].tolist() == [1, 2]
    assert made.links.tolist() == [0, 1, 2, 3]
    assert made.table.tolist() == [-1] * 8
    assert [each.tolist() for each in some().held_ids()] == [[[10, 0], [11, 12]]]


def test_a_state_of_another_layout_is_refused() -> None:
    state = some().save()
    with pytest.raises(ValueError, match="layout: keys"):
        Keyed.allocate(groups=1, probes=2, width=3).restore(state)
    with pytest.raises(TypeError, match="no keis"):
        some()._replace(keis=np.zeros(0))
    with pytest.raises(TypeError, match="consists of scalars"):
        Bare()


class Records(Arrays):
    """Records of words, read as other types, too."""


array(Records, "words", np.int64, 2, rows="records", columns="words", lined=True)
halves = array(Records, "halves", np.uint32, 2, of="words")
array(Records, "slots", np.int32, rows="found", slots=lambda found: 4 * found)


@njit
def second_half(S: Any) -> Any:
    return halves(S)[1, 1]


def test_an_array_may_be_the_memory_of_another_and_is_weighed_once() -> None:
    made = Records.allocate(records=2, words=8, found=1)
    assert made.words.ctypes.data % 64 == 0
    assert made.bytes == 2 * 8 * 8 + 4 * 4
    for changed in (made, made.grow("records"), made._replace(words=np.zeros((3, 8), np.int64))):
        changed.words[1, 0] = 5 << 32
        assert second_half(Pointers(changed).address) == 5
        assert changed.halves.shape == (len(changed.words), 16)


def test_a_hash_table_alone_grows() -> None:
    assert len(Records.allocate(records=2, words=8, found=1).grow("found", 3).slots) == 12
