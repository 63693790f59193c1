"""Measuring several ways side by side: repetitions interleave, CPU time of the process, medians.

A round runs every way once, in turn, so that a slow minute of the machine falls on all of them alike.
"""

from __future__ import annotations

import gc
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import process_time


@dataclass(frozen=True, slots=True)
class Measured:
    """`seconds` of CPU time per round; `answer`: what the task returned, the same in every round."""

    seconds: tuple[float, ...]
    answer: object

    @property
    def median(self) -> float:
        """The median over the rounds."""
        return statistics.median(self.seconds)


@dataclass(frozen=True, slots=True)
class Clocked:
    """What a task returns that knows its own CPU time, as another process spent it."""

    answer: object
    seconds: float


def measure(
    ways: Mapping[str, Callable[[], object]], rounds: int, warm: Mapping[str, Callable[[], object]] | None = None
) -> dict[str, Measured]:
    """Run every way `rounds` times, interleaved; `warm` tasks run once before, unmeasured.

    Raises AssertionError when a way answers differently in two rounds.
    """
    for task in (warm or {}).values():
        task()
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    answers: dict[str, object] = {}
    for number in range(rounds):
        for name, task in ways.items():
            gc.collect()
            begin = process_time()
            answer = task()
            clocked = answer if isinstance(answer, Clocked) else Clocked(answer, process_time() - begin)
            answer = clocked.answer
            seconds[name].append(clocked.seconds)
            if number == 0:
                answers[name] = answer
            elif answer != answers[name]:
                raise AssertionError(f"{name}: {answer} after {answers[name]}")
    return {name: Measured(tuple(times), answers[name]) for name, times in seconds.items()}


def growth(figures: Sequence[float]) -> float:
    """The largest over the smallest."""
    return max(figures) / min(figures)
