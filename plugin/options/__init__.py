"""Options of a query beside its text, each declared once.

    declared.py: `Options`, the record of all options ─▶ Python's keywords, flags of the
    command line, members and parameters over HTTP, keys of test files, the journal's JSON, the reference in docs/
    kinds.py: how a value of each kind is read and written at those doors

A new option is a field of `Options`, its type in a class of keywords, and the code of the engine that uses it.
"""

from oxiseq.options.declared import (
    HISTORY,
    LATE_POLICIES,
    OPTIONS,
    QUERY,
    RUN,
    SOURCES,
    STATE,
    Door,
    Option,
    Options,
    as_data,
    fitting,
    options_for,
    said,
    said_as_data,
)

__all__ = [
    "HISTORY",
    "LATE_POLICIES",
    "OPTIONS",
    "QUERY",
    "RUN",
    "SOURCES",
    "STATE",
    "Door",
    "Option",
    "Options",
    "as_data",
    "fitting",
    "options_for",
    "said",
    "said_as_data",
]
