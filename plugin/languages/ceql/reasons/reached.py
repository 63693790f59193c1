"""Variants of a query's automaton run over all events, and the places that events complete."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from oxiseq.engine.cea.plan import CeaPlan, compile_ceql, words_of
from oxiseq.engine.cea.positions import bits
from oxiseq.engine.output.complex_events import ComplexEvents
from oxiseq.engine.run.sequence import run_of
from oxiseq.grammar.algebra import Limit
from oxiseq.grammar.ceql_algebra import CeqlQuery
from oxiseq.grammar.records import dataclass
from oxiseq.languages.ceql.reasons.events import Events
from oxiseq.languages.ceql.shape import ceql_shape
from oxiseq.languages.reasons.working import worked
from oxiseq.matches.match import Positions
from oxiseq.matches.shape import Block

MOST = 1_000
"""Complex events of one completing event that are counted."""
FEW = 32
"""Those of one completing event among which the nearest are looked for."""


@dataclass(frozen=True, slots=True)
class Ran:
    """What a variant found."""

    block: Block
    batch: ComplexEvents
    cut: bool
    """Whether it ended early, since that was enough."""

    @property
    def ends(self) -> NDArray[np.int64]:
        """The positions of the completing events, ascending, each once."""
        return np.unique(self.batch.end)

    @property
    def most(self) -> int:
        """How many one event completes, at most."""
        return int(np.unique(self.batch.end, return_counts=True)[1].max(initial=0))

    def positions(self, index: int) -> Positions:
        """The places of the events of one of them."""
        found = self.block.places(index)
        assert found is not None, "complex events have positions"
        return found


def ran(plan: CeaPlan, events: Events) -> Ran:
    """Run a plan without aggregates over all events, or until the bounds are met."""
    history, bounds = events.history, events.bounds
    batches, cut = worked(run_of(plan, history.terms), plan.streams, history, bounds, bounds.matches)
    each = [batch for batch in batches if isinstance(batch, ComplexEvents)]
    found = ComplexEvents.concat(each, words_of(len(plan.runner.variables)))
    return Ran(ceql_shape(plan, history.terms).block([found]), found, cut)


def bare(plan: CeaPlan, limit: int) -> CeaPlan:
    """Without CONSUME BY and choosing strategies, at most `limit` for each completing event. STRICT stays, as does what
    SELECT keeps with it, since it is about these events; else all variables are kept, so that they can be shown."""
    query = replace(plan.query, consumption=None, limit=Limit(limit), order=None, sample=None)
    if not plan.runner.strict:
        query = replace(query, selection=None, columns=None)
    return recompiled(query, plan)


def recompiled(query: CeqlQuery, plan: CeaPlan) -> CeaPlan:
    """The plan of a variant of a plan's query."""
    names = dict(zip((s.name for s in plan.query.streams), plan.streams, strict=True))
    return compile_ceql(query, names)


def ending_at(plan: CeaPlan, letters: int) -> CeaPlan:
    """With other last letters (a set)."""
    return replace(plan, runner=replace(plan.runner, positions=replace(plan.runner.positions, last=letters)))


def before(plan: CeaPlan, letter: int) -> list[int]:
    """The letters that a letter may follow."""
    positions = plan.runner.positions
    return [m for m in range(len(positions.letters)) if (positions.at_once[m] | positions.later[m]) >> letter & 1]


def reached(plan: CeaPlan, events: Events) -> dict[int, NDArray[np.int64]]:
    """Letter → the positions of the events that complete it; what nothing leads to is not tried."""
    loose = bare(plan, 1)
    found: dict[int, NDArray[np.int64]] = {}
    waiting = list(bits(plan.runner.positions.first))
    while waiting:
        letter = waiting.pop(0)
        if letter in found:
            continue
        found[letter] = ran(ending_at(loose, 1 << letter), events).ends
        if len(found[letter]):
            waiting += bits(plan.runner.positions.at_once[letter] | plan.runner.positions.later[letter])
    return found
