"""Clauses that several languages write alike."""

from __future__ import annotations

from oxiseq.grammar.algebra import Consumption, Every, Limit, OnChange, Sample, When
from oxiseq.grammar.words import MICROSECONDS


def render_consumption(consumption: Consumption) -> str:
    """CONSUME BY."""
    return f"CONSUME BY {'ANY' if consumption.whole_query else 'PARTITION'}"


def render_limit(limit: Limit) -> str:
    """LIMIT with its OFFSET."""
    return f"LIMIT {limit.count}" + (f" OFFSET {limit.offset}" if limit.offset else "")


def render_sample(sample: Sample) -> str:
    """SAMPLE."""
    return f"SAMPLE {sample.count}" + (f" SEED {sample.seed}" if sample.seed else "")


def amount(size: int) -> str:
    """A span of time: with a unit where it is a whole number of one, else in microseconds."""
    for unit, micros in reversed(MICROSECONDS.items()):
        if size and size % micros == 0:
            return f"{size // micros} {unit}S"
    return str(size)


def time_span(size: int) -> str:
    """A span of time with its unit, or as a duration."""
    if size and size % MICROSECONDS["MILLISECOND"] == 0:
        return amount(size)
    seconds, micros = divmod(size, 1_000_000)
    return f"PT{seconds}.{micros:06d}S"


def render_when(when: When) -> str:
    """REPORT."""
    if isinstance(when, Every):
        return f"REPORT EVERY {time_span(when.period)}"
    return "REPORT ON CONTENT CHANGE" if isinstance(when, OnChange) else "REPORT ON WINDOW CLOSE"
