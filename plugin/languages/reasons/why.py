"""Why a query matches or does not: one procedure for every language.

    Subject ─ beginnings, each run over the kept events ─▶ partial matches by step
              the step where it ends, without one condition, run again ─▶ near misses, the nearest first
              the whole query, without one clause ─▶ the matches that the clause leaves out

A language names its steps and conditions in its own words and runs what is left of the query (`Subject`). All that is
counted is found by the engine, so the report is exact; it costs some ten runs of the query. Nothing of it is on the way
of events in a running query, and `Bounds` end it in time.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final

from pyoxigraph import Literal, Variable

from oxiseq.engine.errors import OxiseqError
from oxiseq.engine.expressions.exact import ExpressionError, evaluate
from oxiseq.engine.terms.texts import Term
from oxiseq.grammar.algebra import Call, Expression
from oxiseq.grammar.records import dataclass
from oxiseq.languages.reasons.report import (
    SHOWN,
    WORDING,
    Funnel,
    Miss,
    Near,
    Provenance,
    Reason,
    Stage,
    Step,
    Why,
    Wording,
)

MOST: Final = 1_000
"""Answers of a step that are examined; of a sequence: those of one completing event."""
_ENDS: Final = 8
"""Most steps at which it ends, for which reasons are given."""
_COMPARISONS: Final = ("=", "<", ">", "<=", ">=")


@dataclass(frozen=True, slots=True)
class FoundRow:
    """An answer of some variant of a query. `key` and `values` distinguish it from others; of answers that come equally
    near the one of the smallest `rank` is nearest; `found`: where the language finds its events."""

    key: Hashable
    values: Mapping[str, Term | None]
    rank: tuple[int, ...] = ()
    found: Any = None


@dataclass(frozen=True, slots=True)
class FoundRows:
    """Those of a variant; `more`: there may be more than these."""

    all: tuple[FoundRow, ...] = ()
    more: bool = False

    def __len__(self) -> int:
        return len(self.all)


@dataclass(frozen=True, slots=True)
class WhyCondition:
    """A condition, and the `variant` of its step, or of the query, without it.

    `shown`: the values that it reads; `test`: it, where it is an expression; `same`: two values that are one under it;
    `of`: the language's own.
    """

    kind: str
    text: str
    variant: Any
    shown: tuple[str, ...] = ()
    test: Expression | None = None
    same: tuple[str, str] | None = None
    of: Any = None

    def read(self, answer: FoundRow) -> dict[str, Term | None]:
        """The values of an answer that it reads; all of them if it is about no values."""
        return {name: answer.values[name] for name in self.shown or answer.values if name in answer.values}


@dataclass(frozen=True, slots=True)
class WhyStep:
    """A step with all before it, as a variant of the query. It is run if one of the steps `after` which it comes has
    answers, or there are none; `last`: its answers are those of the query."""

    text: str
    variant: Any
    conditions: Callable[[], Iterable[WhyCondition]]
    after: tuple[int, ...] = ()
    last: bool = False


class Subject(ABC):
    """A query over a history, as `why` sees it."""

    language: str
    late: int
    wording: ClassVar[Wording] = WORDING
    notes: tuple[str, ...] = ()
    at: int | None = None
    """The one instant that is described, if it is one (µs)."""

    @abstractmethod
    def beginnings(self) -> Sequence[WhyStep]:
        """The steps, in order."""

    @abstractmethod
    def begun(self, variant: Any) -> FoundRows:
        """The answers of a step, or of one without a condition. Raises OxiseqError, KbError, LimitError."""

    def ends(self, begun: Mapping[int, FoundRows]) -> Sequence[int]:
        """The steps where it ends, of those that were run, if the last one has no answers."""
        return [number for number, answers in begun.items() if not answers]

    @abstractmethod
    def whole(self, variant: Any = None) -> FoundRows:
        """The answers of the query, or of one without a clause. Raises OxiseqError, KbError, LimitError."""

    @abstractmethod
    def patterns(self) -> Iterator[Funnel]:
        """How many events pass each pattern by itself."""

    @abstractmethod
    def near(self, condition: WhyCondition, answer: FoundRow) -> Near:
        """What there would be without a condition, and what is against it."""

    @abstractmethod
    def provenances(self, whole: FoundRows, most: int) -> Iterator[Provenance]:
        """What the first answers were made of."""

    def clauses(self) -> Iterable[WhyCondition]:
        """What leaves out whole matches: asked where the last step has answers."""
        return ()

    def outcome(self, whole: FoundRows) -> Stage | None:
        """What becomes of the answers of the last step, where that is a step of its own."""
        return None


def why_of(subject: Subject, provenance: int = SHOWN) -> Why:
    """The report. Raises OxiseqError, KbError, LimitError, and whatever the bounds raise."""
    steps = subject.beginnings()
    begun = _run(subject, steps)
    numbers = [len(begun.get(number, ())) for number in range(len(steps))]
    finished = [number for number, step in enumerate(steps) if step.last and numbers[number]]
    ends = [n for n in begun if steps[n].last] if finished else subject.ends(begun)
    reasons = [
        reason
        for number in ends[:_ENDS]
        if not begun[number].more  # of more than are examined, those that a condition adds are not known
        for reason in _reasons(subject, steps[number].conditions(), begun[number], subject.begun)
    ]
    whole = subject.whole()
    if finished:
        reasons += _reasons(subject, subject.clauses(), whole, subject.whole)
    outcome = subject.outcome(whole)
    stages = [
        Stage(step.text, n, number in begun and begun[number].more)
        for number, (step, n) in enumerate(zip(steps, numbers, strict=True))
    ]
    stopped = None if finished or not ends else " | ".join(steps[number].text for number in ends)
    if outcome is not None:
        stages.append(outcome)
        stopped = stopped or (None if outcome.matches else outcome.text)
    return Why(
        tuple(subject.patterns()),
        tuple(stages),
        stopped,
        tuple(sorted(reasons, key=lambda reason: -reason.matches)),
        len(whole),
        whole.more,
        subject.late,
        tuple(subject.provenances(whole, provenance)),
        subject.language,
        subject.at,
        tuple(subject.notes),
        subject.wording,
    )


def _run(subject: Subject, steps: Sequence[WhyStep]) -> dict[int, FoundRows]:
    """The answers of the steps that something leads to."""
    begun: dict[int, FoundRows] = {}

    def led_to(number: int) -> bool:
        after = steps[number].after
        return number not in begun and (not after or any(len(begun.get(n, ())) for n in after))

    while ready := [number for number in range(len(steps)) if led_to(number)]:
        begun[ready[0]] = subject.begun(steps[ready[0]].variant)
    return dict(sorted(begun.items()))


def _reasons(
    subject: Subject, conditions: Iterable[WhyCondition], strict: FoundRows, run: Callable[[Any], FoundRows]
) -> Iterator[Reason]:
    """The conditions without which there are answers that `strict` has not."""
    for condition in conditions:
        try:
            loose = run(condition.variant)
        except OxiseqError:
            continue  # a variant that the engine refuses shows nothing
        new = sorted(_new(condition, strict, loose), key=lambda each: (_far(condition, each), each.rank))
        if new:
            near = tuple(subject.near(condition, each) for each in new[:SHOWN])
            yield Reason(condition.kind, condition.text, len(new), loose.more, near)


def _new(condition: WhyCondition, strict: FoundRows, loose: FoundRows) -> list[FoundRow]:
    """The answers that are not among the strict ones, by the values that both have."""
    if condition.same is not None:
        one, other = condition.same
        return [each for each in loose.all if each.values[one] != each.values[other]]
    if not strict.all or not loose.all:
        return list(loose.all)
    names = [name for name in strict.all[0].values if name in loose.all[0].values]
    timed = condition.kind != "pattern"  # without a part, rows have other intervals

    def key(answer: FoundRow) -> Hashable:
        return answer.key if timed else None, tuple(answer.values[name] for name in names)

    known = set(map(key, strict.all))
    return [each for each in loose.all if key(each) not in known]


def _far(condition: WhyCondition, answer: FoundRow) -> float:
    return 0.0 if condition.test is None else distance(condition.test, answer.values)


def distance(condition: Expression, values: Mapping[str, Term | None]) -> float:
    """How far values are from a condition: |a − b| of a comparison of numbers that does not hold; infinite for anything
    else. Of `&&` the largest of those that is known, of `||` the smallest."""
    if isinstance(condition, Call) and condition.name in ("&&", "||"):
        each = [distance(arg, values) for arg in condition.args]
        if condition.name == "||":
            return min(each)
        return max((d for d in each if d < math.inf), default=math.inf)
    if not isinstance(condition, Call) or condition.name not in _COMPARISONS or len(condition.args) != 2:
        return math.inf
    bound = {Variable(name): term for name, term in values.items() if term is not None}
    try:
        a, b = (evaluate(arg, bound) for arg in condition.args)
    except ExpressionError:
        return math.inf
    return abs(_number(a) - _number(b)) if isinstance(a, Literal) and isinstance(b, Literal) else math.inf


def _number(term: Literal) -> float:
    try:
        value = float(term.value)
    except ValueError:
        return math.inf
    return value if math.isfinite(value) else math.inf


Values = Callable[[Sequence[int]], Sequence[Mapping[str, Term | None]]]
"""What a pattern finds in each of these events."""


def passed(
    kind: str,
    text: str,
    before: Iterable[int],
    events: Collection[int],
    values: Values,
    test: Expression | None = None,
    shown: Sequence[str] = (),
    time: Callable[[int], int] = int,
) -> Step:
    """A part of a pattern, which these events pass; of those `before` that do not, the nearest by their values."""
    missed = [event for event in before if event not in events]
    if test is None:
        missed = missed[:SHOWN]
    known = dict(zip(missed, values(missed) if shown else [{}] * len(missed), strict=True))
    if test is not None:
        missed.sort(key=lambda event: distance(test, known[event]))
    misses = (Miss(time(e), {n: known[e][n] for n in shown if n in known[e]}) for e in missed[:SHOWN])
    return Step(kind, text, len(events), tuple(misses))


def length(micros: int) -> str:
    """Microseconds for people: `1 day 2 h`."""
    parts = []
    for size, one, many in ((86_400_000_000, "day", "days"), (3_600_000_000, "h", "h"), (60_000_000, "min", "min")):
        number, micros = divmod(micros, size)
        parts += [f"{number:,} {one if number == 1 else many}"] if number else []
    if micros or not parts:
        parts.append(f"{micros / 1_000_000:.6f}".rstrip("0").rstrip(".") + " s")
    return " ".join(parts)
