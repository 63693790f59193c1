"""Events whose graph is no tuple event's: they are left out, counted and named.

Where it stands: EventBatch ─ `pivot` ─▶ faults, by which term_marks.py leaves events out. Whoever holds other ids (the
server, when events arrive; `why`) asks `faults_in`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import NamedNode, Variable

from oxiseq.engine.cea.facts import compile_facts
from oxiseq.engine.cea.plan import CeaPlan
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.time import to_text
from oxiseq.engine.kernels.cea import facts as kernels
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.saved import State
from oxiseq.grammar.ceql_algebra import AttributeWindow

I64 = NDArray[np.int64]
RDF_TYPE: Final = NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
_NAMED: Final = 10
"""Faults that are named; all are counted."""


@dataclass(frozen=True, slots=True)
class Faults:
    """How many events were no tuple events, and of the first ones when, where and why."""

    count: int = 0
    first: tuple[str, ...] = ()

    def more(self, stream: str, time: I64, fault: I64, attributes: Sequence[Variable]) -> Faults:
        """Those of a batch, too."""
        named = named_faults(stream, time, fault, attributes, _NAMED - len(self.first))
        return Faults(self.count + int(np.count_nonzero(fault)), (*self.first, *named))

    def save(self) -> State:
        """As a saved state."""
        return {"count": self.count, "first": list(self.first)}

    @classmethod
    def restored(cls, state: State) -> Faults:
        """Saved ones."""
        return cls(int(state["count"]), tuple(state["first"]))


NO_FAULTS: Final = Faults()


def named_faults(
    stream: str, time: I64, fault: I64, attributes: Sequence[Variable], most: int = _NAMED
) -> Iterator[str]:
    """The first `most` faulty events of a batch."""
    for row in np.flatnonzero(fault)[:most].tolist():
        yield f"the event of {to_text(int(time[row]))} on <{stream}> is no tuple event: {_why(fault[row], attributes)}"


def _why(fault: int, attributes: Sequence[Variable]) -> str:
    if fault == kernels.MANY_SUBJECTS:
        return "its triples have several subjects; make one event of each"
    slot = int(fault) - kernels.MANY_VALUES
    what = "types" if slot == 0 else f"values of {attributes[slot - 1].value}"
    return f"it has two {what}; a tuple has one of each"


def asked_of(plan: CeaPlan) -> tuple[Variable, ...]:
    """The attributes that a query looks at."""
    query = plan.query
    by = query.partition.by if query.partition is not None else ()
    window = (query.window.attribute,) if isinstance(query.window, AttributeWindow) else ()
    return tuple(dict.fromkeys((*compile_facts(plan.atoms).attributes, *by, *window)))


def predicates(vocab: str, attributes: Sequence[Variable], terms: TermDictionary) -> I64:
    """Ids of rdf:type and of the attributes' predicates."""
    iris = [RDF_TYPE, *(NamedNode(vocab + a.value) for a in attributes)]
    return np.array([terms.constant(iri) for iri in iris], np.int64)


def pivoted(batch: EventBatch, asked: I64, types: I64) -> tuple[I64, I64, I64 | None]:
    """Of each event what it has of what is asked (`kernels.pivot`), the number of its type, and what is wrong with it;
    None: nothing is with any."""
    count = len(batch)
    values = np.zeros((count, 1 + len(asked)), np.int64)
    type_of, fault = np.empty(count, np.int64), np.zeros(count, np.int64)
    subject, predicate, object_ = (_plain(column, np.uint32) for column in batch.ids)
    offset = _plain(batch.offset, np.int64)
    faulty = kernels.pivot(offset, subject, predicate, object_, asked, types, values, type_of, fault)
    return values, type_of, fault if faulty else None


def faults_in(vocab: str, attributes: Sequence[Variable], batch: EventBatch, terms: TermDictionary) -> I64 | None:
    """What is wrong with each event of a batch coded in `terms`, 0 for nothing; None: nothing is with any."""
    return pivoted(batch, predicates(vocab, attributes, terms), np.zeros(0, np.int64))[2]


def _plain(column: NDArray[Any], dtype: type) -> NDArray[Any]:
    """As the kernel takes it; `np.require` alone takes as long as the kernel."""
    flags = column.flags
    if column.dtype == dtype and flags.c_contiguous and flags.writeable:
        return column
    return np.require(column, dtype, ("C", "W"))
