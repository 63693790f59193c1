"""The queries: what each step asks for, once as CEQL text (and SPAseq for stocks), once as plain tests for count.py."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Literal, TypeAlias

from benchmarks.data import NS, STREAM

Test: TypeAlias = tuple[str, Literal["=", ">", ">="], str | int | float]
"""Attribute, comparison, value."""
Stream: TypeAlias = Literal["stocks", "homes", "taxis"]
LIMIT: Final = 1_000
"""Complex events enumerated for an event that completes some."""
LENGTHS: Final = (3, 6, 9, 12, 24)
SECONDS: Final = (10, 20, 30, 40, 400)
"""Windows of the variants; the paper's are the first four."""
"""Of them the first is that of all others but Q1 to Q7."""
TAXIS: Final = 1_000
"""How many times as long the windows of the taxis' queries are: 10,000 seconds (Appendix F)."""

STOCKS: Final = (
    ("SELL", "INTC"),
    ("BUY", "RIMM"),
    ("BUY", "QQQ"),
    ("SELL", "IPIX"),
    ("BUY", "AMAT"),
    ("BUY", "CSCO"),
    ("SELL", "YHOO"),
    ("BUY", "DELL"),
    ("BUY", "ORCL"),
    ("SELL", "MSFT"),
    ("BUY", "INTC"),
    ("BUY", "RIMM"),
)
"""The first twelve steps; the next twelve are the same again, here and below."""
HOMES: Final = (0, 2, 4, 6, 9, 10, 12, 14, 15, 4, 9, 10)
LOAD: Final = 76
"""A load is asked to be above it."""
_ZONES = (
    "East Harlem North",
    "Midwood",
    "Gravesend",
    "West Brighton",
    "Lincoln Square West",
    "Sutton Place/Turtle Bay North",
    "East Concourse/Concourse Village",
)
_ROUTE = (0, 1, 2, 3, 4, 5, 6, 0, 0, 2, 1, 1, 2)
TRIPS: Final = tuple((_ZONES[a], _ZONES[b]) for a, b in pairwise(_ROUTE))
NOBODY: Final = "NotExists"
"""What a primed query's last step asks for: no event has it."""


@dataclass(frozen=True, slots=True)
class Step:
    """One event of `types` for which all tests hold; `more`: one or more such events, not necessarily adjacent."""

    types: tuple[str, ...]
    tests: tuple[Test, ...]
    more: bool = False
    name: str = ""


@dataclass(frozen=True, slots=True)
class Query:
    """A sequence of steps with `;` between them, in a window over the attribute `clock`.

    `window` in its unit; `shared` are tests asked of all steps at once, which are in the steps' tests too.
    """

    name: str
    stream: Stream
    steps: tuple[Step, ...]
    clock: str
    window: int
    by: str | None = None
    last: bool = False
    shared: tuple[Test, ...] = ()

    @property
    def primed(self) -> bool:
        """Whether nothing completes it."""
        return "'" in self.name

    @property
    def coded(self) -> bool:
        """Whether it is asked of RDF events too: S3 to S24, primed or not, in the usual window."""
        return self.name[0] == "S" and " " not in self.name

    @property
    def text(self) -> str:
        """In CEQL."""
        names = [step.name or f"T{n}" for n, step in enumerate(self.steps, 1)]
        parts = "; ".join(_element(step, name) for step, name in zip(self.steps, names, strict=True))
        asked = [
            f"{name}[{_predicate(t for t in step.tests if t not in self.shared)}]"
            for step, name in zip(self.steps, names, strict=True)
        ]
        if self.shared:
            parts, asked = f"({parts}) AS Every", [f"Every[{_predicate(iter(self.shared))}]", *asked]
        return "\n".join(
            [
                f"VOCAB <{NS}>",
                f"SELECT {'LAST ' if self.last else ''}* FROM stocks",
                f"WHERE {parts}",
                f"FILTER {' AND '.join(asked)}",
                *([f"PARTITION BY [{self.by}]"] if self.by else []),
                f"WITHIN {self.window} [{self.clock}]",
                "CONSUME BY ANY",
                f"LIMIT {LIMIT}",
            ]
        )

    def spaseq(self, clauses: bool) -> str:
        """In SPAseq, for stocks, whose clock is the events' time in milliseconds. `clauses`: with CONSUME BY and LIMIT,
        which make no difference to a query that nothing completes."""
        names = [f"G{n}" for n in range(len(self.steps))]
        gpms = "\n".join(
            f"  DEFINE GPM {name} ON S {{ {_pattern(step, n)} }}"
            for n, (name, step) in enumerate(zip(names, self.steps, strict=True))
        )
        return "\n".join(
            [
                f"PREFIX : <{NS}>",
                f"SELECT {' '.join(f'?e{n}' for n in range(len(names)))}",
                f"WITHIN {self.window // 1000} SECONDS SLIDING",
                *(["CONSUME BY ANY"] if clauses else []),
                f"FROM STREAM S <{STREAM}>",
                f"WHERE {{\n  SEQ({' : '.join(names)})",
                f"{gpms}\n}}",
                *([f"LIMIT {LIMIT}"] if clauses else []),
            ]
        )


def every() -> tuple[Query, ...]:
    """All queries, each name once."""
    return (*_family("S", stock_step), *_family("H", home_step), *_family("T", trip_step), *_others())


def stock_step(number: int) -> Step:
    """Step `number` of S3 to S24, counted from 0; -1: the one that nothing fits. The next two likewise."""
    kind, name = ("BUY", NOBODY) if number < 0 else STOCKS[number % 12]
    return Step((kind,), (("name", "=", name),))


def home_step(number: int) -> Step:
    """A household."""
    return Step(("LOAD",), (("household_id", "=", 1_000 if number < 0 else HOMES[number % 12]), ("value", ">", LOAD)))


def trip_step(number: int) -> Step:
    """A pair of zones."""
    if number < 0:
        return Step(("TRIP",), (("pickup_zone", "=", NOBODY),))
    start, end = TRIPS[number % 12]
    return Step(("TRIP",), (("pickup_zone", "=", start), ("dropoff_zone", "=", end)))


def _family(letter: str, step: Callable[[int], Step]) -> Iterator[Query]:
    kinds: dict[str, tuple[Stream, str, int]] = {
        "S": ("stocks", "stock_time", 1_000),
        "H": ("homes", "plug_timestamp", 1),
        "T": ("taxis", "dropoff_datetime", 1),
    }
    stream, clock, unit = kinds[letter]
    shared: tuple[Test, ...] = (("value", ">", LOAD),) if letter == "H" else ()

    def made(name: str, length: int, seconds: int, primed: bool, last: bool = False) -> Query:
        steps = tuple(step(n) for n in (*range(length), *([-1] if primed else [])))
        return Query(name, stream, steps, clock, seconds * unit, None, last, shared)

    usual, *others = seconds_of(letter)
    yield from (made(f"{letter}{n}", n, usual, False) for n in LENGTHS)
    yield from (made(f"{letter}{n}'", n, usual, True) for n in LENGTHS)
    for last in (False, True):
        seconds = [usual] * last + others
        yield from (made(f"{'LAST ' * last}{letter}3' {s} s", 3, s, True, last) for s in seconds)


def seconds_of(letter: str) -> tuple[int, ...]:
    """The windows of a family's queries, the usual one first."""
    return tuple(s * TAXIS if letter == "T" else s for s in SECONDS)


def _others() -> Iterator[Query]:
    """Q1 to Q7."""
    either, window = ("BUY", "SELL"), 30_000
    bounds: dict[str, tuple[Test, ...]] = {
        "MSFT": (("price", ">", 26.0),),
        "ORCL": (("price", ">", 11.14),),
        "AMAT": (("price", ">=", 18.92),),
    }

    def steps(middle: tuple[str, ...], priced: bool) -> tuple[Step, ...]:
        kinds = (("SELL",), middle, middle, ("SELL",))
        return tuple(
            Step(kind, (("name", "=", name), *(bounds.get(name, ()) if priced else ())), name=name.lower())
            for kind, name in zip(kinds, ("MSFT", "ORCL", "CSCO", "AMAT"), strict=True)
        )

    for first, middle in ((1, ("BUY",)), (4, either)):
        for number, priced, by in ((first, False, None), (first + 1, True, None), (first + 2, False, "volume")):
            yield Query(f"Q{number}", "stocks", steps(middle, priced), "stock_time", window, by)
    many = Step(either, (("name", "=", "QQQ"), ("volume", "=", 4_000)), more=True, name="qqq")
    yield Query("Q7", "stocks", (_sell("MSFT"), many, _sell("AMAT")), "stock_time", window)


def _sell(name: str) -> Step:
    return Step(("SELL",), (("name", "=", name),), name=name.lower())


# --- texts ------------------------------------------------------------------------------------------


def _element(step: Step, name: str) -> str:
    kinds = step.types[0] if len(step.types) == 1 else f"({' OR '.join(step.types)})"
    return f"{kinds}{'+' if step.more else ''} AS {name}"


def _predicate(tests: Iterator[Test]) -> str:
    return " AND ".join(f"{a} {c} {_value(v)}" for a, c, v in tests)


def _value(value: str | int | float) -> str:
    return f"'{value}'" if isinstance(value, str) else str(value)


def _pattern(step: Step, number: int) -> str:
    (kind,), ((attribute, _, value),) = step.types, step.tests
    return f'?e{number} a :{kind} ; :{attribute} "{value}"'
