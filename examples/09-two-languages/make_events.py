"""Trades of four stocks, one a second, as a table and as RDF: the same trades in CEQL's two forms."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

NS = "http://example.org/stock#"
STOCK = NS + "Stock"
NAMES = ("MSFT", "QQQ", "AMAT", "INTC")
SECOND = 1_000_000


def table(count: int = 600, seed: int = 9) -> pa.Table:
    """A row per trade: time (µs), type, name, price, volume."""
    random = np.random.default_rng(seed)
    return pa.table(
        {
            "time": SECOND * np.arange(count),
            "type": random.choice(["BUY", "SELL"], count),
            "name": random.choice(NAMES, count),
            "price": random.integers(9_000, 11_000, count) / 100,
            "volume": 1_000 * random.integers(1, 7, count),
        }
    )


def streams() -> dict[str, list[tuple[int, str]]]:
    """The table's rows as RDF graphs, each at its time."""
    return {STOCK: [(row["time"], graph(row)) for row in table().to_pylist()]}


def graph(row: dict[str, object]) -> str:
    """`_:e a :SELL ; :name "MSFT" ; ...` of one row."""
    written = {"name": f'"{row["name"]}"', "price": row["price"], "volume": row["volume"]}
    lines = [f"_:e <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <{NS}{row['type']}> ."]
    return "\n".join([*lines, *(f"_:e <{NS}{attribute}> {value} ." for attribute, value in written.items())])
