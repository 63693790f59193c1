"""The server: `oxiseq.sparql` over HTTP.

    waitress (serving) ─▶ live (streams, queries, matches) ─▶ conversion (gzip) ─▶ LiveRoutes
                            └▶ Flask (app: tokens, CORS) ─▶ conversion ─▶ SparqlEndpoint or Upstream

Flask is a thin shell: it turns a WSGI request into `sparql.Request` and a `sparql.Response` back. Needs the
extra `oxiseq[server]`.
"""

from oxiseq.server.app import Answers, create_app
from oxiseq.server.serving import Serving
from oxiseq.server.settings import ServerSettings, Tokens

__all__ = ["Answers", "ServerSettings", "Serving", "Tokens", "create_app"]
