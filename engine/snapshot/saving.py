"""Runs of queries, saved and restored.

A state is what a run has made of the events so far: partial matches, rows, events that wait, counters. It does not
hold the plan, which is compiled again from the query's text, nor the KB, nor what is only remembered to save work.
It is saved between batches; the run continues as if nothing had been. A run that is restored gives the same matches in
the same order for the same further events.

**Terms** are saved with the state and get ids in the dictionary of the process that continues (terms/saved.py). It may
hold others already, so that many runs, each saved alone, can be restored into one dictionary, and compiled plans can
be used again. Blank nodes have the labels of before if the dictionary had not made any blank node.

**The KB** is queried again, so the one given must hold what it held when the state was saved: what has changed
meanwhile holds for the events that waited, too. Matches of rows that came before a change keep the answers of then.
Its blank nodes are known again by their labels (terms/saved.py), which a store on disk keeps (pyoxigraph's `load`
gives others); one that nothing in the state names may have another label in later matches.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import TypeAlias, TypeVar, overload

from oxiseq.engine.cea.plan import CeaPlan
from oxiseq.engine.errors import SnapshotVersionError
from oxiseq.engine.flow.epsparql.query import IntervalPlan
from oxiseq.engine.kb import KnowledgeBase
from oxiseq.engine.matches.plan import SequencePlan
from oxiseq.engine.plan.joined import JoinedPlan
from oxiseq.engine.plan.query import QueryPlan
from oxiseq.engine.rsp.plan import RspPlan
from oxiseq.engine.run.fingerprints import fingerprint
from oxiseq.engine.run.intervals import IntervalRun
from oxiseq.engine.run.joined import JoinedRun
from oxiseq.engine.run.query import QueryRun
from oxiseq.engine.run.rsp import RspRun
from oxiseq.engine.run.run import Run
from oxiseq.engine.run.sequence import run_of
from oxiseq.engine.run.tuples import TupleRun
from oxiseq.engine.snapshot.container import pack, unpack
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms

AnyPlan: TypeAlias = QueryPlan | CeaPlan | JoinedPlan | RspPlan | IntervalPlan
T = TypeVar("T")


def save(run: Run, terms: TermDictionary) -> bytes:
    """One run, between batches, with its clock even if others share it; `terms` is its dictionary."""
    named = SavedTerms(terms)
    state = run.save(named)
    return pack({"plan": fingerprint(run.plan), "state": state, "terms": named.state()})


@overload
def restore(data: bytes, plan: QueryPlan, terms: TermDictionary, kb: KnowledgeBase) -> QueryRun: ...


@overload
def restore(data: bytes, plan: CeaPlan, terms: TermDictionary, kb: KnowledgeBase | None = None) -> TupleRun: ...


@overload
def restore(data: bytes, plan: JoinedPlan, terms: TermDictionary, kb: KnowledgeBase) -> JoinedRun: ...


@overload
def restore(data: bytes, plan: RspPlan, terms: TermDictionary, kb: KnowledgeBase) -> RspRun: ...


@overload
def restore(data: bytes, plan: IntervalPlan, terms: TermDictionary, kb: KnowledgeBase) -> IntervalRun: ...


def restore(data: bytes, plan: AnyPlan, terms: TermDictionary, kb: KnowledgeBase | None = None) -> Run:
    """The run that was saved. `plan` is compiled from the same query, a SPAseq one with `terms`; only those ask `kb`.

    Raises SnapshotError for another query's snapshot, one of another version, and a damaged one; KbError.
    """
    saved = _of_this_version(lambda: unpack(data))
    if saved["plan"] != fingerprint(plan):
        raise SnapshotVersionError("the snapshot is of another query, or of an oxiseq that compiles it otherwise")

    def made() -> Run:
        state, known = saved["state"], KnownTerms(saved["terms"], terms)
        run = _run(plan, terms, kb)
        run.restore(state, known)
        run.origin = hashlib.blake2b(data, digest_size=16).digest()
        return run

    return _of_this_version(made)


def _run(plan: AnyPlan, terms: TermDictionary, kb: KnowledgeBase | None) -> Run:
    """A run that has not seen any event."""
    if isinstance(plan, SequencePlan):
        return run_of(plan, terms, kb)
    assert kb is not None, "a query of another language may ask the KB"
    return RspRun(plan, terms, kb) if isinstance(plan, RspPlan) else IntervalRun(plan, terms, kb)


def _of_this_version(made: Callable[[], T]) -> T:
    """What is not there, or has another form, another version has saved."""
    try:
        return made()
    except (KeyError, ValueError, TypeError, IndexError, AttributeError) as error:
        raise SnapshotVersionError(
            "the snapshot was saved by another version of oxiseq: restore it there, or replay the events"
        ) from error
