"""Case `reading`: N-Quads to coded event batches, beside `pyoxigraph.parse` with a Python dict of terms.

The second is what a user writes without a reader of ours: it tells terms apart, but knows neither values nor events.
`python -m benchmarks.reading` prints how much memory a long stream takes.
"""

from __future__ import annotations

import argparse
import gzip
import random
import resource
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

from pyoxigraph import RdfFormat, parse

from benchmarks.data import NS
from benchmarks.measure import measure
from benchmarks.report import Figure, Result, Row, Size
from oxiseq.engine.events.assembler import Block, EventAssembler
from oxiseq.engine.events.open import open_events
from oxiseq.engine.events.quads import GENERATED_AT
from oxiseq.engine.events.time import to_literal
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.normal import XSD

QUADS = 6
"""Quads of an event, the one with its time included."""
SECOND = 1_000_000
START = 1_700_000_000 * SECOND
ABOUT = (
    "Sensor events of 6 quads (a time, a type, a decimal, an integer, a string, a double), about 180 bytes a quad, "
    "from a file to event batches; an event and a match of the table are a quad here."
)


def events(count: int, seed: int = 1) -> Iterator[str]:
    """The N-Quads of one event after the other: sensors, rooms and prices recur, names and measurements do not."""
    chance = random.Random(seed)
    for n in range(count):
        name = f"<{NS}events/2024/{n:09d}>"
        sensor = f"<{NS}sensors/building-{chance.randrange(20)}/sensor-{chance.randrange(500)}>"
        rows = (
            f"<http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <{NS}vocabulary/sensors#Observation>",
            f'<{NS}vocabulary/sensors#temperature> "{chance.randrange(4000) / 100:.2f}"^^<{XSD}decimal>',
            f'<{NS}vocabulary/sensors#humidity> "{chance.randrange(100)}"^^<{XSD}integer>',
            f'<{NS}vocabulary/sensors#status> "{chance.choice(("ok", "warning", "failed"))}"',
            f'<{NS}vocabulary/sensors#power> "{100 * chance.random():.4f}"^^<{XSD}double>',
        )
        yield f"{name} {GENERATED_AT} {to_literal(START + n * SECOND)} .\n"
        yield from (f"{sensor} {row} {name} .\n" for row in rows)


def by_oxiseq(path: Path) -> int:
    """Read the file, freeing terms as a run does; the number of quads."""
    terms = TermDictionary()
    reader = open_events(path, terms)
    for _ in reader:
        terms.collect_if_due()
    return reader.report.quads


def by_dict(path: Path) -> int:
    """The number of quads, their terms numbered in a dict."""
    count, ids = 0, dict[object, int]()
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        for quad in parse(file, RdfFormat.N_QUADS):
            for term in (quad.subject, quad.predicate, quad.object):
                if term not in ids:
                    ids[term] = len(ids)
            count += 1
    return count


def run(size: Size) -> Result:
    """Quads per second, plain and gzip."""
    with TemporaryDirectory() as folder:
        plain, packed = Path(folder) / "events.nq", Path(folder) / "events.nq.gz"
        text = "".join(events(size.events // 2)).encode()
        plain.write_bytes(text)
        packed.write_bytes(gzip.compress(text, 6))
        ways: dict[str, Callable[[], int]] = {}
        for what, path in (("plain", plain), ("gzip", packed)):
            ways[f"{what}, oxiseq"] = partial(by_oxiseq, path)
            ways[f"{what}, pyoxigraph.parse and a dict"] = partial(by_dict, path)
        measured = measure(ways, min(3, size.rounds), {"kernels": ways["plain, oxiseq"]})
    quads = QUADS * (size.events // 2)
    if {m.answer for m in measured.values()} != {quads}:
        raise AssertionError(f"not {quads} quads: {measured}")
    rows = [Row.of("ns per quad, quads/s", name, m, quads) for name, m in measured.items()]
    ns = {row.where: row.ns for row in rows}
    figures = [
        Figure(f"CPU of reading N-Quads, {what}: oxiseq over parse and a dict", ns[f"{what}, oxiseq"] / other, limit)
        for what, limit in (("plain", 0.2), ("gzip", 0.25))
        for other in (ns[f"{what}, pyoxigraph.parse and a dict"],)
    ]
    return Result("reading", "Reading N-Quads", ABOUT, tuple(rows), tuple(figures))


def main() -> None:
    """Read a stream that is never whole in memory, and print the resident memory as it goes."""
    parser = argparse.ArgumentParser("python -m benchmarks.reading", description=main.__doc__)
    parser.add_argument("--quads", type=int, nargs="+", default=[1_000_000, 5_000_000, 20_000_000])
    marks = sorted(parser.parse_args().quads)
    terms, seconds, peak = TermDictionary(), 0.0, 0.0
    assembler = EventAssembler(terms, GENERATED_AT, lambda line, reason: print(line, reason))
    for block in _blocks(1 + marks[-1] // QUADS):
        begin = process_time()
        for _ in assembler.read(block, assembler.next_line):
            terms.collect_if_due()
        seconds += process_time() - begin
        if marks and assembler.quads >= marks[0]:
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            rate = assembler.quads / seconds / 1e6
            told = f"at most {peak:.0f} MB, {terms.live:,} terms, {rate:.2f} M quads/s"
            print(f"{marks.pop(0):>12,} quads: {told}", flush=True)


def _blocks(count: int) -> Iterator[Block]:
    lines: list[str] = []
    for line in events(count):
        lines.append(line)
        if len(lines) == 250 * QUADS:
            yield Block.of("".join(lines).encode())
            lines = []
    yield Block.of("".join(lines).encode())


if __name__ == "__main__":
    main()
