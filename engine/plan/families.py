"""Families: queries that differ in the constants of thresholds, each stricter than the one before.

`FILTER(?x > 5)` and `FILTER(?x > 7)`: what the second takes the first takes, too. So one run with the most lenient
constants sees all rows, and each has a *rank*: how many of the queries take it (answers.md 5.2).
"""

from __future__ import annotations

from decimal import Decimal

from pyoxigraph import Variable

from oxiseq.engine.sequence.positions import Letter
from oxiseq.grammar.algebra import Expression
from oxiseq.grammar.records import dataclass


@dataclass(frozen=True, slots=True)
class Ranked:
    """A letter whose rows not all queries of a family take: those before `counts[i]` have one of the first i + 1
    `conditions`, which grow stricter."""

    letter: Letter
    variable: Variable
    conditions: tuple[Expression, ...]
    counts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Family:
    """`members`: of each query how strict its thresholds are; the first one takes all that any takes."""

    ranked: tuple[Ranked, ...]
    members: tuple[tuple[Decimal, ...], ...]
