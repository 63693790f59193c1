"""`oxiseq serve`: a store as a SPARQL endpoint."""

from __future__ import annotations

from typing import Any

import click

from oxiseq.cli.config import ENVIRONMENT, config_options, print_if_asked, tables_of
from oxiseq.cli.settings import TABLES, setting_flags, settings_of
from oxiseq.warmup.importing import loading


@click.command("serve", short_help="Serve a store, streams and queries over HTTP.", context_settings=ENVIRONMENT)
@config_options("read_token", "write_token", "token_lines", "upstream_token", tables=TABLES)
@setting_flags
@click.pass_context
def serve_command(ctx: click.Context, /, **options: Any) -> None:
    """Serve a store to SPARQL clients: /query, /update, /store; with streams and continuous queries: /streams,
    /queries, described by /openapi.json; /health, /ready, /metrics.

    With --location everything survives a restart: the store, and beside it a journal of events, queries and matches.
    Each option can also be given by an environment variable (--max-rows as OXISEQ_MAX_ROWS) or in a TOML file.

    \b
    oxiseq serve --location kb
    curl localhost:7878/query --data-urlencode 'query=SELECT * { ?s ?p ?o } LIMIT 5'
    """
    if print_if_asked(ctx):
        return
    with loading():
        from oxiseq.cli.serving import serve  # noqa: PLC0415  loads the engine: see __init__.py

    serve(settings_of(options), tables_of(ctx))
