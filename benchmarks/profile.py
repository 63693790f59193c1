"""Where a case spends its time: `python -m benchmarks --profile NAME`.

The stages of `QueryRun` are wrapped with clocks while one query runs; a stage's time is without that of the
stages it calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from time import process_time
from typing import Any

from benchmarks.data import Events
from benchmarks.drive import WARM, Prepared
from oxiseq.engine.matching.matcher import StreamMatcher
from oxiseq.engine.output.write import AnswerWriter
from oxiseq.engine.query.clock import Clock
from oxiseq.engine.query.rows import RowStore
from oxiseq.engine.query.run import QueryRun
from oxiseq.engine.sequence.run import SequenceRun

STAGES: tuple[tuple[str, type, str], ...] = (
    ("clock", Clock, "push"),
    ("clock", Clock, "take"),
    ("matching", StreamMatcher, "match"),
    ("letters", QueryRun, "_frames"),
    ("letters", QueryRun, "_letter_rows"),
    ("rows kept", RowStore, "append"),
    ("rows kept", RowStore, "forget"),
    ("sequence", SequenceRun, "feed"),
    ("output", AnswerWriter, "write"),
)


class StageClock:
    """CPU time by stage, each stage's own."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._inner = [0.0]

    def wrap(self, stage: str, method: Callable[..., Any]) -> Callable[..., Any]:
        """`method` with its time counted for `stage`."""

        def timed(*args: Any, **options: Any) -> Any:
            self._inner.append(0.0)
            begin = process_time()
            try:
                return method(*args, **options)
            finally:
                spent = process_time() - begin
                self.seconds[stage] = self.seconds.get(stage, 0.0) + spent - self._inner.pop()
                self._inner[-1] += spent

        return timed


@contextmanager
def stages() -> Iterator[StageClock]:
    """Every `QueryRun` in the block is timed by stage."""
    clock = StageClock()
    plain = [(owner, name, getattr(owner, name)) for _, owner, name in STAGES]
    for stage, owner, name in STAGES:
        setattr(owner, name, clock.wrap(stage, getattr(owner, name)))
    try:
        yield clock
    finally:
        for owner, name, method in plain:
            setattr(owner, name, method)


def profile(cases: Mapping[str, tuple[Prepared, Events]], rounds: int = 3) -> str:
    """A Markdown table: nanoseconds per event by stage, the best of some rounds, for each case."""
    names = tuple(dict.fromkeys(stage for stage, _, _ in STAGES))
    lines = [f"| ns per event | {' | '.join(names)} | rest | all | matches/event |",
             "|---|" + "---:|" * (len(names) + 3)]
    for label, (prepared, events) in cases.items():
        prepared.counting(events.first(WARM))()
        best: tuple[float, dict[str, float], int] | None = None
        for _ in range(rounds):
            with stages() as clock:
                begin = process_time()
                matches = sum(len(batch) for batch in prepared.run(events.batches))
                total = process_time() - begin
            if best is None or total < best[0]:
                best = (total, clock.seconds, matches)
        assert best is not None
        total, seconds, matches = best
        cells = [seconds.get(name, 0.0) for name in names]
        cells += [total - sum(cells), total]
        numbers = " | ".join(f"{1e9 * cell / len(events):,.0f}" for cell in cells)
        lines.append(f"| {label} | {numbers} | {matches / len(events):.4f} |")
    return "\n".join(lines) + "\n"


