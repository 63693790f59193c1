"""Literals in N-Quads text brought to the store's form: the store itself says what that is.

Oxigraph's store keeps the value of a typed literal, not its text (`"01"^^xsd:byte` comes out as `"1"^^xsd:integer`);
its parser does not. What is to be compared before it is in a store must be brought to the same form.
"""

from __future__ import annotations

import re

from pyoxigraph import DefaultGraph, RdfFormat
from pyoxigraph import Store as RdfStore

_XSD = rb"http://www\.w3\.org/2001/XMLSchema#"
_LITERAL = re.compile(rb'"[^"\\\n]*(?:\\.[^"\\\n]*)*"(?:\^\^<' + _XSD + rb"\w+>)?")
"""All literals, so that none is begun at another's end."""
_NORMAL = re.compile(
    rb'"(?:(?:0|-?[1-9][0-9]{0,17})"\^\^<' + _XSD + rb"integer"
    rb"|-?(?:0|[1-9][0-9]{0,15})\.[0-9]{0,15}[1-9]\"\^\^<" + _XSD + rb"decimal"
    rb'|[0-9]{4}(?:-[0-9]{2}-[0-9]{2}"\^\^<' + _XSD + rb'date|"\^\^<' + _XSD + rb"gYear))>"
)
"""The commonest that are in the store's form already."""


def normalised(text: bytes) -> bytes:
    """N-Quads text as pyoxigraph writes it, each XSD literal in the form that the store gives it."""
    typed = [t for t in set(_LITERAL.findall(text)) if t.endswith(b">") and not _NORMAL.fullmatch(t)]
    if not typed:
        return text
    other = {old: new for old, new in zip(typed, _through_a_store(typed), strict=True) if old != new}
    return _LITERAL.sub(lambda found: other.get(found[0], found[0]), text) if other else text


def _through_a_store(literals: list[bytes]) -> list[bytes]:
    store = RdfStore()
    store.bulk_load(
        b"".join(b"<i:%d> <i:> %s .\n" % numbered for numbered in enumerate(literals)), format=RdfFormat.N_TRIPLES
    )
    found = [b""] * len(literals)
    dumped = store.dump(format=RdfFormat.N_TRIPLES, from_graph=DefaultGraph())
    assert dumped is not None
    for line in dumped.splitlines():
        subject, _, object_ = line.split(b" ", 2)
        found[int(subject[3:-1])] = object_.removesuffix(b" .")
    return found
