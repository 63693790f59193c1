"""JSON-LD with contexts in other documents: these are registered beforehand; nothing is fetched.

In the flow: a text of JSON-LD → **contexts written out** → pyoxigraph's parser → quads.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from pyoxigraph import Quad, RdfFormat

from oxiseq.engine.rdf import guarded, parse
from oxiseq.grammar.records import dataclass

MOST: Final = 1 << 20
"""Characters that the contexts a document names may take together: each is put in wherever it is named. Also of all
contexts that are known, each with those that it names."""
_MARK: Final = b'"@context"'


class Contexts:
    """IRI → the context of that document, as JSON values. `given` may hold whole documents ({"@context": ...}), and
    contexts that name each other. Raises SyntaxError for one that names itself or an unknown one, or is too large."""

    def __init__(self, given: Mapping[str, object] | None = None) -> None:
        self._given = {iri: _unwrapped(value) for iri, value in (given or {}).items()}
        self._known: dict[str, _Known] = {}
        self._length = 0
        for iri in self._given:
            self._looked_up(iri, ())

    def quads(self, text: bytes) -> list[Quad]:
        """Those of a document. Raises SyntaxError, ValueError, RecursionError."""
        if _MARK in text:
            guarded(text, RdfFormat.JSON_LD)
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
                f"the context {iri[:200]} is elsewhere, and nothing is fetched: write it out, or store it with the "
                'stream\'s mapping: {"contexts": {IRI: context}}'
            )
        writing = _Writing(self, (*naming, iri))
        value = writing.context(self._given[iri])
        known = self._known[iri] = _Known(value, len(json.dumps(self._given[iri])) + writing.length)
        self._length += known.length
        _check_length(self._length)
        return known


@dataclass(frozen=True, slots=True)
class _Known:
    """A context that names no other, and its length."""

    value: Any
    length: int


class _Writing:
    """One document, or one context, that is written out. `length`: of the contexts that are put in."""

    def __init__(self, contexts: Contexts, naming: tuple[str, ...] = ()) -> None:
        self._contexts, self._naming, self.length = contexts, naming, 0

    def document(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self.document(each) for each in value]
        if not isinstance(value, dict) or "@value" in value:
            return value
        return {name: self.context(each) if name == "@context" else self.document(each) for name, each in value.items()}

    def context(self, value: Any) -> Any:
        if isinstance(value, list):
            return [part for each in value for part in self._listed(each)]
        if isinstance(value, str):
            return self._named(value)
        if not isinstance(value, dict):
            return value
        terms = {name: self._term(each) for name, each in value.items()}
        if "@import" not in terms:
            return terms
        imported = terms.pop("@import")
        if not isinstance(imported, str):
            raise SyntaxError(f"@import is the IRI of a context, not {str(imported)[:200]}")
        found = self._named(imported)
        if not isinstance(found, dict):
            raise SyntaxError(f"@import: {imported[:200]} is not one context")
        return {**found, **terms}

    def _listed(self, value: Any) -> list[Any]:
        """The entries that a context adds to a list of contexts; a list of contexts holds no lists."""
        found = self.context(value)
        return found if isinstance(value, str) and isinstance(found, list) else [found]

    def _term(self, definition: Any) -> Any:
        """A term's definition, which may have a context of its own."""
        if not isinstance(definition, dict) or "@context" not in definition:
            return definition
        return {**definition, "@context": self.context(definition["@context"])}

    def _named(self, iri: str) -> Any:
        known = self._contexts._looked_up(iri, self._naming)
        self.length += known.length
        _check_length(self.length)
        return known.value


def _check_length(length: int) -> None:
    if length > MOST:
        raise SyntaxError(f"the contexts have more than {MOST:,} characters together")


def _unwrapped(value: object) -> object:
    return value.get("@context", value) if isinstance(value, dict) else value


NO_CONTEXTS: Final = Contexts()
