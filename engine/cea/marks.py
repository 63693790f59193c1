"""Marks on events, made before they are put in order.

In the flow: events → **marks** (term_marks.py for RDF, table_marks.py for tables) → merging → `CeaRun`.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.cea.facts import FactPlan
from oxiseq.engine.cea.plan import words_of
from oxiseq.engine.kernels.cea import facts as kernels
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms, State
from oxiseq.grammar.records import dataclass


@dataclass(frozen=True, slots=True)
class Marks:
    """n events: see `MarkedEvents` for the columns it shares."""

    symbol: NDArray[np.uint64]
    time: NDArray[np.int64]
    attribute: NDArray[np.float64] | None
    values: NDArray[np.int64]
    """i64[n, k]: of the attributes of PARTITION BY, then of those that aggregates are of, the ids of the terms; 0 where
    an event lacks one."""
    fault: NDArray[np.int64] | None = None
    """What is wrong with each as a tuple event (term_marks.py), 0: nothing; None: nothing is with any. Events that wait
    have none."""

    def __len__(self) -> int:
        return len(self.time)

    def take(self, index: NDArray[np.int64] | slice) -> Marks:
        """Some of the events."""
        attribute = None if self.attribute is None else self.attribute[index]
        return Marks(self.symbol[index], self.time[index], attribute, self.values[index])

    def slice(self, start: int, stop: int) -> Marks:
        """The events start, ..., stop - 1."""
        return self.take(np.s_[start:stop])

    def save(self, terms: SavedTerms) -> State:
        """As a saved state."""
        named = {name: getattr(self, name) for name in ("symbol", "time", "attribute")}
        return {**named, "values": terms.ids(self.values)}

    @classmethod
    def restored(cls, state: State, terms: KnownTerms) -> Marks:
        """The same marks, copied."""
        symbol, time, attribute = (state[name] for name in ("symbol", "time", "attribute"))
        values = terms.ids(state["values"]).astype(np.int64)
        return cls(symbol.copy(), time.copy(), None if attribute is None else attribute.copy(), values)

    @classmethod
    def concat(cls, parts: Collection[Marks]) -> Marks:
        """One after the other, one part at least."""
        if len(parts) == 1:
            return next(iter(parts))
        attributes = [p.attribute for p in parts if p.attribute is not None]
        return cls(
            np.concatenate([p.symbol for p in parts]),
            np.concatenate([p.time for p in parts]),
            np.concatenate(attributes) if attributes else None,
            np.concatenate([p.values for p in parts]),
        )


def symbols(plan: FactPlan, facts: NDArray[np.uint64], type_of: NDArray[np.int64]) -> NDArray[np.uint64]:
    """u64[n, words of atoms], from the facts about leaves (u64[n, plan.words], changed) and the numbers of types."""
    out = np.zeros((len(type_of), words_of(plan.atoms)), np.uint64)
    kernels.symbols(
        facts, type_of, len(plan.leaves), plan.gates, plan.any_of, plan.first_atom, plan.atom_of, plan.masks, out
    )
    return out
