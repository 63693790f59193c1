"""Situations of many SPAseq queries in one store, as data: steps that can be printed, pasted and made smaller.

Each query has a twin, the same query in a store of its own that sees the same events since its registration, goes
through no restart and has no other query beside it. `difference` says where a query and its twin part.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from time import monotonic
from typing import TypeAlias

import pytest
from pyoxigraph import RdfFormat, parse
from store_worlds import Given, World

sys.path.insert(0, str(Path(__file__).parent.parent / "snapshot"))
from saved_runs import crowded

from oxiseq.engine.bounds import InstantBounds
from oxiseq.engine.order.watermarks import BEFORE_ALL, REMEMBERED, Passed
from oxiseq.engine.output import deferred
from oxiseq.engine.patterns.matcher import MatchLimits, StreamMatcher
from oxiseq.engine.terms import dictionary
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.errors import QueryError

# --- the steps ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Register:
    """A query comes. most: of how many live records it may have, or it forgets."""

    name: str
    text: str
    lateness: int = 0
    start: int | None = None
    most: int | None = None


@dataclass(frozen=True)
class Push:
    """Events (µs, N-Triples) of a stream come, in this order."""

    stream: str
    events: tuple[tuple[int, str], ...]


@dataclass(frozen=True)
class Punctuate:
    """No event of a stream before a time will come."""

    stream: str
    time: int


@dataclass(frozen=True)
class Settle:
    """One query takes all that it has seen as complete."""

    name: str


@dataclass(frozen=True)
class Forget:
    """One query drops its partial matches."""

    name: str


@dataclass(frozen=True)
class Close:
    """The streams end for one query, which goes."""

    name: str


@dataclass(frozen=True)
class Remove:
    """One query goes, whatever waits."""

    name: str


@dataclass(frozen=True)
class Tag:
    """The knowledge base has a quad (N-Quads) more."""

    quad: str


@dataclass(frozen=True)
class Restart:
    """All queries are saved, and restored in a store whose dictionary holds other terms."""

    seed: int


@dataclass(frozen=True)
class Look:
    """Somebody looks at the state of all queries, which catch up."""


Step: TypeAlias = Register | Push | Punctuate | Settle | Forget | Close | Remove | Tag | Restart | Look


@dataclass(frozen=True)
class Situation:
    """Steps in a store with a knowledge base (N-Quads); most of what a query may do within an instant: `matches` that
    end there, rows that an operator has `made`, `rows` of a graph pattern on an event, positions `compared` for MAX."""

    steps: tuple[Step, ...]
    kb: str = ""
    matches: int = 500
    made: int = 1 << 14
    rows: int = 10_000
    compared: int = 1 << 25

    def script(self) -> str:
        """It, as Python."""
        bounds = ", ".join(f"{name}={getattr(self, name)!r}" for name in ("kb", "matches", "made", "rows", "compared"))
        lines = "\n".join(f"    {_written(step)}," for step in self.steps)
        return f"from among_others import *\nprint(difference(Situation((\n{lines}\n), {bounds})))\n"


def _written(step: Step) -> str:
    if isinstance(step, Register):
        options = "".join(
            f", {name}={getattr(step, name)!r}" for name in ("lateness", "start", "most") if getattr(step, name)
        )
        text = step.text.replace("\\", "\\\\")
        return f'Register({step.name!r}, """{text}"""{options})'
    if isinstance(step, Push):
        events = "".join(f"\n        ({time}, {text!r})," for time, text in step.events)
        return f"Push({step.stream!r}, ({events}\n    ))"
    return repr(step)


# --- what differs -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Difference:
    """The first: at which step, of which query, and what is other than its twin's."""

    step: int
    name: str
    what: str

    def __str__(self) -> str:
        return f"step {self.step}, query {self.name}: {self.what}"


class _DiffersError(Exception):
    """A query and its twin have parted."""


@dataclass
class _StreamClock:
    """How far a stream has come, for those that are registered later."""

    largest: int = BEFORE_ALL
    punctuation: int = BEFORE_ALL
    lately: deque[int] = field(default_factory=lambda: deque(maxlen=REMEMBERED))

    def came(self, step: Push) -> None:
        times = [time for time, _ in step.events]
        self.largest = max([self.largest, *times])
        self.lately.extend(times)

    @property
    def passed(self) -> Passed:
        return Passed(self.largest, self.punctuation, tuple(self.lately))


@dataclass
class Seen:
    """How much of what is compared there has been, so that nobody compares nothing with nothing."""

    matches: int = 0
    late: int = 0
    errors: int = 0
    forgotten: int = 0
    """How often a bound of records has been passed."""


class Player:
    """Plays a situation. only: the one query whose twin is looked at; `seen`: what has been compared."""

    def __init__(self, situation: Situation, only: str | None = None) -> None:
        self._situation, self._only = situation, only
        self._registered: dict[str, Register] = {}
        """In order."""
        self._twins: dict[str, World] = {}
        self._clocks: dict[str, _StreamClock] = {}
        self._tags = list[str]()
        self._at = 0
        self.seen = Seen()

    def play(self) -> Difference | None:
        """The first difference."""
        with _bounded(self._situation):
            self._store = World(self._situation.kb, lazy=True)
            try:
                for self._at, step in enumerate(self._situation.steps):  # noqa: B020  # `_compare` says where it is
                    self._play(step)
                    self._keep_within()
                self._at = len(self._situation.steps)
                while self._registered:
                    self._play(Close(next(iter(self._registered))))
            except _DiffersError as error:
                name, what = error.args
                return Difference(self._at, name, what)
        return None

    def _play(self, step: Step) -> None:
        if isinstance(step, Register):
            self._register(step)
        elif isinstance(step, Push):
            self._clocks.setdefault(step.stream, _StreamClock()).came(step)
            self._compare(
                self._store.push(step.stream, step.events),
                {name: twin.push(step.stream, step.events) for name, twin in self._twins.items()},
            )
            self._store.terms.collect()
        elif isinstance(step, Punctuate):
            clock = self._clocks.setdefault(step.stream, _StreamClock())
            clock.punctuation = max(clock.punctuation, step.time)
            self._compare(
                self._store.punctuate(step.stream, step.time),
                {name: twin.punctuate(step.stream, step.time) for name, twin in self._twins.items()},
            )
        elif isinstance(step, Tag):
            (quad,) = parse(step.quad.encode(), format=RdfFormat.N_QUADS)
            self._tags.append(step.quad + "\n")
            for world in (self._store, *self._twins.values()):
                world.change_kb(quad)
        elif isinstance(step, Restart):
            self._store.move(crowded(Random(step.seed)))
        elif isinstance(step, Look):
            for name in self._twins:
                self._look(name)
        elif step.name in self._registered:
            self._play_one(step)

    def _register(self, step: Register) -> None:
        if step.name in self._registered:
            return
        passed = {stream: clock.passed for stream, clock in self._clocks.items()}
        worlds = [self._store]
        if self._only in (None, step.name):
            self._twins[step.name] = World(self._situation.kb + "".join(self._tags))
            worlds.append(self._twins[step.name])
        for world in worlds:
            world.register(step.text, step.lateness, step.start, passed, step.most)
        self._registered[step.name] = step

    def _play_one(self, step: Settle | Forget | Close | Remove) -> None:
        """Of one query."""
        number, twin = [*self._registered].index(step.name), self._twins.get(step.name)
        if isinstance(step, Close | Remove):  # its outcome is the last
            mine = self._store.close(number) if isinstance(step, Close) else self._store.remove(number)
            its = twin.close(0) if twin is not None and isinstance(step, Close) else []
            del self._registered[step.name]
            if self._twins.pop(step.name, None) is not None and [each[1:] for each in mine] != [e[1:] for e in its]:
                raise _DiffersError(step.name, f"when it ends {mine} instead of {its}")
        elif isinstance(step, Settle):
            self._compare(self._store.settle(number), {} if twin is None else {step.name: twin.settle(0)})
        else:
            self._store.forget(number)
            if twin is not None:
                twin.forget(0)

    def _keep_within(self) -> None:
        """Those with too many live records forget, as a server has them do."""
        for number, (name, step) in enumerate(self._registered.items()):
            twin = self._twins.get(name)
            if step.most is None or twin is None:
                continue
            alive = list[int]()
            for world, place in ((self._store, number), (twin, 0)):
                run = world.run(place)
                run.collect()
                alive.append(run.records)
            if twin.run(0).omitted.over:  # it has been stopped: alone it does not go on, among others nobody is told
                continue
            if alive[0] != alive[1]:
                raise _DiffersError(name, f"{alive[0]} live records instead of {alive[1]}")
            if alive[0] > step.most:
                self.seen.forgotten += 1
                self._store.forget(number)
                twin.forget(0)

    def _compare(self, given: Given, alone: dict[str, Given]) -> None:
        """What a step has given; a twin that it does not say anything of has given nothing."""
        names = [*self._registered]
        mine: dict[str, tuple[object, ...]] = {}
        for number, *rest in given:
            assert isinstance(number, int) and names[number] not in mine
            mine[names[number]] = tuple(rest)
        for number, (name, twin) in zip(map(names.index, self._twins), self._twins.items(), strict=True):
            its = tuple(alone[name][0][1:]) if alone.get(name) else _NOTHING
            self._note(its)
            if mine.get(name, _NOTHING) != its:
                raise _DiffersError(name, f"{mine.get(name, _NOTHING)} instead of {its}")
            one, other = self._store.counters[number], twin.counters[0]
            if one != other:
                raise _DiffersError(name, f"events, late, matches, open, lateness {one} instead of {other}")

    def _note(self, given: tuple[object, ...]) -> None:
        matches, late, error = given
        assert isinstance(matches, list)
        self.seen.matches += len(matches)
        self.seen.late += len(late) if isinstance(late, list) else 0
        self.seen.errors += error is not None

    def _look(self, name: str) -> None:
        run, its = self._store.run([*self._registered].index(name)), self._twins[name].run(0)
        for each in (run, its):  # what a negation has killed may still wait, unless others have had it freed
            each.collect()
        stopped = its.omitted.over  # alone it does not go on, among others nobody is told
        for what in ("omitted",) if stopped else ("omitted", "deadline", "waits", "silence"):
            if getattr(run, what) != getattr(its, what):
                raise _DiffersError(name, f"{what} {getattr(run, what)} instead of {getattr(its, what)}")


_NOTHING = ([], None, None)


@contextmanager
def _bounded(situation: Situation) -> Iterator[None]:
    """With its bounds; terms are freed at every push, so that an id which somebody still looks at means another one."""
    limits = replace(MatchLimits(), rows=situation.rows)
    with pytest.MonkeyPatch.context() as patch:
        bounds = InstantBounds(matches=situation.matches, made=situation.made, choices=situation.compared)
        patch.setattr(dictionary, "BOUNDS", bounds)
        patch.setattr(StreamMatcher.__init__, "__defaults__", (None, limits, None))
        patch.setattr(deferred, "DEAR", 1)
        patch.setattr(TermDictionary, "collect_if_due", TermDictionary.collect)
        yield


def pasted(situation: Situation) -> str:
    """A command for a shell, in the folder of the project, that says what differs."""
    return f"PYTHONPATH=tests:tests/engine python - <<'EOF'\n{situation.script()}EOF"


def difference(situation: Situation, only: str | None = None) -> Difference | None:
    """The first difference between a query among others and alone; an error of either is one."""
    player = Player(situation, only)
    try:
        return player.play()
    except QueryError:
        raise
    except Exception as error:
        return Difference(player._at, only or "?", f"raised {type(error).__name__}: {error}")


# --- making one smaller -------------------------------------------------------------------------------


def reduced(found: Situation, seconds: float = 120.0) -> Situation:
    """A situation that still differs, with fewer steps, queries, events, triples and lines of queries."""
    until = monotonic() + seconds
    first = difference(found)
    only = None if first is None or first.name == "?" else first.name

    def fails(each: Situation) -> bool:
        if monotonic() > until:
            return False
        try:
            return difference(each, only) is not None
        except QueryError:
            return False  # taking lines away has left no query

    if first is not None:
        cut = replace(found, steps=found.steps[: first.step + 1])
        found = cut if fails(cut) else found
    while monotonic() < until:
        smaller = found
        for ways in (_fewer_steps, _fewer_queries, _fewer_events, _fewer_lines, _fewer_options):
            smaller = ways(smaller, fails)
        if smaller == found:
            break
        found = smaller
    return found


_Fails: TypeAlias = Callable[[Situation], bool]


def _fewer_steps(found: Situation, fails: _Fails) -> Situation:
    """In runs of many, then of few."""
    size = max(len(found.steps) // 2, 1)
    while size:
        high = len(found.steps)
        while high > 0:
            low = max(high - size, 0)
            each = replace(found, steps=found.steps[:low] + found.steps[high:])
            if fails(each):
                found = each
            high = low
        size //= 2
    return found


def _fewer_queries(found: Situation, fails: _Fails) -> Situation:
    for name in [step.name for step in found.steps if isinstance(step, Register)]:
        each = replace(found, steps=tuple(step for step in found.steps if getattr(step, "name", None) != name))
        if fails(each):
            found = each
    return found


def _fewer_events(found: Situation, fails: _Fails) -> Situation:
    for place, step in enumerate(found.steps):
        if not isinstance(step, Push):
            continue
        for number in reversed(range(len(step.events))):
            time, text = step.events[number]
            for lines in ([], *([line] for line in text.splitlines(keepends=True))):
                less = () if not lines else ((time, text.replace(lines[0], "", 1)),)
                events = (*step.events[:number], *less, *step.events[number + 1 :])
                each = replace(found, steps=_with(found.steps, place, replace(step, events=events)))
                if fails(each):
                    found, step = each, replace(step, events=events)
                    if not lines:
                        break
                    text = less[0][1]
    for line in found.kb.splitlines(keepends=True):
        each = replace(found, kb=found.kb.replace(line, "", 1))
        found = each if fails(each) else found
    return found


def _fewer_lines(found: Situation, fails: _Fails) -> Situation:
    for place, step in enumerate(found.steps):
        if not isinstance(step, Register):
            continue
        text = step.text
        for index in reversed(range(text.count("\n") + 1)):
            lines = text.split("\n")
            less = ["\n".join(lines[:index] + lines[index + 1 :])]
            if lines[index].startswith(("SELECT", "CONSTRUCT", "ASK")) and lines[index] != "SELECT *":
                less.append("\n".join([*lines[:index], "SELECT *", *lines[index + 1 :]]))
            for shorter in less:
                each = replace(found, steps=_with(found.steps, place, replace(step, text=shorter)))
                if fails(each):
                    found, text = each, shorter
                    break
    return found


def _fewer_options(found: Situation, fails: _Fails) -> Situation:
    for place, step in enumerate(found.steps):
        if isinstance(step, Register):
            for plainer in (replace(step, lateness=0), replace(step, start=None), replace(step, most=None)):
                each = replace(found, steps=_with(found.steps, place, plainer))
                if each != found and fails(each):
                    found, step = each, plainer
    usual = Situation(found.steps)
    for plain in (
        replace(found, matches=usual.matches),
        replace(found, made=usual.made, rows=usual.rows),
        replace(found, compared=usual.compared),
    ):
        found = plain if plain != found and fails(plain) else found
    return found


def _with(steps: tuple[Step, ...], place: int, step: Step) -> tuple[Step, ...]:
    return (*steps[:place], step, *steps[place + 1 :])
