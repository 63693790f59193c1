"""Events as RDF text, pushed: `python -m benchmarks.texts`.

CPU time per triple from Turtle or JSON-LD to an event batch, over that of pyoxigraph's parse alone, in turns; graphs of
five triples and of a thousand.
"""

from __future__ import annotations

from collections.abc import Callable

from pyoxigraph import Literal, NamedNode, RdfFormat, Triple, parse, serialize

from benchmarks.data import NS, integer, iri
from benchmarks.measure import measure
from oxiseq.engine.events.encode import encode_events
from oxiseq.engine.terms.dictionary import TermDictionary

TRIPLES = 3_000
ROUNDS = 7


def _graph(triples: int) -> list[Triple]:
    def value(i: int) -> NamedNode | Literal:
        return integer(i * 7 % 1000) if i % 5 else iri(f"z{i % 20}")

    return [Triple(iri(f"s{i // 5}"), iri(f"p{i % 5}"), value(i)) for i in range(triples)]


def _parsing(text: bytes, format: RdfFormat, times: int) -> Callable[[], int]:
    return lambda: sum(sum(1 for _ in parse(text, format=format)) for _ in range(times))


def _encoding(text: bytes, format: RdfFormat, times: int) -> Callable[[], int]:
    def run() -> int:
        terms = TermDictionary()
        graphs = ([quad.triple for quad in parse(text, format=format)] for _ in range(times))
        return sum(encode_events([(0, graph)], terms).triples for graph in graphs)

    return run


def main() -> None:
    """Print a line for each format and size."""
    for format, prefixes in ((RdfFormat.TURTLE, {"": NS}), (RdfFormat.JSON_LD, None)):
        for triples in (5, 1_000):
            text = serialize(_graph(triples), format=format, prefixes=prefixes)
            assert text is not None  # it is only when a file is given
            times = TRIPLES // triples
            ways = {"ours": _encoding(text, format, times), "parse": _parsing(text, format, times)}
            ours, alone = (each.median / times / triples * 1e6 for each in measure(ways, ROUNDS, ways).values())
            print(f"{format!s:8} {triples:5} triples {ours:6.2f} µs a triple, parse {alone:6.2f}: {ours / alone:.2f}")


if __name__ == "__main__":
    main()
