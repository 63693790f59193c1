"""An endless stream of coded events: readings of machines, drawn with a seed.

An event has a fresh blank node, a kind, a machine and a reading. Kinds, machines and most readings recur; every
subject, and every 64th reading, is a term that occurs once, so that the dictionary has to free what has gone by.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from benchmarks.data import NS, SECOND, START, decimal, iri
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.terms.dictionary import TermDictionary

STEPS: Final = 8
"""Steps of the sequence; each event is of one of so many kinds, and a candidate of one step."""
PER_MACHINE: Final = 36
"""Events of a machine within a window, on average."""
HOUR: Final = 3_600 * SECOND
LEAST: Final = 10
"""A step asks for a reading above it; they are from 0.00 to 99.99."""
ONE_OFF: Final = 64
"""One reading in so many is a number that no other event has."""
_FIELDS: Final = ("kind", "machine", "reading")
_XSD_DECIMAL: Final = "^^<http://www.w3.org/2001/XMLSchema#decimal>"


@dataclass(frozen=True, slots=True)
class Drawn:
    """The numbers behind n events, in order of time: time i64[n] µs, strictly ascending; machine and kind i64[n];
    passes bool[n], whether the reading is above `LEAST`."""

    time: NDArray[np.int64]
    machine: NDArray[np.int64]
    kind: NDArray[np.int64]
    passes: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.time)

    @classmethod
    def concat(cls, parts: list[Drawn]) -> Drawn:
        """One after the other."""
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in cls.__slots__))

    def since(self, time: int) -> Drawn:
        """Those at `time` or later."""
        at = int(np.searchsorted(self.time, time))
        return Drawn(self.time[at:], self.machine[at:], self.kind[at:], self.passes[at:])


def query() -> str:
    """`STEPS` kinds one after the other on one machine, any later one each, all within an hour."""
    names = [f"G{number}" for number in range(STEPS)]
    gpms = "\n".join(
        f"  DEFINE GPM G{n} ON S {{ ?e{n} :kind :kind{n} ; :machine ?m ; :reading ?r{n} . FILTER(?r{n} > {LEAST}) }}"
        for n in range(STEPS)
    )
    return f"""PREFIX : <{NS}>
SELECT ?m ?e0 ?r0 ?e{STEPS - 1} ?r{STEPS - 1}
WITHIN 1 HOUR SLIDING
FROM STREAM S <{NS}readings>
WHERE {{
  SEQ({" : ".join(names)})
{gpms}
}}"""


def machines(rate: int) -> int:
    """How many machines bring `rate` events a second."""
    return max(1, rate * HOUR // SECOND // PER_MACHINE)


class Source:
    """Draws events, `rate` a second on average; the same ones for the same seed, however they are asked for."""

    def __init__(self, terms: TermDictionary, rate: int, seed: int) -> None:
        self.machines = machines(rate)
        self._terms = terms
        self._rate = rate
        self._random = np.random.default_rng(seed)
        self._time = START
        self._drawn = 0
        self._predicates = terms.intern_all(iri(name) for name in _FIELDS)
        self._kinds = terms.intern_all(iri(f"kind{number}") for number in range(STEPS))
        self._names = terms.intern_all(iri(f"machine/{number}") for number in range(self.machines))
        self._readings = terms.intern_all(decimal(cents) for cents in range(10_000))
        terms.hold(self._predicates, self._kinds, self._names, self._readings)

    def draw(self, count: int) -> tuple[EventBatch, Drawn]:
        """The next events, coded, and what is behind them."""
        gaps = self._random.integers(1, 2 * SECOND // self._rate, count)
        time = self._time + np.cumsum(gaps)
        kind = self._random.integers(0, STEPS, count)
        machine = self._random.integers(0, self.machines, count)
        cents = self._random.integers(0, 10_000, count)
        readings = self._readings[cents]
        once = np.flatnonzero((self._drawn + np.arange(count)) % ONE_OFF == 0)
        readings[once] = self._once(cents[once], self._drawn + once)
        passes = (cents > 100 * LEAST) | ((cents == 100 * LEAST) & (readings != self._readings[cents]))
        self._time, self._drawn = int(time[-1]), self._drawn + count
        columns = self._kinds[kind], self._names[machine], readings
        return self._star(time, columns), Drawn(time, machine, kind, passes)

    def _once(self, cents: NDArray[np.int64], number: NDArray[np.int64]) -> NDArray[np.uint32]:
        """Readings a little above `cents`, with the event's number behind and a 1, lest zeros be dropped."""
        texts = [
            f'"{c // 100}.{c % 100:02d}{n:012d}1"{_XSD_DECIMAL}'.encode()
            for c, n in zip(cents.tolist(), number.tolist(), strict=True)
        ]
        ends = np.cumsum([0, *map(len, texts)])
        return self._terms.intern_texts(np.frombuffer(bytearray(b"".join(texts)), np.uint8), ends)

    def _star(self, time: NDArray[np.int64], columns: tuple[NDArray[np.uint32], ...]) -> EventBatch:
        count, width = len(time), len(columns)
        subject = np.repeat(self._terms.blanks(count), width)
        objects = np.stack(columns, axis=1).ravel()
        return EventBatch(time, width * np.arange(count + 1), subject, np.tile(self._predicates, count), objects)
