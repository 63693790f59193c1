"""Logs of messages in NDJSON-LD → the quads of each message.

Each line is one JSON object: `{}` is an empty message; one with `@context` alone is none, but holds for all lines
behind it until the next such line; any other one is a message. Empty lines are passed over. Contexts that stand
elsewhere are not fetched: who reads gives those that are known.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import IO, Any, Final

from pyoxigraph import RdfFormat

from oxiseq.engine.errors import syntax_reason
from oxiseq.engine.events.messages.turtle import Parsed
from oxiseq.engine.rdf import parse

_BLOCK: Final = 1 << 18
_BOM: Final = b"\xef\xbb\xbf"


def jsonld_messages(content: IO[bytes], contexts: Mapping[str, object] | None = None) -> Iterator[Parsed]:
    """The messages. `contexts`: IRI → the context that stands there."""
    active: bytes | None = None
    for number, text in enumerate(_lines(content), 1):
        if not text.strip():
            continue
        try:
            value: Any = json.loads(text)
            if not isinstance(value, dict):
                raise ValueError("a line is one JSON object")
            if not value:
                yield Parsed([], number)
            elif [*value] == ["@context"]:
                active = json.dumps(_known(value["@context"], contexts or {}), ensure_ascii=False).encode()
            else:
                if (own := value.get("@context")) is not None and own != (known := _known(own, contexts or {})):
                    text = json.dumps({**value, "@context": known}, ensure_ascii=False).encode()
                whole = text if active is None else b'{"@context":%b,"@graph":%b}' % (active, text)
                yield Parsed(list(parse(whole, RdfFormat.JSON_LD)), number)
        except SyntaxError as error:
            yield Parsed([], number, syntax_reason(error))
        except (ValueError, RecursionError) as error:
            yield Parsed([], number, f"not a JSON object in one line: {error}")


def _known(context: Any, contexts: Mapping[str, object]) -> Any:
    """The context, with what stands elsewhere put in. Raises SyntaxError for what is not known."""
    if isinstance(context, list):
        return [_known(each, contexts) for each in context]
    if not isinstance(context, str):
        return context
    if context not in contexts:
        raise SyntaxError(f"the context {context} stands elsewhere, and nothing is fetched: write it out in the log")
    given = contexts[context]
    return given.get("@context", given) if isinstance(given, dict) else given


def _lines(content: IO[bytes]) -> Iterator[bytes]:
    """All lines, the empty ones too."""
    rest, fresh = b"", True
    while piece := content.read(max(_BLOCK, len(rest))):
        text = (rest + piece).removeprefix(_BOM) if fresh else rest + piece
        fresh = False
        *lines, rest = text.split(b"\n")
        yield from lines
    yield rest
