"""Streams and queries as resources: plain requests in, plain responses out, no web framework.

    Request ─▶ routes (path, method) ─▶ a handler of streams, queries, matches ─▶ LiveService ─▶ Response

Each file of handlers lists its routes with their documentation; `openapi` makes the document from the same lists, so
it lists every route.
"""

from oxiseq.live.api.routes import LiveRoutes

__all__ = ["LiveRoutes"]
