"""Rows to events by a compiled mapping, beside the same CONSTRUCT query answered by Oxigraph row by row.

    python -m benchmarks.mapped [--rows 100000] [--slowly 3000]

A flat row of five columns, five statements. CPU time, the median of five runs; each run maps slowly, then compiled, so
that both meet the same machine. Parsing the body is part of it; storing is not.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable
from time import process_time
from typing import Final

from benchmarks.machine import machine
from oxiseq.engine.events.encode import encode_events
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.kb_loader.rows import Rows
from oxiseq.kb_loader.tables import Mapping as Query
from oxiseq.mappings.declared import StreamMapping
from oxiseq.mappings.events import mapped
from oxiseq.mappings.rows import csv_table, lines_table

CONSTRUCT: Final = """PREFIX ex: <http://example.org/> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
CONSTRUCT { ?s a ex:Reading ; ex:celsius ?t ; ex:room ?r ; ex:note ?note } WHERE {
  BIND(IRI(CONCAT("http://example.org/sensor/", STR(?id))) AS ?s) BIND(xsd:double(?temp) AS ?t)
  BIND(IRI(CONCAT("http://example.org/room/", STR(?room))) AS ?r) }"""
FLAT: Final = StreamMapping(
    {
        "prefixes": {"ex": "http://example.org/"},
        "subject": "ex:sensor/{id}",
        "type": "ex:Reading",
        "predicates": {
            "ex:celsius": {"column": "temp", "datatype": "xsd:double"},
            "ex:room": "<ex:room/{room}>",
            "ex:note": "note",
        },
        "time": "ts",
        "unit": "s",
    }
)
QUERY: Final = StreamMapping({"construct": CONSTRUCT, "time": "ts", "unit": "s"})


def rows(count: int) -> list[dict[str, object]]:
    """Readings of a thousand sensors in fifty rooms."""
    return [
        {
            "id": i % 1000,
            "temp": f"{10 + i * 37 % 2000 / 100:.2f}",
            "room": f"r{i % 50}",
            "note": "ok",
            "ts": 1_714_557_600 + i,
        }
        for i in range(count)
    ]


def compiled(body: bytes, mapping: StreamMapping, *, csv: bool) -> int:
    """Events of a body."""
    terms = TermDictionary()
    table = (csv_table if csv else lines_table)(body, mapping.key)
    return sum(len(part.batch) for part in mapped(table, mapping, terms))


def slowly(given: list[dict[str, object]]) -> int:
    """Events of rows that are parsed already."""
    terms, query = TermDictionary(), Query(CONSTRUCT)
    graphs = (query.triples(Rows(tuple(row), [tuple(row.values())], [None])) for row in given)
    return len(encode_events(((i, list(graph)) for i, graph in enumerate(graphs)), terms))


def _rate(work: Callable[[], int]) -> float:
    begun = process_time()
    count = work()
    return count / (process_time() - begun)


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--slowly", type=int, default=3_000)
    given = parser.parse_args()
    many = rows(given.rows)
    lines = "\n".join(map(json.dumps, many)).encode()
    csv = ("id,temp,room,note,ts\n" + "\n".join(",".join(map(str, row.values())) for row in many)).encode()
    works: dict[str, Callable[[], int]] = {
        "Oxigraph, row by row": lambda: slowly(many[: given.slowly]),
        "the shorthand, JSON Lines": lambda: compiled(lines, FLAT, csv=False),
        "the shorthand, CSV": lambda: compiled(csv, FLAT, csv=True),
        "CONSTRUCT, JSON Lines": lambda: compiled(lines, QUERY, csv=False),
        "CONSTRUCT, CSV": lambda: compiled(csv, QUERY, csv=True),
    }
    compiled(lines[: lines.index(b"\n")], FLAT, csv=False)  # kernels
    found: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(5):
        for name, work in works.items():
            found[name].append(_rate(work))
    medians = {name: statistics.median(rates) for name, rates in found.items()}
    print(machine())
    print("| rows to events | rows per CPU second | times as fast |\n|---|---|---|")
    for name, rate in medians.items():
        print(f"| {name} | {rate:,.0f} | {rate / medians['Oxigraph, row by row']:.1f} |")


if __name__ == "__main__":
    main()
