"""A process of its own that evaluates queries for the server, which may kill it at any moment.

    server (processes.py) ── job, a JSON line ──▶ stdin │ stdout ── frames: kind, length, data ──▶ server

It is run as a file, and imports nothing of oxiseq before a query calls its functions: so it starts in a twentieth of a
second. A job names its data: a folder that pyoxigraph opens for reading, or a file of N-Quads. What was opened for one
job is kept for the next ones over the same data. When the server goes away, so does this process, in the midst of a job
too.
"""

from __future__ import annotations

import json
import os
import select
import struct
import sys
import threading
from collections.abc import Iterator
from importlib import import_module
from typing import IO, Any, Final, cast

from pyoxigraph import (
    NamedNode,
    QueryBoolean,
    QueryResultsFormat,
    QuerySolutions,
    QueryTriples,
    RdfFormat,
    Store,
    parse,
    serialize,
)

TAKEN, KIND, DATA, END, FAILED = b"t", b"k", b"d", b"e", b"f"
"""Kinds of frames: a job has been taken; whether results or triples follow; bytes of the answer; its end; why there is
none."""
HEAD: Final = struct.Struct(">cI")
STACK: Final = 256 << 20
"""Bytes of the evaluating thread's stack: the parser is recursive."""
_PIECE: Final = 64 << 10
_BESIDE: Final = 128 << 20
"""Bytes for Python and the store, beside a query's."""


class TooMany(Exception):
    """More triples than are allowed."""


class _Output:
    """One job's answer as frames; a binary file for pyoxigraph. What it collects for a job that fails is never sent."""

    def __init__(self, out: int) -> None:
        self._out = out
        self._pieces: list[bytes] = []
        self._size = 0

    def write(self, data: bytes) -> int:
        """Collects pieces."""
        self._pieces.append(bytes(data))
        self._size += len(data)
        if self._size >= _PIECE:
            self.flush()
        return len(data)

    def flush(self) -> None:
        """Sends what was collected."""
        if self._pieces:
            self.frame(DATA, b"".join(self._pieces))
            self._pieces, self._size = [], 0

    def frame(self, kind: bytes, data: bytes = b"") -> None:
        """Sends one, whole."""
        left = memoryview(HEAD.pack(kind, len(data)) + data)
        while left:
            left = left[os.write(self._out, left) :]


class _Sources:
    """The data that was opened last."""

    def __init__(self) -> None:
        self._name: Any = None
        self._store: Store | None = None

    def open(self, name: dict[str, Any]) -> Store:
        """`{"folder": PATH}` or `{"quads": FILE, "graphs": [IRI...]}`."""
        if self._store is None or name != self._name:
            self._store = None  # what was open is closed first
            self._store, self._name = _opened(name), name
        return self._store


def _opened(name: dict[str, Any]) -> Store:
    if "folder" in name:
        return Store.read_only(name["folder"])
    store = Store()
    store.extend(parse(path=name["quads"], format=RdfFormat.N_QUADS))  # loading would rename blank nodes
    for graph in name["graphs"]:
        store.add_graph(NamedNode(graph))
    return store


def evaluate(job: dict[str, Any], sources: _Sources, out: int) -> None:
    """Carry out a job, and send what comes of it."""
    output = _Output(out)
    output.frame(TAKEN)
    try:
        _answer(job, sources.open(job["source"]), output)
    except TooMany as error:
        output.frame(FAILED, _failure("rows", error))
    except SyntaxError as error:
        output.frame(FAILED, _failure("syntax", error))
    except ValueError as error:
        output.frame(FAILED, _failure("value", error))
    except MemoryError as error:
        output.frame(FAILED, _failure("memory", error))
    except Exception as error:
        output.frame(FAILED, _failure("store", error))
    else:
        output.flush()
        output.frame(END)


def _functions(text: str) -> dict[Any, Any]:
    """oxiseq's own functions, imported with the first query that may call one."""
    if "urn:oxiseq:" not in text:
        return {}
    found: dict[Any, Any] = import_module("oxiseq.engine.expressions.times").FUNCTIONS
    return found


def _answer(job: dict[str, Any], store: Store, output: _Output) -> None:
    graphs: dict[str, Any] = {"use_default_graph_as_union": job["union"]}
    if job["default_graphs"] or job["named_graphs"]:
        graphs = {name: [NamedNode(iri) for iri in job[name + "s"]] for name in ("default_graph", "named_graph")}
        graphs["named_graphs"] = graphs.pop("named_graph")
    results = store.query(job["text"], base_iri=job["base"], custom_functions=_functions(job["text"]), **graphs)
    file = cast("IO[bytes]", output)
    if isinstance(results, QueryTriples):
        output.frame(KIND, b"triples")
        triples = results if job["rows"] is None else _bounded(results, job["rows"])
        serialize(triples, file, format=getattr(RdfFormat, job["graph_format"]))
    elif isinstance(results, QuerySolutions | QueryBoolean):
        output.frame(KIND, b"solutions" if isinstance(results, QuerySolutions) else b"boolean")
        results.serialize(file, format=getattr(QueryResultsFormat, job["results_format"]))


def _bounded(triples: QueryTriples, most: int) -> Iterator[Any]:
    for number, triple in enumerate(triples, start=1):
        if number > most:
            raise TooMany(f"at most {most} triples are answered")
        yield triple


def _failure(kind: str, error: Exception) -> bytes:
    said: dict[str, Any] = {"kind": kind, "message": str(error)}
    if isinstance(error, SyntaxError):
        said |= {"message": str(error.msg or error), "line": error.lineno, "column": error.offset}
    return json.dumps(said).encode()


def serve() -> None:
    """Jobs from stdin until its end."""
    sources = _Sources()
    try:
        for line in sys.stdin.buffer:
            evaluate(json.loads(line), sources, 1)
    finally:
        os._exit(0)


def bound(memory: int) -> None:
    """Bytes that evaluations may take. Beyond them the process ends: the store cannot continue without memory."""
    try:
        import resource  # noqa: PLC0415  there is none on Windows
    except ModuleNotFoundError:
        return
    most = memory + STACK + _BESIDE
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def main() -> None:
    """`child.py MEMORY`: memory in bytes."""
    bound(int(sys.argv[1]))
    threading.stack_size(STACK)
    threading.Thread(target=serve, daemon=True).start()
    watch = select.poll()
    watch.register(0, 0)  # nothing but that the other end is closed
    watch.poll()
    os._exit(0)


if __name__ == "__main__":
    main()
