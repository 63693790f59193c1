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
from collections.abc import Callable
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

FEWER = 5
"""One of so many events is given to Flink, oxiseq and the textbook here: the first ones."""
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

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
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


def run(size: Size, python: str) -> Result:
    """Nanoseconds per event of Flink, oxiseq and the textbook, per window."""
    terms = TermDictionary()
    every = quotes(terms, size.events)
    events = every.first(max(2 * FEW, size.events // FEWER))
    rows = plain(events, by_number=True)
    prepared = {window: Prepared.of(v_shape(window), terms) for window in WINDOWS}
    rivals = {w: textbook(v_shape_nfa(w), rows, prepared[w], events, size.tries) for w in WINDOWS}
    with TemporaryDirectory() as folder:
        path, few = Path(folder, "quotes.csv"), Path(folder, "few.csv")
        _write(rows, path)
        _write(rows[:FEW], few)
        with FlinkJob(python, Path(folder, "log")) as job:
            measured = measure(_ways(prepared, rivals, events, job, path, few), min(ROUNDS, size.rounds),
                               {"oxiseq": prepared[WINDOWS[0]].counting(events.first(WARM)),
                                "Flink": lambda: job.matches(few, WINDOWS[0])})
            notes = {w: _wall(job.wall[path, w], job.wall[few, w], len(events) - FEW) for w in WINDOWS}
    _check(measured)
    return _result(measured, rivals, notes, len(events))


def _write(rows: list[Event], path: Path) -> None:
    lines = (f"{START // 1000 + 1000 * n},{c.rpartition('/')[2]},{round(100 * price)}\n" for n, c, price, _ in rows)
    path.write_text("".join(lines), encoding="ascii")


def _ways(
    prepared: dict[int, Prepared], rivals: dict[int, Rival], events: Events, job: FlinkJob, path: Path, few: Path
) -> dict[str, Callable[[], object]]:
    ways: dict[str, Callable[[], object]] = {}
    for window in WINDOWS:
        ways[f"{OXISEQ} {window}"] = prepared[window].counting(events)
        ways[f"{TEXTBOOK} {window}"] = rivals[window].task
        ways[f"{FLINK} {window}"] = lambda w=window: job.matches(path, w)  # type: ignore[misc]
        ways[f"start {window}"] = lambda w=window: job.matches(few, w)  # type: ignore[misc]
    return ways


def _check(measured: dict[str, Measured]) -> None:
    for window in WINDOWS:
        ours, theirs = measured[f"{OXISEQ} {window}"].answer, measured[f"{FLINK} {window}"].answer
        if ours != theirs:
            raise AssertionError(f"V-shape, {window} events: {ours} matches by oxiseq, {theirs} by Flink")


def _wall(whole: list[float], start: list[float], events: int) -> str:
    seconds = statistics.median(whole) - statistics.median(start)
    return f"{1e9 * seconds / events:,.0f} ns by the clock"


def _result(measured: dict[str, Measured], rivals: dict[int, Rival], notes: dict[int, str], events: int) -> Result:
    what, rows, figures = "V `;`, walk", [], []
    for window in WINDOWS:
        where = f"{window:,} events"
        whole, start = measured[f"{FLINK} {window}"], measured[f"start {window}"]
        running = Measured(tuple(a - b for a, b in zip(whole.seconds, start.seconds, strict=True)), whole.answer)
        mine = Row.of(what, where, measured[f"{OXISEQ} {window}"], events)
        theirs = Row.of(f"{what}, {FLINK}", where, running, events - FEW, notes[window])
        rows += [mine, rivals[window].row(what, where, measured[f"{TEXTBOOK} {window}"]), theirs]
        figures.append(Figure(f"events/s, oxiseq over Flink, V `;`, {window:,} events", theirs.ns / mine.ns))
    lines = tuple(
        Line.of(by, "", (rows[3 * i + place].at(window) for i, window in enumerate(WINDOWS)))
        for place, by in enumerate((OXISEQ, TEXTBOOK, FLINK))
    )
    return Result("flink", "The V-shape by Flink", ABOUT.format(few=FEW), tuple(rows), tuple(figures),
                  (Chart("window", V_SHAPE_TITLE, "window (events)", lines),))
