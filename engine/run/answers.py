"""What the knowledge base has answered for a query: now, and for events that came before it changed.

An event is enriched by the KB of the moment at which it came (semantics.md 2.2). Events that wait for their instant to
be complete while the KB changes keep the answers of before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from oxiseq.engine.kb import HeldKb, KnowledgeBase
from oxiseq.engine.matching.enrich import KbAnswer, KbPattern
from oxiseq.engine.matching.fallback import KbGraphs
from oxiseq.engine.matching.joined_exists import ExistsMatcher
from oxiseq.engine.matching.matcher import StreamMatcher
from oxiseq.engine.plan.query import QueryPlan
from oxiseq.engine.run.clock import Clock, Instants
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms, State

_FORMER: Final = -(1 << 62)
"""Versions of the KB that a saved state speaks of are told apart by numbers that it never has, from here down."""
_NO_ANSWERS: Final[dict[str, KbAnswer]] = {}


class _Kept(NamedTuple):
    """What held for events up to the time `until` (µs) that had come at this version of the KB."""

    until: int
    answers: dict[str, KbAnswer]
    version: int


class KbAnswers:
    """The answers of a query's KB patterns, by GPM; and its matchers, some of which read the KB in place."""

    def __init__(self, plan: QueryPlan, terms: TermDictionary, kb: KnowledgeBase) -> None:
        self._kb = kb
        self._held = HeldKb(kb)
        self.matchers = [
            StreamMatcher(request, terms, self._held) if request is not None else None for request in plan.requests
        ]
        """Of each stream."""
        asked_again = plan.asked_again
        self.exists = ExistsMatcher(asked_again, terms, self._held) if asked_again else None
        """For the EXISTS of stateful filters."""
        self._patterns: dict[str, KbPattern] = {name: gpm.kb for name, gpm in plan.gpms.items() if gpm.kb is not None}
        self._kept: list[_Kept] = []
        self.reads_kb: Final = bool(self._patterns) or any(graphs is not None for graphs in self._graphs())

    @property
    def texts(self) -> tuple[str, ...]:
        """What is asked, as SPARQL."""
        copied = (graphs.text for graphs in self._graphs() if graphs is not None)
        return tuple(dict.fromkeys([*(pattern.text for pattern in self._patterns.values()), *copied]))

    @property
    def kept(self) -> bool:
        """Whether events wait for which the answers of an earlier moment hold."""
        return bool(self._kept)

    def keep(self, clock: Clock) -> bool:
        """The KB is about to change: what has come so far keeps the answers of now. Whether some does that did not.

        Of patterns that are evaluated in place only the copy before the first change is kept while events wait.
        """
        if not clock.open or not self.reads_kb:
            return False
        if self._kept and self._kept[-1].until >= clock.newest:
            return False  # nothing has come since the change before
        if not self._kept:
            for matcher in self.matchers:
                if matcher is not None:
                    matcher.refresh()
            if self.exists is not None and self.exists.graphs is not None:
                self.exists.graphs.refresh()
        self._kept.append(_Kept(clock.newest, self._now(), self._kb.version))
        return True

    def at(self, instants: Instants, low: int) -> tuple[dict[str, KbAnswer], int]:
        """The answers that hold for the instants from `low` on, and the first instant for which they do not."""
        if not self.reads_kb:
            return _NO_ANSWERS, len(instants.time)
        while self._kept and low < len(instants.time):
            bound, answers, version = self._kept[0]
            high = int(np.searchsorted(instants.time, bound, "right"))
            if high > low:
                self._held.held = version
                return answers, high
            self._kept.pop(0)
        self._held.held = None
        return self._now(), len(instants.time)

    # --- saved and restored -------------------------------------------------------------------------

    def save(self, terms: SavedTerms) -> list[State]:
        """What holds for events that wait."""
        if not self._kept:
            return []
        kept: list[State] = [
            {"until": until, "answers": {name: answer.save(terms) for name, answer in answers.items()}}
            for until, answers, _ in self._kept
        ]
        oldest = self._kept[0].version
        kept[0]["graphs"] = [
            graphs.save(terms) if graphs is not None and graphs.version == oldest else None for graphs in self._graphs()
        ]
        return kept

    def restore(self, kept: Sequence[State], terms: KnownTerms) -> None:
        """What `save` gave."""
        for number, each in enumerate(kept):
            answers = {name: self._patterns[name].restored(answer, terms) for name, answer in each["answers"].items()}
            self._kept.append(_Kept(int(each["until"]), answers, _FORMER - number))
        for graphs, saved in zip(self._graphs(), kept[0]["graphs"] if kept else (), strict=False):
            if saved is not None and graphs is not None:
                graphs.restore(saved, _FORMER, terms)

    # --- what there is ------------------------------------------------------------------------------

    def _now(self) -> dict[str, KbAnswer]:
        return {name: pattern.answer(self._kb) for name, pattern in self._patterns.items()}

    def _graphs(self) -> list[KbGraphs | None]:
        """Of each stream the copy of the KB's graphs that its patterns read; last that of stateful filters."""
        last = None if self.exists is None else self.exists.graphs
        return [*(None if matcher is None else matcher.graphs for matcher in self.matchers), last]
