"""A seeded stream: sensors tell values, raise alarms and reset them, and get neighbours. An event a second, of two
triples.

    of 40 events 35    ?o :sensor ?s ; :value ?v       a new ?o each time
                  2    ?s :alarm ?a ; :level ?l
                  2    ?s :reset ?b ; :level ?l
                  1    ?s :near ?z ; :level ?l
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Literal, NamedNode, Quad

from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.terms.dictionary import TermDictionary

PER_SENSOR: Final = 10
"""Events of a window for each sensor."""
SECOND: Final = 1_000_000
_SEED: Final = 7
_VALUES: Final = 100
_XSD_INTEGER: Final = "http://www.w3.org/2001/XMLSchema#integer"
_KINDS: Final = {0: "alarm", 20: "alarm", 10: "reset", 30: "reset", 5: "near"}
"""By the event's number modulo 40; the others are readings."""


class Sensors:
    """`count` events over a window of `window` events, coded in a dictionary of their own."""

    def __init__(self, window: int, count: int) -> None:
        self.terms = TermDictionary()
        draw = np.random.default_rng(_SEED)
        self._sensors = max(2, window // PER_SENSOR)
        self._who, self._other = draw.integers(0, self._sensors, (2, count))
        self._value, self._level = draw.integers(0, _VALUES, (2, count))
        self._kind = np.array([_KINDS.get(i % 40, "") for i in range(count)])
        self._ids = self._coded(count)
        self.terms.hold(self._ids)

    def _coded(self, count: int) -> NDArray[np.uint32]:
        """u32[3, 2 * count]."""
        one = self._one
        sensors = np.array([one(f"<urn:s{i}>") for i in range(self._sensors)], np.uint32)
        values = np.array([one(f'"{i}"^^<{_XSD_INTEGER}>') for i in range(_VALUES)], np.uint32)
        name = {n: one(f"<urn:{n}>") for n in ("sensor", "value", "alarm", "reset", "near", "level")}
        who, other, value, level = sensors[self._who], sensors[self._other], values[self._value], values[self._level]
        ids = np.empty((3, count, 2), np.uint32)
        for kind in ("alarm", "reset", "near"):
            here = self._kind == kind
            ids[0, here] = who[here, None]
            ids[1, here] = name[kind], name["level"]
            ids[2, here, 0] = other[here] if kind == "near" else value[here]
            ids[2, here, 1] = level[here]
        here = self._kind == ""
        told = np.array([one(f"<urn:o{i}>") for i in np.flatnonzero(here).tolist()], np.uint32)
        ids[0, here] = told[:, None]
        ids[1, here] = name["sensor"], name["value"]
        ids[2, here, 0], ids[2, here, 1] = who[here], value[here]
        return ids.reshape(3, -1)

    def _one(self, text: str) -> int:
        return self.terms.intern_written(text.encode())

    def batch(self, first: int, last: int) -> EventBatch:
        """The events first ... last - 1."""
        s, p, o = (np.ascontiguousarray(column[2 * first : 2 * last]) for column in self._ids)
        time = np.arange(first, last, dtype=np.int64) * SECOND
        return EventBatch(time, np.arange(0, 2 * (last - first) + 1, 2, dtype=np.int64), s, p, o)

    def quads(self, first: int, last: int) -> Iterator[list[Quad]]:
        """The same events for a store."""
        for i in range(first, last):
            kind, who = str(self._kind[i]), NamedNode(f"urn:s{self._who[i]}")
            value, level = _integer(self._value[i]), _integer(self._level[i])
            if not kind:
                told = NamedNode(f"urn:o{i}")
                yield [_quad(told, "sensor", who), _quad(told, "value", value)]
            else:
                object_ = NamedNode(f"urn:s{self._other[i]}") if kind == "near" else value
                yield [_quad(who, kind, object_), _quad(who, "level", level)]


def _integer(number: int) -> Literal:
    return Literal(int(number))


def _quad(subject: NamedNode, predicate: str, object_: NamedNode | Literal) -> Quad:
    return Quad(subject, NamedNode(f"urn:{predicate}"), object_)
