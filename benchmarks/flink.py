"""Case `flink`: the V-shape by Apache Flink's MATCH_RECOGNIZE, in a process of its own, on the same events.

Flink needs other versions of NumPy and pandas than oxiseq: `--flink PYTHON` names an interpreter that has
`apache-flink` (`pip install apache-flink`, and a Java 17). It answers request after request (flink_job.py).

The two questions are the same here. `SEQ(A; B; C)` takes for each A the next quote of the company below it, then
the next above that: PATTERN (A X*? B Y*? C), X and Y the quotes that do not fit, PARTITION BY company, AFTER MATCH
SKIP TO NEXT ROW. Quotes come one a second, so a window of n events is one of n seconds. Where they differ in
general: Flink's WITHIN leaves out matches that span it exactly (one second is added), orders simultaneous rows
arbitrarily, and has neither `:` nor graphs.
"""

from __future__ import annotations

import json
import statistics
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType

from benchmarks.charts import FLINK, OXISEQ, TEXTBOOK, Chart, Line
from benchmarks.data import START, Events, plain, quotes
from benchmarks.drive import WARM, Prepared
from benchmarks.measure import Clocked, Measured, measure
from benchmarks.report import Figure, Result, Row, Size
from benchmarks.rivals import Rival, textbook
from benchmarks.shapes import V_SHAPE_TITLE, WINDOWS, v_shape, v_shape_nfa
from benchmarks.textbook import Event
from oxiseq.engine.terms.dictionary import TermDictionary

FEWER = {100: 1, 1_000: 1, 10_000: 5}
"""Per window: one event of so many is used here, the first ones; Flink's time per event grows with the window."""
FEW = 1_000
"""Events of the job whose time is that of starting a job; it is taken off."""
ROUNDS = 3
ABOUT = (
    "The V-shape of case `v-shape`, walking prices, as PATTERN (A X*? B Y*? C) of Flink's MATCH_RECOGNIZE in local "
    "mode, parallelism 1, from and to CSV files; CPU time of its JVM, without that of starting a job (measured on the "
    "first {few:,} events). Equal numbers of matches are checked."
)


class FlinkJob:
    """The other process. Raises ChildProcessError when it does not answer."""

    def __init__(self, python: str, log: Path) -> None:
        script = Path(__file__).with_name("flink_job.py")
        with log.open("wb") as errors:
            self._process = subprocess.Popen(
                [python, "-I", str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
            )
        self._log = log
        self.wall: dict[tuple[Path, int], list[float]] = {}
        """Seconds that each job took by the clock on the wall."""

    def __enter__(self) -> FlinkJob:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.communicate()

    def matches(self, path: Path, window: int) -> Clocked:
        """The number of matches in a file."""
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            print(json.dumps({"path": str(path), "seconds": window}), file=self._process.stdin, flush=True)
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            last = self._log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-1:]
            raise ChildProcessError(f"Flink does not answer: {' '.join(last)}")
        answer = json.loads(line)
        self.wall.setdefault((path, window), []).append(answer["wall"])
        return Clocked(int(answer["matches"]), float(answer["cpu"]))


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """A window: the query, the textbook's way, the events and where they stand for Flink."""

    prepared: Prepared
    rival: Rival
    events: Events
    path: Path


def run(size: Size, python: str) -> Result:
    """Nanoseconds per event of Flink, oxiseq and the textbook, per window."""
    rounds = min(ROUNDS, size.rounds)
    with TemporaryDirectory() as folder:
        cases, few = _prepare(Path(folder), size)
        first = cases[WINDOWS[0]]
        with FlinkJob(python, Path(folder, "log")) as job:
            # the first jobs of a JVM are slow: it compiles while it runs
            warm = {
                "oxiseq": first.prepared.counting(first.events.first(WARM)),
                "Flink": lambda: [job.matches(path, WINDOWS[0]) for path in (few, first.path)],
            }
            measured = measure(_ways(cases, job, few), rounds, warm)
            notes = {
                w: _wall(job.wall[case.path, w][-rounds:], job.wall[few, w][-rounds:], len(case.events) - FEW)
                for w, case in cases.items()
            }
    _check(measured)
    return _result(measured, cases, notes)


def _prepare(folder: Path, size: Size) -> tuple[dict[int, Case], Path]:
    """The cases by window, and the file with few events."""
    terms = TermDictionary()
    every = quotes(terms, size.events)
    cases = {}
    for window in WINDOWS:
        events = every.first(max(2 * FEW, size.events // FEWER[window]))
        rows = plain(events, by_number=True)
        prepared = Prepared.of(v_shape(window), terms)
        rival = textbook(v_shape_nfa(window), rows, prepared, events, size.tries)
        cases[window] = Case(prepared, rival, events, _write(rows, folder / f"quotes-{window}.csv"))
    return cases, _write(plain(every.first(FEW), by_number=True), folder / "few.csv")


def _write(rows: list[Event], path: Path) -> Path:
    lines = (f"{START // 1000 + 1000 * n},{c.rpartition('/')[2]},{round(100 * price)}\n" for n, c, price, _ in rows)
    path.write_text("".join(lines), encoding="ascii")
    return path


def _ways(cases: Mapping[int, Case], job: FlinkJob, few: Path) -> dict[str, Callable[[], object]]:
    ways: dict[str, Callable[[], object]] = {}
    for window, case in cases.items():
        ways[f"{OXISEQ} {window}"] = case.prepared.counting(case.events)
        ways[f"{TEXTBOOK} {window}"] = case.rival.task
        ways[f"{FLINK} {window}"] = partial(job.matches, case.path, window)
        ways[f"start {window}"] = partial(job.matches, few, window)
    return ways


def _check(measured: Mapping[str, Measured]) -> None:
    for window in WINDOWS:
        ours, theirs = measured[f"{OXISEQ} {window}"].answer, measured[f"{FLINK} {window}"].answer
        if ours != theirs:
            raise AssertionError(f"V-shape, {window} events: {ours} matches by oxiseq, {theirs} by Flink")


def _wall(whole: list[float], start: list[float], events: int) -> str:
    seconds = statistics.median(whole) - statistics.median(start)
    return f"{1e9 * seconds / events:,.0f} ns by the clock; {events:,} events"


def _result(measured: Mapping[str, Measured], cases: Mapping[int, Case], notes: Mapping[int, str]) -> Result:
    what, rows, figures = "V `;`, walk", [], []
    for window, case in cases.items():
        where, events = f"{window:,} events", len(case.events)
        whole, start = measured[f"{FLINK} {window}"], measured[f"start {window}"]
        running = Measured(tuple(a - b for a, b in zip(whole.seconds, start.seconds, strict=True)), whole.answer)
        mine = Row.of(what, where, measured[f"{OXISEQ} {window}"], events)
        theirs = Row.of(f"{what}, {FLINK}", where, running, events - FEW, notes[window])
        rows += [mine, case.rival.row(what, where, measured[f"{TEXTBOOK} {window}"]), theirs]
        figures.append(Figure(f"events/s, oxiseq over Flink, V `;`, {window:,} events", theirs.ns / mine.ns))
    lines = tuple(
        Line.of(by, "", (rows[3 * i + place].at(window) for i, window in enumerate(WINDOWS)))
        for place, by in enumerate((OXISEQ, TEXTBOOK, FLINK))
    )
    return Result(
        "flink",
        "The V-shape by Flink",
        ABOUT.format(few=FEW),
        tuple(rows),
        tuple(figures),
        (Chart("window", V_SHAPE_TITLE, "window (events)", lines),),
    )
