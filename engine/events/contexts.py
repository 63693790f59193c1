"""JSON-LD whose contexts stand elsewhere: they are known beforehand, and nothing is fetched.

Where it stands: a text of JSON-LD → **contexts written out** → pyoxigraph's parser → quads.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from pyoxigraph import Quad, RdfFormat

from oxiseq.engine.rdf import parse

MOST: Final = 4 << 20
"""Characters that the contexts a document names may take together: each is put in wherever it is named."""
_MARK: Final = b'"@context"'


class Contexts:
    """IRI → the context that stands there, as JSON values. `given` may hold whole documents ({"@context": ...}), and
    contexts that name each other. Raises SyntaxError for one that names itself or an unknown one, or is too large."""

    def __init__(self, given: Mapping[str, object] | None = None) -> None:
        self._given = {iri: _unwrapped(value) for iri, value in (given or {}).items()}
        self._known: dict[str, _Known] = {}
        for iri in self._given:
            self._looked_up(iri, ())

    def quads(self, text: bytes) -> list[Quad]:
        """Those of a document. Raises SyntaxError, ValueError, RecursionError."""
        if _MARK in text:
            value = json.loads(text)
            if (known := self.written_out(value)) != value:
                text = json.dumps(known, ensure_ascii=False).encode()
        return list(parse(text, RdfFormat.JSON_LD))

    def written_out(self, value: Any) -> Any:
        """A document with its contexts in it. A literal of JSON, which may have members of any name, is left as it is.
        Raises SyntaxError, RecursionError."""
        return _Writing(self).document(value)

    def _looked_up(self, iri: str, naming: tuple[str, ...]) -> _Known:
        """`naming`: the contexts on the way to this one."""
        if (known := self._known.get(iri)) is not None:
            return known
        if iri in naming:
            raise SyntaxError(f"the context {iri} names itself")
        if iri not in self._given:
            raise SyntaxError(
                f"the context {iri[:200]} stands elsewhere, and nothing is fetched: write it out, or store it with the "
                'stream\'s mapping: {"contexts": {IRI: context}}'
            )
        value = _Writing(self, (*naming, iri)).context(self._given[iri])
        known = self._known[iri] = _Known(value, len(json.dumps(value)))
        return known


@dataclass(frozen=True, slots=True)
class _Known:
    """A context that names no other, and its length."""

    value: Any
    length: int


class _Writing:
    """One document, or one context, that is written out; the contexts that are put in are counted."""

    def __init__(self, contexts: Contexts, naming: tuple[str, ...] = ()) -> None:
        self._contexts, self._naming, self._length = contexts, naming, 0

    def document(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self.document(each) for each in value]
        if not isinstance(value, dict) or "@value" in value:
            return value
        return {name: self.context(each) if name == "@context" else self.document(each) for name, each in value.items()}

    def context(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self.context(each) for each in value]
        if isinstance(value, str):
            return self._named(value)
        if not isinstance(value, dict):
            return value
        terms = {name: self._term(each) for name, each in value.items()}
        imported = terms.pop("@import", None)
        if not isinstance(imported, str):
            return terms
        found = self._named(imported)
        if not isinstance(found, dict):
            raise SyntaxError(f"@import: {imported[:200]} is not one context")
        return {**found, **terms}

    def _term(self, definition: Any) -> Any:
        """A term's definition, which may have a context of its own."""
        if not isinstance(definition, dict) or "@context" not in definition:
            return definition
        return {**definition, "@context": self.context(definition["@context"])}

    def _named(self, iri: str) -> Any:
        known = self._contexts._looked_up(iri, self._naming)
        self._length += known.length
        if self._length > MOST:
            raise SyntaxError(f"the contexts have more than {MOST:,} characters together")
        return known.value


def _unwrapped(value: object) -> object:
    return value.get("@context", value) if isinstance(value, dict) else value


NO_CONTEXTS: Final = Contexts()
