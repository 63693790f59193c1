"""GPM occurrences → rows of letters, for a batch of complete instants.

Where it stands: summary graph → GPM occurrences → **rows** → run. Here mappings meet the KB's answer
(semantics.md 2.2) and, for `&`, each other (2.3); what comes out is one row per mapping of a letter.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Variable

from oxiseq.engine.expressions.column import holding
from oxiseq.engine.matching.enrich import KbAnswer
from oxiseq.engine.matching.matcher import Occurrences
from oxiseq.engine.plan.query import GpmPlan, LetterPlan
from oxiseq.engine.terms.dictionary import TermDictionary

Ids = NDArray[np.uint32]


@dataclass(frozen=True, slots=True)
class Frame:
    """k mappings: `where` i64[k] ascending, the instant of each; `columns`: term ids by variable."""

    where: NDArray[np.int64]
    columns: Mapping[Variable, Ids]

    def __len__(self) -> int:
        return len(self.where)

    def take(self, index: NDArray[np.int64] | NDArray[np.bool_]) -> Frame:
        """Some of the mappings."""
        return Frame(self.where[index], {v: c[index] for v, c in self.columns.items()})

    def table(self, variables: tuple[Variable, ...]) -> Ids:
        """u32[k, len(variables)]; a variable without a column is unbound."""
        out = np.zeros((len(self), len(variables)), np.uint32)
        for i, v in enumerate(variables):
            if v in self.columns:
                out[:, i] = self.columns[v]
        return out


def gpm_frame(
    plan: GpmPlan, found: Occurrences, where: NDArray[np.int64], answer: KbAnswer | None,
    terms: TermDictionary,
) -> Frame:
    """The mappings of one GPM: its occurrences joined with the KB's answer, `where`: instant per event."""
    frame = Frame(where[found.event], {v: found.values[:, i] for i, v in enumerate(plan.keep)})
    if plan.kb is None or answer is None:
        return frame
    shared = frame.table(plan.kb.shared)
    if plan.late:
        return frame.take(answer.semi_join(shared))
    row, kb_row = answer.join(shared)
    columns = {v: c[row] for v, c in frame.columns.items()}
    for i, variable in enumerate(answer.variables):
        ids = answer.columns[kb_row, i]
        own = columns.get(variable)
        columns[variable] = ids if own is None else np.where(own == 0, ids, own)
    joined = Frame(frame.where[row], columns)
    return joined.take(holding(plan.parts.kb_filters, joined.columns, len(joined), terms))


def letter_frame(plan: LetterPlan, frames: Mapping[str, Frame], terms: TermDictionary) -> Frame:
    """The rows of a letter: its GPMs' mappings joined at each instant, then the filters among them."""
    frame = frames[plan.letter[0]]
    for name in plan.letter[1:]:
        frame = _join(frame, frames[name])
    if plan.filters:
        frame = frame.take(holding(plan.filters, frame.columns, len(frame), terms))
    return frame


def _join(a: Frame, b: Frame) -> Frame:
    """Compatible pairs of the same instant."""
    low = np.searchsorted(b.where, a.where, "left")
    counts = np.searchsorted(b.where, a.where, "right") - low
    left = np.repeat(np.arange(len(a)), counts)
    ends = np.cumsum(counts)
    right = np.arange(len(left)) - np.repeat(ends - counts, counts) + np.repeat(low, counts)
    keep = np.ones(len(left), np.bool_)
    columns: dict[Variable, Ids] = {v: c[left] for v, c in a.columns.items()}
    for variable, ids in b.columns.items():
        theirs = ids[right]
        if variable not in columns:
            columns[variable] = theirs
            continue
        mine = columns[variable]
        keep &= (mine == theirs) | (mine == 0) | (theirs == 0)
        columns[variable] = np.where(mine == 0, theirs, mine)
    return Frame(a.where[left], columns).take(keep)
