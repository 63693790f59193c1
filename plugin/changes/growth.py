"""How much a change of the store may write: an estimate, by what it is given."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from oxiseq.changes.tokens import tokens
from oxiseq.engine.rdf import Attended

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
