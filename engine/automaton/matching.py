"""The rows of common letters: one pass of matching for all queries, one question to the knowledge base for all that ask
the same.

In the flow: complete instants, common letters → **rows of those that have some** → one run. What cannot be made of a
letter is no matter of the queries without it: those that have it are named, and work by themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
from pyoxigraph import NamedNode

from oxiseq.engine.automaton.letters import CommonLetters, MemberLetters, PlainLetter, Sought
from oxiseq.engine.automaton.made import MadeGpm, MadeLetter
from oxiseq.engine.errors import MappingsError
from oxiseq.engine.expressions.exists import Ask, Ids
from oxiseq.engine.kb import KnowledgeBase
from oxiseq.engine.kb_in_time import KbInTime, Materialised
from oxiseq.engine.kernels.memory.pointers import address_of
from oxiseq.engine.kernels.sequence import letter_rows as lr
from oxiseq.engine.matching.enrich import KbAnswer, KbPattern
from oxiseq.engine.order.clock import Instants
from oxiseq.engine.patterns.joined_exists import ExistsMatcher, first_event, graphs_of
from oxiseq.engine.patterns.matcher import Rows, StreamMatcher
from oxiseq.engine.run.letters import Frame, Source, gpm_frame, letter_frame
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.algebra import Exists


class FoundLetters(NamedTuple):
    """What some instants bring. `answers`: those of the KB that rows were checked against, by name; `seen`: what events
    have matched; `beyond`: letters of which nothing can be told, if there are some: then there are no sources."""

    sources: list[Source]
    answers: dict[str, KbAnswer]
    seen: list[Sought]
    beyond: set[int]


NOTHING: Final = FoundLetters([], {}, [], set())


class CommonMatching:
    """Finds the rows of common letters. `kb`: as the instants see it; `answers`: of the KB patterns, by name."""

    def __init__(self, letters: CommonLetters, terms: TermDictionary, kb: KnowledgeBase) -> None:
        self._letters, self._terms = letters, terms
        self.kb = KbInTime(kb)
        self.answers: dict[str, Materialised[KbAnswer]] = {}
        self._asked: dict[str, KbPattern] = {}
        self._known = -1
        self._places: list[int] = []
        """By letter its place in an instant."""
        self._wanted: list[bool] = []
        self._matchers: list[StreamMatcher | None] = []
        self._operators: list[dict[MadeGpm, StreamMatcher]] = []
        """By stream the GPMs that some query has and that are more than the kernel's."""
        self._kept: list[object] = []
        """Those whose addresses the kernel gets."""
        self._exists: dict[tuple[NamedNode, ...], ExistsMatcher] = {}
        """By the graphs of the KB that tests name what asks events' graphs again."""
        self._askers: dict[tuple[NamedNode, ...], set[int]] = {}
        """By these the letters whose rows say of which event they are."""
        self._asked_by: dict[Exists, ExistsMatcher] = {}

    def want(self, members: Sequence[MemberLetters]) -> None:
        """These queries' letters are looked for from now on."""
        letters = self._letters
        texts: dict[str, dict[str, None]] = {}
        for each in members:
            for name, text in each.texts:
                texts.setdefault(name, {})[text] = None
        if letters.version != self._known:
            self._known, self._places = letters.version, letters.places()
            self._matchers = [None if plan is None else StreamMatcher(plan, self._terms) for plan in letters.plans()]
        has = self._wanted = letters.wanted(members).tolist()
        operators, self._operators = self._operators, []
        asks: dict[str, MadeGpm] = {}
        before = {gpm.in_place for each in operators for gpm in each}
        for stream, (matcher, sought) in enumerate(zip(self._matchers, letters.sought, strict=True)):
            mine = [each for each in sought if any(has[number] for number in each.letters)]
            made = dict.fromkeys(each for each in mine if isinstance(each, MadeGpm))
            asks |= {gpm.asks: gpm for gpm in made if gpm.asks is not None}
            known = operators[stream] if operators else {}
            self._operators.append(
                {
                    gpm: known.get(gpm) or StreamMatcher(gpm.requests, self._terms, self.kb)
                    for gpm in made
                    if not gpm.requests.all_native
                }
            )
            if matcher is not None:
                wanted = np.zeros(len(sought), np.bool_)
                wanted[[number for each in mine for number in each.numbers]] = True
                matcher.want(wanted[[gpm.request for gpm in matcher.plan.kernel]])
        now = {gpm.in_place for each in self._operators for gpm in each}
        for gone in [name for name in before - now if name is not None]:
            self.kb.release(gone)
        for name in self.answers.keys() - asks.keys():
            self.kb.release(name)
            del self.answers[name], self._asked[name]
        for name, gpm in asks.items():
            if name not in self.answers:
                assert gpm.plan.kb is not None
                self._asked[name] = gpm.plan.kb
                self.answers[name] = self.kb.materialised(name, gpm.plan.kb)
            self._asked[name].ask_as(texts[name])
        self._want_tests(members)

    def _want_tests(self, members: Sequence[MemberLetters]) -> None:
        tests: dict[tuple[NamedNode, ...], dict[Exists, None]] = {}
        self._askers = {}
        for each in members:
            if each.tests:
                named = graphs_of(each.tests)
                tests.setdefault(named, {}).update(dict.fromkeys(each.tests))
                self._askers.setdefault(named, set()).update(filter(self._letters.asks_again, each.numbers.values()))
        for named in self._exists.keys() - tests.keys():
            if (graphs := self._exists.pop(named).graphs) is not None:
                self.kb.release(*graphs.texts)
        self._asked_by = {}
        for named, several in tests.items():
            if named not in self._exists:
                self._exists[named] = ExistsMatcher([*several], self._terms, self.kb)
            self._exists[named].want(several)
            self._asked_by |= dict.fromkeys(several, self._exists[named])

    @property
    def ask(self) -> Ask | None:
        """What answers the EXISTS with values of earlier events; None: there are none."""
        return self._ask if self._exists else None

    def _ask(self, test: Exists, ids: Ids) -> bool:
        return self._asked_by[test].ask(test, ids)

    def end(self) -> None:
        """The instants have been worked through."""
        for each in self._exists.values():
            each.end()

    def know(self, answers: Mapping[str, KbAnswer], letters: MemberLetters) -> None:
        """A query that comes has asked the present KB already."""
        for name, answer in letters.common(answers).items():
            self.answers[name].made.setdefault(self.kb.present.version, answer)

    def pieces(self, instants: Instants) -> Iterable[Instants]:
        """Instants, apart where the KB has changed: of each piece all see the same."""
        return self._split(instants) if self.kb.waits else (instants,)

    def _split(self, instants: Instants) -> Iterator[Instants]:
        clocks = instants.clocks
        low = 0
        while self.kb.waits and low < len(clocks):
            until = self.kb.at(int(clocks[low]))
            high = int(np.searchsorted(clocks, until, "right"))
            yield instants.slice(low, high)
            low = high
        if low < len(clocks) or not low:
            yield instants.slice(low, len(clocks))

    def find(self, instants: Instants) -> FoundLetters:
        """The rows of letters in instants that see the same KB."""
        rows, beyond = self._rows(instants)
        for named, each in self._exists.items():
            try:
                each.begin(instants.batches)
            except Exception:  # as below
                beyond |= self._askers[named]
        sources: list[Source] = []
        answers: dict[str, KbAnswer] = {}
        self._kept.clear()
        occurring: dict[MadeGpm, Rows] = {}
        single = len(self._matchers) == 1
        for each, found in rows:
            if isinstance(each, MadeGpm):
                occurring[each] = found
                continue
            at = 0 if single else address_of(instants.where[each.stream])
            self._kept.append(found)
            width = found.values.shape[1]
            sources.append((each.letters[0], *found.addresses, width, at, found.low, found.high, 0))
        if occurring:
            answers = self._make(instants, occurring, sources, beyond)
        if beyond:
            return FoundLetters([], {}, [], beyond)
        sources.sort(key=lambda source: self._places[source[lr.LETTER]])
        return FoundLetters(sources, answers, [each for each, _ in rows], beyond)

    def _make(
        self, instants: Instants, occurring: dict[MadeGpm, Rows], sources: list[Source], beyond: set[int]
    ) -> dict[str, KbAnswer]:
        """The rows of made letters, or that they cannot be made, are put with those that are there; the KB's answers
        for them."""
        making = _Making(instants, occurring, self.answers, self._terms, self.ask)
        for number in dict.fromkeys(number for gpm in occurring for number in gpm.letters):
            letter = self._letters.all[number]
            assert isinstance(letter, MadeLetter)
            if not (self._wanted[number] and all(gpm in occurring for gpm in letter.gpms.values())):
                continue
            try:
                frame = making.of(letter)
            except Exception:  # whoever has it comes upon this by itself
                beyond.add(number)
                continue
            if making.take_beyond():
                beyond.add(number)
            elif len(frame):
                where, table = np.ascontiguousarray(frame.where), frame.table(tuple(letter.names))
                self._kept += [where, table]
                sources.append((number, address_of(where), address_of(table), table.shape[1], 0, 0, len(frame), 0))
        return making.told

    def _rows(self, instants: Instants) -> tuple[list[tuple[Sought, Rows]], set[int]]:
        """What occurs, and the letters of which an event has too many rows."""
        every: list[tuple[Sought, Rows]] = []
        beyond: set[int] = set()
        for stream, (matcher, batch) in enumerate(zip(self._matchers, instants.batches, strict=True)):
            if matcher is None or not len(batch):
                continue
            sought, operators = self._letters.sought[stream], self._operators[stream]
            found = matcher.rows_of(matcher.find(batch).tolist())
            for number in matcher.beyond:
                beyond.update(sought[matcher.plan.kernel[number].request].letters)
            for number, rows in found.items():
                each = sought[number]
                if rows.low < rows.high and (isinstance(each, PlainLetter) or each.requests.all_native):
                    every.append((each, rows))
            for gpm, own in operators.items():
                mine = [found.get(number, none) for number, none in zip(gpm.numbers, own.nothing, strict=True)]
                if gpm.requests.asks_every_event or any(rows.low < rows.high for rows in mine):
                    try:
                        rows = own.rows(batch, mine)[0]
                    except Exception:  # as above
                        beyond.update(gpm.letters)
                        continue
                    if rows.low < rows.high:
                        every.append((gpm, rows))
        return every, beyond


class _Making:
    """The rows of made letters in some instants; each GPM's mappings are made once. `told`: the KB's answers that have
    been used, by name."""

    def __init__(
        self,
        instants: Instants,
        occurring: dict[MadeGpm, Rows],
        answers: dict[str, Materialised[KbAnswer]],
        terms: TermDictionary,
        ask: Ask | None,
    ) -> None:
        self._instants, self._occurring, self._answers, self._terms = instants, occurring, answers, terms
        self._ask = ask
        self._frames: dict[MadeGpm, Frame] = {}
        self._beyond: dict[int, MappingsError] = {}
        self.told: dict[str, KbAnswer] = {}

    def of(self, letter: MadeLetter) -> Frame:
        """Its rows. Raises what its KB patterns or filters raise."""
        frames = {name: self._mappings(gpm) for name, gpm in letter.gpms.items()}
        return letter_frame(letter.plan, frames, self._terms, self._ask, beyond=self._beyond)

    def _mappings(self, gpm: MadeGpm) -> Frame:
        frame = self._frames.get(gpm)
        if frame is None:
            answer = None
            if gpm.asks is not None:
                answer = self.told[gpm.asks] = self._answers[gpm.asks].now
            where, times = self._instants.where[gpm.plan.stream], self._instants.time
            first = first_event(self._instants.batches, gpm.plan.stream) if gpm.asks_again else None
            given = self._occurring[gpm], where, answer, self._terms, first, times
            frame = gpm_frame(gpm.plan, *given, beyond=self._beyond)
            if not self._beyond:
                self._frames[gpm] = frame
        return frame

    def take_beyond(self) -> bool:
        """Whether there were too many rows at an instant since the last call."""
        beyond, self._beyond = self._beyond, {}
        return bool(beyond)
