"""What a stretch of the soak showed, and whether all stretches together are as they should be."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

MEMORY_GROWTH: Final = 1.1
"""Memory and records of the last quarter over those of the second, at most."""
RATE_KEPT: Final = 0.8
"""Rate of the last quarter over that of the second, at least."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Figures at the end of a stretch. `seconds`: CPU time of pushing, matching and freeing, without drawing and
    counting; `counted` and `found`: matches by NumPy and by oxiseq, each with the sum of their end times."""

    events: int
    seconds: float
    resident: int
    records: int
    terms: int
    found: tuple[int, int]
    counted: tuple[int, int]

    @property
    def rate(self) -> float:
        """Events in a second of CPU time."""
        return self.events / max(self.seconds, 1e-9)

    @property
    def right(self) -> bool:
        """Whether the counts are equal."""
        return self.found == self.counted


def resident() -> int:
    """Bytes of memory that the process has now. Raises OSError where there is no /proc."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def private() -> int:
    """Bytes of those that no file backs: without the code of libraries, which processes share. As `resident`."""
    _, pages, shared = Path("/proc/self/statm").read_text(encoding="ascii").split()[:3]
    return (int(pages) - int(shared)) * os.sysconf("SC_PAGE_SIZE")


def faults(stretches: Sequence[Stretch]) -> list[str]:
    """What is not as it should be, in words; empty when all is well."""
    found = [
        f"stretch {number}: {stretch.found[0]:,} matches, but {stretch.counted[0]:,} were counted, or at other times"
        for number, stretch in enumerate(stretches, 1)
        if not stretch.right
    ]
    for what, figure in GROWING.items():
        ratio = growth(stretches, figure)
        if ratio > MEMORY_GROWTH:
            found.append(f"{what}: the last quarter has {ratio:.2f} times what the second has")
    kept = rate_kept(stretches)
    if kept < RATE_KEPT:
        found.append(f"rate: the last quarter has {kept:.2f} of the second's")
    return found


def growth(stretches: Sequence[Stretch], figure: Callable[[Stretch], float]) -> float:
    """The largest figure of the last quarter over the largest of the second."""
    second, last = _quarters(stretches)
    return max(map(figure, last)) / max(1, *map(figure, second))


def rate_kept(stretches: Sequence[Stretch]) -> float:
    """Events per second in the last quarter over those in the second."""
    second, last = (
        sum(s.events for s in part) / max(sum(s.seconds for s in part), 1e-9) for part in _quarters(stretches)
    )
    return last / second


def table(stretches: Sequence[Stretch]) -> str:
    """A Markdown table of the stretches."""
    return "\n".join(
        [
            HEAD,
            "|---:" * 7 + "|",
            *(line(s, sum(t.events for t in stretches[: i + 1])) for i, s in enumerate(stretches)),
        ]
    )


HEAD: Final = "| events so far | events/s | resident MB | live records | terms | matches | counted |"


def line(stretch: Stretch, so_far: int) -> str:
    """One row of it."""
    return (
        f"| {so_far:,} | {stretch.rate:,.0f} | {stretch.resident / 1e6:,.0f} | {stretch.records:,} "
        f"| {stretch.terms:,} | {stretch.found[0]:,} | {stretch.counted[0]:,} |"
    )


def _quarters(stretches: Sequence[Stretch]) -> tuple[Sequence[Stretch], Sequence[Stretch]]:
    size = max(1, len(stretches) // 4)
    return stretches[size : 2 * size] or stretches[:1], stretches[-size:]


GROWING: Final[dict[str, Callable[[Stretch], float]]] = {
    "resident memory": lambda stretch: stretch.resident,
    "live records": lambda stretch: stretch.records,
}
