"""Events as RDF text, pushed or in logs of messages: `python -m benchmarks.texts`.

CPU time per triple from Turtle, TriG or JSON-LD to an event batch, over that of pyoxigraph's parse alone, in turns;
graphs of five triples and of a thousand; logs of messages of five triples and of fifty, over the parse of all as one
text without delimiters.
"""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO

from pyoxigraph import Literal, NamedNode, RdfFormat, Triple, parse, serialize

from benchmarks.data import NS, integer, iri
from benchmarks.measure import measure
from oxiseq.engine.events.encode import encode_event
from oxiseq.engine.events.messages.announced import MessageFormat
from oxiseq.engine.events.messages.reading import read_messages
from oxiseq.engine.events.quads import GENERATED_AT
from oxiseq.engine.events.report import ReadReport
from oxiseq.engine.terms.dictionary import TermDictionary

TRIPLES = 3_000
ROUNDS = 7
LOGGED = 30_000
"""Quads of a log."""


def _graph(triples: int) -> list[Triple]:
    def value(i: int) -> NamedNode | Literal:
        return integer(i * 7 % 1000) if i % 5 else iri(f"z{i % 20}")

    return [Triple(iri(f"s{i // 5}"), iri(f"p{i % 5}"), value(i)) for i in range(triples)]


def _parsing(text: bytes, format: RdfFormat, times: int) -> Callable[[], int]:
    return lambda: sum(sum(1 for _ in parse(text, format=format)) for _ in range(times))


def _encoding(text: bytes, format: RdfFormat, times: int) -> Callable[[], int]:
    def run() -> int:
        terms = TermDictionary()
        if format == RdfFormat.TURTLE:
            return sum(encode_event(0, text, terms).triples for _ in range(times))
        graphs = ([quad.triple for quad in parse(text, format=format)] for _ in range(times))
        return sum(encode_event(0, graph, terms).triples for graph in graphs)

    return run


def _messages(format: RdfFormat, triples: int) -> tuple[str, list[str]]:
    """The declaration of the prefix, and messages."""
    prefix = f"@prefix : <{NS}> .\n"
    graph = (serialize(_graph(triples), format=RdfFormat.TURTLE, prefixes={"": NS}) or b"").decode().replace(prefix, "")
    body = graph if format == RdfFormat.TURTLE else f"_:g {{\n{graph}}}\n"
    return prefix, [f"[] {GENERATED_AT} {i} .\n{body}" for i in range(LOGGED // (triples + 1))]


def _log(format: MessageFormat, text: bytes) -> Callable[[], int]:
    def run() -> int:
        report = ReadReport("")
        for _ in read_messages(BytesIO(text), TermDictionary(), report, "stop", format, GENERATED_AT):
            pass
        return report.quads

    return run


def main() -> None:
    """Print a line for each format and size."""
    logged: tuple[tuple[RdfFormat, MessageFormat], ...] = (
        (RdfFormat.TURTLE, "messages-turtle"),
        (RdfFormat.TRIG, "messages-trig"),
    )
    for format, of_messages in logged:
        for triples in (5, 50):
            prefix, messages = _messages(format, triples)
            log = "MESSAGE\n".join(['VERSION "1.2-messages"\n' + prefix + messages[0], *messages[1:]]).encode()
            alone = (prefix + "".join(messages)).encode()
            ways = {"ours": _log(of_messages, log), "parse": _parsing(alone, format, 1)}
            _show(f"{format!s} log", triples, ways, len(messages) * (triples + 1))
    for format, prefixes in ((RdfFormat.TURTLE, {"": NS}), (RdfFormat.JSON_LD, None)):
        for triples in (5, 1_000):
            text = serialize(_graph(triples), format=format, prefixes=prefixes)
            assert text is not None  # it is only when a file is given
            times = TRIPLES // triples
            ways = {"ours": _encoding(text, format, times), "parse": _parsing(text, format, times)}
            _show(str(format), triples, ways, times * triples)


def _show(what: str, triples: int, ways: dict[str, Callable[[], int]], count: int) -> None:
    ours, alone = (each.median / count * 1e6 for each in measure(ways, ROUNDS, ways).values())
    print(f"{what:12} {triples:5} triples {ours:6.2f} µs a triple, parse {alone:6.2f}: {ours / alone:.2f}")


if __name__ == "__main__":
    main()
