"""Runs of queries, saved and restored.

A state is what a run has made of the events so far: partial matches, rows, events that wait, counters. It does not
hold the plan, which is compiled again from the query's text, nor the KB, nor what is only remembered to save work.
It is saved between batches; the run goes on as if nothing had been. A run that is restored gives the same matches in
the same order for the same further events.

**Terms** are saved with the state and get ids in the dictionary of the process that goes on (terms/saved.py). It may
hold others already, so that many runs, each saved alone, can be restored into one dictionary, and compiled plans can
be used again. Blank nodes have the labels of before if the dictionary had not made any blank node.

**The KB** is asked again, so the one given must hold what it held when the state was saved: what has changed
meanwhile holds for the events that waited, too. Matches of rows that came before a change keep the answers of then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, overload

from oxiseq.engine.errors import SnapshotError
from oxiseq.engine.kb import KnowledgeBase
from oxiseq.engine.plan.query import QueryPlan
from oxiseq.engine.run.clock import Clock
from oxiseq.engine.run.query import QueryRun
from oxiseq.engine.sequence.memory import Capacities
from oxiseq.engine.snapshot.container import pack, unpack
from oxiseq.engine.snapshot.plans import fingerprint
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms, State

T = TypeVar("T")


def save(run: QueryRun, terms: TermDictionary) -> bytes:
    """One run and its clock; `terms` is its dictionary."""
    named = SavedTerms(terms)
    state = {"clock": run.clock.save(named), "run": run.save(named)}
    return pack({"kind": "run", "plan": fingerprint(run.plan), "state": state, "terms": named.state()})


def restore(
    data: bytes, plan: QueryPlan, terms: TermDictionary, kb: KnowledgeBase, capacities: Capacities | None = None
) -> QueryRun:
    """The run that was saved. `plan` is compiled from the same query, with `terms`. Raises SnapshotError, KbError."""
    saved = _unpacked(data, "run")
    _check(saved["plan"], plan)

    def made() -> QueryRun:
        state, known = saved["state"], KnownTerms(saved["terms"], terms)
        run = QueryRun(plan, terms, kb, capacities=capacities)
        run.recognise(state["run"], known)
        known.give_blanks()
        run.restore(state["run"], Clock.restored(state["clock"], known), known)
        return run

    return _of_this_version(made)


def _unpacked(data: bytes, kind: str) -> State:
    saved = _of_this_version(lambda: unpack(data))
    if saved.get("kind") != kind:
        raise SnapshotError(f"this is not a snapshot of {kind}")
    return saved


def _check(saved: str, plan: QueryPlan) -> None:
    if saved != fingerprint(plan):
        raise SnapshotError("the snapshot is of another query, or another version of oxiseq has compiled it")


def _of_this_version(made: Callable[[], T]) -> T:
    """What is not there, or has another form, another version has saved."""
    try:
        return made()
    except (KeyError, ValueError, TypeError, IndexError, AttributeError) as error:
        raise SnapshotError(f"another version of oxiseq has made the snapshot: {error!r}") from error
