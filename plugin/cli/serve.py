"""`oxiseq serve`: a store as a SPARQL endpoint."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import click

from oxiseq.cli.config import ENVIRONMENT, config_options, print_if_asked
from oxiseq.cli.options import Duration
from oxiseq.cli.request import ServeRequest
from oxiseq.durations import UNITS
from oxiseq.importing import loading

SECOND: Final = UNITS["s"]
_LONGEST_WAIT: Final = 24 * UNITS["d"]
"""The operating system waits on a socket no longer: 2 ** 31 milliseconds."""
_WAITS: Final = ("timeout", "idle", "upstream_refresh")
"""Options of which nothing is never, or no limit."""

ANY: Final = "*"


class Address(click.ParamType[tuple[str, int]]):
    """HOST:PORT, with an IPv6 host in brackets; port 0 is any free one."""

    name = "address"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, int]:
        """Split it."""
        if isinstance(value, tuple):
            return value
        host, separator, port = str(value).rpartition(":")
        if not separator or not port.isdecimal() or int(port) > 65_535 or not host.strip("[]"):
            self.fail(f"{value!r} is not HOST:PORT", param, ctx)
        return host.removeprefix("[").removesuffix("]"), int(port)


class Origin(click.ParamType[str]):
    """`http://host:port` of a page; `*`, or true in a file or the environment, is any, and false is none."""

    name = "origin"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Checked."""
        text = str(value).strip()
        if text.lower() in ("true", "1", "yes", "on", ANY):
            return ANY
        if text.lower() in ("false", "0", "no", "off", ""):
            return ""
        parts = urlsplit(text)
        if parts.scheme not in ("http", "https") or not parts.netloc or parts.path.strip("/") or parts.query:
            self.fail(f"{text!r} is no origin: write SCHEME://HOST:PORT, as http://localhost:3000", param, ctx)
        return f"{parts.scheme}://{parts.netloc}".lower()


@click.command("serve", short_help="Serve a store, streams and queries over HTTP.", context_settings=ENVIRONMENT)
@config_options("read_token", "write_token")
@click.option("--location", "-l", metavar="DIR", type=click.Path(file_okay=False, path_type=Path),
              help="The store's folder, made if missing. [default: in memory]")  # fmt: skip
@click.option("--bind", "-b", metavar="HOST:PORT", type=Address(), default="127.0.0.1:7878", show_default=True,
              help="Where to listen; port 0 takes any free one.")  # fmt: skip
@click.option("--upstream", metavar="URL",
              help="Pass SPARQL requests on to another server's /query, /update and /store instead of a store; "
                   "queries of streams ask it, and the folder holds the journal only.")
@click.option("--upstream-refresh", metavar="DURATION", type=Duration(most=_LONGEST_WAIT), default="10m",
              show_default=True, help="After how long what they ask there is asked again; 0s is never.")
@click.option("--read-only", is_flag=True, help="No updates; the folder is opened for reading.")
@click.option("--cors", metavar="[ORIGIN]", type=Origin(), is_flag=False, flag_value=ANY, multiple=True,
              help="Web pages of this origin may ask and write; without ORIGIN, pages from anywhere may ask. "
                   "May be repeated.")
@click.option("--allowed-host", metavar="NAME", multiple=True,
              help="Answer requests for this host, too, not only for loopback names and that of --bind; * is any. "
                   "May be repeated.")
@click.option("--union-default-graph", is_flag=True, help="Queries see all graphs as one.")
@click.option("--read-token", metavar="TOKEN",
              help="Reading needs this bearer token; better given as OXISEQ_READ_TOKEN.")  # fmt: skip
@click.option("--write-token", metavar="TOKEN", help="Writing needs this one, which also reads.")
@click.option("--timeout", metavar="DURATION", type=Duration(most=_LONGEST_WAIT), default="5m", show_default=True,
              help="For a whole answer; 0s is no limit.")  # fmt: skip
@click.option("--max-rows", metavar="N", type=click.IntRange(min=1), help="Rows or triples of an answer.")
@click.option("--query-memory", metavar="BYTES", type=click.IntRange(min=1 << 20), default=1 << 30, show_default=True,
              help="That a query's process may take.")
@click.option("--max-body", metavar="BYTES", type=click.IntRange(min=1), default=128 << 20, show_default=True,
              help="Of a request, unpacked.")  # fmt: skip
@click.option("--threads", metavar="N", type=click.IntRange(min=1), default=16, show_default=True,
              help="Requests at a time.")  # fmt: skip
@click.option("--subscribers", metavar="N", type=click.IntRange(min=1), default=64, show_default=True,
              help="Live readers of matches at a time, beside the threads.")  # fmt: skip
@click.option("--idle", metavar="DURATION", type=Duration(), default="250ms", show_default=True,
              help="Without events for so long, the newest instant is taken as complete; 0s is never.")  # fmt: skip
@click.option("--keep", metavar="DURATION", type=Duration(), default="1h", show_default=True,
              help="For how long new streams keep their events.")  # fmt: skip
@click.option("--state-records", metavar="N", type=click.IntRange(min=0), default=0, show_default=True,
              help="Records that the running state of a query may have, if the query does not say; 0 is any number.")
@click.option("--state-bytes", metavar="BYTES", type=click.IntRange(min=0), default=1 << 30, show_default=True,
              help="How large it may become in memory; 0 is no bound.")
@click.option("--on-budget", type=click.Choice(["fail", "reset"]), default="fail", show_default=True,
              help="When it is larger: fail stops the query, reset lets it forget its partial matches and go on.")
@click.option("--event-triples", metavar="N", type=click.IntRange(min=1), default=4_000_000, show_default=True,
              help="Triples of events that are held in memory for SPARQL at a time.")
@click.option("--event-triples-for", metavar="DURATION", type=Duration(), default="10m", show_default=True,
              help="After how long without a question those of a stream are let go of.")
@click.option("--durability", type=click.Choice(["full", "normal"]), default="full", show_default=True,
              help="full: what is acknowledged is on the disk; normal: unless the machine dies.")  # fmt: skip
@click.option("--allow-service", is_flag=True, help="Queries may ask other servers (SERVICE).")
@click.option("--allow-load", is_flag=True, help="Updates may fetch from the web (LOAD).")
@click.option("--log-format", type=click.Choice(["text", "json"]), default="text", show_default=True,
              help="Of the log on stderr; json: an object a line.")  # fmt: skip
@click.pass_context
def serve_command(ctx: click.Context, /, **options: Any) -> None:
    """Serve a store to SPARQL clients: /query, /update, /store; with streams and continuous queries: /streams,
    /queries, described by /openapi.json; /health, /ready, /metrics.

    With --location all of it outlives the server: the store, and beside it a journal of events, queries and matches.
    Each option can also be given by an environment variable (--max-rows as OXISEQ_MAX_ROWS) or in a TOML file.

    \b
    oxiseq serve --location kb
    curl localhost:7878/query --data-urlencode 'query=SELECT * { ?s ?p ?o } LIMIT 5'
    """
    if print_if_asked(ctx):
        return
    with loading():
        from oxiseq.cli.serving import serve  # noqa: PLC0415  loads the engine: see __init__.py

    serve(request_of(options))


def request_of(options: Mapping[str, Any]) -> ServeRequest:
    """What the options say."""
    host, port = options["bind"]
    waits = {name: options[name] / SECOND or None for name in _WAITS}
    cors = tuple(filter(None, options["cors"]))
    given = {**options, **waits, "cors": cors, "event_triples_for": options["event_triples_for"] / SECOND}
    del given["bind"]
    return ServeRequest(host=host, port=port, **given)
