"""Whether a text announces that it is a log of messages: `VERSION "1.2-messages"` or `@version "1.2-messages" .`,
before the first statement. The labels are those of RDF 1.2 with `-messages` behind."""

from __future__ import annotations

import re
from typing import Final, Literal, TypeAlias

from pyoxigraph import RdfFormat

MessageFormat: TypeAlias = Literal[
    "messages-ntriples", "messages-nquads", "messages-turtle", "messages-trig", "messages-ndjsonld"
]
VERSION: Final = "1.2-messages"
"""The output."""
_LABELS: Final = ("1.2-messages", "1.2-basic-messages", "1.1-messages")
RDF_FORMATS: Final[dict[MessageFormat, RdfFormat]] = {
    "messages-ntriples": RdfFormat.N_TRIPLES,
    "messages-nquads": RdfFormat.N_QUADS,
    "messages-turtle": RdfFormat.TURTLE,
    "messages-trig": RdfFormat.TRIG,
    "messages-ndjsonld": RdfFormat.JSON_LD,
}
HEAD: Final = 1 << 16
"""Bytes of a text within which it says so."""
_SPACE: Final = rb"(?:[ \t\r\n]++|\#[^\r\n]*+)*+"
_STRING: Final = rb"(?:\"([^\"\r\n]*+)\"|'([^'\r\n]*+)')"
_ANNOUNCED: Final = re.compile(
    rb"(?:\xef\xbb\xbf)?+"
    + _SPACE
    + rb"(?:@?(?:prefix"
    + _SPACE
    + rb"[^\s:<>\"']*+:"
    + _SPACE
    + rb"|base"
    + _SPACE
    + rb")<[^<>\"\s]*+>"
    + _SPACE
    + rb"\.?+"
    + _SPACE
    + rb")*+"
    + rb"@?version"
    + _SPACE
    + _STRING,
    re.IGNORECASE,
)
VERSION_LINE: Final = re.compile(rb"(?:\xef\xbb\xbf)?[ \t]*VERSION[ \t]*" + _STRING + rb"[ \t]*(?:#[^\n]*)?\r?")


def announces(head: bytes) -> bool:
    """Whether a text that begins so is a log of messages."""
    found = _ANNOUNCED.match(head)
    return found is not None and is_label((found[1] or found[2] or b"").decode("utf-8", "replace"))


def is_label(version: str) -> bool:
    """Whether it is a version of RDF with messages."""
    return version in _LABELS
