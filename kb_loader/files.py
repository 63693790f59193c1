"""The knowledge base: a pyoxigraph store, filled from files or text."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import IO, cast

from pyoxigraph import NamedNode, RdfFormat
from pyoxigraph import Store as RdfStore

from oxiseq.engine.errors import KbError, syntax_reason
from oxiseq.engine.rdf import load
from oxiseq.kb_loader.coded import CodedText, is_coded
from oxiseq.kb_loader.lines import blocks
from oxiseq.kb_loader.marker import check_whole, not_opened
from oxiseq.kb_loader.parts import load_block
from oxiseq.kb_loader.sources import BROKEN, RDF_ENDINGS


def load_file(store: RdfStore, path: str | Path, graph: str | None = None) -> None:
    """Load an RDF file, plain or gzip (a store's folder is opened instead: see `open_kb`).

    `graph` is the IRI of the named graph that its triples go to (default: the default graph, or what the file
    says). Relative IRIs are resolved against the file's own. Raises KbError.
    """
    file = Path(path)
    zipped = file.suffix.lower() == ".gz"
    ending = (file.with_suffix("") if zipped else file).suffix.lower()
    chosen = RDF_ENDINGS.get(ending)
    if not file.exists():
        raise KbError(f"{path}: there is no such file")
    if chosen is None:
        known = ", ".join(RDF_ENDINGS)
        raise KbError(f"{path}: unknown ending {ending or '(none)'}; known: {known}, also with .gz")
    try:
        with cast(IO[bytes], gzip.open(file)) if zipped else file.open("rb") as content:
            load(
                store.load,
                content,
                chosen,
                base_iri=file.resolve().as_uri(),
                to_graph=NamedNode(graph) if graph is not None else None,
            )
    except SyntaxError as error:
        raise KbError(f"{path}:{error.lineno}: {syntax_reason(error)}") from error
    except (OSError, EOFError, ValueError) as error:
        raise KbError(f"{path}: cannot be read: {error}") from error


def load_text(store: RdfStore, text: str) -> None:
    """Load N-Quads text (N-Triples too). Raises KbError."""
    try:
        load(store.load, text, RdfFormat.N_QUADS)
    except SyntaxError as error:
        place = "" if error.lineno is None else f", line {error.lineno}"
        raise KbError(f"KB text{place}: {syntax_reason(error)}") from error


def is_path(given: str | Path) -> bool:
    """Whether a string names a file rather than being N-Quads text."""
    if isinstance(given, Path):
        return True
    return bool(given.strip()) and "\n" not in given and not given.lstrip().startswith(("<", "_:", "#"))


def open_kb(path: Path) -> RdfStore:
    """An on-disk store's folder, opened for reading; or coded statements (see coded.py), read into memory.

    Raises KbError, also if the store is half loaded.
    """
    if is_coded(path):
        return _coded_kb(path)
    check_whole(path)
    try:
        return RdfStore.read_only(str(path))
    except OSError as error:
        raise not_opened(path, error) from error


def _coded_kb(path: Path) -> RdfStore:
    store = RdfStore()
    try:
        for block in blocks(cast(IO[bytes], CodedText(path))):
            load_block(store, block)
    except (*BROKEN, SyntaxError) as error:
        raise KbError(f"{path}: cannot be read: {error}") from error
    return store
