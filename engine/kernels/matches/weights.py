"""What is counted of a set of matches: how many there are, sums and least values over them, as a *weight*.

A weight is W words of a line of u64 from some place on: flags, then 1 + C numbers of L limbs each (the count, then C
sums), then M least values (i64). Numbers are two's complement, the least limb first. Weights add (either set) and
multiply (each of one set continued by each of the other): they are a semiring without inverses, so nothing is ever
subtracted. `form` is i64[4]: LIMBS, SUMS, LEASTS, and 1 where nothing wider is possible (SATURATES): what does not fit
is HUGE then, else the functions return False and the caller begins anew with more limbs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from oxiseq.engine.kernels.compiling.options import inner
from oxiseq.engine.kernels.memory.numbers import i64, u64
from oxiseq.engine.kernels.memory.pointers import Array

LIMBS, SUMS, LEASTS, SATURATES, FORM = range(5)
"""Places in `form`, and how many there are."""

PRESENT = 1
"""Flag: there is a match. The next 56 bits are what is met in the matches' events, as the caller says (`or`)."""
HUGE = 1 << 63
"""Flag: beyond what numbers can be."""
NO_VALUE = (1 << 63) - 1
"""The least value of no event."""
_FITS = 2.0**62
_LOW = 0xFFFFFFFF
_HALF = 32
_TOP = 63


@inner
def width(form: Array) -> int:
    """How many words a weight has."""
    return i64(1 + (1 + form[SUMS]) * form[LIMBS] + form[LEASTS])


@inner
def present(a: Array, i: int, x: int) -> bool:
    """Whether it is of any match."""
    return a[i, x] & u64(PRESENT) != u64(0)


@inner
def put_one(form: Array, a: Array, i: int, x: int) -> None:
    """The weight of one match without events."""
    for w in range(width(form)):
        a[i, x + w] = u64(0)
    a[i, x] = u64(PRESENT)
    a[i, x + 1] = u64(1)
    first = 1 + (1 + form[SUMS]) * form[LIMBS]
    for w in range(form[LEASTS]):
        a[i, x + first + w] = u64(NO_VALUE)


@inner
def add(form: Array, a: Array, i: int, x: int, b: Array, j: int, y: int) -> bool:
    """The weight of `a` becomes that of both sets."""
    if not present(b, j, y):
        return True
    if not present(a, i, x):
        for w in range(width(form)):
            a[i, x + w] = b[j, y + w]
        return True
    a[i, x] |= b[j, y]
    limbs, fits, at = form[LIMBS], True, i64(1)
    for _ in range(1 + form[SUMS]):
        fits = _add(a, i, x + at, b, j, y + at, limbs) and fits
        at += limbs
    for w in range(at, at + form[LEASTS]):
        if i64(b[j, y + w]) < i64(a[i, x + w]):
            a[i, x + w] = b[j, y + w]
    return _settled(form, a, i, x, fits)


@inner
def add_held(
    form: Array,
    a: Array,
    i: int,
    x: int,
    b: Array,
    j: int,
    y: int,
    flags: Any,
    values: Array,
    row: int,
    held: Array,
    place: int,
) -> bool:
    """The weight of `a` becomes that of its set and of the matches of `b` continued by an event: `flags`, `values`
    (i64[rows, C + M], its line `row`), of which those count that line `place` of `held` (u8[., C + M]) has."""
    if not present(b, j, y):
        return True
    fits = add(form, a, i, x, b, j, y)
    a[i, x] |= flags
    limbs, at = form[LIMBS], i64(1)
    for c in range(form[SUMS]):
        at += limbs
        if held[place, c] and values[row, c]:
            fits = _add_multiple(a, i, x + at, b, j, y + 1, limbs, i64(values[row, c])) and fits
    at += limbs
    for c in range(form[SUMS], form[SUMS] + form[LEASTS]):
        if held[place, c] and values[row, c] < i64(a[i, x + at]):
            a[i, x + at] = u64(values[row, c])
        at += 1
    return _settled(form, a, i, x, fits)


@inner
def add_product(form: Array, a: Array, i: int, x: int, b: Array, j: int, y: int, c: Array, k: int, z: int) -> bool:
    """The weight of `a` becomes that of its set and of the matches of `b` each continued by each of `c`."""
    if not present(b, j, y) or not present(c, k, z):
        return True
    if not present(a, i, x):
        put_one(form, a, i, x)
        a[i, x + 1] = u64(0)
    a[i, x] |= b[j, y] | c[k, z]
    limbs, at = form[LIMBS], i64(1)
    fits = _add_product(a, i, x + 1, b, j, y + 1, c, k, z + 1, limbs)
    for _ in range(form[SUMS]):
        at += limbs
        fits = _add_product(a, i, x + at, b, j, y + 1, c, k, z + at, limbs) and fits
        fits = _add_product(a, i, x + at, b, j, y + at, c, k, z + 1, limbs) and fits
    at += limbs
    for w in range(at, at + form[LEASTS]):
        least = min(i64(b[j, y + w]), i64(c[k, z + w]))
        if least < i64(a[i, x + w]):
            a[i, x + w] = u64(least)
    return _settled(form, a, i, x, fits)


@inner
def reaches(form: Array, a: Array, i: int, x: int, least: int) -> bool:
    """Whether there are so many matches, `least` < 2^63."""
    if a[i, x] & u64(HUGE):
        return True
    for limb in range(1, form[LIMBS]):
        if a[i, x + 1 + limb]:
            return True
    return a[i, x + 1] >= u64(least)


@inner
def _settled(form: Array, a: Array, i: int, x: int, fits: bool) -> bool:
    if not fits and form[SATURATES]:
        a[i, x] |= u64(HUGE)
        return True
    return fits


# --- numbers ------------------------------------------------------------------------------------------


@inner
def _add(a: Array, i: int, x: int, b: Array, j: int, y: int, limbs: int) -> bool:
    """Add a number of `b` to one of `a`; False if the sum does not fit."""
    if limbs == 1:
        return _add_small(a, i, x, i64(b[j, y]))
    last = limbs - 1
    before, other = a[i, x + last] >> u64(_TOP), b[j, y + last] >> u64(_TOP)
    carry = u64(0)
    for limb in range(limbs):
        old, more = a[i, x + limb], b[j, y + limb]
        total = old + more
        over = u64(1) if total < old else u64(0)
        total += carry
        if total < carry:
            over = u64(1)
        a[i, x + limb] = total
        carry = over
    return before != other or a[i, x + last] >> u64(_TOP) == before


@inner
def _is_half(value: int) -> bool:
    """Whether products of two such numbers have 63 bits."""
    return -(1 << 31) < value < 1 << 31


@inner
def _add_small(a: Array, i: int, x: int, value: int) -> bool:
    """The same for numbers of one limb."""
    before = i64(a[i, x])
    total = i64(u64(before) + u64(value))  # signed ones are taken not to overflow
    a[i, x] = u64(total)
    return (before ^ total) & (value ^ total) >= 0


@inner
def _add_multiple(a: Array, i: int, x: int, b: Array, j: int, y: int, limbs: int, value: int) -> bool:
    """Add `value` times a number of `b` that is not negative."""
    if limbs == 1 and _is_half(i64(b[j, y])) and _is_half(value):
        return _add_small(a, i, x, i64(b[j, y]) * value)
    top = _top(b, j, y, limbs)
    if top < 0:
        return True
    fits = _share(top, _lead(b, j, y, limbs, top) * abs(np.float64(value)), limbs) < _FITS
    last = limbs - 1
    before, other = a[i, x + last] >> u64(_TOP), u64(1 if value < 0 else 0)
    times = u64(-value) if value < 0 else u64(value)
    carry, over = u64(0), u64(0)
    for limb in range(limbs):
        low = b[j, y + limb] * times
        high = u64(0) if limb == last else _high(b[j, y + limb], times)
        low += carry
        if low < carry:
            high += u64(1)
        carry = high
        old = a[i, x + limb]
        if value < 0:
            total = old - low
            borrow = u64(1) if total > old else u64(0)
            if total < over:
                borrow = u64(1)
            a[i, x + limb] = total - over
            over = borrow
        else:
            total = old + low
            more = u64(1) if total < old else u64(0)
            total += over
            if total < over:
                more = u64(1)
            a[i, x + limb] = total
            over = more
    return fits and (before != other or a[i, x + last] >> u64(_TOP) == before)


@inner
def _add_product(a: Array, i: int, x: int, b: Array, j: int, y: int, c: Array, k: int, z: int, limbs: int) -> bool:
    """Add the product of two numbers, modulo 2^(64 · limbs); False if something does not fit."""
    if limbs == 1 and _is_half(i64(b[j, y])) and _is_half(i64(c[k, z])):
        return _add_small(a, i, x, i64(b[j, y]) * i64(c[k, z]))
    top_b, top_c = _top(b, j, y, limbs), _top(c, k, z, limbs)
    if top_b < 0 or top_c < 0:
        return True
    lead = _lead(b, j, y, limbs, top_b) * _lead(c, k, z, limbs, top_c)
    fits = _share(top_b + top_c, lead, limbs) < _FITS
    last = limbs - 1
    before = a[i, x + last] >> u64(_TOP)
    other = (b[j, y + last] ^ c[k, z + last]) >> u64(_TOP)
    for m in range(limbs):
        factor = b[j, y + m]
        if factor == u64(0):
            continue
        carry = u64(0)
        for n in range(limbs - m):
            low = factor * c[k, z + n]
            high = u64(0) if m + n == last else _high(factor, c[k, z + n])
            low += carry
            if low < carry:
                high += u64(1)
            total = a[i, x + m + n] + low
            if total < low:
                high += u64(1)
            a[i, x + m + n] = total
            carry = high
    return fits and (before != other or a[i, x + last] >> u64(_TOP) == before)


@inner
def _top(a: Array, i: int, x: int, limbs: int) -> int:
    """The last limb that a number's magnitude needs; -1: it is 0."""
    fill = u64(0) if a[i, x + limbs - 1] >> u64(_TOP) == u64(0) else ~u64(0)
    top = i64(limbs - 1)
    while top >= 0 and a[i, x + top] == fill:
        top -= 1
    return max(top, i64(0)) if fill else top


@inner
def _lead(a: Array, i: int, x: int, limbs: int, top: int) -> float:
    """At least the magnitude, divided by 2^(64 · top)."""
    lead = a[i, x + top]
    if a[i, x + limbs - 1] >> u64(_TOP):
        lead = ~lead
    return np.float64(lead) + 1.0


@inner
def _share(top: int, lead: float, limbs: int) -> float:
    """At least `lead` · 2^(64 · top), as a share of the last limb; 2^62 and more: too much."""
    beyond = top - (limbs - 1)
    if beyond > 0:
        return _FITS
    if beyond == 0:
        return lead
    return lead * 2.0**-64 if beyond == -1 else 1.0


@inner
def _high(a: Any, b: Any) -> Any:
    """The upper 64 bits of a product."""
    low, half = u64(_LOW), u64(_HALF)
    a0, a1, b0, b1 = a & low, a >> half, b & low, b >> half
    middle = a1 * b0 + ((a0 * b0) >> half)
    other = a0 * b1 + (middle & low)
    return a1 * b1 + (middle >> half) + (other >> half)
