"""A program: queries over events in every layout that arrays come in, then for which types kernels were compiled.

A program of its own, since a test may call a kernel with what it likes. Prints the kernels with another signature than
that of the table (kernels/signatures.py).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from pyoxigraph import NamedNode, RdfFormat, Store, Triple, Variable, parse

from oxiseq import run
from oxiseq.engine.cea.plan import compile_ceql
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.encode import encode_events
from oxiseq.engine.events.open import write_events
from oxiseq.engine.events.tuples import TupleRows, read_rows
from oxiseq.engine.kb import StoreKb
from oxiseq.engine.kernels.signatures import kernel_of, names
from oxiseq.engine.plan.query import compile_query
from oxiseq.engine.rdf import Guarded
from oxiseq.engine.run.query import QueryRun
from oxiseq.engine.run.tuples import TupleRun
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms
from oxiseq.engine.window import Window
from oxiseq.grammar import load
from oxiseq.grammar.algebra import Call, TriplePattern

sys.path.insert(0, str(Path(__file__).parent.parent))
sys.path.insert(0, str(Path(__file__).parent.parent / "ceql"))
sys.path.insert(0, str(Path(__file__).parent.parent / "windows"))
from ceql_tables import batches_of
from corpus_cases import Case, CeqlCase, load_cases, load_ceql_cases
from window_run import ConjunctiveQuery, WindowRun


def frozen(array: np.ndarray) -> np.ndarray:
    """Read-only, as what is mapped from a file."""
    copy = array.copy()
    copy.flags.writeable = False
    return copy


def strided(array: np.ndarray) -> np.ndarray:
    """Every other element of an array."""
    return np.repeat(array, 2)[::2]


def reversed_twice(array: np.ndarray) -> np.ndarray:
    return array[::-1].copy()[::-1]


def foreign(array: np.ndarray) -> np.ndarray:
    """Of another type of integer, as other programs make them."""
    return array.astype(np.int64) if array.dtype == np.uint32 else array


LAYOUTS: tuple[Callable[[np.ndarray], np.ndarray], ...] = (frozen, strided, reversed_twice, foreign)


def answer(case: Case, layout: Callable[[np.ndarray], np.ndarray]) -> None:
    """The case's query, its events in arrays of that layout, by way of slices."""
    terms = TermDictionary()
    kb = Store()
    if case.kb:
        kb.load(case.kb.encode(), format=RdfFormat.N_QUADS)
    driven = QueryRun(compile_query(load(case.query), terms), terms, StoreKb(kb))
    for iri, events in case.streams.items():
        batch = encode_events(events, terms)
        laid = EventBatch(*(layout(getattr(batch, field.name)) for field in fields(batch)))
        for i in range(len(laid)):
            driven.push(iri, laid.slice(i, i + 1))
    driven.advance()
    driven.close()
    driven.advance()


def answer_ceql(case: CeqlCase, layout: Callable[[np.ndarray], np.ndarray]) -> None:
    """The same for a case of CEQL; and its events as rows."""
    terms = TermDictionary()
    plan = compile_ceql(load(case.query, "ceql"), case.streams)
    driven, rows = TupleRun(plan, terms), TupleRun(plan, terms)
    for iri in plan.streams:
        batch = encode_events([(time, graph) for stream, time, graph in case.events if stream == iri], terms)
        laid = EventBatch(*(layout(getattr(batch, field.name)) for field in fields(batch)))
        for i in range(len(laid)):
            driven.push(iri, laid.slice(i, i + 1))
        for part in read_rows(batches_of([(time, graph) for stream, time, graph in case.events if stream == iri])):
            rows.push(iri, TupleRows(layout(part.time), part.rows, part.naming))
    for each in (driven, rows):
        each.close()
        each.advance()


def answer_windows(layout: Callable[[np.ndarray], np.ndarray]) -> None:
    """A pattern over windows, in memory so small that it grows; saved and restored."""
    terms = TermDictionary()
    x, y, z = map(Variable, "xyz")
    p, q = NamedNode("urn:p"), NamedNode("urn:q")
    patterns = (TriplePattern(x, p, y), TriplePattern(y, q, z), TriplePattern(x, q, NamedNode("urn:c")))
    query = ConjunctiveQuery(patterns, (Call("<", (y, z)),))
    runs = [WindowRun([query], terms, Window(5, counted=c), tiny=True) for c in (False, True)]
    events = [(i, f"<urn:{i % 3}> <urn:p> <urn:{i % 4}> . <urn:{i % 4}> <urn:q> {i} .") for i in range(40)]
    batch = encode_events([(time, list(parse_graph(text))) for time, text in events], terms)
    laid = EventBatch(*(layout(getattr(batch, field.name)) for field in fields(batch)))
    for counted, run_ in enumerate(runs):
        for i in range(0, len(laid), 8):
            run_.push(laid.slice(i, i + 8))
        named = SavedTerms(terms)
        state = run_.save(named)
        other = WindowRun([query], terms, Window(5, counted=bool(counted)))
        other.restore(state, KnownTerms(named.state(), terms))
    joined = ConjunctiveQuery(patterns, (Call("<", (y, z)),), (0, 1, 1))
    several = WindowRun([joined], terms, (Window(5), Window(3, counted=True)), tiny=True)
    for i in range(0, len(laid), 8):
        several.push_each([laid.slice(i, i + 8), laid.slice(i, i + 1 + i % 3)])
        several.push_each([EventBatch.empty(), EventBatch.empty()])
    several = WindowRun([joined], terms, (Window(None), Window(None)), tiny=True)
    for i in range(0, len(laid), 8):
        part, at = laid.slice(i, i + 8), layout(np.arange(8))
        clock, low = at + i + 1, np.stack([at + i - 5, at + i - 3], axis=1)
        several.move([part, part], [at, at], [clock, clock], low)


def parse_graph(text: str) -> Iterator[Triple]:
    """A graph in Turtle."""
    return (quad.triple for quad in parse(text, RdfFormat.TURTLE))


def answer_from_files(case: Case, folder: Path, ending: str) -> None:
    """The case's query, its events written to files and read again."""
    files = {}
    for i, (iri, events) in enumerate(case.streams.items()):
        terms = TermDictionary()
        files[iri] = folder / f"{case.name}-{i}.{ending}"
        write_events([encode_events(events, terms)], terms, files[iri])
    run(case.query, streams=files, kb=case.kb, origin=case.start)


def read_texts() -> None:
    """Documents and lines as they come: bytes, which nobody may write."""
    Guarded(None, RdfFormat.RDF_XML).check(b"<a/>")
    Guarded(None, RdfFormat.JSON_LD).check(b"{}")


def others() -> dict[str, list[object]]:
    """Kernel → for which types it was compiled that the table does not have."""
    found = {}
    for name in names():
        kernel, signature = kernel_of(name)
        if more := [each for each in kernel.signatures if each != signature]:
            found[name] = more
    return found


def main() -> None:
    cases = load_cases()
    for case in cases:
        for layout in LAYOUTS:
            answer(case, layout)
    for ceql_case in load_ceql_cases():
        for layout in LAYOUTS:
            answer_ceql(ceql_case, layout)
    for layout in LAYOUTS:
        answer_windows(layout)
    with TemporaryDirectory() as folder:
        for i, case in enumerate(cases):
            answer_from_files(case, Path(folder), ("arrow", "parquet", "nq")[i % 3])
    read_texts()
    print(others())


if __name__ == "__main__":
    main()
