"""What a query keeps of the matches that end at an instant: those that pass its FILTERs behind SEQ, of these those that
its strategy keeps, of them those that ORDER BY, SAMPLE or a page ask for; or groups that are folded of them.

In the flow: finals of an instant → **those that are kept**, in the order of emission → enumeration.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from oxiseq.engine.extras import needed
from oxiseq.engine.kernels.matches.records import PLACE_BITS
from oxiseq.engine.kernels.sequence.records import Memory
from oxiseq.engine.output.row_events import RowEvents
from oxiseq.engine.output.rows import KnownRows
from oxiseq.engine.plan.query import QueryPlan
from oxiseq.engine.terms.dictionary import TermDictionary

if TYPE_CHECKING:
    from oxiseq.engine.matches import choice
    from oxiseq.engine.output import folding, picking, sieve
else:
    choice = needed("oxiseq.engine.matches.choice")
    folding, picking = needed("oxiseq.engine.output.folding"), needed("oxiseq.engine.output.picking")
    sieve = needed("oxiseq.engine.output.sieve")


class EndChoice:
    """The choice of one query. Nothing of it outlives a batch, but for room to work in (`capacity`: records to begin
    with)."""

    def __init__(self, plan: QueryPlan, terms: TermDictionary, capacity: int) -> None:
        runner, ranking = plan.runner, plan.ranking
        self.sieve = sieve.MatchSieve(plan, terms) if runner.sieved else None
        self.picker = self.folder = None
        if runner.folding is not None and not runner.folding.weighed:
            self.folder = folding.MatchFolder(runner.folding, terms)
        if ranking is not None and (ranking.listed is None or ranking.page is not None):
            self.picker = picking.MatchPicker(ranking, terms, consumes=plan.query.consumption is not None)
        strategy = plan.clauses.strategy
        chooser = None if strategy is None else choice.Chooser(strategy, capacity)
        self._steps: list[Callable[[Memory, KnownRows], Memory]] = []
        if self.sieve is not None and not runner.deferred:
            self._steps.append(self.sieve.pick)
        if chooser is not None:
            self._steps.append(lambda S, rows: chooser.choose(S, *rows.times, terms.bounds))
        for last in (self.folder, self.picker):
            if last is not None:
                self._steps.append(partial(self._read, plan, last.pick))

    @staticmethod
    def _read(plan: QueryPlan, pick: Callable[..., Memory], S: Memory, rows: KnownRows) -> Memory:
        """With the events of the matches."""
        return pick(S, _end_of(S, rows), partial(RowEvents, plan, rows))

    def pick(self, S: Memory, rows: KnownRows) -> Memory:
        """Memory whose finals, all of one cut and instant, stand for what is kept; nodes refer to these `rows`. Raises
        LimitError."""
        for step in self._steps:
            S = step(S, rows)
        return S

    def take_folded(self) -> Sequence[folding.Folded] | None:
        """The groups folded since the last call; None: matches are emitted."""
        return None if self.folder is None else self.folder.take()

    def take_counts(self) -> Sequence[int]:
        """See `MatchPicker`."""
        return () if self.picker is None else self.picker.take_counts()


def _end_of(S: Memory, rows: KnownRows) -> int:
    """When the matches of the finals end: their last events are newer than the others."""
    node = S.nodes[S.finals[0, 0]]
    row = int((S.nodes[node["leaf"]] if node["leaf"] >= 0 else node)["pos"]) >> PLACE_BITS
    return int(rows.take(np.array([row])).time[0])
