"""Problems as HTTP responses, for requests that come no further."""

from __future__ import annotations

import flask
import werkzeug
from werkzeug.exceptions import HTTPException

from oxiseq.server.conversion import response_to
from oxiseq.sparql import Problem, Request
from oxiseq.sparql.endpoint import problem_response


def refusal(problem: Problem, request: werkzeug.Request) -> flask.Response:
    """In the form that the client accepts."""
    accept = (("accept", request.headers.get("Accept", "")),)
    asked = Request(request.method, request.path, headers=accept)
    return response_to(problem_response(problem, asked), request)


def as_problem(error: HTTPException) -> Problem:
    """The framework's own refusals (404, 405...) and failures of ours in its form."""
    headers = tuple(
        (name, value) for name, value in error.get_headers() if name.lower() not in ("content-type", "content-length")
    )
    return Problem(error.code or 500, error.name.lower(), error.description or "", headers=headers)
