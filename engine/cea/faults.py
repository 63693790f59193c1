"""Events whose graph is no tuple event's: they are left out (events/faults.py).

In the flow: EventBatch ─ `pivot` ─▶ faults, by which term_marks.py leaves events out. Whoever holds other ids (the
server, when events arrive; `why`) asks `faults_in`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import NamedNode, Variable

from oxiseq.engine.cea.facts import compile_facts
from oxiseq.engine.cea.plan import CeaPlan
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.faults import Unfit
from oxiseq.engine.kernels.cea import facts as kernels
from oxiseq.engine.kernels.memory.growing import AS_I64, AS_U32, plain
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.ceql_algebra import AttributeWindow, summed_attributes

I64 = NDArray[np.int64]
RDF_TYPE: Final = NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")


def unfit(stream: str, time: I64, fault: I64, attributes: Sequence[Variable]) -> Unfit:
    """The faulty events of a batch, from the result of `faults_in`."""
    return Unfit(stream, time, fault != 0, lambda row: f"is no tuple event: {_why(int(fault[row]), attributes)}")


def _why(fault: int, attributes: Sequence[Variable]) -> str:
    if fault == kernels.MANY_SUBJECTS:
        return "its triples have several subjects; make one event of each"
    slot = fault - kernels.MANY_VALUES
    what = "types" if slot == 0 else f"values of {attributes[slot - 1].value}"
    return f"it has two {what}; a tuple has one of each"


def asked_of(plan: CeaPlan) -> tuple[Variable, ...]:
    """The attributes that a query reads."""
    query = plan.query
    by = query.partition.by if query.partition is not None else ()
    window = (query.window.attribute,) if isinstance(query.window, AttributeWindow) else ()
    return tuple(dict.fromkeys((*compile_facts(plan.letters).attributes, *by, *window, *summed_attributes(query))))


def predicates(vocab: str, attributes: Sequence[Variable], terms: TermDictionary) -> I64:
    """Ids of rdf:type and of the attributes' predicates."""
    iris = [RDF_TYPE, *(NamedNode(vocab + a.value) for a in attributes)]
    return np.array([terms.constant(iri) for iri in iris], np.int64)


def pivoted(batch: EventBatch, asked: I64, types: I64) -> tuple[I64, I64, I64 | None]:
    """For each event the attributes it has of those needed (`kernels.pivot`), the number of its type, and what is wrong
    with it; None: nothing is with any."""
    count = len(batch)
    values = np.zeros((count, 1 + len(asked)), np.int64)
    type_of, fault = np.empty(count, np.int64), np.zeros(count, np.int64)
    subject, predicate, object_ = (plain(column, AS_U32) for column in batch.ids)
    offset = plain(batch.offset, AS_I64)
    faulty = kernels.pivot(offset, subject, predicate, object_, asked, types, values, type_of, fault)
    return values, type_of, fault if faulty else None


def faults_in(vocab: str, attributes: Sequence[Variable], batch: EventBatch, terms: TermDictionary) -> I64 | None:
    """What is wrong with each event of a batch coded in `terms`, 0 for nothing; None: nothing is with any."""
    return pivoted(batch, predicates(vocab, attributes, terms), np.zeros(0, np.int64))[2]
