"""The server as a WSGI application, for servers other than the one inside.

    OXISEQ_LOCATION=kb gunicorn --worker-class gthread --threads 80 'oxiseq.cli.wsgi:application()'

Slower than the one inside: each push and each live reader holds a thread. One process with threads: the store and the
journal belong to one. Settings are those of `oxiseq serve`, from the environment (OXISEQ_CONFIG names a file); where it
listens, how many threads and how to end are the other server's.
"""

from __future__ import annotations

import atexit
from contextlib import ExitStack
from typing import TYPE_CHECKING

from oxiseq.cli.server import serve_command
from oxiseq.cli.settings import settings_of, tables_of
from oxiseq.grammar.errors import OxiseqError

if TYPE_CHECKING:
    from flask import Flask


def application() -> Flask:
    """The application; what it opens is closed when the process ends. Raises OxiseqError, click.UsageError."""
    from oxiseq.cli.serving import application_of  # noqa: PLC0415  after the settings have been read
    from oxiseq.server.serving import log_to_stderr  # noqa: PLC0415  the same

    context = serve_command.make_context("serve", [])
    request = settings_of(context.params)
    if request.tls_cert is not None or request.tls_key is not None:
        raise OxiseqError("https is the other server's here: `gunicorn --certfile FILE --keyfile FILE`")
    log_to_stderr(request.log_format)
    opened = ExitStack()
    atexit.register(opened.close)
    app, _, _ = application_of(request, opened, tables_of(context))
    return app
