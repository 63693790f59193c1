"""`POST /check`: what is wrong with a text, without doing anything."""

from __future__ import annotations

from typing import Any, Final

from oxiseq.grammar.languages import media_types
from oxiseq.live.api.problems import findings
from oxiseq.live.api.table import Answer, Call, Need, Route, json_response, unsupported
from oxiseq.sparql.guards import check_size, check_syntax
from oxiseq.sparql.messages import Response
from oxiseq.sparql.problems import Problem
from oxiseq.sparql.settings import SparqlSettings

_QUERY: Final = "application/sparql-query"
_UPDATE: Final = "application/sparql-update"
_USUAL: Final = SparqlSettings()


def check(call: Call) -> Response:
    """POST /check."""
    media_type, known = call.request.media_type or "", media_types()
    if media_type in known:
        return json_response({"findings": findings(call.request.text(), known[media_type])})
    if media_type not in (_QUERY, _UPDATE):
        raise unsupported(call.request, (*known, _QUERY, _UPDATE))
    text, base = call.request.text(), call.request.origin + call.request.path
    found = call.evaluations.call(lambda: _sparql(text, base, update=media_type == _UPDATE), call.request.gone)
    return json_response({"findings": found})


def _sparql(text: str, base: str, *, update: bool) -> list[dict[str, Any]]:
    """The first error, if there is one; a text with calls to other servers is not checked."""
    try:
        check_size(text, _USUAL)
        check_syntax(text, base, update=update)
    except Problem as problem:
        line, column = (1, 1) if problem.place is None else (problem.place.line, problem.place.column)
        told = {"message": problem.detail or problem.title, "hint": "", "expected": "", "start": 0, "end": 0}
        told |= {name: value for name, value in problem.more.items() if name in told}
        end = text[: int(str(told["end"]))]
        end_line, end_column = (end.count("\n") + 1, len(end) - end.rfind("\n")) if told["end"] else (line, column)
        return [
            {
                "severity": "error",
                "code": "sparql",
                **told,
                "line": line,
                "column": column,
                "end_line": end_line,
                "end_column": end_column,
            }
        ]
    return []


ROUTES: Final = (
    Route(
        "POST",
        "/check",
        check,
        "check",
        "Errors and lints of a query or an update, as `oxiseq check --json` prints them, columns and lines counted "
        "from 1. Nothing is run; for SPARQL only the first error is reported.",
        Need(None),
        bodies=(*media_types(), _QUERY, _UPDATE),
        answers={200: Answer("The findings.", schema="Findings")},
    ),
)
