"""What rows that may be without their optional partner wait for, where answers use up triples (CONSUME).

In the flow: rows and their partners in a plan in the making → **numbered rows, partners kept by number** → operators
that choose among solutions (using.py).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from oxiseq.engine.flow import plan as p
from oxiseq.engine.flow.epsparql.anew import lifetime_of, limit_of, needs
from oxiseq.engine.flow.epsparql.rows import INTERVAL, Guard, Low
from oxiseq.engine.flow.relations import Relation
from oxiseq.grammar.records import dataclass

_BEHIND: Final = INTERVAL + 2
"""Columns before those that say what partners are made of."""


@dataclass(frozen=True, slots=True)
class Kept:
    """An arrangement of rows that are made of triples: `uses`: the columns that name the triples; `guards`: those that
    they have, with their numbers."""

    place: int
    uses: tuple[int, ...]
    guards: tuple[tuple[int, int], ...] = ()


def uses_of(a: Relation) -> tuple[int, ...]:
    """The places of the upper halves of the numbers of the triples that rows are made of."""
    return tuple(i - 1 for i, c in enumerate(a.columns) if isinstance(c, Low))


class Guards:
    """Those of a plan."""

    def __init__(self, sheet: p.Sheet) -> None:
        self._sheet = sheet
        self._found: list[tuple[int, Kept]] = []
        """By number the rows that have it, and their partners."""

    def on(self, main: Relation) -> tuple[Relation, tuple[Guard, ...]]:
        """Rows with a guard each; `keep` comes next."""
        number = len(self._found)
        guard = Guard(number), Guard(number, low=True)
        node = self._sheet.add(p.Once(main.node, "EVERY"))
        return replace(main, node=node, columns=(*main.columns, *guard)), guard

    def keep(
        self, guard: tuple[Guard, ...], main: Relation, pairs: Relation, whole: tuple[int, ...], other: Relation
    ) -> None:
        """Keep partners, with what they are made of, behind a guard. pairs: with rows of `main`, whose interval is
        at `whole`; other: the partners."""
        uses = [half for place in uses_of(pairs) for half in (place, place + 1)]
        inner = [c for c in other.columns if isinstance(c, Guard)]
        columns = (*whole, *pairs.places(guard), *uses, *pairs.places(inner))
        rows, last = self._sheet.pick(pairs.node, tuple((i,) for i in columns)), _BEHIND + len(uses)
        own = tuple((last + i, c.number) for i, c in enumerate(inner) if not c.low)
        self._found.append((main.node, Kept(rows, tuple(range(_BEHIND, last, 2)), own)))

    def kept(self) -> list[Kept]:
        """By number what is kept, for as long as rows may have the guard (anew.needs). The last ones first, since
        their partners may have earlier ones."""
        found, key = [], (INTERVAL, INTERVAL + 1)
        for main, each in reversed(self._found):
            limit = limit_of(needs(self._sheet).get(main, 0))
            place = self._sheet.add(p.Arrange(each.place, key, (), lifetime_of(limit), coming=True))
            found.append(replace(each, place=place))
        return found[::-1]
