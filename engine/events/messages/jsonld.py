"""Logs of messages in NDJSON-LD → the quads of each message.

Each line is one JSON object: `{}` is an empty message; one with `@context` alone is none, but holds for all lines
behind it until the next such line; any other one is a message. Empty lines are skipped. Contexts that stand
elsewhere are not fetched: who reads gives those that are known.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import IO, Any, Final

from pyoxigraph import RdfFormat

from oxiseq.engine.attended import check
from oxiseq.engine.errors import syntax_reason
from oxiseq.engine.events.contexts import NO_CONTEXTS, Contexts
from oxiseq.engine.events.messages.turtle import Messages
from oxiseq.engine.rdf import rewritten
from oxiseq.grammar.byte_order import MARK

_BLOCK: Final = 1 << 18
_REPEATED: Final = 64 << 20
"""Bytes of contexts that are read again for later lines..."""
_SHARE: Final = 256
"""...and so many more for each byte of the lines."""


def jsonld_messages(content: IO[bytes], contexts: Contexts = NO_CONTEXTS) -> Iterator[Messages]:
    """The messages."""
    active: bytes | None = None
    room = _REPEATED
    for number, text in enumerate(_lines(content), 1):
        check()
        if not text.strip():
            continue
        try:
            value: Any = json.loads(text)
            if not isinstance(value, dict):
                raise ValueError("a line is one JSON object")
            if not value:
                yield Messages.one(b"", number)
                continue
            if (known := contexts.written_out(value)) != value:
                text = json.dumps(known, ensure_ascii=False).encode()
            if [*value] == ["@context"]:
                active = json.dumps(known["@context"], ensure_ascii=False).encode()
                continue
            whole = text if active is None else b'{"@context":%b,"@graph":%b}' % (active, text)
            room += _SHARE * len(text) - len(active or b"")
            if room < 0:
                raise SyntaxError("the context is too long for so many short lines: it is read for each of them")
            yield Messages.one(rewritten(whole, RdfFormat.JSON_LD, RdfFormat.N_QUADS), number)
        except SyntaxError as error:
            yield Messages.none(number, syntax_reason(error))
        except (ValueError, RecursionError) as error:
            yield Messages.none(number, f"not a JSON object in one line: {error}")


def _lines(content: IO[bytes]) -> Iterator[bytes]:
    """All lines, the empty ones too."""
    rest, fresh = b"", True
    while piece := content.read(max(_BLOCK, len(rest))):
        text = (rest + piece).removeprefix(MARK) if fresh else rest + piece
        fresh = False
        *lines, rest = text.split(b"\n")
        yield from lines
    yield rest
