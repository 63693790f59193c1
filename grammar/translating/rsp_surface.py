"""SPECTRA's form ↔ RSP-QL's: one algebra, two ways to write the pattern on a single window.

The window as the default graph (`FROM STREAM`), or with a name and `WINDOW :w { ... }`. A query that has several
windows, or graphs beside them, is of both languages unchanged.
"""

from __future__ import annotations

from dataclasses import replace

from pyoxigraph import NamedNode

from oxiseq.grammar.algebra import GraphPattern, Group, SubSelect, WindowPattern
from oxiseq.grammar.rsp_algebra import RspQuery
from oxiseq.grammar.scope import holds_exists, nested_elements, sub_select_expressions
from oxiseq.grammar.translating.translation import Translation, window_name


def as_rspql(query: RspQuery) -> Translation:
    """SPECTRA → RSP-QL, its window named if it is the only one."""
    written = replace(query, language="rspql")
    if len(query.windows) != 1 or query.windows[0].name is not None or _mixed(query, query.body.where):
        return Translation(written)
    name = window_name(query)
    where = Group((WindowPattern(name, query.body.where),))
    return Translation(_with(written, name, where))


def as_spectra(query: RspQuery) -> Translation:
    """RSP-QL → SPECTRA, its window as the default graph if WHERE reads nothing else."""
    written = replace(query, language="spectra")
    match query.windows, query.body.where.elements:
        case (window,), (WindowPattern(name, pattern),) if window.name == name and not _mixed(query, pattern):
            return Translation(_with(written, None, pattern))
    return Translation(written)


def _with(query: RspQuery, name: NamedNode | None, where: Group) -> RspQuery:
    return replace(query, windows=(replace(query.windows[0], name=name),), body=replace(query.body, where=where))


def _mixed(query: RspQuery, where: Group) -> bool:
    """Whether more than one graph is read, or a sub-query hides what is read, or SELECT reads something, too."""
    if query.default_graphs or any(holds_exists(e) for e in sub_select_expressions(query.body)):
        return True
    return any(isinstance(e, GraphPattern | WindowPattern | SubSelect) for e in nested_elements(where))
