"""The order of terms, as ORDER BY has it and made total (engine/terms/order.py says what it is).

A term is (class, coarse, fine), and texts where these agree. Class and coarse come from its columns, and so does the
order of IRIs and strings from their texts. Where neither says enough (*hard* terms: decimals that no double is, dates,
durations, triple terms) Python finds class, coarse and fine once: `L` is the pointer table of the `OrderArrays`.
`D` is that of the dictionary (kernels/terms/table.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import numpy as np
from llvmlite import ir
from numba import types

from oxiseq.engine import kinds
from oxiseq.engine.arrays.declared import Arrays, array
from oxiseq.engine.kernels.compiling.as_python import intrinsic_or
from oxiseq.engine.kernels.compiling.options import inner, kernel
from oxiseq.engine.kernels.memory.numbers import i64
from oxiseq.engine.kernels.memory.pointers import WORDS, Array, Ptr
from oxiseq.engine.kernels.memory.raw import byte, get, word
from oxiseq.engine.kernels.terms import table as worth
from oxiseq.engine.kernels.terms.table import TermArrays, Terms

(
    UNBOUND,
    BLANK,
    IRI,
    NUMBER,
    DATETIME,
    DATE,
    TIME,
    YEAR,
    YEAR_MONTH,
    MONTH,
    MONTH_DAY,
    DAY,
    DURATION,
    TEXT,
    TRIPLE,
) = range(15)
"""Classes, in their order."""
NAN: Final = (1 << 63) - 1
"""The coarse part of a number that is none: behind all others."""


class OrderArrays(Arrays):
    """What `L` points to. By id, as far as they reach."""


known = array(OrderArrays, "known", np.uint8, rows="ids")  # the class of a hard term; 0: none, or not known yet
coarse = array(OrderArrays, "coarse", np.int64, rows="ids")
fine = array(OrderArrays, "fine", np.int64, rows="ids")
"""i64[ids]: below 0 before, above 0 behind what has the same class and coarse part and is not hard."""
names = array(OrderArrays, "names", np.int64, 2)
"""i64[3, 2]: address and length of the datatypes xsd:string, rdf:langString, rdf:dirLangString."""


Order: TypeAlias = Ptr[OrderArrays]
"""`L` of kernels."""


_TEXT: Final = WORDS * TermArrays._fields.index("text")
_QUOTE, _BACKSLASH, _AT = 0x22, 0x5C, 0x40
_PREFIX_BYTES: Final = 7


@intrinsic_or(lambda number: int(np.float64(number).view(np.int64)))
def _bits_of(typing_context: Any, number: Any) -> tuple[Any, Any]:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.IntType(64))

    return types.int64(types.float64), generate


_bits: Callable[[float], int] = _bits_of
"""The bits of a double as i64."""


@inner
def is_hard(D: Terms, t: int) -> bool:
    """Whether its columns do not say how a term is ordered."""
    kind, quality = worth.kind(D)[t], worth.quality(D)[t]
    if kind in (kinds.INTEGER, kinds.DECIMAL):
        return quality & kinds.EXACT_NUMBER == 0
    if kind == kinds.DATETIME:
        return quality & kinds.EXACT_INTEGER == 0
    return kind == kinds.OTHER


@inner
def is_unknown(D: Terms, L: Order, t: int) -> bool:
    """Whether Python has to say how a term is ordered before it can be compared."""
    return is_hard(D, t) and (t >= known(L).shape[0] or known(L)[t] == 0)


@inner
def class_of(D: Terms, L: Order, t: int) -> int:
    """The class of a term."""
    kind = worth.kind(D)[t]
    if t == 0:
        return UNBOUND
    if kind == kinds.IRI:
        return IRI
    if kinds.INTEGER <= kind <= kinds.DOUBLE:
        return NUMBER
    if kind == kinds.BLANK:
        return BLANK
    if kind == kinds.DATETIME:
        return DATETIME
    return i64(known(L)[t]) if kind == kinds.OTHER else TEXT


@inner
def _coarse_of(D: Terms, L: Order, t: int, class_: int) -> int:
    """What orders the terms of a class, as far as it goes."""
    if class_ == NUMBER:
        number = worth.number(D)[t]
        if number != number:
            return NAN
        bits = _bits(number)
        return bits if bits >= 0 else -(bits & NAN)  # -0.0 is 0
    if class_ == DATETIME:
        return coarse(L)[t] if is_hard(D, t) else worth.exact(D)[t]
    if class_ == BLANK:
        return worth.exact(D)[t]
    if class_ in (UNBOUND, IRI, TEXT):
        return i64(0)
    return coarse(L)[t]


@inner
def _fine_of(D: Terms, L: Order, t: int, class_: int) -> int:
    """What orders those whose coarse parts agree."""
    if is_hard(D, t):
        return fine(L)[t]
    return i64(worth.quality(D)[t] & kinds.ZONED) if class_ == DATETIME else i64(0)


@inner
def compare_values(D: Terms, L: Order, a: int, b: int) -> int:
    """Below 0, 0, or above 0: how two terms compare, equal values (1, 1.0) being equal."""
    if a == b:
        return i64(0)
    class_, other = class_of(D, L, a), class_of(D, L, b)
    if class_ != other:
        return class_ - other
    if class_ == IRI:
        return _compare_texts(D, a, b)
    if class_ == TEXT:
        return _compare_literals(D, L, a, b)
    x, y = _coarse_of(D, L, a, class_), _coarse_of(D, L, b, class_)
    if x == y:
        x, y = _fine_of(D, L, a, class_), _fine_of(D, L, b, class_)
    return i64(x > y) - i64(x < y)


@inner
def compare_terms(D: Terms, L: Order, a: int, b: int) -> int:
    """Below 0, 0, or above 0: how two terms compare; 0 only for the same one. Equal values go by their texts."""
    order = compare_values(D, L, a, b)
    return _compare_texts(D, a, b) if order == 0 and a != b else order


@inner
def prefix_of(D: Terms, L: Order, t: int) -> int:
    """i64 ≥ 0 that is never greater for a term than for one behind it: most comparisons need no more."""
    class_ = class_of(D, L, t)
    if class_ == TEXT:
        return class_ << 59 | _first_bytes(D, t)
    return class_ << 59 | (((_coarse_of(D, L, t, class_) ^ (-1 << 63)) >> 5) & ((1 << 59) - 1))


# --- texts ------------------------------------------------------------------------------------------


@inner
def _start(D: Terms, t: int) -> int:
    return get(D, _TEXT) + worth.entries(D)[worth.own(D)[t]].start


@inner
def _length(D: Terms, t: int) -> int:
    return i64(worth.entries(D)[worth.own(D)[t]].length)


@inner
def _compare_texts(D: Terms, a: int, b: int) -> int:
    return _compare_bytes(_start(D, a), _length(D, a), _start(D, b), _length(D, b))


@inner
def _compare_bytes(a: int, size_a: int, b: int, size_b: int) -> int:
    size = min(size_a, size_b)
    i = i64(0)
    while i + 8 <= size and word(a + i) == word(b + i):
        i += 8
    while i < size:
        x, y = byte(a + i), byte(b + i)
        if x != y:
            if x == 0x3E or y == 0x3E:  # one IRI continues where the other has its `>`
                return i64(-1) if x == 0x3E else i64(1)
            return x - y
        i += 1
    return size_a - size_b


@inner
def _character(at: int) -> int:
    """Four times the byte that a literal's text has at an address, of an escape the byte that it means; -1: its closing
    quote. U+FFFE and U+FFFF, which are escapes too, come between the bytes 0xEF, with which they begin, and 0xF0."""
    x = byte(at)
    if x == _QUOTE:
        return i64(-1)
    if x != _BACKSLASH:
        return 4 * x
    x = byte(at + 1)
    if x == 0x6E:
        return i64(4 * 0x0A)
    if x == 0x74:
        return i64(4 * 0x09)
    if x == 0x72:
        return i64(4 * 0x0D)
    if x == 0x62:
        return i64(4 * 0x08)
    if x == 0x66:
        return i64(4 * 0x0C)
    if x == 0x75:  # four digits; otherwise only control characters are written so
        low = _digit(byte(at + 4)) << 4 | _digit(byte(at + 5))
        return 4 * low if byte(at + 2) == 0x30 else 4 * 0xEF + low - 0xFD
    return 4 * x


@inner
def _digit(x: int) -> int:
    return x - 0x30 if x <= 0x39 else (x & 0x5F) - 0x37


@inner
def _past(at: int) -> int:
    """The address of the next character."""
    if byte(at) != _BACKSLASH:
        return at + 1
    return at + 6 if byte(at + 1) == 0x75 else at + 2


@inner
def _first_bytes(D: Terms, t: int) -> int:
    at = _start(D, t) + 1
    found = i64(0)
    for i in range(_PREFIX_BYTES):
        x = _character(at)
        if x >= 0:
            found |= (x >> 2) << 8 * (_PREFIX_BYTES - 1 - i)
            at = _past(at)
        if x & 3 and x > 0:  # U+FFFE, U+FFFF: no byte that may follow is greater
            return found | ((1 << 8 * (_PREFIX_BYTES - 1 - i)) - 1)
    return found


@inner
def _compare_literals(D: Terms, L: Order, a: int, b: int) -> int:
    """By lexical form, datatype, language."""
    i, j = _start(D, a), _start(D, b)
    end_i, end_j = i + _length(D, a), j + _length(D, b)
    i += 1
    j += 1
    while True:
        x, y = _character(i), _character(j)
        if x != y:
            return x - y
        if x < 0:
            break
        i, j = _past(i), _past(j)
    i += 1
    j += 1
    x, size_x = _datatype(L, i, end_i)
    y, size_y = _datatype(L, j, end_j)
    order = _compare_bytes(x, size_x, y, size_y)
    return order if order != 0 else _compare_bytes(i, end_i - i, j, end_j - j)


@inner
def _datatype(L: Order, at: int, end: int) -> tuple[int, int]:
    """Address and length of the IRI of a literal's datatype; `at`: behind its closing quote."""
    if at == end:
        return names(L)[0, 0], names(L)[0, 1]
    if byte(at) != _AT:
        return at + 3, end - at - 4  # ^^<...>
    for i in range(at, end - 1):
        if byte(i) == 0x2D and byte(i + 1) == 0x2D:  # `--`: a base direction follows
            return names(L)[2, 0], names(L)[2, 1]
    return names(L)[1, 0], names(L)[1, 1]


# --- for Python --------------------------------------------------------------------------------------


@kernel
def hard_terms(D: Terms, L: Order, ids: Array, found: Array) -> int:
    """Note which of the ids are those of hard terms that are not known: found u32[as many as ids]; how many."""
    count = i64(0)
    for i in range(ids.shape[0]):
        if is_unknown(D, L, ids[i]):
            found[count] = ids[i]
            count += 1
    return count


@kernel
def sort_terms(D: Terms, L: Order, ids: Array, spare: Array, total: bool) -> None:
    """Sort ids (u32[n]; spare: as many) stably, by `compare_terms` if total, else by `compare_values`."""
    n, run = ids.shape[0], i64(1)
    while run < n:
        for low in range(0, n, 2 * run):
            _merge(D, L, ids, spare, low, min(low + run, n), min(low + 2 * run, n), total)
        for i in range(n):
            ids[i] = spare[i]
        run *= 2


@inner
def _merge(D: Terms, L: Order, ids: Array, spare: Array, low: int, middle: int, high: int, total: bool) -> None:
    i, j = low, middle
    for k in range(low, high):
        if i < middle and (j >= high or _order(D, L, ids[i], ids[j], total) <= 0):
            spare[k] = ids[i]
            i += 1
        else:
            spare[k] = ids[j]
            j += 1


@kernel
def rank_sorted(D: Terms, L: Order, ids: Array, ranks: Array, total: bool) -> None:
    """The ranks (i64[n]) of sorted ids: from 0 on, one more wherever the order says that they differ."""
    for i in range(1, ids.shape[0]):
        ranks[i] = ranks[i - 1] + (_order(D, L, ids[i - 1], ids[i], total) != 0)


@inner
def _order(D: Terms, L: Order, a: int, b: int, total: bool) -> int:
    return compare_terms(D, L, a, b) if total else compare_values(D, L, a, b)
