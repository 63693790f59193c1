"""FILTERs behind SEQ where a strategy or CONSUME BY goes by the matches that pass (semantics.md 2.5b).

In the flow: finals of an instant → **those that pass** → strategy → enumeration. Each match of the instant is
evaluated, since a FILTER reads all of it. Without these clauses a FILTER drops matches when they are written.
"""

from __future__ import annotations

from typing import Final

from oxiseq.engine.errors import LimitError
from oxiseq.engine.kernels.sequence.records import Memory
from oxiseq.engine.matches.found import Found
from oxiseq.engine.matches.frozen import FrozenMatches, Places
from oxiseq.engine.matches.memory import put_matches
from oxiseq.engine.output.rows import KnownRows
from oxiseq.engine.output.write import AnswerWriter
from oxiseq.engine.plan.query import QueryPlan
from oxiseq.engine.terms.dictionary import TermDictionary

MOST_LOOKED_AT: Final = 65_536
"""Matches of one instant that the FILTERs are evaluated on; at 0.1 ms each other queries wait some seconds for them."""
_AT_ONCE: Final = 16_384


class MatchSieve:
    """Sieves for one query."""

    def __init__(self, plan: QueryPlan, terms: TermDictionary) -> None:
        self._writer = AnswerWriter(plan, terms)
        self._most = terms.bounds.matches
        self.take_left_out = self._writer.take_left_out
        """Where `keep` has been given what the knowledge base makes too many matches of."""

    def pick(self, S: Memory, rows: KnownRows) -> Memory:
        """Memory whose finals stand for the matches that pass; nodes refer to these `rows`. Raises LimitError."""
        found = FrozenMatches(S)
        if found.exceeds(MOST_LOOKED_AT):
            what = "matches of one instant that a FILTER behind SEQ tests"
            raise LimitError(MOST_LOOKED_AT + 1, MOST_LOOKED_AT, what)
        kept: list[Places] = []
        for low in range(0, found.count, _AT_ONCE):
            matches = [found.at(i) for i in range(low, min(low + _AT_ONCE, found.count))]
            kept += [matches[i] for i in self._writer.passing(Found.of(matches), rows).tolist()]
        for bound, given in self._writer.take_left_out().values():
            raise LimitError(given, self._most, bound.what)
        return put_matches(S, kept)

    def keep(self, found: Found, rows: KnownRows) -> Found:
        """Those of a run's matches that pass."""
        return found.take(self._writer.passing(found, rows)) if len(found) else found
