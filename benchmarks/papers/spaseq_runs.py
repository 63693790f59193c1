"""Figures 21 and 22 of SPAseq: two optimisations of its automaton, which oxiseq has not, in a textbook's NFA.

The textbook's runs (benchmarks/textbook.py) stand in a list and every event is tried on each. SPAseq indexes runs by
the stream that they wait for (Figure 21), and evaluates `B & C` only at times with events of both (Figure 22). Both are
repeated in plain Python.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from benchmarks.data import SECOND
from benchmarks.measure import measure
from benchmarks.papers.figures import Curve, Panel, Scale
from benchmarks.papers.made import TD, MadeStreams, shd, td
from oxiseq.engine.terms.dictionary import TermDictionary

MINUTES: Final = (5, 10, 20)


class Arrival(NamedTuple):
    """A plain event: its time, its stream's number, and the values that patterns read."""

    time: int
    stream: int
    values: tuple[Any, ...]


Fits = Callable[[Arrival, tuple[Arrival, ...]], bool]


def skip_till_next(steps: Sequence[Fits], window: int, events: Sequence[Arrival], indexed: bool) -> int:
    """Returns the number of matches of step 0 of stream 0, step 1 of stream 1, ... under `;` in tumbling windows.

    indexed: a run is tried only on events of the stream that it waits for.
    """
    found, begin = 0, events[0].time
    runs: list[list[tuple[Arrival, ...]]] = [[] for _ in steps]
    for event in events:
        if event.time - begin >= window:
            begin += (event.time - begin) // window * window
            runs = [[] for _ in steps]
        if indexed:
            found += _tried(event, event.stream, runs, steps)
        else:
            for number in range(len(steps) - 1, 0, -1):
                found += _tried(event, number, runs, steps)
            found += _tried(event, 0, runs, steps)
    return found


def _tried(event: Arrival, number: int, runs: list[list[tuple[Arrival, ...]]], steps: Sequence[Fits]) -> int:
    """Tries the event on the runs that wait for step `number`; those that take it wait for the next one."""
    if number == 0:
        if event.stream == 0 and steps[0](event, ()):
            runs[1].append((event,))
        return 0
    waiting, kept = runs[number], []
    taken = 0
    for run in waiting:
        if event.stream == number and run[-1].time < event.time and steps[number](event, run):
            taken += 1
            if number + 1 < len(steps):
                runs[number + 1].append((*run, event))
        else:
            kept.append(run)
    runs[number] = kept
    return taken if number + 1 == len(steps) else 0


def indexed_runs(scale: Scale) -> Iterator[Panel]:
    """Figure 21: Query 1 over three streams of homes, runs by stream or in one list."""
    made = shd(TermDictionary(), scale.of(12_000, 3_000))
    events = _homes(made)
    steps: list[Fits] = [
        lambda event, _: bool(event.values[1] > 20),
        lambda event, run: bool(event.values[0] == run[0].values[0] and event.values[1] >= 1),
        lambda event, run: bool(event.values[0] == run[0].values[0] and event.values[1] <= run[0].values[1]),
    ]
    minutes = scale.some(MINUTES)
    tasks = {
        f"{name} {m}": lambda m=m, by=by: skip_till_next(steps, m * 60 * SECOND, events, by)
        for name, by in (("one list", False), ("by stream", True))
        for m in minutes
    }
    measured = measure(tasks, 1)
    curves = [
        Curve(
            f"NFA in Python, runs {'in ' * (name == 'one list')}{name}",
            minutes,
            tuple(measured[f"{name} {m}"].median * m / made.minutes for m in minutes),
        )
        for name in ("one list", "by stream")
    ]
    if any(measured[f"one list {m}"].answer != measured[f"by stream {m}"].answer for m in minutes):
        raise AssertionError("runs by stream find other matches")
    facts = {"matches": tuple(f"{measured[f'by stream {m}'].answer:,}" for m in minutes)}
    yield Panel("SHD, STN", tuple(curves), facts)


def _homes(made: MadeStreams) -> list[Arrival]:
    events = []
    for number, (batch, column) in enumerate(zip(made.streams.values(), ("price", "wind", "price"), strict=True)):
        ids = batch.object.reshape(len(batch), -1)
        values = made.terms.columns.number[ids[:, 1 if column == "wind" else 2]].tolist()
        places = ids[:, 4].tolist()
        for time, place, value in zip(batch.time.tolist(), places, values, strict=True):
            events.append(Arrival(time, number, (place, value)))
    return sorted(events)


# --- 22: conjunctions ------------------------------------------------------------------------------------


def lazy_conjunction(scale: Scale) -> Iterator[Panel]:
    """Figure 22: `A; (B & C)` over three sensors, of which the third speaks at one time in ten."""
    made = td(TermDictionary(), scale.of(30_000, 3_000))
    events = _readings(made)
    minutes = scale.some((60, 240, 960))
    tasks = {
        f"{name} {m}": lambda m=m, lazy=lazy: conjunction(m * 60 * SECOND, events, lazy)
        for name, lazy in (("eager", False), ("lazy", True))
        for m in minutes
    }
    measured = measure(tasks, scale.rounds)
    curves, facts = [], {}
    for name in ("eager", "lazy"):
        mine = [measured[f"{name} {m}"] for m in minutes]
        curves.append(
            Curve(
                f"NFA in Python, {name}",
                minutes,
                tuple(x.median * m / made.minutes for x, m in zip(mine, minutes, strict=True)),
            )
        )
        answers: list[Any] = [each.answer for each in mine]
        facts[f"patterns evaluated, {name}"] = tuple(f"{tried:,}" for _, tried in answers)
        facts["matches"] = tuple(f"{found:,}" for found, _ in answers)
    yield Panel("TD, STN", tuple(curves), facts)


def conjunction(window: int, events: Sequence[Arrival], lazy: bool) -> tuple[int, int]:
    """Matches, and how often a pattern of B or C was evaluated with a run. lazy: only at instants with both."""
    found = tried = 0
    begin = events[0].time
    runs: deque[Arrival] = deque()
    for instant in _instants(events):
        if instant[0].time - begin >= window:
            begin += (instant[0].time - begin) // window * window
            runs.clear()
        by_stream = {event.stream: event for event in instant}
        second, third = by_stream.get(1), by_stream.get(2)
        kept: deque[Arrival] = deque()
        for run in runs:
            taken = False
            if not lazy or (second is not None and third is not None):
                fits = []
                for event in (second, third):
                    if event is not None:
                        tried += 1
                        fits.append(event.values[0] == run.values[0] and event.values[1] >= run.values[1])
                taken = fits == [True, True]
            found += taken
            if not taken:
                kept.append(run)
        runs = kept
        first = by_stream.get(0)
        if first is not None and first.values[1] > 3:
            runs.append(first)
    return found, tried


def _instants(events: Sequence[Arrival]) -> Iterator[list[Arrival]]:
    instant: list[Arrival] = []
    for event in events:
        if instant and event.time != instant[0].time:
            yield instant
            instant = []
        instant.append(event)
    if instant:
        yield instant


def _readings(made: MadeStreams) -> list[Arrival]:
    events = []
    for number, stream in enumerate(TD):
        batch = made.streams[stream]
        ids = batch.object.reshape(len(batch), -1)
        values = made.terms.columns.number[ids[:, 1]].tolist()
        for i, (time, observed, value) in enumerate(zip(batch.time.tolist(), ids[:, 0].tolist(), values, strict=True)):
            if number < 2 or i % 10 == 0:
                events.append(Arrival(time, number, (observed, value)))
    return sorted(events)
