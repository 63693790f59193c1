"""Rows that come and go in groups, what a Group tells of them, and what is right by arithmetic of fractions alone."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from typing import TypeAlias

import numpy as np
from pyoxigraph import Literal, NamedNode, Quad, Store

from oxiseq.engine.flow import plan as p
from oxiseq.engine.flow.delta import Buffer, Delta
from oxiseq.engine.flow.operators.group import GroupNode
from oxiseq.engine.snapshot.container import pack, unpack
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms
from oxiseq.engine.terms.texts import Term

XSD = "http://www.w3.org/2001/XMLSchema#"
Row: TypeAlias = tuple[Term | None, ...]
Change: TypeAlias = tuple[Row, int]
"""A row and how many come, or go."""
Tick: TypeAlias = list[Change]


def number(text: str, datatype: str) -> Literal:
    return Literal(text, datatype=NamedNode(XSD + datatype))


def integer(value: int) -> Literal:
    return number(str(value), "integer")


@cache
def in_store(term: Term) -> Term:
    """The term as the store writes it."""
    store, probe = Store(), NamedNode("urn:probe")
    store.add(Quad(probe, probe, term))
    return next(iter(store)).object  # type: ignore[return-value]


# --- a group at work --------------------------------------------------------------------------------


@dataclass
class Running:
    """A Group, its terms, and what it has told up to now."""

    form: p.Group
    width: int
    first: int = 0
    terms: TermDictionary = field(default_factory=lambda: TermDictionary(capacity=1))
    told: Counter[Row] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.given = Buffer(self.width, room=1)
        self.node = GroupNode(self.form, self.given, self.terms, room=1)
        self.begun = self.node.begin(self.first)

    def push(self, ticks: Sequence[tuple[int, Tick]]) -> dict[int, Counter[Row]]:
        """One batch; by tick what is there after it, for those at which something changes."""
        changes = [(at, row, weight) for at, tick in ticks for row, weight in tick]
        rows = [[0 if t is None else self.terms.intern(t) for t in row] for _, row, _ in changes]
        self.given.put(
            Delta(
                np.array([at for at, _, _ in changes], np.int64),
                np.array([w for _, _, w in changes], np.int64),
                np.array(rows, np.uint32).reshape(len(rows), self.width),
            )
        )
        self.node.out.clear()
        self.node.step()
        return self._read()

    def _read(self) -> dict[int, Counter[Row]]:
        delta, found = self.node.out.delta, dict[int, Counter[Row]]()
        assert (np.diff(delta.at) >= 0).all()
        assert (delta.weight != 0).all()
        for at in sorted(set(delta.at.tolist())):
            some = delta.take(delta.at == at)
            rows = [tuple(None if i == 0 else self.terms.term(i) for i in row) for row in some.rows.tolist()]
            assert len(set(rows)) == len(rows), "a row that goes and comes in a tick"
            for row, weight in zip(rows, some.weight.tolist(), strict=True):
                self.told[row] += weight
            assert min(self.told.values(), default=0) >= 0
            self.told = +self.told
            found[at] = Counter(self.told)
        return found

    def carried_over(self) -> Running:
        """It, saved and restored among other terms."""
        named = SavedTerms(self.terms)
        saved = self.node.save(named)
        state = unpack(pack({"node": saved, "terms": named.state()}))
        fresh = Running(self.form, self.width, terms=TermDictionary(capacity=1), told=self.told)
        fresh.terms.intern(NamedNode("http://another"))
        fresh.node = GroupNode(self.form, fresh.given, fresh.terms, room=1)
        fresh.node.restore(state["node"], KnownTerms(state["terms"], fresh.terms))
        assert not fresh.node.begin(0)
        return fresh


# --- what is right ----------------------------------------------------------------------------------


def right(form: p.Group, rows: Counter[Row]) -> Counter[Row]:
    """What a Group of these rows is."""
    groups: dict[Row, Counter[Row]] = {} if form.key else {(): Counter()}
    for row, weight in rows.items():
        groups.setdefault(tuple(row[i] for i in form.key), Counter())[row] += weight
    return Counter({(*key, *(_sum(each, some) for each in form.sums)): 1 for key, some in groups.items()})


def _sum(each: p.Sum, rows: Counter[Row]) -> Term | None:
    if each.place is None:
        return integer(rows.total())
    values = [row[each.place] for row in rows.elements()]
    if each.name == "COUNT":
        return integer(sum(v is not None for v in values))
    if each.name == "GROUP_CONCAT":
        return _joined(values, each.separator)
    return _added(values, mean=each.name == "AVG")


def _joined(values: Iterable[Term | None], separator: str) -> Term | None:
    texts = []
    for value in values:
        plain = isinstance(value, Literal) and (value.language or value.datatype.value == XSD + "string")
        if not plain:
            return None
        assert isinstance(value, Literal)
        texts.append((value.value, value.language or ""))
    tags = {tag for _, tag in texts}
    text = separator.join(text for text, _ in sorted(texts))
    return Literal(text, language=tags.pop()) if len(tags) == 1 and tags != {""} else Literal(text)


KINDS = ("integer", "decimal", "float", "double")


def _added(values: Sequence[Term | None], *, mean: bool) -> Term | None:
    kinds = set()
    for value in values:
        kind = value.datatype.value.removeprefix(XSD) if isinstance(value, Literal) else ""
        if kind not in KINDS or value.value.endswith(" "):  # blanks make it ill-typed, in the store as here
            return None
        kinds.add(kind)
    if not values:
        return integer(0)
    kind = max(kinds, key=KINDS.index)
    literals = [v for v in values if isinstance(v, Literal)]
    if kind in ("float", "double"):
        return _of_floats(literals, kind, mean)
    total = sum(map(_value, literals), Fraction(0))
    unit, most = (1, 2**63) if kind == "integer" else (10**18, 2**127)
    if (total * unit).denominator != 1 or not -most <= total * unit < most:
        return None
    if mean:
        total = Fraction(math.trunc(total / len(literals) * 10**18), 10**18)
    return in_store(number(_digits(total), "decimal" if mean else kind))


def _digits(total: Fraction) -> str:
    """With 18 digits behind the dot."""
    units = total * 10**18
    assert units.denominator == 1
    whole, part = divmod(abs(int(units)), 10**18)
    return f"{'-' if units < 0 else ''}{whole}" + (f".{part:018}" if part else "")


def _of_floats(values: Sequence[Literal], kind: str, mean: bool) -> Term:
    special = [float(v.value) for v in values if v.value in ("NaN", "INF", "-INF")]
    narrow = kind == "float"
    total = sum(special) if special else rounded(sum(map(_value, values), Fraction(0)), narrow)
    count = len(values)
    with np.errstate(all="ignore"):
        if mean:
            total = float(np.float32(total) / np.float32(count)) if narrow else float(np.float64(total) / count)
    text = "NaN" if math.isnan(total) else "INF" if total == math.inf else "-INF" if total == -math.inf else repr(total)
    if narrow and math.isfinite(total):
        text = str(np.float32(total))
    return in_store(number(text, kind))


def _value(value: Literal) -> Fraction:
    """Floats and doubles are what their texts are nearest to."""
    kind = value.datatype.value.removeprefix(XSD)
    if kind == "float":
        return Fraction(float(np.float32(value.value)))
    return Fraction(float(value.value)) if kind == "double" else Fraction(value.value)


def rounded(total: Fraction, narrow: bool) -> float:
    """The float or double nearest to a fraction, even of two; infinite where the next power of two would be."""
    if total == 0:
        return 0.0
    digits, lowest, highest = (24, -149, 104) if narrow else (53, -1074, 971)
    size = abs(total)
    e = max(lowest, size.numerator.bit_length() - size.denominator.bit_length() - digits - 1)  # or some more
    while size >= Fraction(2) ** (e + digits):
        e += 1
    c = round(size / Fraction(2) ** e)  # of two the even one
    if c == 2**digits:
        c, e = c // 2, e + 1
    nearest = math.inf if e > highest else math.ldexp(c, e)
    return nearest if total > 0 else -nearest


# --- cases ------------------------------------------------------------------------------------------


def random_ticks(dice: random.Random, pool: Sequence[Row], count: int) -> list[Tick]:
    """Rows of a pool that come, several times perhaps, and go again, in any order within a tick."""
    there: Counter[Row] = Counter()
    ticks = []
    for _ in range(count):
        tick: Tick = []
        for _ in range(dice.choice((1, 1, 2, 5))):
            known = [row for row, weight in there.items() if weight]
            if known and dice.random() < 0.45:
                row = dice.choice(known)
                weight = -dice.randint(1, there[row])
            else:
                row, weight = dice.choice(pool), dice.choice((1, 1, 1, 2, 3))
            there[row] += weight
            tick.append((row, weight))
        dice.shuffle(tick)
        ticks.append(tick)
    return ticks


def check(dice: random.Random, form: p.Group, pool: Sequence[Row], count: int = 12) -> None:
    """A group over random rows, in batches cut anywhere, saved and restored between some, is right at every tick."""
    ticks = list(enumerate(random_ticks(dice, pool, count), start=dice.choice((0, 5))))
    running = Running(form, len(pool[0]), first=ticks[0][0])
    rows: Counter[Row] = Counter()
    while ticks:
        size = dice.choice((1, 1, 3, 8))
        batch, ticks = ticks[:size], ticks[size:]
        now = Counter(running.told)
        found = running.push(batch)
        for at, tick in batch:
            for row, weight in tick:
                rows[row] += weight
            rows = +rows
            now = found.get(at, now)
            assert now == right(form, rows)
        assert running.node.records == max(len(now), not form.key)
        if dice.random() < 0.2:
            running = running.carried_over()
