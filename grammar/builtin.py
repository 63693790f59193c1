"""The languages that oxiseq itself has: each a record; all else of it is in its own modules.

In the flow: imported with the package, so that `languages` knows them.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from oxiseq.grammar.algebra import Span
from oxiseq.grammar.languages import Syntax, declare, ours
from oxiseq.grammar.rsp_algebra import RspLanguage, RspQuery
from oxiseq.grammar.words import CEQL, OVER_WINDOWS, SPASEQ

_AT_INSTANTS: Final = ("stream_operator", "evaluation_times", "consumption")
_TABLES: Final = ("type_column", "time_column", "time_unit")


def _later(place: str) -> Callable[..., Any]:
    """The function of this package that has this name in a module of it, which is loaded when it is first called: most
    processes read texts of one language."""
    module, _, name = place.rpartition(".")

    def call(*arguments: object) -> Any:
        return getattr(importlib.import_module(f"{__package__}.{module}"), name)(*arguments)

    return call


def _over_windows(name: RspLanguage, title: str, about: str) -> Syntax[RspQuery]:
    """They share one grammar, one algebra and one check."""
    return Syntax(
        name,
        title,
        partial(_later("windows.texts.read"), name),
        _later("windows.checks.check_rsp"),
        _later("windows.texts.render_rsp"),
        options=(*_AT_INSTANTS, *_TABLES),
        about=about,
        own=_own_windows,
        words=OVER_WINDOWS,
    )


def _own_windows(query: RspQuery) -> tuple[str, Span]:
    if query.events:
        return "event mappings", query.events[0].span
    return "windows", query.windows[0].span if query.windows else query.span


declare(
    Syntax(
        "spaseq",
        "SPAseq",
        _later("spaseq.texts.read"),
        _later("spaseq.checks.check_spaseq"),
        _later("spaseq.texts.render_spaseq"),
        words=SPASEQ,
        options=_TABLES,
        about="SPAseq matches each event on its own and states which events may come between",
        own=lambda query: ("graph patterns in a sequence", query.sequence.span),
    ),
    Syntax(
        "ceql",
        "CEQL",
        _later("ceql.texts.read"),
        _later("ceql.checks.check_ceql"),
        _later("ceql.texts.render_ceql"),
        options=("stream_names", *_TABLES),
        words=CEQL,
        about="CEQL matches events that are tuples of one type",
        own=lambda query: ("sets of tuple events", query.formula.span),
    ),
    Syntax(
        "epsparql",
        "EP-SPARQL",
        _later("epsparql.texts.read"),
        _later("epsparql.checks.check_epsparql"),
        _later("epsparql.texts.render_ep"),
        options=("consumption", "rules", *_TABLES),
        words=OVER_WINDOWS,
        about="EP-SPARQL joins triples by their intervals and never retracts an answer",
        own=lambda query: ("patterns with intervals", query.where.span),
    ),
    _over_windows("rspql", "RSP-QL", "RSP-QL queries the content of windows, in which events have no order"),
    _over_windows("spectra", "SPECTRA", "SPECTRA queries the content of a window, in which events have no order"),
    _over_windows("rsepql", "RSEP-QL", "RSEP-QL matches items of windows and combines them by time"),
)
LANGUAGES: Final = tuple(each.name for each in ours())
"""Their names."""
