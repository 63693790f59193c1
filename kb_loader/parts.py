"""Part files of valid N-Quads into a store: what Spark delivers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

from pyoxigraph import RdfFormat
from pyoxigraph import Store as RdfStore

from oxiseq.engine.rdf import parse
from oxiseq.kb_loader.lines import BIG_BLOCK, blocks, load_clean
from oxiseq.kb_loader.threads import in_threads


def load_parts(store: RdfStore, files: Iterable[Path], done: Callable[[int], None]) -> None:
    """Load the files. `done` is called with the bytes so far. Blank nodes keep their names."""
    loaded = 0
    for length in in_threads(_work(store, files)):
        loaded += length
        done(loaded)


def _work(store: RdfStore, files: Iterable[Path]) -> Iterator[Callable[[], int]]:
    for file in files:
        with file.open("rb") as content:
            for block in blocks(content, BIG_BLOCK):
                yield partial(load_block, store, block)


def load_block(store: RdfStore, block: bytes) -> int:
    """Load a block of valid N-Quads lines; returns its bytes. Raises SyntaxError if it is not valid."""
    if load_clean(store, block, RdfFormat.N_QUADS) is None:
        store.bulk_extend(parse(block, format=RdfFormat.N_QUADS))
    return len(block)
