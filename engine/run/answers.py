"""The knowledge base's answers for a query, at each instant (semantics.md 2.2, kb_in_time.py)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from oxiseq.engine.kb import KnowledgeBase
from oxiseq.engine.kb_in_time import KbInTime
from oxiseq.engine.matching.enrich import KbAnswer
from oxiseq.engine.order.clock import Clock, Instants
from oxiseq.engine.patterns.joined_exists import ExistsMatcher
from oxiseq.engine.patterns.matcher import StreamMatcher
from oxiseq.engine.plan.query import QueryPlan
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms, State

_NO_ANSWERS: Final[dict[str, KbAnswer]] = {}


def part_of(gpm: str) -> str:
    """The name of the answers of its KB pattern among what a query reads of the KB."""
    return f"GPM {gpm}"


class KbAnswers:
    """The answers of a query's KB patterns, by GPM; and its matchers, some of which read the KB in place."""

    def __init__(self, plan: QueryPlan, terms: TermDictionary, kb: KnowledgeBase) -> None:
        self._kb = KbInTime(kb)
        self.matchers = [
            StreamMatcher(request, terms, self._kb) if request is not None else None for request in plan.runner.requests
        ]
        """Of each stream."""
        asked_again = plan.runner.asked_again
        self.exists = ExistsMatcher(asked_again, terms, self._kb) if asked_again else None
        """For the EXISTS of stateful filters."""
        patterns = {name: gpm.kb for name, gpm in plan.runner.gpms.items() if gpm.kb is not None}
        self._variables = {name: pattern.variables for name, pattern in patterns.items()}
        self._patterns = {name: self._kb.materialised(part_of(name), pattern) for name, pattern in patterns.items()}
        self.reads_kb: Final = bool(self._kb.texts)

    @property
    def texts(self) -> tuple[str, ...]:
        """The queries to the KB, as SPARQL."""
        return self._kb.texts

    @property
    def kept(self) -> bool:
        """Whether instants may come for which the answers of an earlier moment hold."""
        return self._kb.waits

    def keep(self, clock: Clock) -> bool:
        """The KB is about to change; whether something is kept that was not."""
        return self._kb.keep(clock.unfinished)

    def known(self) -> dict[str, KbAnswer]:
        """The answers of the present KB, as far as it has asked."""
        version = self._kb.present.version
        return {name: each.made[version] for name, each in self._patterns.items() if version in each.made}

    def follow(self, kb: KbInTime, names: Iterable[tuple[str, str]]) -> None:
        """See `KbInTime.follow`: the answers have the names of this query's variables here."""
        self._kb.follow(kb, names)
        for name, own in self._patterns.items():
            variables = self._variables[name]
            own.made = {version: answer.named(variables) for version, answer in own.made.items()}

    def at(self, instants: Instants, low: int) -> tuple[dict[str, KbAnswer], int]:
        """The answers that hold for the instants from `low` on, and the first instant for which they do not."""
        clocks = instants.clocks
        count = len(clocks)
        if not self.reads_kb:
            return _NO_ANSWERS, count
        if low >= count:
            self._kb.at(instants.passed)
            return _NO_ANSWERS, count
        until = self._kb.at(int(clocks[low]))
        answers = {name: pattern.now for name, pattern in self._patterns.items()}
        return answers, int(np.searchsorted(clocks, until, "right"))

    def save(self, terms: SavedTerms) -> list[State]:
        """The versions for instants that are not complete."""
        return self._kb.save(terms)

    def restore(self, kept: Sequence[State], terms: KnownTerms) -> None:
        """What `save` gave."""
        self._kb.restore(kept, terms)
