"""`Why` as JSON values (`Why.to_json`) → the same `Why`, for a client of a server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Final, get_args, get_origin, get_type_hints

from pyoxigraph import Quad, RdfFormat, Triple, parse

from oxiseq.engine.terms.texts import Term, parse_term
from oxiseq.languages.reasons import provenance, report
from oxiseq.languages.reasons.report import Why

_NAMES: Final = {**vars(provenance), **vars(report)}
"""Of the types in annotations."""


def why_of(value: Mapping[str, Any]) -> Why:
    """Raises KeyError, ValueError, TypeError for what is no such thing."""
    found: Why = _read(Why, value)
    return found


def _read(kind: Any, value: Any) -> Any:
    """A value of this type, as it is in the annotations of `Why`."""
    if value is None:
        return None
    if isinstance(kind, type) and is_dataclass(kind):
        types = get_type_hints(kind, _NAMES)
        return kind(**{each.name: _read(types[each.name], value[each.name]) for each in fields(kind)})
    if get_origin(kind) is tuple:
        return tuple(_read(get_args(kind)[0], each) for each in value)
    if isinstance(origin := get_origin(kind), type) and issubclass(origin, Mapping):
        return {name: _read(get_args(kind)[1], each) for name, each in value.items()}
    if kind is Triple or kind is Quad:
        quad = next(parse(f"{value} .".encode(), format=RdfFormat.N_QUADS))
        return quad if kind is Quad else quad.triple
    return parse_term(value) if set(get_args(Term)) <= set(get_args(kind)) else value
