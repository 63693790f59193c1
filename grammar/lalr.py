"""lark's parsers: they are computed from the grammars, which takes a second each, and written as `ParseTables` and as
lark's own; they say what is unexpected in a text.

In the flow: grammar file → **lark** → tables.py, and a text that is not of the language → **lark** → its exception.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, Final

import lark
from lark import Lark
from lark.exceptions import UnexpectedInput
from lark.parsers.lalr_analysis import Shift

from oxiseq.grammar.tables import DIGEST, GRAMMARS, WORD, Reduction, key_of, places, without_namespace

BUILT: Final = ("ceql", "epsparql", "rsp", "spaseq", "store")
"""The grammars that texts are read by; the others are parts of them."""
_STARTS: Final = {"store": ["query", "update"]}
"""Of grammars of several kinds of texts."""


@cache
def parser_of(grammar: str) -> Lark:
    """lark's parser of a grammar: the one that this version of lark has left behind our tables, or one made anew."""
    key = key_of()
    for place in places(grammar):
        with suppress(Exception), place.open("rb") as file:  # whatever a damaged pickle raises
            if file.read(DIGEST) == key:
                file.seek(DIGEST, os.SEEK_CUR)
                file.seek(int.from_bytes(file.read(WORD), "little"), os.SEEK_CUR)
                if file.read(DIGEST) == _version():
                    return Lark.load(file)
    return made(grammar, key)


def unexpected(parser: Lark, text: str, start: str) -> UnexpectedInput:
    """What lark says of a text that is not of the language."""
    try:
        parser.parse(text, start=start)
    except UnexpectedInput as error:
        return error
    raise AssertionError("lark takes a text that its tables do not")


def made(grammar: str, key: bytes) -> Lark:
    """The parser of `parsing/{grammar}.lark`, written where Python may write."""
    parser = build(grammar)
    if not sys.dont_write_bytecode:
        with suppress(OSError):  # a folder that nobody may write
            _write(parser, places(grammar)[-1], key)
    return parser


def build(grammar: str, **more: Any) -> Lark:
    """The same without the tables on disk; `more` for lark."""
    return Lark.open(
        str(GRAMMARS / f"{grammar}.lark"),
        parser="lalr",
        lexer="contextual",
        maybe_placeholders=False,
        start=_STARTS.get(grammar, "start"),
        **more,
    )


def ship(folder: Path) -> list[Path]:
    """Write the tables of all grammars into the folder that a wheel takes them from; their files."""
    key, files = key_of(), [folder / f"{grammar}.lalr" for grammar in BUILT]
    for place in files:
        _write(build(place.stem), place, key)
    return files


def packed(parser: Lark) -> bytes:
    """The tables of a parser of lark's, as `ParseTables` reads them."""
    table: Any = parser.parser.parser._parse_table
    names: dict[str, int] = {}
    rules: dict[int, tuple[int, Any]] = {}
    lexers: dict[int, tuple[int, Any]] = {}
    states: list[tuple[int, int]] = []
    actions: list[int] = []
    for at in range(len(table.states)):
        lexer = parser.parser.lexer.lexers[at]
        states.append((lexers.setdefault(id(lexer), (len(lexers), lexer))[0], len(actions) // 2))
        for symbol, (action, to) in table.states[at].items():
            number = to if action is Shift else -1 - rules.setdefault(id(to), (len(rules), to))[0]
            actions += names.setdefault(str(symbol), len(names)), number
    states.append((0, len(actions) // 2))
    ignored = [each.pattern.to_regexp() for each in parser.terminals if each.name in parser.lexer_conf.ignore]
    symbols: Any = (symbol for rule in parser.rules for symbol in rule.expansion)
    head = {
        "starts": table.start_states,
        "ends": table.end_states,
        "kept": {
            str(each.name): without_namespace(str(each.name))
            for each in symbols
            if each.is_term and not each.filter_out
        },
        "ignored": f"(?:{'|'.join(ignored)})*",
        "names": list(names),
        "rules": [_reduction(rule) for _, rule in rules.values()],
        "lexers": [(_pattern(each.scanner), _others(each.callback)) for _, each in lexers.values()],
        "states": states,
    }
    text = json.dumps(head).encode()
    return b"".join([len(text).to_bytes(WORD, "little"), text, struct.pack(f"<{len(actions)}h", *actions)])


def _reduction(rule: Any) -> Reduction:
    origin, parts = str(rule.origin.name), rule.expansion
    kept = tuple(
        (index, not part.is_term and part.name.startswith("_"))
        for index, part in enumerate(parts)
        if not (part.is_term and part.filter_out)
    )
    whole = len(kept) == len(parts) and not any(inlined for _, inlined in kept)
    name = "" if origin.startswith("_") else without_namespace(str(rule.alias or origin))
    alone = bool(rule.options.expand1 and not rule.alias)
    passes = len(parts) == 1 and (alone if whole else not name and kept == ((0, True),))
    return Reduction(len(parts), None if whole else kept, name, alone, passes, origin)


def _pattern(scanner: Any) -> str:
    (found,) = scanner._mres
    text: str = found.pattern
    return text


def _others(callbacks: Mapping[str, Any]) -> dict[str, str]:
    """For a terminal the pattern of words that it takes and that are another's."""
    return {kind: _pattern(each.scanner) for kind, each in callbacks.items()}


def _write(parser: Lark, place: Path, key: bytes) -> None:
    """At once: another process sees all of it or nothing."""
    place.parent.mkdir(exist_ok=True, parents=True)
    ours = packed(parser)
    with NamedTemporaryFile(dir=place.parent, delete=False) as file:
        try:
            for part in (key, hashlib.sha256(ours).digest(), len(ours).to_bytes(WORD, "little"), ours, _version()):
                file.write(part)
            parser.save(file)
        except OSError:
            os.unlink(file.name)
            raise
    os.replace(file.name, place)


def _version() -> bytes:
    return hashlib.sha256(lark.__version__.encode()).digest()
