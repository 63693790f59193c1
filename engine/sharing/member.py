"""Equal runs in one state, and when they must get events (apart.py).

    equal runs ─ one state, which each of them has ─ asleep or awake

The first works for all. One that goes another way than the others (it takes what has come as complete, it
forgets) gets a copy of the state; those that do the same next, before anything else happens, join it. So a hundred that
do it one after the other are one again.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import field, replace

from oxiseq.engine.order.watermarks import BEFORE_ALL
from oxiseq.engine.run.alone import AloneRun
from oxiseq.engine.run.concern import Concern
from oxiseq.engine.sharing.dispatching import Outcome
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.records import dataclass


@dataclass(slots=True, eq=False)
class Member:
    """Runs in one state. equal: the fingerprint of equal ones; lineage: that of equal states. `seen`:
    of one asleep, by stream the position up to which it has got events.

    It is awake while not everything up to the time `until` is complete, or no event newer than `woken` has come.
    `last`: `until` is an instant behind all that concerns it, at which it may emit retractions; where events linger,
    it is awake until there is one.
    """

    runs: list[AloneRun]
    number: int
    concern: Concern | None
    seen: dict[str, int]
    equal: Hashable
    lineage: Hashable
    until: int = BEFORE_ALL
    woken: int | None = BEFORE_ALL
    last: bool = False
    owing: set[AloneRun] = field(default_factory=set)
    """Those that do not know yet that answers of the KB are kept."""
    ended: Sequence[Outcome] = ()
    """The results of the step by which it has left others, for all that are in its state."""
    _by_number: dict[int, list[AloneRun]] | None = None

    @property
    def run(self) -> AloneRun:
        """The one that is at work."""
        return self.runs[0]

    @property
    def rests(self) -> bool:
        """Whether it may sleep."""
        waits = self.concern is None or self.woken is not None or (self.concern.linger and not self.last)
        return not waits and self.run.order.passed > self.until

    def called(self, last: int) -> None:
        """Events up to this time concern it."""
        if self.concern is not None:
            self.until, self.last = max(self.until, last + self.concern.linger), False

    def wake(self) -> None:
        """The next event concerns it, whatever it is."""
        self.woken = self.run.order.accepted

    def stepped(self) -> None:
        """Called when it has got something."""
        order, accepted = self.run.order, self.run.order.accepted
        if self.woken is not None and accepted > self.woken:
            self.called(accepted)
            self.woken = None
        lingers = self.concern is not None and self.concern.linger and not self.last
        if lingers and order.passed > self.until and accepted > self.until:  # a punctuation is no instant
            self.until, self.last = accepted, True

    # --- several runs -------------------------------------------------------------------------------

    def take_in(self, run: AloneRun) -> None:
        """Another run, which is in the same state or has none."""
        run.share(self.run)
        self.runs.append(run)
        self.concern, self._by_number = self.run.concern, None

    def take_over(self, other: Member) -> None:
        """Those of another, which have come to be in the same state; that has none then."""
        for run in other.runs:
            run.move_to(self.run)
        self.runs += other.runs
        self.owing |= other.owing
        self.until, self.last = max(self.until, other.until), self.last and other.last
        self.number = min(self.number, other.number)
        if other.woken is not None:
            self.wake()
        self.concern, self._by_number = self.run.concern, None

    def part(self, run: AloneRun, terms: TermDictionary) -> Member:
        """One run with a state of its own, which is the same."""
        run.part(terms)
        self.runs.remove(run)
        self.owing.discard(run)
        self._by_number = None
        return replace(self, runs=[run], seen=dict(self.seen), owing=set(), ended=())

    def drop(self, run: AloneRun) -> None:
        """Forget a run; if there are others, it has no state then."""
        if len(self.runs) > 1:
            run.share(run.another())
        self.runs.remove(run)
        self.owing.discard(run)
        self._by_number = None
        if self.runs:
            self.run.narrow(self.runs)

    def keep_answers(self, run: AloneRun) -> bool:
        """As `AloneRun.keep_answers`: for each of the runs. Raises KbError."""
        kept = run.keep_answers()
        if kept:
            self.owing = set(self.runs)
        owed = run in self.owing
        self.owing.discard(run)
        return owed

    def told(self, outcomes: Sequence[Outcome], *, quiet: bool = True) -> list[Outcome]:
        """The results of a step, for each run; `quiet`: only for those that have some."""
        return [each for outcome in outcomes for each in self._told(outcome, quiet)]

    def _told(self, outcome: Outcome, quiet: bool) -> Iterator[Outcome]:
        found = self.run.of_each(outcome.matches)
        if found is None:
            yield from (outcome._replace(run=run) for run in self.runs)
            return
        every = not quiet or outcome.late is not None or outcome.error is not None or outcome.ignored
        errors = outcome.errors
        for number in self._numbered if every else {**found, **errors}:
            for run in self._numbered.get(number, ()):
                error = errors.get(number, outcome.error)
                yield outcome._replace(run=run, matches=found.get(number, ()), error=error, errors={})

    def told_to(self, run: AloneRun) -> list[Outcome]:
        """The results for one of the runs of the step by which it has left others."""
        found = [(outcome, run.of_each(outcome.matches)) for outcome in self.ended]
        return [
            outcome._replace(run=run, matches=outcome.matches if each is None else each.get(run.number, ()))
            for outcome, each in found
        ]

    @property
    def _numbered(self) -> Mapping[int, Sequence[AloneRun]]:
        """The runs, by their numbers."""
        if self._by_number is None:
            self._by_number = {}
            for run in self.runs:
                self._by_number.setdefault(run.number, []).append(run)
        return self._by_number
