"""The stack machine: filter conditions over term ids, with four outcomes.

In the flow: `expressions.program` compiles postfix code; the match kernel and the sequence kernel run it
here on a vector of term ids and the term columns. An outcome is FALSE, TRUE, ERROR or UNDECIDED; what is
undecided, `expressions.exact` decides in Python. The machine never contradicts it.

Code is int32, position independent: `FRAME depth` first (the stack entries that it needs), then operators.

A stack entry is a row of `numbers` (value, error bound) and one of `entries` (kind, exact, quality, term id;
id 0: computed). Kind 0 is an error, UNDECIDED_KIND for a value that the machine cannot compute.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from oxiseq.engine import kinds
from oxiseq.engine.kernels.compiling.options import inner, kernel
from oxiseq.engine.kernels.expressions.arithmetic import (
    LESS,
    MORE,
    NOT_DECIDED,
    SAME,
    UNDECIDED_KIND,
    UNORDERED,
    error_bound,
    negate,
    operate,
    order,
)
from oxiseq.engine.kernels.memory.numbers import i64
from oxiseq.engine.kernels.memory.pointers import Array

FALSE: Final = 0
TRUE: Final = 1
ERROR: Final = 2
UNDECIDED: Final = 3

# operators; their arguments follow them in the code
FRAME: Final = 0
"""depth"""
VARIABLE: Final = 1
"""slot"""
CONSTANT: Final = 2
"""term id"""
EQUAL: Final = 3
UNEQUAL: Final = 4
BELOW: Final = 5
ABOVE: Final = 6
AT_MOST: Final = 7
AT_LEAST: Final = 8
AND: Final = 9
OR: Final = 10
NOT: Final = 11
# 12 to 15: + - * / (arithmetic.py)
DIVIDE: Final = 15
NEGATE: Final = 16
PLUS: Final = 17
BOUND: Final = 18
"""slot"""
SAME_TERM: Final = 19
MEMO: Final = 20
"""table, slot: an outcome kept per term id (0 not known, 1 false, 2 true, 3 error)"""
FOREIGN: Final = 21
"""n: takes n entries, gives a value that the machine cannot compute"""
FUSED: Final = 22
"""comparison, slot, term id: `variable op constant` for a numeric constant"""
OF_KIND: Final = 23
"""least, most: whether the kind of a term or value is one of these"""

_BLANK: Final = kinds.BLANK
_STRING: Final = kinds.STRING
_LANGSTRING: Final = kinds.LANGSTRING
_BOOLEAN: Final = kinds.BOOLEAN
_INTEGER: Final = kinds.INTEGER
_FLOAT: Final = kinds.FLOAT
_DOUBLE: Final = kinds.DOUBLE
_DATETIME: Final = kinds.DATETIME
_UNKNOWN: Final = kinds.UNKNOWN
_OTHER: Final = kinds.OTHER
_ROUNDED: Final = kinds.ROUNDED
_EXACT: Final = kinds.EXACT_INTEGER
_ZONED: Final = kinds.ZONED
_EMPTY: Final = kinds.EMPTY
_FOURTEEN_HOURS: Final = 14 * 3600 * 1_000_000


@inner
def relation(op: int, standing: int) -> int:
    """The outcome of a comparison operator, given how the operands compare."""
    if standing == NOT_DECIDED:
        return UNDECIDED
    if op == EQUAL:
        return TRUE if standing == SAME else FALSE
    if op == UNEQUAL:
        return FALSE if standing == SAME else TRUE
    if standing == UNORDERED:
        return FALSE
    if op == BELOW:
        return TRUE if standing == LESS else FALSE
    if op == ABOVE:
        return TRUE if standing == MORE else FALSE
    if op == AT_MOST:
        return FALSE if standing == MORE else TRUE
    return FALSE if standing == LESS else TRUE


@inner
def _date_relation(op: int, i1: int, q1: int, i2: int, q2: int) -> int:
    """XSD's partial order; zoned and local ones are equal never, ordered when more than 14 hours apart."""
    mixed = (q1 ^ q2) & _ZONED
    if mixed and op <= UNEQUAL:
        return FALSE if op == EQUAL else TRUE
    if not (q1 & _EXACT and q2 & _EXACT):
        return UNDECIDED
    standing = LESS if i1 < i2 else MORE if i1 > i2 else SAME
    if mixed:
        apart = i1 - i2
        wrapped = ((i1 ^ i2) & (i1 ^ apart)) < 0
        if not wrapped and -_FOURTEEN_HOURS <= apart <= _FOURTEEN_HOURS:
            return ERROR
    return relation(op, standing)


@inner
def _plain_relation(op: int, k1: int, i1: int, q1: int, id1: int, k2: int, i2: int, q2: int, id2: int) -> int:
    """A comparison of two values that are not both numbers; kinds are above 0 and known."""
    if k1 == _DATETIME and k2 == _DATETIME:
        return _date_relation(op, i1, q1, i2, q2)
    if k1 == _BOOLEAN and k2 == _BOOLEAN:
        return relation(op, LESS if i1 < i2 else MORE if i1 > i2 else SAME)
    same = id1 != 0 and id1 == id2
    if op > UNEQUAL:
        if k1 == _STRING and k2 == _STRING:
            return relation(op, SAME) if same else UNDECIDED
        return UNDECIDED if k1 == _OTHER and k2 == _OTHER else ERROR
    if same:
        return relation(op, SAME)
    if k1 <= _BLANK or k2 <= _BLANK or k1 == _LANGSTRING or k2 == _LANGSTRING:
        return relation(op, UNORDERED)
    if k1 == _UNKNOWN or k2 == _UNKNOWN:
        return UNDECIDED if k1 == _OTHER or k2 == _OTHER else ERROR  # a triple term equals no literal
    if k1 == _OTHER and k2 == _OTHER:
        return UNDECIDED
    return relation(op, UNORDERED)


@inner
def _ebv(k: int, f: float, e: float, i: int, q: int) -> int:
    """The effective boolean value of one entry."""
    if k == _BOOLEAN:
        return TRUE if i != 0 else FALSE
    if _INTEGER <= k <= _DOUBLE:
        if k >= _FLOAT and e == 0.0:
            return TRUE if f != 0.0 and f == f else FALSE
        if q & _EXACT:
            return TRUE if i != 0 else FALSE
        return TRUE if abs(f) > e else UNDECIDED
    if k == _STRING:
        return FALSE if q & _EMPTY else TRUE
    return UNDECIDED if k == UNDECIDED_KIND else ERROR


@inner
def entry_truth(n: int, numbers: Array, entries: Array) -> int:
    """The effective boolean value of entry n: FALSE, TRUE, ERROR or UNDECIDED."""
    return _ebv(entries[n, 0], numbers[n, 0], numbers[n, 1], entries[n, 1], entries[n, 2])


@inner
def fused(op: int, t: int, c: int, kind: Array, number: Array, exact: Array, quality: Array) -> int:
    """`term t op term c`: most are decided by the doubles alone. 0: unbound."""
    if t == 0 or c == 0:
        return ERROR
    k1, k2 = i64(kind[t]), i64(kind[c])
    q1, q2 = i64(quality[t]), i64(quality[c])
    f1, f2 = number[t], number[c]
    if not (_INTEGER <= k1 <= _DOUBLE and _INTEGER <= k2 <= _DOUBLE):
        return _plain_relation(op, k1, exact[t], q1, t, k2, exact[c], q2, c)
    if k1 != _FLOAT and k2 != _FLOAT and q1 & q2 & _ROUNDED:
        if f1 < f2:
            return relation(op, LESS)
        if f1 > f2:
            return relation(op, MORE)
    e1, e2 = error_bound(k1, f1, q1), error_bound(k2, f2, q2)
    return relation(op, order(k1, f1, e1, exact[t], q1, k2, f2, e2, exact[c], q2))


@inner
def _connect(op: int, a: int, b: int) -> int:
    """Three-valued `&&` and `||`, plus undecided."""
    deciding = FALSE if op == AND else TRUE
    if a == deciding or b == deciding:
        return deciding
    if a == UNDECIDED or b == UNDECIDED:
        return UNDECIDED
    if a == ERROR or b == ERROR:
        return ERROR
    return TRUE if op == AND else FALSE


@inner
def _push_outcome(outcome: int, n: int, numbers: Array, entries: Array) -> None:
    k = _BOOLEAN if outcome <= TRUE else 0 if outcome == ERROR else UNDECIDED_KIND
    entries[n, 0] = k
    entries[n, 1] = outcome
    entries[n, 2] = 0
    entries[n, 3] = 0
    numbers[n, 0] = 0.0
    numbers[n, 1] = 0.0


@inner
def _compare(op: int, n: int, numbers: Array, entries: Array) -> int:
    """The comparison of the entries n and n + 1."""
    k1, k2 = entries[n, 0], entries[n + 1, 0]
    if k1 == 0 or k2 == 0:
        return ERROR
    if k1 == UNDECIDED_KIND or k2 == UNDECIDED_KIND:
        return UNDECIDED
    if _INTEGER <= k1 <= _DOUBLE and _INTEGER <= k2 <= _DOUBLE:
        standing = order(
            k1,
            numbers[n, 0],
            numbers[n, 1],
            entries[n, 1],
            entries[n, 2],
            k2,
            numbers[n + 1, 0],
            numbers[n + 1, 1],
            entries[n + 1, 1],
            entries[n + 1, 2],
        )
        return relation(op, standing)
    return _plain_relation(
        op,
        k1,
        entries[n, 1],
        entries[n, 2],
        entries[n, 3],
        k2,
        entries[n + 1, 1],
        entries[n + 1, 2],
        entries[n + 1, 3],
    )


@inner
def _same_term(n: int, entries: Array) -> int:
    if entries[n, 0] == 0 or entries[n + 1, 0] == 0:
        return ERROR
    id1, id2 = entries[n, 3], entries[n + 1, 3]
    if id1 == 0 or id2 == 0:
        return UNDECIDED
    return TRUE if id1 == id2 else FALSE


@inner
def _calculate(op: int, n: int, numbers: Array, entries: Array) -> None:
    """Entries n and n + 1 → their sum, difference, product or quotient in n."""
    k1, k2 = entries[n, 0], entries[n + 1, 0]
    if _INTEGER <= k1 <= _DOUBLE and _INTEGER <= k2 <= _DOUBLE:
        k, f, e, i, q = operate(
            op,
            k1,
            numbers[n, 0],
            numbers[n, 1],
            entries[n, 1],
            entries[n, 2],
            k2,
            numbers[n + 1, 0],
            numbers[n + 1, 1],
            entries[n + 1, 1],
            entries[n + 1, 2],
        )
    else:
        k, f, e, i, q = UNDECIDED_KIND, 0.0, 0.0, 0, 0
        if _no_operand(k1) or _no_operand(k2):
            k = 0
    _store(n, k, f, e, i, q, numbers, entries)


@inner
def _no_operand(k: int) -> bool:
    """Whether arithmetic on this kind is an error whatever the other side is; dates are Python's business."""
    return k < _INTEGER or k == _UNKNOWN


@inner
def _store(n: int, k: int, f: float, e: float, i: int, q: int, numbers: Array, entries: Array) -> None:
    """A computed value into entry n."""
    numbers[n, 0] = f
    numbers[n, 1] = e
    entries[n, 0] = k
    entries[n, 1] = i
    entries[n, 2] = q
    entries[n, 3] = 0


@inner
def _sign(op: int, n: int, numbers: Array, entries: Array) -> None:
    k = entries[n, 0]
    if _INTEGER <= k <= _DOUBLE:
        if op == NEGATE:
            k, f, e, i, q = negate(k, numbers[n, 0], numbers[n, 1], entries[n, 1], entries[n, 2])
            _store(n, k, f, e, i, q, numbers, entries)
        entries[n, 3] = 0
    elif k != UNDECIDED_KIND and k != _OTHER:
        entries[n, 0] = 0
    else:
        entries[n, 0] = UNDECIDED_KIND
        entries[n, 3] = 0  # it is another term than its operand


@inner
def _of_kind(k: int, least: int, most: int) -> int:
    """Other terms may be literals or triple terms."""
    if k == UNDECIDED_KIND or k == _OTHER <= most:
        return UNDECIDED
    if k == kinds.NONE:
        return ERROR
    return TRUE if least <= k <= most else FALSE


@inner
def _load(
    t: int, n: int, kind: Array, number: Array, exact: Array, quality: Array, numbers: Array, entries: Array
) -> None:
    k, f, q = i64(kind[t]), number[t], i64(quality[t])
    entries[n, 0] = k
    entries[n, 1] = exact[t]
    entries[n, 2] = q
    entries[n, 3] = t
    numbers[n, 0] = f
    numbers[n, 1] = error_bound(k, f, q)


@inner
def run(
    code: Array,
    start: int,
    end: int,
    vals: Array,
    kind: Array,
    number: Array,
    exact: Array,
    quality: Array,
    memo: Array,
    numbers: Array,
    entries: Array,
) -> None:
    """Run code[start:end]; the result is left in entry 0.

    code: int32, beginning with FRAME. vals: int64 term ids by slot, 0 unbound. kind, number, exact, quality:
    the term columns. memo: u8[tables, terms]. numbers: f64[depth, 2], entries: i64[depth, 4], scratch.
    """
    n = 0  # entries in use
    at = start + 2
    while at < end:
        op = code[at]
        at += 1
        if op == FUSED:
            outcome = fused(code[at], vals[code[at + 1]], code[at + 2], kind, number, exact, quality)
            _push_outcome(outcome, n, numbers, entries)
            n += 1
            at += 3
        elif VARIABLE <= op <= CONSTANT:
            t = vals[code[at]] if op == VARIABLE else i64(code[at])
            _load(t, n, kind, number, exact, quality, numbers, entries)
            n += 1
            at += 1
        elif op <= AT_LEAST:
            n -= 1
            _push_outcome(_compare(op, n - 1, numbers, entries), n - 1, numbers, entries)
        elif AND <= op <= OR:
            n -= 1
            joint = _connect(op, entry_truth(n - 1, numbers, entries), entry_truth(n, numbers, entries))
            _push_outcome(joint, n - 1, numbers, entries)
        elif op == NOT:
            a = entry_truth(n - 1, numbers, entries)
            _push_outcome(a if a > TRUE else 1 - a, n - 1, numbers, entries)
        elif op <= DIVIDE:
            n -= 1
            _calculate(op, n - 1, numbers, entries)
        elif op <= PLUS:
            _sign(op, n - 1, numbers, entries)
        elif op == BOUND:
            _push_outcome(TRUE if vals[code[at]] != 0 else FALSE, n, numbers, entries)
            n += 1
            at += 1
        elif op == SAME_TERM:
            n -= 1
            _push_outcome(_same_term(n - 1, entries), n - 1, numbers, entries)
        elif op == MEMO:
            t = vals[code[at + 1]]
            known = i64(memo[code[at], t]) if t != 0 else 3
            outcome = UNDECIDED if known == 0 else known - 1
            _push_outcome(outcome, n, numbers, entries)
            n += 1
            at += 2
        elif op == OF_KIND:
            _push_outcome(_of_kind(entries[n - 1, 0], code[at], code[at + 1]), n - 1, numbers, entries)
            at += 2
        else:  # FOREIGN
            n -= code[at]
            _push_outcome(UNDECIDED, n, numbers, entries)
            n += 1
            at += 1


@inner
def truth(
    code: Array,
    start: int,
    end: int,
    vals: Array,
    kind: Array,
    number: Array,
    exact: Array,
    quality: Array,
    memo: Array,
    numbers: Array,
    entries: Array,
) -> int:
    """The outcome of the condition code[start:end]: FALSE, TRUE, ERROR or UNDECIDED; parameters are as of `run`.
    Comparisons of a variable with a number or another variable need no stack."""
    first = code[start + 2]
    if first == FUSED and end == start + 6:
        return fused(code[start + 3], vals[code[start + 4]], code[start + 5], kind, number, exact, quality)
    if end == start + 7 and first == VARIABLE and code[start + 4] == VARIABLE and EQUAL <= code[start + 6] <= AT_LEAST:
        a, b = vals[code[start + 3]], vals[code[start + 5]]
        return fused(code[start + 6], a, b, kind, number, exact, quality)
    run(code, start, end, vals, kind, number, exact, quality, memo, numbers, entries)
    return entry_truth(0, numbers, entries)


@inner
def value(
    code: Array,
    start: int,
    end: int,
    vals: Array,
    kind: Array,
    number: Array,
    exact: Array,
    quality: Array,
    memo: Array,
    numbers: Array,
    entries: Array,
) -> tuple[int, float, int, int]:
    """(kind, number, exact, quality) of the expression code[start:end], as the term columns have them; parameters are
    as of `run`.

    Kind 0 is an error; UNDECIDED_KIND (13) a value that the machine cannot compute. A number without the
    quality bit ROUNDED is near its value only.
    """
    run(code, start, end, vals, kind, number, exact, quality, memo, numbers, entries)
    return entries[0, 0], numbers[0, 0], entries[0, 1], entries[0, 2]


@kernel
def truth_column(
    code: Array, start: int, end: int, vals: Array, kind: Array, number: Array, exact: Array, quality: Array
) -> Any:
    """`truth` of every row of `vals` (int64[n, slots]): u8[n]."""
    n, depth = vals.shape[0], code[start + 1]
    numbers = np.empty((depth, 2), np.float64)
    entries = np.empty((depth, 4), np.int64)
    memo = np.empty((1, 1), np.uint8)
    outcomes = np.empty(n, np.uint8)
    for r in range(n):
        outcomes[r] = truth(code, start, end, vals[r], kind, number, exact, quality, memo, numbers, entries)
    return outcomes
