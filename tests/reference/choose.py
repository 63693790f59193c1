"""Selection strategies, CONSUME BY and LIMIT, word by word after semantics.md 3; for SPAseq and CEQL alike.

Readings (the specification is silent): complex events with one D are not told apart, so they are kept or
dropped together; "found" means kept by the strategy; LIMIT counts per partition and end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

from oxiseq.grammar.algebra import Consumption, Limit, Selection, Strategy

Positions: TypeAlias = frozenset[int]


W = TypeVar("W")


@dataclass(frozen=True)
class Candidate(Generic[W]):
    """A complex event ([start, end], D) of a partition. `start` and `end` order all events; D counts in the
    partition's substream. `what` is what it stands for."""

    start: int
    end: int
    positions: Positions
    partition: Hashable
    what: W


def answered(
    candidates: Iterable[Candidate[W]], selection: Selection | None, consumption: Consumption | None
) -> list[Candidate[W]]:
    """Those that remain, before LIMIT: at each end the strategy chooses among what is not forgotten."""
    by_end: dict[int, list[Candidate[W]]] = {}
    for c in candidates:
        by_end.setdefault(c.end, []).append(c)
    found: list[Candidate[W]] = []
    forgotten: dict[Hashable, int] = {}  # partition → what starts up to here is forgotten
    forgotten_by_all: int | None = None
    for end in sorted(by_end):
        kept: list[Candidate[W]] = []
        alive = [c for c in by_end[end] if forgotten_by_all is None or c.start > forgotten_by_all]
        alive = [c for c in alive if c.partition not in forgotten or c.start > forgotten[c.partition]]
        for partition in dict.fromkeys(c.partition for c in alive):
            kept += chosen([c for c in alive if c.partition == partition], selection)
        found += kept
        if consumption is not None and kept:
            if consumption.whole_query:
                forgotten_by_all = end
            else:
                forgotten |= {c.partition: end for c in kept}
    return found


def chosen(candidates: Sequence[Candidate[W]], selection: Selection | None) -> list[Candidate[W]]:
    """What the strategy keeps of the complex events that end at one position of one partition."""
    match selection.strategy if selection is not None else None:
        case None:
            return list(candidates)
        case Strategy.MAX:
            return [c for c in candidates if not any(c.positions < other.positions for other in candidates)]
        case Strategy.STRICT:
            return [c for c in candidates if is_contiguous(c.positions)]
        case Strategy.NEXT:
            return [c for c in candidates if all(wins(c, other, min) for other in candidates)]
        case Strategy.LAST:
            return [c for c in candidates if all(wins(c, other, max) for other in candidates)]


def wins(one: Candidate[W], other: Candidate[W], decisive: Callable[[Positions], int]) -> bool:
    """The smallest (NEXT) or largest (LAST) position in which the two sets differ belongs to `one`."""
    different = one.positions ^ other.positions
    return not different or decisive(different) in one.positions


def is_contiguous(positions: Positions) -> bool:
    return not positions or max(positions) - min(positions) + 1 == len(positions)


def is_choice(reported: Counter[Hashable], groups: Iterable[Counter[Hashable]], limit: Limit | None) -> bool:
    """Whether `reported` is from each group (a partition's answers of one end) as many as LIMIT lets through.

    Exact where no answer stands in two groups.
    """
    groups = list(groups)
    sizes = [g.total() if limit is None else min(g.total(), limit.count) for g in groups]
    everything: Counter[Hashable] = sum(groups, Counter())
    enough = all((reported & group).total() >= size for group, size in zip(groups, sizes, strict=True))
    return enough and not reported - everything and reported.total() == sum(sizes)
