"""Many queries over the same streams: one clock and one pass of matching for all that take events alike.

    events ─ clock of a group ─ complete instants ─ one match kernel for all its queries ─ each query's own rows

Queries with the same streams, lateness and start are of one *kind*. A kind's queries are in one *group* as long as
their clocks are in the same state; one that was registered later, or has settled by itself, has a clock of its own
until both are in the same state again. So a query's matches are exactly those that it finds alone: it sees the same
instants, matched by the same kernel. Tables are rebuilt, between batches, when a query has come or gone. Those that
are alike and have seen the same find their matches together (alike.py), and the edges of many are in one automaton
(engine/automaton).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import field
from functools import partial
from itertools import chain, repeat
from typing import Final, ParamSpec

from oxiseq.engine.automaton.automaton import SharedAutomaton
from oxiseq.engine.automaton.queries import ShapeFound
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.order.clock import Clock, Instants
from oxiseq.engine.order.watermarks import BEFORE_ALL
from oxiseq.engine.output.batch import MatchBatch
from oxiseq.engine.patterns.matcher import Rows
from oxiseq.engine.plan.own_run import RunKind, why_own_run
from oxiseq.engine.plan.thresholds import ladder_of
from oxiseq.engine.run.finder import Finder
from oxiseq.engine.run.query import CHUNK, QueryRun
from oxiseq.engine.sharing.alike import share
from oxiseq.engine.sharing.dispatching import Dispatcher, Outcome
from oxiseq.engine.sharing.joint_matching import JointMatching
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.records import dataclass

P = ParamSpec("P")
_GROWN: Final = 1 << 10
"""Records more in an automaton, besides a quarter, after which its queries' budgets are looked at."""
_MANY: Final = 16
"""Queries of a clock among which a new one counts in an automaton."""
_ALIKE: Final = 4
"""The same of queries that have their edges in common there."""
Kind = tuple[tuple[str, ...], int, int | None]
"""Streams, lateness, start."""


@dataclass(slots=True)
class _Joined:
    """Those that find their matches in an automaton, and how many they are. `told`: its records when all of them were
    last said to have been stepped."""

    automaton: SharedAutomaton
    runs: dict[Finder, list[QueryRun]]
    attentive: list[QueryRun] = field(default_factory=list)
    """Those of them that may emit something when nothing is found."""
    count: int = 0
    told: int = 0


@dataclass(slots=True)
class _Group:
    """Queries of a kind whose clocks are in the same state, in order of registration."""

    kind: Kind
    clock: Clock
    runs: list[QueryRun]
    watchful: set[QueryRun]
    """Those that may need every instant."""
    keeping: set[QueryRun]
    """Those that may have answers of their own, of the KB of an earlier moment."""
    joined: dict[RunKind, _Joined] = field(default_factory=dict)

    @property
    def in_automata(self) -> dict[Finder, list[QueryRun]]:
        """Those that find their matches in one."""
        return {finder: runs for joined in self.joined.values() for finder, runs in joined.runs.items()}

    @property
    def apart(self) -> list[QueryRun]:
        """Those that work by themselves now: one that is alone, or those with answers of their own."""
        if len(self.runs) == 1:
            return self.runs
        return [run for run in self.runs if run in self.keeping] if self.keeping else []


class SharedRuns(Dispatcher[QueryRun]):
    """The queries of SPAseq. Outcomes come in order of registration."""

    def __init__(self, terms: TermDictionary) -> None:
        super().__init__()
        self._terms = terms
        self._groups: dict[Kind, list[_Group]] = {}
        self._reading: dict[str, list[_Group]] = {}
        """By stream those whose queries read it."""
        self._passes: dict[Kind, JointMatching] = {}
        self._by_themselves: set[QueryRun] = set()
        self._bounds: dict[QueryRun, Hashable] = {}
        """Of the states of those that have some."""
        self._limits: dict[QueryRun, Exception] = {}
        """The limits passed since outcomes were emitted."""
        self._forgotten: tuple[tuple[object, ...], QueryRun] | None = None
        """The last that has forgotten, and of which state."""

    def add(
        self, run: QueryRun, start: int | None = None, *, shares: bool = True, bounds: Hashable | None = None
    ) -> None:
        """A query that has not seen any event yet; `start` as it was given. shares: it may find its matches together
        with others. bounds: of its state, None without any."""
        if not shares:
            self._by_themselves.add(run)
        if bounds is not None:
            self._bounds[run] = bounds
        self._enrol(run)
        kind = run.plan.streams, run.lateness, start
        self._enter(_Group(kind, run.clock, [run], {run}, {run}))
        self._passes.pop(kind, None)
        self._unite(kind)

    def remove(self, run: QueryRun) -> None:
        group = self._group(run)
        self._leave(group, run)
        self._passes.pop(group.kind, None)
        run.finder.users -= bool(run.others)
        self._strike(run)
        self._by_themselves.discard(run)
        self._bounds.pop(run, None)
        if self._forgotten is not None and self._forgotten[1] is run:
            self._forgotten = None

    def tells_steps(self, run: QueryRun) -> bool:
        """Whether `stepped` tells of each step of it: in an automaton nobody asks who has been touched."""
        return run.finder.away is None

    def push(self, stream: str, batch: EventBatch) -> list[Outcome]:
        outcomes: list[Outcome] = []
        groups = self._reading.get(stream, ())
        for group in groups:
            late = group.clock.push(group.kind[0].index(stream), batch)
            outcomes += self._advance(group, late)
        return self._settled(groups, outcomes)

    def punctuate(self, stream: str, time: int) -> list[Outcome]:
        outcomes: list[Outcome] = []
        groups = self._reading.get(stream, ())
        for group in groups:
            group.clock.advance(group.kind[0].index(stream), time)
            outcomes += self._advance(group)
        return self._settled(groups, outcomes)

    def orders(self, stream: str) -> Iterable[QueryRun]:
        return (group.runs[0] for group in self._reading.get(stream, ()))

    def keep_answers(self, run: QueryRun) -> bool:
        kept = run.keep_answers()
        if run.own_answers:
            self._group(run).keeping.add(run)
        return kept

    def forget(self, run: QueryRun, at: int) -> None:
        """See `QueryRun.forget`. Those that have emitted the same and forget one after the other continue together."""
        before = run.finder, run.teller, run.clock, run.clock.instants, run.clock.passed
        run.forget(at)
        self._passes.pop(self._group(run).kind, None)  # it may have another finder
        if self._forgotten is not None and self._forgotten[0] == before and self._forgotten[1].clock is run.clock:
            run.share(self._forgotten[1].finder, self._forgotten[1].teller)
        self._forgotten = before, run

    def settle(self, run: QueryRun, until: int = BEFORE_ALL) -> list[Outcome]:
        group = self._alone(run)
        group.clock.settle(until)
        return self._settled(self._groups[group.kind], self._advance(group))

    def close(self, run: QueryRun) -> list[Outcome]:
        group = self._alone(run)
        group.clock.close()
        return self._advance(group)

    # --- groups -------------------------------------------------------------------------------------

    @property
    def clocks(self) -> int:
        """How many clocks there are; queries that take events alike share one."""
        return sum(map(len, self._groups.values()))

    def _all(self) -> Iterator[_Group]:
        return chain.from_iterable(self._groups.values())

    def _group(self, run: QueryRun) -> _Group:
        return next(group for group in self._all() if group.clock is run.clock)

    def _enter(self, group: _Group) -> None:
        self._groups.setdefault(group.kind, []).append(group)
        for stream in group.kind[0]:
            self._reading.setdefault(stream, []).append(group)

    def _drop(self, group: _Group) -> None:
        kind = group.kind
        self._groups[kind] = [each for each in self._groups[kind] if each is not group]
        if not self._groups[kind]:
            del self._groups[kind]
        for stream in kind[0]:
            self._reading[stream] = [each for each in self._reading[stream] if each is not group]

    def _leave(self, group: _Group, run: QueryRun) -> None:
        group.runs = [r for r in group.runs if r is not run]
        if all(r.finder is not run.finder for r in group.runs):
            for joined in group.joined.values():
                joined.automaton.drop(run.finder)
        group.watchful.discard(run)
        group.keeping.discard(run)
        if not group.runs:
            self._drop(group)

    def _alone(self, run: QueryRun) -> _Group:
        """Give a query a clock of its own."""
        group = self._group(run)
        if len(group.runs) == 1:
            return group
        run.come_home()
        self._leave(group, run)
        self._passes.pop(group.kind, None)
        run.follow(group.clock.copy())
        run.leave()
        alone = _Group(group.kind, run.clock, [run], {run}, {run})
        self._enter(alone)
        return alone

    def _settled(self, groups: Sequence[_Group], outcomes: list[Outcome]) -> list[Outcome]:
        """Behind a step of `groups`, among which are all of their kinds."""
        if len(groups) < 2:
            return outcomes
        for kind in {group.kind for group in groups}:
            if len(self._groups[kind]) > 1:
                self._unite(kind)
        return self._in_order(outcomes)

    def _unite(self, kind: Kind) -> None:
        """Make groups of a kind one whose clocks have come into the same state."""
        kept: list[_Group] = []
        for group in tuple(self._groups[kind]):
            other = next((g for g in kept if g.clock.same(group.clock)), None)
            if other is None:
                kept.append(group)
                continue
            for joined in group.joined.values():
                joined.automaton.dissolve()
            self._passes.pop(kind, None)
            for run in group.runs:
                run.follow(other.clock)
            in_order = self._number[other.runs[-1]] < self._number[group.runs[0]]
            other.runs += group.runs
            if not in_order:
                other.runs.sort(key=self._number.__getitem__)
            other.watchful |= group.watchful
            other.keeping |= group.keeping
            self._drop(group)

    # --- one group's instants -----------------------------------------------------------------------

    def _advance(self, group: _Group, late: EventBatch | None = None) -> list[Outcome]:
        """Take what is complete by now and let every query that it concerns work on it."""
        found: dict[QueryRun, list[MatchBatch]] = {}
        errors: dict[QueryRun, Exception] = {}
        self._work(group, found, errors)
        while group.clock.has_more:
            self._work(group, found, errors)
        if late is not None and not len(late):
            late = None
        if late is None and not (found or errors or self._limits):
            return []
        limits, self._limits = self._limits, {}
        concerned = list(group.runs if late is not None else {**found, **errors, **limits})
        if len(concerned) > 1:
            concerned.sort(key=self._number.__getitem__)
        wrong = {**limits, **errors}
        return [Outcome(run, [] if run in errors else found.get(run, []), late, wrong.get(run)) for run in concerned]

    def _note_limit(self, run: QueryRun) -> None:
        error = run.take_error()
        if error is not None:
            self._limits.setdefault(run, error)

    def _work(self, group: _Group, found: dict[QueryRun, list[MatchBatch]], errors: dict[QueryRun, Exception]) -> None:
        """What the clock returns next: matches and errors are put with those that are there already."""
        keeping = {run for run in group.keeping if run.own_answers}
        if len(keeping) < len(group.keeping):  # some may come into an automaton again
            group.keeping = keeping
            self._passes.pop(group.kind, None)
        if len(group.runs) > 1 and group.kind not in self._passes:
            self._passes[group.kind] = self._pass(group.kind)
        instants = group.clock.take()
        apart = group.apart
        for run in apart:
            group.watchful.add(run)
            self._worked(run, found, errors, run.work, instants)
        if len(apart) < len(group.runs):
            self._work_together(group, apart, instants, found, errors)

    def _worked(
        self,
        run: QueryRun,
        found: dict[QueryRun, list[MatchBatch]],
        errors: dict[QueryRun, Exception],
        work: Callable[P, list[MatchBatch]],
        *args: P.args,
        **named: P.kwargs,
    ) -> bool:
        """Let a query work: what it finds, its limit or its error is put with those that are there. Whether it has
        come through."""
        self._stepped.add(run)
        try:
            batches = work(*args, **named)
        except Exception as error:
            errors[run] = error
            return False
        self._note_limit(run)
        if batches:
            found.setdefault(run, []).extend(batches)
        return True

    def _pass(self, kind: Kind) -> JointMatching:
        """For the queries that there are; those whose states are known to be the same may share."""
        runs = [run for group in self._groups[kind] for run in group.runs]
        may_share = [run for run in runs if run.lineage is not None and run not in self._by_themselves]
        share(may_share, self._bounds, self._terms)
        for group in self._groups[kind]:
            self._compose_less(group)
            self._join(group)
            self._watch(group)
        apart: list[QueryRun] = []
        for group in self._groups[kind]:
            joined = group.in_automata
            apart += [run for run in group.runs if run.finder not in joined]
        return JointMatching(apart, len(kind[0]), self._terms)

    def _compose_less(self, group: _Group) -> None:
        """Among many, or some on one ladder, new queries count their matches as an automaton does, instead of by
        composed windows, which are faster for one, but each has its own. Those with bounds of their states do not:
        these would hold for others."""
        runs_of: dict[Finder, list[QueryRun]] = {}
        for run in group.runs:
            runs_of.setdefault(run.finder, []).append(run)
        on_ladder: dict[Hashable, list[list[QueryRun]]] = {}
        for runs in runs_of.values():
            counted, stay = runs[0].plan.runner.otherwise, self._by_themselves.union(self._bounds)
            new = all(run.lineage == b"" for run in runs) and stay.isdisjoint(runs)
            if new and counted is not None and why_own_run(counted) is None:
                ladder = ladder_of(counted)
                on_ladder.setdefault(None if ladder is None else ladder.alike, []).append(runs)
        for alike, several in on_ladder.items():
            known = alike is not None and any(alike in each.automaton.ladders for each in group.joined.values())
            if len(runs_of) >= _MANY or known or (alike is not None and len(several) >= _ALIKE):
                for runs in several:
                    for run in runs:
                        run.compose_no_more()
                    share(runs, self._bounds, self._terms)

    def _join(self, group: _Group) -> None:
        """Have the automata of a group have all that may be in them, where there are several."""
        joined: dict[RunKind, dict[Finder, list[QueryRun]]] = {kind: {} for kind in group.joined}
        for run in group.runs:
            if run.own_answers:
                group.keeping.add(run)
            elif run.finder.joins and run not in self._by_themselves:
                joined.setdefault(run.finder.kind, {}).setdefault(run.finder, []).append(run)
        for kind, runs_of in joined.items():
            self._join_one(group, kind, runs_of)

    def _join_one(self, group: _Group, kind: RunKind, joined: dict[Finder, list[QueryRun]]) -> None:
        before = group.joined.pop(kind, None)
        if len(joined) < 2:
            if before is not None:
                before.automaton.dissolve()
            return
        if before is None:
            before = _Joined(SharedAutomaton(len(group.kind[0]), self._terms, next(iter(joined))), {})
        automaton = before.automaton
        for finder in automaton.members.keys() - joined.keys():
            automaton.drop(finder)
        for finder, runs in joined.items():
            if finder not in automaton.members and not automaton.enter(finder, runs[0].shift, runs[0].written):
                continue
            for run in runs:
                run.origin = None
                group.watchful.discard(run)
        before.runs = {finder: runs for finder, runs in joined.items() if finder in automaton.members}
        inside = [run for runs in before.runs.values() for run in runs]
        before.attentive, before.count = [run for run in inside if run.teller.tells_of_time], len(inside)
        group.joined[kind] = before

    @staticmethod
    def _watch(group: _Group) -> None:
        """Those that work by themselves, and that time alone concerns, see every instant; they may have come home."""
        joined = group.in_automata
        group.watchful |= {run for run in group.runs if run.finder not in joined and run.watchful}

    def _work_together(
        self,
        group: _Group,
        apart: Iterable[QueryRun],
        instants: Instants,
        found: dict[QueryRun, list[MatchBatch]],
        errors: dict[QueryRun, Exception],
    ) -> None:
        matching = self._passes[group.kind]
        total = len(instants.time)
        here = None
        in_automata = sum([joined.count for joined in group.joined.values()])
        if len(group.runs) - in_automata != matching.count or apart:
            here = set(group.runs).difference(apart)
        for low in range(0, max(total, 1), CHUNK):
            part = instants.slice(low, low + CHUNK)
            last = low + CHUNK >= total
            for joined in group.joined.values():
                for piece in joined.automaton.matching.pieces(part):
                    ends = last and piece.first + len(piece.time) == part.first + len(part.time)
                    self._step(joined, group, piece, ends, found, errors)
            if not matching.count:
                continue
            rows = matching.rows(part)
            if rows is None:  # one query's limit: each by itself, so that the others do not suffer
                rows = dict.fromkeys(matching.runs)
            for run in tuple(group.watchful):
                if run.finder not in rows and (here is None or run in here):
                    rows[run.finder] = run.finder.nothing
            for finder in [*rows]:
                first, *others = matching.runs.get(finder, (None,))
                if first is None:
                    continue
                step = partial(self._step_one, group, part, rows[finder], last, here, found, errors)
                step(first)
                for run in self._concerned(group, matching, finder, others, here) if others else ():
                    step(run)

    def _step_one(
        self,
        group: _Group,
        part: Instants,
        rows: list[list[Rows]] | None,
        last: bool,
        here: Collection[QueryRun] | None,
        found: dict[QueryRun, list[MatchBatch]],
        errors: dict[QueryRun, Exception],
        run: QueryRun,
    ) -> None:
        if run in errors or (here is not None and run not in here):
            return
        if self._worked(run, found, errors, run.step, part, rows, last):
            if run.watchful:
                group.watchful.add(run)
            else:
                group.watchful.discard(run)

    @staticmethod
    def _concerned(
        group: _Group,
        matching: JointMatching,
        finder: Finder,
        others: Sequence[QueryRun],
        here: Collection[QueryRun] | None,
    ) -> Sequence[QueryRun]:
        """The others of a finder, if what it has just found is of concern to them: all whose answers instants may
        change without matches, and those that wait for matches if there are some."""
        if here is not None or group.watchful or finder not in matching.listening:
            return others
        matching.note_seen(finder)
        return () if finder.found_nothing else others

    def _step(
        self,
        joined: _Joined,
        group: _Group,
        part: Instants,
        last: bool,
        found: dict[QueryRun, list[MatchBatch]],
        errors: dict[QueryRun, Exception],
    ) -> None:
        """Let an automaton of a group work; queries that it cannot help with these instants work by themselves."""
        automaton, gone = joined.automaton, set[Finder]()
        rest: Instants | None = part
        while rest is not None:
            part = rest
            try:
                told, failed, done = automaton.step(part, last=last)
            except Exception as wrong:  # whose fault it is nobody knows; each goes on in a state of its own
                errors |= dict.fromkeys((run for runs in joined.runs.values() for run in runs), wrong)
                self._stepped.update(errors)
                automaton.dissolve()
                self._passes.pop(group.kind, None)
                return
            worked, rest = (part, None) if done is None else (part.slice(0, done), part.slice(done, len(part.time)))
            self._tell_all(joined, told, failed, worked, found, errors)
            for finder in joined.runs.keys() - automaton.members.keys() - gone:
                gone.add(finder)
                for run in joined.runs[finder]:
                    if run not in errors:
                        self._worked(run, found, errors, run.step, part, None, last)
        if gone:
            self._passes.pop(group.kind, None)
        if automaton.records > joined.told + (joined.told >> 2) + _GROWN:
            joined.told = automaton.records
            self._stepped.update(run for runs in joined.runs.values() for run in runs)

    def _tell_all(
        self,
        joined: _Joined,
        told: list[ShapeFound],
        failed: dict[Finder, Exception],
        part: Instants,
        found: dict[QueryRun, list[MatchBatch]],
        errors: dict[QueryRun, Exception],
    ) -> None:
        """What queries in an automaton have found in a part of the instants."""
        automaton = joined.automaton
        with_matches = {member.finder for each in told for member in each.members}
        for run in joined.attentive:
            if run.finder not in with_matches and run.teller.watchful and run.finder in automaton.members:
                with_matches.add(run.finder)
                told.append(automaton.nothing_of(automaton.members[run.finder]))
        for each in told:
            self._tell(each, joined, part, found, errors)
        for finder, error in failed.items():
            errors |= dict.fromkeys(joined.runs[finder], error)

    def _tell(
        self,
        told: ShapeFound,
        joined: _Joined,
        part: Instants,
        found: dict[QueryRun, list[MatchBatch]],
        errors: dict[QueryRun, Exception],
    ) -> None:
        """What queries of one shape have found becomes answers: for all at once, where each is by itself."""
        written = told.shape.written
        batches: Iterable[MatchBatch | None] | None = None
        if written is not None:
            teller = joined.runs[told.members[0].finder][0].teller
            try:
                if told.counted is None:
                    batches = teller.write(told.found, told.rows).cut(told.bounds)
                else:
                    batches = teller.write_counts(told.counted, told.bounds)
            except Exception as wrong:
                errors |= dict.fromkeys((run for each in told.members for run in joined.runs[each.finder]), wrong)
                return
        batches = repeat(None) if batches is None else batches
        for number, (member, mine) in enumerate(zip(told.members, batches, strict=False)):
            omitted, findings, runs = told.omitted.get(member, ()), None, joined.runs[member.finder]
            for run in runs:
                if run in errors:
                    continue
                if mine is not None and (len(runs) == 1 or run.written == written):
                    self._worked(run, found, errors, run.take, mine, omitted)
                else:  # equal queries have one teller, which writes what it has been given once
                    findings = findings or told.findings(number)
                    self._worked(run, found, errors, run.tell, part, findings, told.rows)
