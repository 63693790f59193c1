"""The languages that oxiseq itself has: each a record; all else of it is in its own modules.

In the flow: imported with the package, so that `languages` knows them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final, TypeVar

from oxiseq.grammar.algebra import Query, Span
from oxiseq.grammar.ceql_algebra import CeqlQuery
from oxiseq.grammar.checking.ceql import CEQL_CHECKS
from oxiseq.grammar.checking.epsparql import EP_CHECKS
from oxiseq.grammar.checking.rsp import RSP_CHECKS
from oxiseq.grammar.checking.spaseq import check_spaseq
from oxiseq.grammar.ep_algebra import EpQuery
from oxiseq.grammar.errors import Finding
from oxiseq.grammar.languages import Syntax, declare, ours
from oxiseq.grammar.parser import tree
from oxiseq.grammar.parsing.ceql import CeqlBuilder
from oxiseq.grammar.parsing.epsparql import EpBuilder
from oxiseq.grammar.parsing.rsp import RspBuilder
from oxiseq.grammar.parsing.spaseq import SpaseqBuilder
from oxiseq.grammar.render import render_spaseq
from oxiseq.grammar.render_ceql import render_ceql
from oxiseq.grammar.render_ep import render_ep
from oxiseq.grammar.render_rsp import render_rsp
from oxiseq.grammar.rsp_algebra import RspLanguage, RspQuery
from oxiseq.grammar.slips.ceql import CEQL_COMMENT, CEQL_RULES
from oxiseq.grammar.slips.epsparql import EP_RULES
from oxiseq.grammar.slips.rsp import RSP_RULES
from oxiseq.grammar.slips.spaseq import COMMENT, RULES
from oxiseq.grammar.words import CEQL, OVER_WINDOWS, SPASEQ

Q = TypeVar("Q")
_AT_INSTANTS: Final = ("report", "at", "consumption")
_TABLES: Final = ("type_column", "time_column", "time_unit")


def _spaseq(text: str) -> Query:
    return SpaseqBuilder(text).query(tree(text, "spaseq", RULES, COMMENT))


def _ceql(text: str) -> CeqlQuery:
    return CeqlBuilder(text).query(tree(text, "ceql", CEQL_RULES, CEQL_COMMENT))


def _epsparql(text: str) -> EpQuery:
    return EpBuilder(text).ep_query(tree(text, "epsparql", EP_RULES, COMMENT))


def _windows(language: RspLanguage, text: str) -> RspQuery:
    return RspBuilder(text, language).query(tree(text, "rsp", RSP_RULES, COMMENT))


def _by(passes: Sequence[Callable[[Q, str], Iterator[Finding]]]) -> Callable[[Q, str], Iterator[Finding]]:
    """Passes over the query, one after the other."""

    def check(query: Q, text: str) -> Iterator[Finding]:
        for each in passes:
            yield from each(query, text)

    return check


def _over_windows(name: RspLanguage, title: str, about: str) -> Syntax[RspQuery]:
    """They share one grammar, one algebra and one check."""
    return Syntax(
        name,
        title,
        partial(_windows, name),
        _by(RSP_CHECKS),
        render_rsp,
        options=_AT_INSTANTS,
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
        _spaseq,
        check_spaseq,
        render_spaseq,
        words=SPASEQ,
        options=_TABLES,
        about="SPAseq matches each event on its own and states which events may come between",
        own=lambda query: ("graph patterns in a sequence", query.sequence.span),
    ),
    Syntax(
        "ceql",
        "CEQL",
        _ceql,
        _by(CEQL_CHECKS),
        render_ceql,
        options=("stream_names", *_TABLES),
        words=CEQL,
        about="CEQL matches events that are tuples of one type",
        own=lambda query: ("sets of tuple events", query.formula.span),
    ),
    Syntax(
        "epsparql",
        "EP-SPARQL",
        _epsparql,
        _by(EP_CHECKS),
        render_ep,
        options=("consumption", "rules"),
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
