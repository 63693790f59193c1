"""The server: `oxiseq.sparql` over HTTP.

    connections ─▶ uvicorn (serving) ─▶ edge ─┬▶ pushes, live readers: on the loop ────────────────▶ LiveRoutes
                                              └▶ WSGI ─┬▶ live (streams, queries) ─▶ conversion ─▶ LiveRoutes
                                                       └▶ Flask (app: tokens, CORS) ─▶ conversion ─▶ SparqlEndpoint
                                                                                                     or Upstream

Flask is a thin shell: it turns a WSGI request into `sparql.Request` and a `sparql.Response` back. The WSGI application
has all routes, for other servers: there pushes and live readers hold a thread each. Needs the extra `oxiseq[server]`.
"""

from oxiseq.server.app import Answers, create_app
from oxiseq.server.serving import Serving
from oxiseq.server.settings import ServerSettings, Tokens

__all__ = ["Answers", "ServerSettings", "Serving", "Tokens", "create_app"]
