"""Small kernels do what none may do, and that is refused: run by test_kernels_as_python.py, beside the corpus."""

from __future__ import annotations

import random
from typing import Any, Final

import numpy as np
import pytest

from oxiseq.engine.arrays.declared import Arrays, array
from oxiseq.engine.kernels.compiling.calling import caller, entry_of
from oxiseq.engine.kernels.compiling.options import inner, kernel
from oxiseq.engine.kernels.flow.moments import put_time, time_in
from oxiseq.engine.kernels.flow.wide import bits, from_bits, high_product, leading_zeros, magnitude
from oxiseq.engine.kernels.matches import weights
from oxiseq.engine.kernels.matching.match import lowest
from oxiseq.engine.kernels.memory import raw
from oxiseq.engine.kernels.memory.hashing import mix, row_tag, tag_of, times
from oxiseq.engine.kernels.memory.lent import FreedError, NotLentError
from oxiseq.engine.kernels.memory.numbers import i64, u64
from oxiseq.engine.kernels.memory.pointed import i64_at
from oxiseq.engine.kernels.memory.pointers import Array, Bound, Pointers, Replaceable, address_of, call
from oxiseq.engine.kernels.memory.scan import every, find_byte

RECORD: Final = np.dtype([("count", "i8"), ("small", "u1"), ("list", "i4", 3)], align=True)


class Some(Arrays):
    """A group of arrays."""


numbers = array(Some, "numbers", np.int64, rows="rows")
table = array(Some, "table", np.uint32, 2, rows="rows", columns="width")
pairs = array(Some, "pairs", np.uint8, 2, rows="rows", columns=2, known=True)
records = array(Some, "records", RECORD, rows="rows")


def some() -> Some:
    return Some.allocate(rows=3, width=2)


@kernel
def set_number(S: Any, i: int, value: int) -> int:
    """An element."""
    numbers(S)[i] = value
    return numbers(S)[i]


@kernel
def set_in_row(S: Any, i: int, j: int) -> int:
    """Elements of two dimensions."""
    table(S)[i, j] = 7
    pairs(S)[i, j] = 8
    return table(S)[i, j] + pairs(S)[i, j]


@kernel
def set_in_record(S: Any, i: int, j: int, value: int) -> int:
    """Fields."""
    record = records(S)[i]
    record.small = value
    record.list[j] = value
    record.count += 1
    return records(S)[i].count + record.list[j]


@kernel
def set_given(given: Array, i: int) -> int:
    """An element of an argument."""
    given[i] = 5
    return len(given)


@kernel
def byte_at(address: int) -> int:
    """A byte."""
    return raw.byte(address)


@kernel
def set_byte_at(address: int) -> None:
    """Writes one."""
    raw.set_byte(address, 1)


@kernel
def copied(target: int, source: int, count: int) -> None:
    """Copies bytes."""
    raw.move(target, source, count)


@kernel
def number_at(address: int, count: int, i: int) -> int:
    """An element at an address."""
    return i64_at(address, count)[i]


@kernel
def found(at: int, end: int, wanted: Any) -> int:
    """Where a byte is."""
    return find_byte(at, end, wanted)


@kernel
def twice(number: int) -> int:
    """Two of it."""
    return 2 * number


_call = caller(1)


@kernel
def called(entry: int, number: int) -> int:
    """What a kernel answers that is known by its entry."""
    return _call(entry, number)


@kernel
def joined(form: Array, numbers_: Array) -> bool:
    """Whether the sum of two weights fits."""
    return weights.add(form, numbers_, 0, 0, numbers_, 1, 0)


@kernel
def multiplied(form: Array, numbers_: Array) -> bool:
    """Whether the product of two weights fits."""
    return weights.add_product(form, numbers_, 0, 0, numbers_, 1, 0, numbers_, 2, 0)


@kernel
def time_put(rows: Array, time: int) -> int:
    """A time that is written into a row, and read."""
    put_time(rows, 1, 1, time)
    return time_in(rows, 1, 1)


_ROWS: Final = np.array([[1, 0xFFFFFFFF], [7, 9]], np.uint32)


@inner
def _wide(number: int) -> int:
    return i64(mix(u64(number), number) ^ high_product(u64(number), magnitude(number)))


@kernel
def computed(numbers_: Array, out: Array, reals: Array) -> None:
    """What is computed modulo 2^64, and with the bits of numbers."""
    for n in range(len(numbers_)):
        number = numbers_[n]
        out[n, 0] = times(number, i64(-7046029254386353131))
        out[n, 1] = tag_of(number) ^ row_tag(_ROWS, n & 1, 0, 2)
        out[n, 2] = _wide(number)
        out[n, 3] = leading_zeros(u64(number)) * 100 + lowest(number | 1 << 62)
        out[n, 4] = bits(np.float64(number))
        reals[n] = from_bits(number) / np.float64(number)


def numbers_computed() -> list[list[int]]:
    """Of some numbers: the bits of what is made of them, the same in either way."""
    given = np.array([0, 1, -1, 1 << 62, -(1 << 63), 0x7FF0000000000000, 12345678901234567, -987654321], np.int64)
    out, reals = np.zeros((len(given), 5), np.int64), np.zeros(len(given))
    computed(given, out, reals)
    reals[np.isnan(reals)] = np.nan  # the sign of what is no number is not said
    return [*out.tolist(), reals.view(np.int64).tolist()]


# --- tests ------------------------------------------------------------------------------------------


def test_elements_and_fields_are_read_and_written() -> None:
    group = some()
    owner = Pointers(group)
    assert call(set_number, owner, 2, -4) == -4
    assert call(set_in_row, owner, 1, 1) == 15
    assert call(set_in_record, owner, 0, 2, 9) == 10
    assert group.numbers.tolist() == [0, 0, -4]
    assert group.table.tolist() == [[0, 0], [0, 7], [0, 0]]
    assert group.records[0].tolist()[1:] == (9, pytest.approx([0, 0, 9]))


@pytest.mark.parametrize("i", [-1, 3])
def test_an_index_outside_is_refused(i: int) -> None:
    owner = Pointers(some())
    for kernel_, args in ((set_number, (i, 1)), (set_in_row, (i, 0)), (set_in_row, (0, i)), (set_in_record, (i, 0, 1))):
        with pytest.raises(IndexError, match="outside"):
            call(kernel_, owner, *args)
    with pytest.raises(IndexError, match="outside"):
        call(set_in_record, owner, 0, i, 1)
    with pytest.raises(IndexError, match="outside"):
        set_given(np.zeros(3), i)


def test_a_number_that_has_no_room_is_refused() -> None:
    with pytest.raises(OverflowError):
        call(set_in_record, Pointers(some()), 0, 0, 256)
    with pytest.raises(OverflowError):
        call(set_number, Pointers(some()), 0, 1 << 63)


def test_kernels_see_as_many_rows_as_they_are_shown() -> None:
    owner = Pointers(some())
    owner.shorten(2)
    assert call(set_number, owner, 1, 1) == 1
    with pytest.raises(IndexError, match="outside"):
        call(set_number, owner, 2, 1)


@pytest.mark.parametrize("kind", [Pointers, Replaceable])
def test_a_table_whose_owner_is_gone_is_refused(kind: Any) -> None:
    group = some()
    address = kind(group).address
    others = [kind(group) for _ in range(100)]  # one of which would have its memory
    with pytest.raises(FreedError):
        set_number(address, 0, 1)
    del others


def test_a_bound_kernel_keeps_its_tables() -> None:
    bound = Bound(set_number, Pointers(some()))
    others = [Pointers(some()) for _ in range(100)]
    assert bound(1, 1) == 1
    del others


def test_an_array_that_is_gone_is_refused() -> None:
    given = np.arange(1000)
    address = address_of(given)
    assert number_at(address, 1000, 999) == 999
    del given
    with pytest.raises(FreedError):
        number_at(address, 1000, 0)
    with pytest.raises(FreedError):
        byte_at(address)


def test_an_array_that_others_hold_a_part_of_is_there() -> None:
    given = np.arange(1000)
    part = given[500:]
    address = address_of(part)
    del given
    assert number_at(address - 8, 2, 0) == 499


def test_memory_that_nobody_has_lent_is_refused() -> None:
    given = np.zeros(64, np.uint8)
    address = address_of(given)
    assert byte_at(address + 63) == 0
    for wrong in (address - 1, address + 64, 8):
        with pytest.raises(NotLentError):
            byte_at(wrong)
    with pytest.raises(NotLentError):
        number_at(address, 9, 0)
    with pytest.raises(NotLentError):
        copied(address + 8, address, 57)
    copied(address + 8, address, 56)


def test_what_is_read_only_is_not_written() -> None:
    given = np.frombuffer(b"some text", np.uint8)
    address = address_of(given)
    assert byte_at(address + 1) == ord("o")
    with pytest.raises(TypeError):
        set_byte_at(address)


def test_a_search_needs_room_behind_its_end() -> None:
    given = np.zeros(17, np.uint8)
    address = address_of(given)
    assert found(address, address + 9, every(1)) == address + 9
    with pytest.raises(NotLentError):
        found(address, address + 17, every(1))


def test_a_sum_of_weights_that_does_not_fit_is_told() -> None:
    """Whether signed numbers overflow cannot be asked of their sum: compiled code may say that none does."""
    form, weights_ = np.array([1, 0, 0, 0]), np.array([[1, 1 << 62], [1, 1 << 62]], np.uint64)
    assert not joined(form, weights_)
    weights_[:, 1] = 3
    assert joined(form, weights_) and weights_.tolist() == [[1, 6], [1, 3]]


def _weight(limbs: int, count: int, total: int) -> list[int]:
    """Of so many matches with this sum."""
    return [weights.PRESENT, *((each >> 64 * n) % (1 << 64) for each in (count, total) for n in range(limbs))]


@pytest.mark.parametrize("limbs", [1, 2, 3])
def test_products_of_weights_are_exact_and_fit_where_there_is_room(limbs: int) -> None:
    """A bound on what they are is at most eight times as large."""
    dice, most, fitting = random.Random(limbs), 64 * limbs - 1, 0
    for _ in range(300):
        counts, sums = ([dice.getrandbits(dice.randrange(1, most)) for _ in range(2)] for _ in range(2))
        sums = [dice.choice([1, -1]) * each for each in sums]
        rows = [[0] * (1 + 2 * limbs), *(_weight(limbs, *each) for each in zip(counts, sums, strict=True))]
        numbers_ = np.array(rows, np.uint64)
        fits = multiplied(np.array([limbs, 1, 0, 0]), numbers_)
        count, terms = counts[0] * counts[1], (sums[0] * counts[1], counts[0] * sums[1])
        largest = max(count, *map(abs, terms))
        if fits:
            assert numbers_[0].tolist() == _weight(limbs, count, sum(terms))
        assert fits or largest >= 1 << most - 4
        assert not fits or largest < 1 << most
        fitting += fits
    assert 50 < fitting < 250


@pytest.mark.parametrize("time", [0, -1, 1 << 40, -(1 << 63), (1 << 63) - 1])
def test_times_in_rows_fit(time: int) -> None:
    rows = np.zeros((2, 3), np.uint32)
    assert time_put(rows, time) == time and not rows[0].any() and rows[1, 0] == 0


def test_kernels_are_called_by_their_entries() -> None:
    assert called(entry_of(twice, 1), 21) == 42
