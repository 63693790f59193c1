"""Numbers on the stack machine: comparison and arithmetic with known error bounds.

A number is five scalars: kind, `f` its double, `e` a bound on |value − f| (0: `f` is the value), `i` the
exact integer or decimal mantissa, `q` the quality bits of engine/kinds.py. Everything is decided by doubles
when their bounds allow, by mantissas when those are at hand, else not at all: never wrongly (matching.md 5).
"""

from __future__ import annotations

from typing import Final

import numpy as np

from oxiseq.engine import kinds
from oxiseq.engine.kernels.compiling.options import inner

LESS: Final = -1
SAME: Final = 0
MORE: Final = 1
UNORDERED: Final = 2
"""One side is NaN: every comparison is false but `!=`."""
NOT_DECIDED: Final = 3

UNDECIDED_KIND: Final = 13
"""Kind of a value that the machine cannot compute; beyond the kinds of terms."""

ADD: Final = 12
SUBTRACT: Final = 13
MULTIPLY: Final = 14
DIVIDE: Final = 15

_INTEGER: Final = kinds.INTEGER
_DECIMAL: Final = kinds.DECIMAL
_FLOAT: Final = kinds.FLOAT
_DOUBLE: Final = kinds.DOUBLE
_ROUNDED: Final = kinds.ROUNDED
_EXACT: Final = kinds.EXACT_INTEGER
_EXACT_NUMBER: Final = kinds.EXACT_NUMBER
_SHIFT: Final = kinds.SCALE_SHIFT
_MAX_SCALE: Final = kinds.MAX_SCALE

_POWERS = np.array([10**k for k in range(19)], np.int64)
_HALF_ULP: Final = 2.0**-53
_TINY: Final = 1e-300
"""Added to every error bound: covers what underflows."""
_FLOAT_TINY: Final = 1e-44
_FLOAT_MAX: Final = 3.4028e38
_SAFE_PRODUCT: Final = 9.2e18
_CUT: Final = 2e-18
"""A decimal quotient is cut off after 18 digits: 1e-18, and some."""


@inner
def error_bound(kind: int, f: float, q: int) -> float:
    """The bound `e` of a term's number."""
    if kind >= _FLOAT or q & _EXACT_NUMBER:
        return 0.0
    if q & _ROUNDED:
        return abs(f) * _HALF_ULP + _TINY
    return np.inf


@inner
def promote(target: int, kind: int, f: float, e: float, q: int) -> tuple[float, float]:
    """(f, e) of a number brought to float or double: rounded once, or with a bound that covers it."""
    if kind in (target, _FLOAT):
        return f, e
    if target == _DOUBLE:
        if q & _ROUNDED:
            return f, 0.0
        return f, e + abs(f) * (2.0 * _HALF_ULP) + _TINY
    single = np.float64(np.float32(f))
    if q & _EXACT_NUMBER:
        return single, 0.0
    if q & _ROUNDED:
        # rounding twice goes wrong only where the double is a tie of float32
        other = f + (f - single)
        if single == f or np.float64(np.float32(other)) != other:
            return single, 0.0
    return single, e + abs(f) * 2.0**-23 + _FLOAT_TINY


@inner
def product_fits(a: int, b: int) -> bool:
    """Whether a · b fits int64 (with a small reserve)."""
    return abs(np.float64(a) * np.float64(b)) < _SAFE_PRODUCT


@inner
def order(k1: int, f1: float, e1: float, i1: int, q1: int, k2: int, f2: float, e2: float, i2: int, q2: int) -> int:
    """How two numbers compare: LESS, SAME, MORE, UNORDERED or NOT_DECIDED."""
    if k1 >= _FLOAT or k2 >= _FLOAT:
        target = max(k1, k2)
        f1, e1 = promote(target, k1, f1, e1, q1)
        f2, e2 = promote(target, k2, f2, e2, q2)
        if e1 == 0.0 and e2 == 0.0:
            if f1 != f1 or f2 != f2:
                return UNORDERED
            return LESS if f1 < f2 else MORE if f1 > f2 else SAME
        if f1 != f1 or f2 != f2:
            return NOT_DECIDED
    elif q1 & _ROUNDED and q2 & _ROUNDED and f1 != f2:
        return LESS if f1 < f2 else MORE  # rounding to nearest is monotone
    elif q1 & _EXACT and q2 & _EXACT:
        s1, s2 = q1 >> _SHIFT, q2 >> _SHIFT
        if s1 < s2:
            if not product_fits(i1, _POWERS[s2 - s1]):
                return NOT_DECIDED
            i1 *= _POWERS[s2 - s1]
        elif s2 < s1:
            if not product_fits(i2, _POWERS[s1 - s2]):
                return NOT_DECIDED
            i2 *= _POWERS[s1 - s2]
        return LESS if i1 < i2 else MORE if i1 > i2 else SAME
    if abs(f1 - f2) > (e1 + e2) * 1.0001:
        return LESS if f1 < f2 else MORE
    return NOT_DECIDED


@inner
def from_mantissa(kind: int, i: int, scale: int) -> tuple[int, float, float, int, int]:
    """The number i · 10^-scale; scale at most MAX_SCALE."""
    small = -(1 << 53) <= i <= (1 << 53)
    if scale == 0:
        f = np.float64(i)
        q = _ROUNDED | _EXACT | (_EXACT_NUMBER if small else 0)
        return kind, f, 0.0 if small else abs(f) * _HALF_ULP, i, q
    f = np.float64(i) / np.float64(_POWERS[scale])
    q = _EXACT | scale << _SHIFT
    if small:  # one division of exact operands rounds correctly
        return kind, f, abs(f) * _HALF_ULP + _TINY, i, q | _ROUNDED
    return kind, f, abs(f) * (4.0 * _HALF_ULP) + _TINY, i, q


@inner
def _undecided() -> tuple[int, float, float, int, int]:
    return UNDECIDED_KIND, 0.0, 0.0, 0, 0


@inner
def _with_bounds(op: int, kind: int, f1: float, e1: float, f2: float, e2: float) -> tuple[int, float, float, int, int]:
    """The operation on doubles with error bounds, its own rounding included."""
    if op == ADD:
        f, e = f1 + f2, e1 + e2
    elif op == SUBTRACT:
        f, e = f1 - f2, e1 + e2
    elif op == MULTIPLY:
        f, e = f1 * f2, abs(f1) * e2 + abs(f2) * e1 + e1 * e2
    else:
        least = abs(f2) - e2
        if not least > 0.0:
            return _undecided()  # the divisor may be zero
        f = f1 / f2
        e = (e1 + abs(f) * e2) / least + (_CUT if kind == _DECIMAL else 0.0)
    e = e * 1.0001 + abs(f) * 2.0**-51 + _TINY
    if kind == _FLOAT:
        e += abs(f) * 2.0**-22 + _FLOAT_TINY
        if abs(f) + e > _FLOAT_MAX:
            return _undecided()
    if not (np.isfinite(f) and np.isfinite(e)):
        return _undecided()
    return kind, f, e, 0, 0


@inner
def _float_operation(
    op: int, kind: int, f1: float, e1: float, f2: float, e2: float
) -> tuple[int, float, float, int, int]:
    if e1 != 0.0 or e2 != 0.0:
        if f1 != f1 or f2 != f2:
            return _undecided()
        return _with_bounds(op, kind, f1, e1, f2, e2)
    if op == ADD:
        f = f1 + f2
    elif op == SUBTRACT:
        f = f1 - f2
    elif op == MULTIPLY:
        f = f1 * f2
    else:
        f = f1 / f2
    if kind == _FLOAT:
        f = np.float64(np.float32(f))
    return kind, f, 0.0, 0, _ROUNDED | _EXACT_NUMBER


@inner
def _exact_quotient(i1: int, s1: int, i2: int, s2: int) -> tuple[bool, int, int]:
    """(found, mantissa, scale) of a quotient that few digits write; (False, ...) else."""
    if i2 == -1:
        if i1 == -(1 << 63):
            return False, 0, 0
    scale = s1 - s2
    for _ in range(8):
        if i1 % i2 == 0:
            q = i1 // i2
            while scale < 0:
                if not product_fits(q, 10):
                    return False, 0, 0
                q *= 10
                scale += 1
            return scale <= _MAX_SCALE, q, scale
        if not product_fits(i1, 10):
            return False, 0, 0
        i1 *= 10
        scale += 1
    return False, 0, 0


@inner
def _exact_operation(op: int, kind: int, i1: int, s1: int, i2: int, s2: int) -> tuple[bool, int, int]:
    """(found, mantissa, scale) of the operation on decimals; found is False where int64 does not hold it."""
    if op == DIVIDE:
        return _exact_quotient(i1, s1, i2, s2)
    if op == MULTIPLY:
        if not product_fits(i1, i2):
            return False, 0, 0
        i, scale = i1 * i2, s1 + s2
        while scale > _MAX_SCALE and i % 10 == 0:
            i //= 10
            scale -= 1
        return scale <= _MAX_SCALE, i, scale
    scale = max(s1, s2)
    p1, p2 = _POWERS[scale - s1], _POWERS[scale - s2]
    if not (product_fits(i1, p1) and product_fits(i2, p2)):
        return False, 0, 0
    i1 *= p1
    i2 *= p2
    if abs(np.float64(i1)) + abs(np.float64(i2)) >= _SAFE_PRODUCT:
        return False, 0, 0
    return True, i1 + i2 if op == ADD else i1 - i2, scale


@inner
def operate(
    op: int, k1: int, f1: float, e1: float, i1: int, q1: int, k2: int, f2: float, e2: float, i2: int, q2: int
) -> tuple[int, float, float, int, int]:
    """(kind, f, e, i, q) of `a op b` for two numbers; kind 0 is an error, UNDECIDED_KIND not known."""
    kind = max(k1, k2)
    if kind >= _FLOAT:
        f1, e1 = promote(kind, k1, f1, e1, q1)
        f2, e2 = promote(kind, k2, f2, e2, q2)
        return _float_operation(op, kind, f1, e1, f2, e2)
    if op == DIVIDE:
        kind = _DECIMAL
        if q2 & _EXACT and i2 == 0:
            return 0, 0.0, 0.0, 0, 0
    if q1 & _EXACT and q2 & _EXACT:
        found, i, scale = _exact_operation(op, kind, i1, q1 >> _SHIFT, i2, q2 >> _SHIFT)
        if found:
            return from_mantissa(kind, i, scale)
    return _with_bounds(op, kind, f1, e1, f2, e2)


@inner
def negate(kind: int, f: float, e: float, i: int, q: int) -> tuple[int, float, float, int, int]:
    """−a for a number. Only floats have a negative zero: x / -0 with an integer 0 is that of x / 0."""
    f = -f if kind >= _FLOAT else 0.0 - f
    if q & _EXACT and i == -(1 << 63):
        return kind, f, e, 0, q & _ROUNDED
    return kind, f, e, -i, q
