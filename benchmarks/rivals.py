"""The textbook's NFA beside a query of oxiseq's: same events, same matches, checked before anything is timed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.charts import TEXTBOOK
from benchmarks.data import Events
from benchmarks.drive import Prepared
from benchmarks.measure import Measured
from benchmarks.report import Row
from benchmarks.textbook import Event, Nfa


@dataclass(frozen=True, slots=True)
class Rival:
    """The NFA over the first `events` events. Runs multiply with the window, so it stops after a number of tries,
    the same in every run, and says how far it came; that flatters it, as its runs are still few at first."""

    task: Callable[[], int]
    events: int
    whole: bool
    tries: int

    def row(self, what: str, where: str, measured: Measured) -> Row:
        """Its line in the table."""
        note = "" if self.whole else f"stopped at event {self.events:,}, after {self.tries:,} tries"
        return Row.of(f"{what}, {TEXTBOOK}", where, measured, self.events, note, self.whole)


def textbook(nfa: Nfa, plain: list[Event], prepared: Prepared, events: Events, tries: int) -> Rival:
    """The NFA on `plain`, the same events as `events`. Raises AssertionError when oxiseq finds other matches."""
    outcome = nfa.run(plain, tries)
    expected = prepared.counting(events.first(outcome.seen))()
    if len(outcome.matches) != expected:
        raise AssertionError(f"textbook: {len(outcome.matches)} matches in {outcome.seen} events, oxiseq: {expected}")
    return Rival(lambda: len(nfa.run(plain, tries).matches), outcome.seen, outcome.seen == len(plain), tries)
