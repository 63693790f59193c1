"""What is known of the objects of predicates before any event comes: from mappings and from the knowledge base.

In the flow: `match(mappings=, kb=)` → **facts** → inference. A mapping makes all events of its stream, and the
knowledge base has all values that its patterns can bind; so the types that they show are certain.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from itertools import islice
from pathlib import Path
from typing import Final

from pyoxigraph import Literal, NamedNode
from pyoxigraph import Store as RdfStore

from oxiseq.grammar.records import dataclass
from oxiseq.kb_loader import is_path
from oxiseq.mappings.plan import IRI, Cast, Column, Constant, Part, Typed, Valid
from oxiseq.sources.knowledge import kb_store
from oxiseq.spark.given import Given

BIGINT: Final = "bigint"
DOUBLE: Final = "double"
BOOLEAN: Final = "boolean"
TIMESTAMP: Final = "timestamp"
_XSD: Final = "http://www.w3.org/2001/XMLSchema#"
DATATYPES: Final = {
    _XSD + "integer": BIGINT,
    _XSD + "long": BIGINT,
    _XSD + "int": BIGINT,
    _XSD + "decimal": DOUBLE,
    _XSD + "float": DOUBLE,
    _XSD + "double": DOUBLE,
    _XSD + "boolean": BOOLEAN,
    _XSD + "dateTime": TIMESTAMP,
    _XSD + "date": "date",
}
"""Datatype → type of Spark SQL's."""
_COLUMNS: Final = {
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), BIGINT),
    **dict.fromkeys(("float", "double"), DOUBLE),
    **{kind: kind for kind in ("boolean", "date", "timestamp", "timestamp_ntz")},
}
"""Type of a column that a mapping takes as it is → type of its values."""
_MOST: Final = 1_000_000
"""Statements of a predicate that are read: about a second."""


@dataclass(slots=True)
class Facts:
    """`streams`: IRI of a stream → predicate → type of its objects; `kb` is read when a pattern needs it."""

    streams: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    kb: RdfStore | None = None

    def of_kb(self, graph: NamedNode | None, predicate: NamedNode) -> str | None:
        """The type of all objects of a predicate in a graph (None: in any)."""
        if self.kb is None:
            return None
        kinds: set[str | None] = set()
        found = self.kb.quads_for_pattern(None, predicate, None, graph)
        for count, quad in enumerate(islice(found, _MOST + 1)):
            term = quad.object
            kinds.add(DATATYPES.get(term.datatype.value) if isinstance(term, Literal) else None)
            if None in kinds or count == _MOST:
                return None
        return _common(kinds)


def facts(given: Mapping[str, Given], kb: str | None) -> Facts:
    """What the mappings and the knowledge base say; of a path that only executors see nothing. Raises KbError."""
    seen = kb is not None and (not is_path(kb) or Path(kb).exists())
    return Facts({iri: of_mapping(stream) for iri, stream in given.items()}, kb_store(kb) if seen else None)


def of_mapping(given: Given) -> dict[str, str]:
    """Predicate → type of all its objects in the events that the mapping makes."""
    if given.mapping is None or given.mapping.plan is None:
        return {}
    kinds: dict[str, set[str | None]] = {}
    columns = given.columns
    for statement in given.mapping.plan.statements:
        predicate = statement.predicate
        if not isinstance(predicate, Constant) or predicate.form != IRI:
            return {}
        kinds.setdefault(predicate.lexical, set()).add(_kind(statement.object, columns))
    common = {predicate: _common(found) for predicate, found in kinds.items()}
    return {predicate: kind for predicate, kind in common.items() if kind is not None}


def _kind(part: Part, columns: Mapping[str, str]) -> str | None:
    match part:
        case Typed(_, datatype) | Cast(_, datatype) | Valid(_, datatype):
            return DATATYPES.get(datatype)
        case Constant(_, form):
            return DATATYPES.get(form.removeprefix("^^<").removesuffix(">"))
        case Column(name):
            kind = columns.get(name, "")
            return kind if kind.startswith("decimal(") else _COLUMNS.get(kind)
    return None


def _common(kinds: Iterable[str | None]) -> str | None:
    """The type that has room for all."""
    found = set(kinds)
    if len(found) == 1:
        return found.pop()
    return DOUBLE if found and found <= {BIGINT, DOUBLE} else None
