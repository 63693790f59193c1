"""Which events a run must get at once, since something may be found with them (`Run.concern`).

A *key* of a triple is its predicate's id; or, with its object's id in the upper half, both. A triple pattern with a
constant predicate is matched only by triples that have its key, so an event without a run's keys brings it no rows.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Final

import numpy as np
from pyoxigraph import NamedNode

from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.records import dataclass

Key = int
_FEW: Final = 32
"""Triples that are tested one by one."""
_PREDICATE: Final = (1 << 32) - 1


@dataclass(frozen=True, slots=True)
class Concern:
    """Of each stream the keys of the triples that may have a run find something; and for how long after such an event,
    in microseconds of the stream, other events, or time alone, may do so too.

    `needed`: of events that do not concern it, triples with these predicates matter, and that there is one; of older
    ones than `linger` only that they came. None: it has to see all of them whole, unless it has nothing to remember
    (`AloneRun.idles`): then it matters only how many tuple events without any of the keys `begins` there are.
    `kept`: triples with these predicates matter for what comes up to `reach` later (µs; None: at any time).
    """

    keys: Mapping[str, frozenset[Key]]
    linger: int = 0
    needed: frozenset[int] | None = None
    begins: frozenset[Key] | None = None
    kept: frozenset[int] = frozenset()
    reach: int | None = 0

    @property
    def watched(self) -> frozenset[Key]:
        """Keys of which it counts whether some have come, however long ago."""
        if self.needed is None:
            return self.begins or frozenset()
        return self.needed | self.kept if self.reach is None else self.needed

    @property
    def span(self) -> int:
        """How long (µs) events without watched keys matter."""
        return max(self.linger, self.reach or 0)


def key_of(predicate: object, object_: object, terms: TermDictionary) -> Key | None:
    """The key of a triple pattern; None: its predicate is no constant. An object counts where it is an IRI."""
    if not isinstance(predicate, NamedNode):
        return None
    key = int(terms.constant(predicate))
    return key | int(terms.constant(object_)) << 32 if isinstance(object_, NamedNode) else key


def keys_of(patterns: Iterable[tuple[object, object]], terms: TermDictionary) -> frozenset[Key] | None:
    """Of triple patterns, given as (predicate, object); None: one of them accepts any predicate."""
    keys = [key_of(predicate, object_, terms) for predicate, object_ in patterns]
    found = frozenset(key for key in keys if key is not None)
    return found if found and None not in keys else None


def keys_in(batch: EventBatch, wanted: Container[Key], paired: Container[int]) -> Iterator[Key]:
    """The wanted keys of a batch's triples; some may come twice. `paired`: the predicates of wanted pairs."""
    if batch.triples <= _FEW:
        triples = [*zip(batch.predicate.tolist(), batch.object.tolist(), strict=True)]
    else:
        predicates = np.unique(batch.predicate).tolist()
        triples = [(predicate, 0) for predicate in predicates]
        for predicate in predicates:
            if predicate in paired:
                objects = np.unique(batch.object[batch.predicate == predicate]).tolist()
                triples += [(predicate, each) for each in objects]
    for predicate, object_ in triples:
        if predicate in wanted:
            yield predicate
        if object_ and predicate | object_ << 32 in wanted:
            yield predicate | object_ << 32


def predicate_of(key: Key) -> int:
    """Of a key."""
    return key & _PREDICATE
