"""Where a case spends its time: `python -m benchmarks --profile NAME`.

The stages of `QueryRun` are wrapped with clocks while one query runs; a stage's time is without that of the
stages it calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from time import process_time
from typing import Any

from benchmarks import knowledge, partitions, sequences, shapes
from benchmarks.data import STEPS, Events, quotes, stock_events
from benchmarks.drive import WARM, Prepared
from benchmarks.report import Size
from oxiseq.engine.order.clock import Clock
from oxiseq.engine.output.write import AnswerWriter
from oxiseq.engine.patterns.matcher import StreamMatcher
from oxiseq.engine.run.letters import LetterRows, RowWriter
from oxiseq.engine.run.partitions import Partitions
from oxiseq.engine.run.query import QueryRun
from oxiseq.engine.sequence import run as sequence_run
from oxiseq.engine.sequence.run import SequenceRun
from oxiseq.engine.terms.dictionary import TermDictionary

STAGES: tuple[tuple[str, Any, str], ...] = (
    ("clock", Clock, "push"),
    ("clock", Clock, "take"),
    ("matching", StreamMatcher, "rows_within"),
    ("matching", StreamMatcher, "find"),
    ("matching", StreamMatcher, "rows_of"),
    ("partitions", Partitions, "split"),
    ("letters", LetterRows, "sources"),
    ("letters", RowWriter, "write"),
    ("rows kept", QueryRun, "_forget"),
    ("sequence kernel", sequence_run, "advance"),
    ("sequence, beside it", SequenceRun, "feed"),
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
    lines = [
        f"| ns per event | {' | '.join(names)} | rest | all | matches/event |",
        "|---|" + "---:|" * (len(names) + 3),
    ]
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


def run(name: str, size: Size) -> str:
    """The table of one case at its smallest and largest window, or KB."""
    return profile(CASES[name](size), min(3, size.rounds))


def _sequences(size: Size) -> dict[str, tuple[Prepared, Events]]:
    terms = TermDictionary()
    events = stock_events(terms, size.events)
    ends = sequences.SECONDS[0], sequences.SECONDS[-1]
    return {
        f"`:` {steps} steps, {seconds} s": (Prepared.of(sequences.query(steps, seconds), terms), events)
        for steps in STEPS
        for seconds in ends
    }


def _shapes(queries: Mapping[str, shapes.Shape], size: Size) -> dict[str, tuple[Prepared, Events]]:
    cases = {}
    for moves in shapes.MOVES:
        terms = TermDictionary()
        events = quotes(terms, size.events, moves=moves)
        for name, shape in queries.items():
            for window in (shapes.WINDOWS[0], shapes.WINDOWS[-1]):
                cases[f"{name}, {moves}, {window:,}"] = Prepared.of(shape.query(window), terms), events
    return cases


def _knowledge(size: Size) -> dict[str, tuple[Prepared, Events]]:
    cases = {}
    for triples in (size.kb[0], size.kb[-1]):
        for case in knowledge.prepare(triples, size):
            cases[f"KB variables {case.kind}, {triples:,} triples"] = case.prepared, case.events
    return cases


def _partitions(size: Size) -> dict[str, tuple[Prepared, Events]]:
    terms = TermDictionary()
    events = quotes(terms, size.events)
    return {name: (Prepared.of(text, terms), events) for name, text in partitions.queries().items()}


CASES: Mapping[str, Callable[[Size], Mapping[str, tuple[Prepared, Events]]]] = {
    "sequences": _sequences,
    "v-shape": lambda size: _shapes(shapes.V_SHAPE, size),
    "kleene": lambda size: _shapes(shapes.KLEENE, size),
    "knowledge": _knowledge,
    "partitions": _partitions,
}
