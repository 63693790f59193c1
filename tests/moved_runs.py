"""The queries of a store go on in another process, as those of a server do: each is saved and restored by itself."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from oxiseq.engine.kb import KnowledgeBase
from oxiseq.engine.run.run import Run
from oxiseq.engine.sharing.runs import Runs
from oxiseq.engine.snapshot.saving import AnyPlan, restore, save
from oxiseq.engine.terms.dictionary import TermDictionary


def moved(
    runs: Runs,
    plans: Sequence[AnyPlan],
    old: TermDictionary,
    new: TermDictionary,
    kb: KnowledgeBase,
    bounds: Sequence[Hashable | None] | None = None,
) -> Runs:
    """Queries that have caught up, in the order of their plans; `old` and `new`: the dictionaries."""
    saved = [save(run, old) for run in runs.registered]
    gone_on = Runs(new)
    for data, plan, bound in zip(saved, plans, bounds or [None] * len(plans), strict=True):
        run: Run = restore(data, plan, new, kb)  # type: ignore[call-overload]
        gone_on.add(run, run.order.start, bounds=bound)
    return gone_on
