"""Options in the query string, for requests whose body is the query's text: lists by repeating, names as NAME=IRI."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from oxiseq.live.api.table import Call, Parameter
from oxiseq.options import OPTIONS, Door, Option, options_for
from oxiseq.options.kinds import NamesKind, QueriesKind, TimesKind
from oxiseq.sparql.problems import Problem


def parameters_of(*doors: Door) -> tuple[Parameter, ...]:
    """As they are described."""
    return tuple(_parameter(option) for option in options_for(doors=doors))


def in_address(call: Call, doors: Collection[Door], also: Collection[str] = ()) -> dict[str, Any]:
    """What is given, as data; `also`: parameters beside the options. Raises Problem for others."""
    call.check_parameters({*also, *(option.name for option in options_for(doors=doors))})
    values: dict[str, Any] = {}
    for name, text in call.request.parameters():
        kind = OPTIONS[name].kind if name in OPTIONS else None
        if isinstance(kind, TimesKind | QueriesKind):
            values.setdefault(name, []).append(text)
        elif isinstance(kind, NamesKind):
            key, _, iri = text.partition("=")
            values.setdefault(name, {})[key] = iri
        elif name in values:
            raise Problem(400, f"more than one {name}", "give it only once")
        else:
            values[name] = text
    return values


def _parameter(option: Option) -> Parameter:
    of = f" ({option.titles})" if option.special else ""
    several = isinstance(option.kind, TimesKind | QueriesKind | NamesKind)
    schema = {"type": "array", "items": {"type": "string"}} if several else option.kind.schema
    form = " As NAME=IRI; may be repeated." if isinstance(option.kind, NamesKind) else " May be repeated." * several
    return Parameter(option.name, f"With a text as body{of}: {option.help}{form}", schema)
