"""The options as Python's keywords, with the types that callers give: what type checkers and editors see.

That these are the declared options, with their doors, is tested (tests/plugin/test_options.py). `documented` gives the
functions that take them their real signature, for `help` and notebooks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from inspect import Parameter, signature
from typing import Any, Literal, TypedDict, TypeVar

from pyoxigraph import NamedNode

from oxiseq.engine.events.report import OnError
from oxiseq.engine.events.time import Time
from oxiseq.engine.events.units import TimeUnit
from oxiseq.options.declared import Door, options_for
from oxiseq.options.durations import Duration
from oxiseq.options.query_text import QueryLike

F = TypeVar("F", bound=Callable[..., Any])


class QueryKeywords(TypedDict, total=False):
    """Of whoever runs or registers a query."""

    origin: Time | None
    lateness: Duration
    stream_names: Mapping[str, str]
    stream_operator: Literal["RSTREAM", "ISTREAM", "DSTREAM"] | str | None
    evaluation_times: Iterable[Time] | None
    consumption: Literal["UNRESTRICTED", "CHRONOLOGICAL", "RECENT"] | str | None
    rules: Sequence[QueryLike]


class RunKeywords(QueryKeywords, total=False):
    """Of whoever runs it over files and tables."""

    on_error: OnError
    time_predicate: str | NamedNode
    type_column: str
    time_column: str | None
    time_unit: TimeUnit | None


class AnswerKeywords(RunKeywords, total=False):
    """Of whoever has it answered over whole streams."""

    late: Literal["warn", "error", "ignore"]
    end: Literal["closed", "open"]


class WhyKeywords(RunKeywords, total=False):
    """For a look at a stretch of the past."""

    since: Time | None
    until: Time | None
    limit: int


def documented(*doors: Door) -> Callable[[F], F]:
    """A function's `**options` spelled out: its signature lists them, its docstring describes them."""

    def decorate(function: F) -> F:
        plain = signature(function)
        options = options_for(doors=doors)
        usual = {o.name: None if o.default is None else o.kind.write(o.default) for o in options}
        named = [Parameter(name, Parameter.KEYWORD_ONLY, default=default) for name, default in usual.items()]
        fixed = [p for p in plain.parameters.values() if p.kind is not Parameter.VAR_KEYWORD]
        function.__signature__ = plain.replace(parameters=[*fixed, *named])  # type: ignore[attr-defined]
        lines = [f"    {o.name}: {o.help}" + (f" ({o.titles} only)" if o.special else "") for o in options]
        function.__doc__ = f"{function.__doc__ or ''}\n\n    Options:\n\n" + "\n".join(lines)
        return function

    return decorate
