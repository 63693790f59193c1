"""pyoxigraph.Store's methods that change the content: carried out, and passed on to listeners."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any, Final, cast

from pyoxigraph import DefaultGraph, NamedNode, Quad
from pyoxigraph import Store as RdfStore

from oxiseq.changes import limits
from oxiseq.changes.change import Anew, Change, Changed, GraphName
from oxiseq.changes.limits import NotFollowedError, TooMuchError
from oxiseq.changes.operations import operations, parts, tokens
from oxiseq.changes.steps import Content, Function, Put, Step, Steps, normal_quads
from oxiseq.engine.attended import check
from oxiseq.engine.expressions.times import FUNCTIONS
from oxiseq.engine.rdf import Attended, waited_for

# --- growth ----------------------------------------------------------------------------------------------

_DELETING: Final = frozenset(("remove", "clear", "clear_graph", "remove_graph"))
_GROWING: Final = ("INSERT", "LOAD", "ADD", "COPY", "MOVE", "CREATE")
_STATEMENT: Final = 200
"""Bytes of a short triple: its keys in the store's indexes, in the log and in a file."""
_TEXT: Final = 3
"""Times that a text is written, on the average."""


def growth(name: str, args: tuple[Any, ...], named: Mapping[str, Any]) -> int:
    """Bytes that a method of the store may write. Too many rather than too few; of what is not known beforehand, as the
    solutions of a WHERE or the quads of an iterator, none."""
    if name in _DELETING:
        return 0
    given, path = args[0] if args else named.get("input", named.get("update")), named.get("path")
    if isinstance(given, Attended):
        given = given.content
    if isinstance(given, str):
        return _TEXT * len(given) + _STATEMENT * sum(map(given.count, ".;,"))
    if isinstance(given, bytes):
        return _TEXT * len(given) + _STATEMENT * sum(map(given.count, (b".", b";", b",")))
    if isinstance(path, str | Path):
        try:
            return 10 * Path(path).stat().st_size
        except OSError:  # the method says what is the matter with it
            return 0
    return _STATEMENT * len(given) if hasattr(given, "__len__") else _STATEMENT


def grows(name: str, args: tuple[Any, ...], named: Mapping[str, Any]) -> bool:
    """Whether a method of the store, or an operation of an update, may add anything."""
    if name != "update":
        return name not in _DELETING
    text = args[0] if args else named.get("update", "")
    return any(token.is_word(*_GROWING) for token in tokens(text))


# --- updating --------------------------------------------------------------------------------------------

_UNREADABLE = (SyntaxError, ValueError, OSError, RuntimeError, NotFollowedError)


def updated(store: RdfStore, update: str, **options: Any) -> Changed:
    """As `pyoxigraph.Store.update`, which see for options and errors; after an error nothing has been changed."""
    if len(update) > limits.MOST_BYTES:
        store.update(update, **options)
        return Anew("a long update")
    content = Content(store)
    try:
        text, steps = _followed(update, options)
        for step in steps:
            check()
            step.look(content)
    except TooMuchError:
        store.update(update, **options)
        return Anew("an update of many quads")
    except _UNREADABLE:
        return compared(store, update, **options)
    return _carried_out(store, update, text, steps, content, options)


def _followed(update: str, options: dict[str, Any]) -> tuple[str, list[Step]]:
    """The text to be carried out, and its steps. Raises what `Steps.of` does."""
    found = operations(update)
    steps_of = Steps(update, options)
    steps: list[Step] = []
    instead: list[str | None] = []
    for operation in found:
        own = steps_of.of(operation)
        steps += own
        instead.append(None if own[0].text is None else " ;\n".join(step.text or "" for step in own))
    return "".join(parts(update, found, instead)), steps


def _carried_out(
    store: RdfStore, update: str, text: str, steps: list[Step], content: Content, options: dict[str, Any]
) -> Changed:
    if len(steps) == 1 and isinstance(steps[0], Put) and not steps[0].graphs:
        store.extend(steps[0].quads)  # the same in one transaction, and the text is not parsed again
    else:
        functions: dict[NamedNode, Function] = FUNCTIONS | (options.get("custom_functions") or {})
        for step in steps:
            functions |= step.functions
        try:
            store.update(text, **(options | {"custom_functions": functions}))
        except SyntaxError:  # it is ours, or has not been understood; pyoxigraph parses before it does anything
            return compared(store, update, **options)
    try:
        for step in steps:
            step.follow(content)
    except TooMuchError:
        return Anew("an update of many quads")
    return content.change()


def compared(store: RdfStore, update: str, **options: Any) -> Changed:
    """The same by comparing the whole store before and after, which must be small; else listeners must query again."""
    before = _whole(store)
    check()
    store.update(update, **options)
    after = _whole(store) if before is not None else None
    if before is None or after is None:
        return Anew("an update that cannot be followed")
    removed, added = (tuple(a[0] - b[0]) for a, b in ((before, after), (after, before)))
    dropped, created = (tuple(a[1] - b[1]) for a, b in ((before, after), (after, before)))
    return Change(removed, added, dropped, created)


def _whole(store: RdfStore) -> tuple[set[Any], set[Any]] | None:
    """All quads and all named graphs; None where they are too many."""
    quads, graphs = (list(islice(each, limits.MOST_COMPARED + 1)) for each in (iter(store), store.named_graphs()))
    return None if max(len(quads), len(graphs)) > limits.MOST_COMPARED else (set(quads), set(graphs))


# --- methods ---------------------------------------------------------------------------------------------


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
