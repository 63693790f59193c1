"""Compiling the kernels ahead of the first query.

Numba compiles a kernel when it is first called and keeps the result on disk. `warm_up` calls each of them: the
queries below use every operator and index, on memory so small that all of it has to grow. Compiling is spread over
two processes (`compiling_ahead`).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen
from time import monotonic, perf_counter, sleep
from typing import Any, Final

from pyoxigraph import RdfFormat
from pyoxigraph import Store as RdfStore

from oxiseq.engine.events.assembler import Block, EventAssembler
from oxiseq.engine.events.encode import encode_events
from oxiseq.engine.events.quads import GENERATED_AT
from oxiseq.engine.kb import StoreKb
from oxiseq.engine.kernels import ahead, match, sequence
from oxiseq.engine.kernels.options import before_compiling
from oxiseq.engine.plan.query import compile_query
from oxiseq.engine.run.query import QueryRun
from oxiseq.engine.sequence.memory import Capacities
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar import load

_TEXT: Final = "PREFIX : <urn:w:> {form} {window} FROM STREAM S <urn:w:S> WHERE {{ SEQ({seq}) {gpms} }}"
_GPMS: Final = (
    "DEFINE GPM A ON S { ?s :v ?a FILTER(?a > 1 && ?a < 1000.5) GRAPH ?g { ?s :name ?n } } "
    "DEFINE GPM B ON S { ?s :v ?b OPTIONAL { ?s :w ?w } FILTER(?b > 0) FILTER(?b > ?a) } "
    "DEFINE GPM C ON S { ?t :v ?c FILTER(?c + 0.1 > ?a * 1.5 && STRLEN(STR(?c)) < 9 + ?a) } "
    "DEFINE GPM D ON S { ?s :w ?d . ?s :v ?e FILTER(STRLEN(STR(?e)) < 9) } "
    "DEFINE GPM N ON S { ?s :w ?m GRAPH ?h { ?s :weight ?x } FILTER(?x < ?m) } "
)
_QUERIES: Final = (
    ("SELECT DISTINCT ?s ?n (MAX(?b) AS ?most) (?c - ?a AS ?rise)", "WITHIN 1 HOUR SLIDING", "N!; A; B+; C"),
    ("SELECT *", "WITHIN 50 EVENTS", "A : B, N!; C?; D"),
    ("ASK", "WITHIN 1 MINUTE SLIDING", "A; (B; C)+; N!"),
    ("SELECT ?s", "", "(A & D); (B | C)"),
    ("SELECT ?d ?e", "", "D"),
)
_EVENTS: Final = 60
_PATIENCE: Final = 120.0
"""Seconds that the second process may take; it takes a tenth."""


def warm_up() -> float:
    """Compile every kernel that is not on disk yet; returns the seconds that it took."""
    begun = perf_counter()
    kb = RdfStore()
    kb.load("".join(_facts(i) for i in range(3)).encode(), format=RdfFormat.N_QUADS)
    with compiling_ahead():
        for form, window, seq in _QUERIES:
            _answer(_TEXT.format(form=form, window=window, seq=seq, gpms=_GPMS), StoreKb(kb))
        _read()
    return perf_counter() - begun


def _read() -> None:
    """Read one event as from a file."""
    assembler = EventAssembler(TermDictionary(), GENERATED_AT, lambda line, reason: None)
    quad = f"<urn:w:s> <urn:w:v> {_integer(1)} <urn:w:e> .\n<urn:w:e> {GENERATED_AT} {_integer(1)} .\n"
    for _ in assembler.read(Block.of(quad.encode()), 1):
        pass


def _answer(text: str, kb: StoreKb) -> None:
    terms = TermDictionary()
    run = QueryRun(compile_query(load(text), terms), terms, kb, capacities=Capacities.smallest())
    for low in range(0, _EVENTS, 20):
        events = [(1_000_000 * i, _graph(i)) for i in range(low, low + 20)]
        run.push("urn:w:S", encode_events(events, terms))
        run.advance()
    run.close()
    run.advance()


def _facts(i: int) -> str:
    return f'<urn:w:{i}> <urn:w:name> "{i}" <urn:w:g> .\n<urn:w:{i}> <urn:w:weight> {_integer(i)} <urn:w:g> .\n'


def _graph(i: int) -> str:
    value = _integer(i) if i % 3 else f'"{i}"^^<urn:w:other>'
    more = f"<urn:w:{i % 3}> <urn:w:w> {_integer(i % 7)} ." if i % 4 == 0 else ""
    return f"<urn:w:{i % 3}> <urn:w:v> {value} . {more}"


def _integer(i: int) -> str:
    return f'"{i}"^^<http://www.w3.org/2001/XMLSchema#integer>'


def is_compiled() -> bool:
    """Whether the two great kernels lie compiled on disk. A guess before they are called: Numba itself decides."""
    return all(_on_disk(kernel) for kernel in (sequence.advance, match.match_events))


def _on_disk(kernel: Any) -> bool:
    """`kernel`: a Numba dispatcher. Numba names the index of what it keeps `module.function-line.*.nbi`."""
    function = kernel.py_func
    source = Path(function.__code__.co_filename)
    name = f"{source.stem}.{function.__qualname__}-{function.__code__.co_firstlineno}.*.nbi"
    return any(Path(kernel.stats.cache_path).glob(name))


@contextmanager
def compiling_ahead() -> Iterator[None]:
    """If kernels have to be compiled: let a second process compile those of `ahead.KERNELS` meanwhile.

    Whoever calls one of them first waits for it. If that process fails or takes too long, or there is no second
    processor, they are compiled here, when they are called. It never outlives the block, nor this process.
    """
    missing = [kernel for kernel in ahead.KERNELS if not _on_disk(kernel)]
    process = _start() if missing and (os.cpu_count() or 1) > 1 else None
    if process is None:
        yield
        return
    deadline = monotonic() + _PATIENCE
    for kernel in missing:
        before_compiling(kernel, partial(_await, process, kernel, deadline))
    try:
        yield
    finally:
        process.kill()
        process.communicate()


def _start() -> Popen[bytes] | None:
    command = [sys.executable, "-P", "-m", ahead.__name__]
    try:
        return Popen(command, stdin=PIPE, stdout=DEVNULL, stderr=DEVNULL)
    except OSError:
        return None


def _await(process: Popen[bytes], kernel: Any, deadline: float) -> None:
    while process.poll() is None and not _on_disk(kernel) and monotonic() < deadline:
        sleep(0.02)
