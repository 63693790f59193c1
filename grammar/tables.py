"""LALR parsers, whose tables are kept on disk: to compute them takes four times as long as to read them.

In the flow: grammar file → **parser**, once per process and language. A wheel brings the tables; else they are kept
where Python keeps the compiled code of this package, and are as trusted: `__pycache__`, or nowhere if Python may not
write there.
"""

from __future__ import annotations

import hashlib
import os
import sys
from contextlib import suppress
from importlib.util import cache_from_source
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, Final

import lark
from lark import Lark

_GRAMMARS: Final = Path(__file__).with_name("parsing")
BUILT: Final = ("ceql", "epsparql", "rsp", "spaseq", "store")
"""The grammars that texts are read by; the others are parts of them."""
_STARTS: Final = {"store": ["query", "update"]}
"""Of grammars of several kinds of texts."""


def lalr(grammar: str) -> Lark:
    """The parser of `parsing/{grammar}.lark`."""
    key = _key()
    place = _place(grammar)
    for each in (_brought(grammar), place):
        if (kept := _read(each, key)) is not None:
            return kept
    parser = build(grammar)
    if not sys.dont_write_bytecode:
        with suppress(OSError):  # a folder that nobody may write
            _write(parser, place, key)
    return parser


def build(grammar: str, **more: Any) -> Lark:
    """The same without the tables on disk; `more` for lark."""
    return Lark.open(
        str(_GRAMMARS / f"{grammar}.lark"),
        parser="lalr",
        lexer="contextual",
        maybe_placeholders=False,
        start=_STARTS.get(grammar, "start"),
        **more,
    )


def ship(folder: Path) -> list[Path]:
    """Write the tables of all grammars into the folder that a wheel takes them from; their files."""
    key, made = _key(), [folder / f"{grammar}.lalr" for grammar in BUILT]
    for place in made:
        _write(build(place.stem), place, key)
    return made


def _brought(grammar: str) -> Path:
    return _GRAMMARS / f"{grammar}.lalr"


def _place(grammar: str) -> Path:
    return Path(cache_from_source(str(_GRAMMARS / f"{grammar}.py"))).with_suffix(".lalr")


def _key() -> bytes:
    """What the tables depend on; grammars import each other."""
    whole = hashlib.sha256(lark.__version__.encode())
    for file in sorted(_GRAMMARS.glob("*.lark")):
        whole.update(file.read_bytes())
    return whole.digest()


def _read(place: Path, key: bytes) -> Lark | None:
    """The parser that is kept; None if there is none, or not of this key, or it is damaged."""
    try:
        with place.open("rb") as file:
            return Lark.load(file) if file.read(len(key)) == key else None
    except Exception:  # whatever a damaged pickle raises
        return None


def _write(parser: Lark, place: Path, key: bytes) -> None:
    """At once: another process sees all of it or nothing."""
    place.parent.mkdir(exist_ok=True, parents=True)
    with NamedTemporaryFile(dir=place.parent, delete=False) as file:
        try:
            file.write(key)
            parser.save(file)
        except OSError:
            os.unlink(file.name)
            raise
    os.replace(file.name, place)
