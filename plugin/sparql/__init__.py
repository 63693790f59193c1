"""The SPARQL 1.1 protocol and graph store protocol over an `oxiseq.Store`, without a web framework.

    Request ─▶ endpoint (path, method) ─▶ operation (query | update | graph) ─▶ guards ─▶ store ─▶ Response

Requests and responses are plain values (`messages`); `endpoint.SparqlEndpoint.answer` is the one entry, and
`plugin/server` carries it over HTTP. Every expected failure is a `problems.Problem`, which is a response too.
What reads the store runs on a thread of its own (`evaluation`): pyoxigraph's results must not leave the thread
that made them. pyoxigraph cannot be interrupted, so a query that may not notice its time limit (`plainness`) is
evaluated in a process that can be killed (`processes`: `workers` over `snapshots`); `lanes` leave room for others.
"""

from oxiseq.sparql.endpoint import SparqlEndpoint
from oxiseq.sparql.messages import Interrupted, Problem, Request, Response
from oxiseq.sparql.settings import Limits, SparqlSettings

__all__ = ["Interrupted", "Limits", "Problem", "Request", "Response", "SparqlEndpoint", "SparqlSettings"]
