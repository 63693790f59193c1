"""Streams and queries as resources: plain requests in, plain responses out, no web framework.

    Request ─▶ routes ─▶ operations: right, parameters, body ─▶ the operation's function ─▶ LiveService ─▶ Response

`operations.py` is the one table of what there is; `openapi` makes the document from it, and `oxiseq.served` its
requests. A new operation is an entry there, and a function.
"""

from oxiseq.live.api.routes import LiveRoutes

__all__ = ["LiveRoutes"]
