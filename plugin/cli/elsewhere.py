"""Commands that speak to a server: its address and its token.

oxiseq queries, push, watch ─▶ `oxiseq.served.wire` ─▶ HTTP ─▶ oxiseq serve
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Final, TypeVar

import click

from oxiseq.engine.extras import loaded
from oxiseq.warmup.importing import loading

_PATIENCE: Final = 60.0
"""Seconds for which a request that may be repeated is tried."""
F = TypeVar("F", bound=Callable[..., Any])


def at_server(command: F) -> F:
    """The options `--url` and `--token`: the command is called with an open wire as `server`."""

    @click.option(
        "--url",
        metavar="URL",
        envvar="OXISEQ_URL",
        default="http://127.0.0.1:7878",
        show_default=True,
        show_envvar=True,
        help="The server's address.",
    )
    @click.option(
        "--token",
        metavar="TOKEN",
        envvar="OXISEQ_TOKEN",
        show_envvar=True,
        help="Its token; better given by the environment.",
    )
    @wraps(command)
    def opened(*given: Any, url: str, token: str | None, **more: Any) -> Any:
        loaded("httpx_sse")  # or the error names the extra that brings it
        with loading():
            from oxiseq.served.wire import wire_to  # noqa: PLC0415  loads the engine: see __init__.py

        server = wire_to(url, token, _PATIENCE, lambda note: click.echo(f"note: {note}", err=True))
        try:
            return command(*given, server=server, **more)
        finally:
            server.close()

    return opened  # type: ignore[return-value]  # with two parameters instead of one
