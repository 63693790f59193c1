"""A run's record of having dropped its partial matches, to keep within a budget."""

from __future__ import annotations

from oxiseq.grammar.records import dataclass


@dataclass(frozen=True, slots=True)
class Resets:
    """How often a run has forgotten its partial matches. Of the last time: `at`, when that was (µs since 1970),
    `time`, how far the streams had come (µs; that of the last event processed), `records` that it had then."""

    count: int = 0
    at: int = 0
    time: int = 0
    records: int = 0

    def another(self, at: int, time: int, records: int) -> Resets:
        """One more."""
        return Resets(self.count + 1, at, time, records)
