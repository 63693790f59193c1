"""The three streams as Arrow tables, drawn with a seed: `time` (µs), `type`, and the attributes.

Every `EVERY` events the twelve steps of the stream's queries stand one after the other, twice (`PLANTED`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks.core.queries import HOMES, LOAD, STOCKS, TRIPS
from benchmarks.data import RATE, SECOND, START
from oxiseq.engine.events.cells import texts

EVENTS: Final = {"stocks": 224_473, "homes": 1_000_000, "taxis": 585_762}
"""How many the originals have."""
EVERY: Final = 25_000
PLANTED: Final = 24

_SHARES: Final = {
    "AMAT": 668,
    "CSCO": 809,
    "DELL": 608,
    "INTC": 1039,
    "IPIX": 1779,
    "MSFT": 913,
    "ORCL": 646,
    "QQQ": 1123,
    "RIMM": 681,
    "YHOO": 499,
}
"""Sizes of the original's files, kB."""
_PRICES: Final = {
    "AMAT": 18.9,
    "CSCO": 23.1,
    "DELL": 34.2,
    "INTC": 27.2,
    "IPIX": 11.0,
    "MSFT": 25.95,
    "ORCL": 11.15,
    "QQQ": 36.4,
    "RIMM": 98.5,
    "YHOO": 52.8,
}
"""AMAT's, IPIX's and MSFT's are the original's; ORCL's is near a query's bound; the others are only different."""
_RUN: Final = 2.4
"""Trades at one price in a row, on average."""
PLUGS: Final = 85
HOUSEHOLDS: Final = 17
_LOADS: Final = 31
"""Loads in a second."""
_SPELL: Final = 60
"""Seconds that a plug is on or off."""
_ZONES: Final = 263
_TRIPS: Final = 5.5
"""Trips in a second."""

I64 = NDArray[np.int64]
Column: TypeAlias = pa.Array | NDArray[np.int64] | NDArray[np.float64]


def stream(name: str, count: int, seed: int = 1) -> pa.Table:
    """One of the three."""
    makers: Mapping[str, Callable[[int, np.random.Generator], dict[str, Column]]] = {
        "stocks": _stocks,
        "homes": _homes,
        "taxis": _taxis,
    }
    made = makers[name](count, np.random.default_rng(seed))
    return pa.table({name: c if isinstance(c, pa.Array) else column(c) for name, c in made.items()})


def repeated(table: pa.Table, clock: str, unit: int, rows: int) -> Iterator[pa.Table]:
    """The table without end, in pieces of at most so many rows; each round's times, and the values of the clock
    (in units of so many µs), continue from the round before. An hour is between two rounds."""
    times, clocks = numbers(table["time"]), numbers(table[clock])
    span = (int(times[-1] - times[0]) // SECOND + 3600) * SECOND
    number = 0
    while True:
        for low in range(0, len(table), rows):
            piece = table.slice(low, rows)
            for name, values, shift in (("time", times, span), (clock, clocks, span // unit)):
                moved = column(values[low : low + rows] + number * shift)
                piece = piece.set_column(piece.schema.get_field_index(name), name, moved)
            yield piece
        number += 1


def numbers(column: pa.ChunkedArray) -> NDArray[Any]:
    """The column's values. Not `to_numpy`, which imports pandas where it is installed."""
    return np.from_dlpack(column.combine_chunks())


def column(values: NDArray[Any]) -> pa.Array:
    """The contrary; `pa.array` of a NumPy array imports pandas too."""
    kind = pa.int64() if values.dtype == np.int64 else pa.float64()
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(np.ascontiguousarray(values))])


def planted(count: int) -> tuple[I64, I64]:
    """Where the steps stand, and the number of the step at each of these places."""
    at = np.flatnonzero(np.arange(count) % EVERY >= EVERY - PLANTED)
    return at, at % EVERY - (EVERY - PLANTED)


def _stocks(count: int, random: np.random.Generator) -> dict[str, Column]:
    names = list(_SHARES)
    shares = np.array([_SHARES[n] for n in names], float)
    first = random.random(count) < 1 / _RUN
    first[:1] = True
    at, step = planted(count)
    first[at] = True
    first[np.minimum(at[step == PLANTED - 1] + 1, count - 1)] = True
    run = np.cumsum(first) - 1
    runs = int(run[-1]) + 1 if count else 0
    name = random.choice(len(names), runs, p=shares / shares.sum())[run]
    side = random.integers(0, 2, runs)[run]
    kinds = ("BUY", "SELL")
    name[at] = np.array([names.index(n) for _, n in STOCKS])[step % 12]
    side[at] = np.array([kinds.index(k) for k, _ in STOCKS])[step % 12]
    gaps = np.where(first, np.maximum(1, random.exponential(1000 * _RUN / RATE, count)), 1).astype(np.int64)
    gaps[at] = 100
    millis = np.cumsum(gaps)
    cents = np.round(100 * np.array([_PRICES[n] for n in names]))[name] + random.integers(-9, 10, runs)[run]
    round_lots, odd = 100 * np.minimum(60, random.geometric(0.12, count)), random.integers(1, 1000, count)
    return {
        "time": START + 1000 * millis,
        "type": _texts(side, kinds),
        "id": np.arange(count),
        "name": _texts(name, names),
        "volume": np.where(random.random(count) < 0.8, round_lots, odd),
        "price": cents / 100,
        "stock_time": START // 1_000 + millis,
    }


def _homes(count: int, random: np.random.Generator) -> dict[str, Column]:
    seconds = np.sort(random.integers(0, max(1, count // _LOADS), count))
    plug = random.integers(0, PLUGS, count)
    spells = int(seconds[-1]) // _SPELL + 1 if count else 0
    spell = PLUGS * (seconds // _SPELL) + plug
    on = random.random(PLUGS * spells) < 0.15
    level = np.where(on, LOAD + random.lognormal(4, 1, len(on)), LOAD * random.random(len(on)) ** 3)
    value = level[spell] * random.uniform(0.98, 1.0, count)
    value = np.where(on[spell], np.maximum(value, LOAD + 1), np.minimum(value, LOAD - 1))
    at, step = planted(count)
    plug[at] = np.array(HOMES)[step % 12] * (PLUGS // HOUSEHOLDS)
    value[at] = 2 * LOAD
    return {
        "time": START + SECOND * seconds,
        "type": _texts(np.zeros(count, np.int64), ("LOAD",)),
        "id": np.arange(count),
        "plug_timestamp": START // SECOND + seconds,
        "value": np.round(value, 3),
        "plug_id": plug % (PLUGS // HOUSEHOLDS),
        "household_id": plug // (PLUGS // HOUSEHOLDS),
    }


def _taxis(count: int, random: np.random.Generator) -> dict[str, Column]:
    asked = list(dict.fromkeys(zone for pair in TRIPS for zone in pair))
    zones = asked + [f"Zone {i}" for i in range(len(asked), _ZONES)]
    rank = random.permutation(_ZONES)
    share = 1 / (10 + rank)
    start, end = (random.choice(_ZONES, count, p=share / share.sum()) for _ in range(2))
    at, step = planted(count)
    start[at], end[at] = np.array([[zones.index(z) for z in pair] for pair in TRIPS])[step % 12].T
    gaps = random.exponential(SECOND / _TRIPS, count)
    gaps[at] = np.minimum(gaps[at], SECOND / 4)
    millis = np.cumsum(np.maximum(1, gaps.astype(np.int64) // 1000))
    lasted = np.maximum(60, random.lognormal(6.5, 0.6, count)).astype(np.int64)
    miles = np.round(lasted / 300 * random.uniform(0.5, 1.5, count), 2)
    fare = np.round(2.5 + 2.5 * miles, 1)
    tip = np.round(fare * random.choice([0, 0, 0.15, 0.2], count), 2)
    return {
        "time": START + 1000 * millis,
        "type": _texts(np.zeros(count, np.int64), ("TRIP",)),
        "id": np.arange(count),
        "medallion": random.integers(0, 13_000, count),
        "pickup_datetime": (START // 1_000 + millis) // 1_000 - lasted,
        "dropoff_datetime": (START // 1_000 + millis) // 1_000,
        "trip_time_in_secs": lasted,
        "trip_distance": miles,
        "pickup_zone": _texts(start, zones),
        "dropoff_zone": _texts(end, zones),
        "payment_type": _texts(random.integers(0, 2, count), ("CSH", "CRD")),
        "fare_amount": fare,
        "tip_amount": tip,
        "total_amount": fare + tip,
    }


def _texts(index: I64, of: Sequence[str]) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(column(index).cast(pa.int32()), texts(of))
