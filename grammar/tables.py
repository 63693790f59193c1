"""LALR tables as plain data: what reads texts needs no lark, and lark's own tables take 50 ms to be read.

In the flow: grammar file → lark → a file (lalr.py) → **`ParseTables`** → `TreeParser` (trees.py), once per process and
language. A wheel brings the files; else they are kept where Python keeps the compiled code of this package, and are as
trusted: `__pycache__`, or nowhere if Python may not write there.

    key, 32 bytes     of the grammars: `key_of`
    checksum, 32      of ours
    size, 8           of ours
    ours              size of its head (8), the head as JSON, actions of all states as pairs of 16 bits
    version, 32       a digest of lark's
    lark's            as `Lark.save` writes it
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
from collections.abc import Mapping
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any, Final, NamedTuple

GRAMMARS: Final = Path(__file__).with_name("parsing")
DIGEST: Final = hashlib.sha256().digest_size
WORD: Final = 8
"""Bytes of a size."""


class Reduction(NamedTuple):
    """What the end of a rule does: `size` values become one.

    `kept`: which of them, and whether the children of one stand for it; None for all as they are. `name`: of the tree,
    empty where its children will stand for it. `alone`: a single child takes the tree's place. `passes`: the one value
    stays as it is.
    """

    size: int
    kept: tuple[tuple[int, bool], ...] | None
    name: str
    alone: bool
    passes: bool
    origin: str


class ParseTables:
    """What reads texts of a grammar needs. What concerns one state only is unpacked when a text comes there.

    `starts`, `ends`: the first and the last state of each kind of text. `kept`: what the tokens of terminals that a
    tree can keep are called. `ignored`: the pattern of what stands between tokens. Raises ValueError, LookupError for
    what is none.
    """

    def __init__(self, content: bytes) -> None:
        first = WORD + int.from_bytes(content[:WORD], "little")
        head = json.loads(content[WORD:first])
        self.starts: Mapping[str, int] = head["starts"]
        self.ends: Mapping[str, int] = head["ends"]
        self.kept: Mapping[str, str] = head["kept"]
        self.ignored: str = head["ignored"]
        self._names: list[str] = head["names"]
        self._rules: list[Any] = head["rules"]
        self._lexers: list[tuple[str, dict[str, str]]] = head["lexers"]
        self._states: list[tuple[int, int]] = head["states"]
        self._actions = content[first:]

    def lexer(self, at: int) -> tuple[int, str, Mapping[str, str]]:
        """Of a state: a number that states with the same one share, the pattern of all terminals that can follow, and
        for some of them the pattern of words that are another's."""
        number = self._states[at][0]
        return number, *self._lexers[number]

    def actions(self, at: int) -> dict[str, int]:
        """Of a state: for each terminal and rule behind it the next state, or -1 minus the rule that ends."""
        begin, end = self._states[at][1], self._states[at + 1][1]
        found = struct.unpack(f"<{2 * (end - begin)}h", self._actions[4 * begin : 4 * end])
        return {self._names[name]: to for name, to in zip(found[::2], found[1::2], strict=True)}

    def reduction(self, rule: int) -> Reduction:
        """What a rule's end does."""
        size, kept, *others = self._rules[rule]
        return Reduction(size, None if kept is None else tuple(map(tuple, kept)), *others)


def kept(grammar: str) -> ParseTables:
    """The tables of `parsing/{grammar}.lark`."""
    key = key_of()
    for place in places(grammar):
        if (found := _read(place, key)) is not None:
            return found
    from oxiseq.grammar.lalr import made, packed  # noqa: PLC0415  a new process need not load lark

    return ParseTables(packed(made(grammar, key)))


def without_namespace(name: str) -> str:
    """A rule's or a terminal's name without what lark's import puts before it."""
    return name.replace("sparql__", "")


def brought(grammar: str) -> Path:
    return GRAMMARS / f"{grammar}.lalr"


def places(grammar: str) -> tuple[Path, Path]:
    """Of what has come with a wheel, and of what is kept here."""
    return brought(grammar), Path(cache_from_source(str(GRAMMARS / f"{grammar}.py"))).with_suffix(".lalr")


def key_of() -> bytes:
    """What our tables depend on; grammars import each other."""
    whole = hashlib.sha256()
    for file in (Path(__file__), Path(__file__).with_name("lalr.py"), *sorted(GRAMMARS.glob("*.lark"))):
        whole.update(file.read_bytes())
    return whole.digest()


def _read(place: Path, key: bytes) -> ParseTables | None:
    """The tables that are kept; None if there are none, or not of this key, or they are damaged."""
    try:
        with place.open("rb") as file:
            if file.read(len(key)) != key:
                return None
            checksum, size = file.read(DIGEST), int.from_bytes(file.read(WORD), "little")
            content = file.read(min(size, os.fstat(file.fileno()).st_size))
        return ParseTables(content) if hashlib.sha256(content).digest() == checksum else None
    except (OSError, ValueError, LookupError):
        return None
