"""pyoxigraph.Store's methods that change the content: carried out, and passed on to listeners."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any, Final, cast

from pyoxigraph import DefaultGraph, Quad
from pyoxigraph import Store as RdfStore

from oxiseq.changes import limits
from oxiseq.changes.change import Anew, Changed, GraphName
from oxiseq.changes.content import Content, normal_quads
from oxiseq.changes.limits import TooMuchError
from oxiseq.changes.updating import updated
from oxiseq.engine.rdf import waited_for


def carried_out(store: RdfStore, name: str, /, *args: Any, **named: Any) -> Changed:
    """Call a method of the store and say what has changed. Raises what the method does; then nothing has changed."""
    return METHODS[name](store, *args, **named)


def _add(store: RdfStore, quad: Quad) -> Changed:
    return _put(store, normal_quads([quad]), lambda: store.add(quad))


def _extend(store: RdfStore, quads: Iterable[Quad]) -> Changed:
    return _added(store, quads, store.extend)


def _bulk_extend(store: RdfStore, quads: Iterable[Quad]) -> Changed:
    return _added(store, quads, store.bulk_extend)


def _added(store: RdfStore, quads: Iterable[Quad], method: Callable[[Iterable[Quad]], None]) -> Changed:
    """A few quads are kept and listed; more go to the method as they come."""
    coming = iter(quads)
    first = list(islice(coming, limits.MOST + 1))
    if len(first) > limits.MOST:
        method(chain(first, coming))
        return Anew("many quads added")
    return _put(store, normal_quads(first), lambda: store.extend(first))


def _put(store: RdfStore, quads: list[Quad], method: Callable[[], None]) -> Changed:
    """quads: in normal form; method: adds them."""
    content = Content(store)
    try:
        content.look(quads)
    except TooMuchError:
        method()
        return Anew("many quads added")
    method()
    content.put(quads)
    return content.change()


def _remove(store: RdfStore, quad: Quad) -> Changed:
    content = Content(store)
    looked_at = normal_quads([quad])
    content.look(looked_at)
    store.remove(quad)
    content.take(looked_at)
    return content.change()


def _load(store: RdfStore, input: Any = None, format: Any = None, **options: Any) -> Changed:
    """pyoxigraph holds the whole document in memory here, too."""
    return _loaded(store.load, store, input.read() if hasattr(input, "read") else input, format, options)


def _bulk_load(store: RdfStore, input: Any = None, format: Any = None, **options: Any) -> Changed:
    """Of a file no more is read ahead than what is small."""
    if not hasattr(input, "read"):
        return _loaded(store.bulk_load, store, input, format, options)
    head = _head(input)
    if len(head) <= limits.MOST_BYTES:
        return _loaded(store.bulk_load, store, head, format, options)
    store.bulk_load(cast("IO[bytes]", _Rest(head, input)), format, **options)
    return Anew("a bulk load")


def _loaded(
    method: Callable[..., None], store: RdfStore, content: Any, format: Any, options: Mapping[str, Any]
) -> Changed:
    """A small document is read into a store of its own, whose quads are then added in one transaction."""
    if _size(content, options.get("path")) <= limits.MOST_BYTES:
        apart = RdfStore()
        apart.load(waited_for(content, format), format, **options)
        if len(apart) <= limits.MOST:
            quads = list(apart)
            return _put(store, quads, lambda: store.extend(quads))
    method(waited_for(content, format), format, **options)
    return Anew("a large document loaded")


def _size(content: Any, path: Any) -> int:
    if path is None:
        return len(content) if isinstance(content, str | bytes) else 0
    try:
        return Path(path).stat().st_size
    except (OSError, TypeError):  # the method says what is the matter with it
        return 0


def _head(file: Any) -> Any:
    """The beginning of a file, all of it if it is small."""
    pieces = [file.read(limits.MOST_BYTES + 1)]
    size = len(pieces[0])
    while pieces[-1] and size <= limits.MOST_BYTES:
        pieces.append(file.read(limits.MOST_BYTES + 1 - size))
        size += len(pieces[-1])
    return pieces[0][:0].join(pieces)


class _Rest:
    """A file of which the beginning has been read."""

    def __init__(self, head: Any, file: Any) -> None:
        self._head, self._file = head, file
        self._at = 0

    def read(self, size: int = -1) -> Any:
        """The next piece."""
        if self._at >= len(self._head):
            return self._file.read(size)
        start, self._at = self._at, len(self._head) if size < 0 else min(self._at + size, len(self._head))
        return self._head[start : self._at]


def _clear(store: RdfStore) -> Changed:
    def look(content: Content) -> None:
        content.look_at_graph(DefaultGraph())
        content.look_at_graphs()

    def follow(content: Content) -> None:
        for graph in (DefaultGraph(), *content.named_graphs):
            content.drop(graph)

    return _emptied(store, store.clear, look, follow)


def _clear_graph(store: RdfStore, graph_name: GraphName | DefaultGraph) -> Changed:
    return _emptied(
        store,
        lambda: store.clear_graph(graph_name),
        lambda content: content.look_at_graph(graph_name),
        lambda content: content.clear(graph_name),
    )


def _remove_graph(store: RdfStore, graph_name: GraphName | DefaultGraph) -> Changed:
    return _emptied(
        store,
        lambda: store.remove_graph(graph_name),
        lambda content: content.look_at_graph(graph_name),
        lambda content: content.drop(graph_name),
    )


def _emptied(
    store: RdfStore, method: Callable[[], None], look: Callable[[Content], None], follow: Callable[[Content], None]
) -> Changed:
    content = Content(store)
    try:
        look(content)
    except TooMuchError:
        method()
        return Anew("many quads removed")
    method()
    follow(content)
    return content.change()


def _add_graph(store: RdfStore, graph_name: GraphName | DefaultGraph) -> Changed:
    content = Content(store)
    content.look_at_name(graph_name)
    store.add_graph(graph_name)
    if not isinstance(graph_name, DefaultGraph):
        content.create(graph_name)
    return content.change()


METHODS: Final[Mapping[str, Callable[..., Changed]]] = {
    "add": _add,
    "add_graph": _add_graph,
    "bulk_extend": _bulk_extend,
    "bulk_load": _bulk_load,
    "clear": _clear,
    "clear_graph": _clear_graph,
    "extend": _extend,
    "load": _load,
    "remove": _remove,
    "remove_graph": _remove_graph,
    "update": updated,
}
"""Every one that changes anything, by name."""
