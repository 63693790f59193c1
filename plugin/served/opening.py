"""`oxiseq.open`: a store in memory, in a folder, or at a server elsewhere."""

from __future__ import annotations

import os
import re
from importlib import import_module
from pathlib import Path
from typing import Any, Final, cast

from oxiseq.api.store import Store
from oxiseq.engine.errors import ArgumentTypeError, ArgumentValueError
from oxiseq.engine.extras import loaded
from oxiseq.grammar.arguments import public
from oxiseq.options.kinds import Duration, duration

_PATIENCE: Final = "30s"
_ADDRESS: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_NEEDED: Final = ("httpx_sse", "msgspec", "prometheus_client", "werkzeug")
"""Packages of the extra `client`."""


@public
def open(
    location: str | os.PathLike[str] | None = None, *, token: str | None = None, patience: Duration = _PATIENCE
) -> Store:
    """A store: without `location` in memory; in a folder, made if there is none, durable by the server's own journal,
    with its recovery and the ids of its matches; or, for `http://` and `https://`, at a running `oxiseq serve`. All
    three have the same streams, queries and matches, and `pyoxigraph.Store`'s methods for the knowledge base.

    `token`: for a server that needs one; without it `OXISEQ_TOKEN` of the environment. `patience`: for how long a
    request is sent again when the server does not answer or is busy, where that does no harm.

    >>> import oxiseq, tempfile
    >>> text = '''PREFIX : <http://example.org/>
    ... SELECT ?before ?after FROM STREAM S <http://example.org/power>
    ... WHERE {
    ...   SEQ(A; B)
    ...   DEFINE GPM A ON S { ?house :watts ?before }
    ...   DEFINE GPM B ON S { ?house :watts ?after FILTER(?after > 2 * ?before) }
    ... }'''
    >>> reading = "<http://example.org/h1> <http://example.org/watts> {} ."
    >>> folder = tempfile.TemporaryDirectory()
    >>> with oxiseq.open(folder.name) as store:
    ...     query = store.register(text, name="surges")
    ...     store.stream("http://example.org/power").push(reading.format(100), 1_000_000)
    >>> with oxiseq.open(folder.name) as store:  # another day
    ...     store.stream("http://example.org/power").push(reading.format(250), 2_000_000)
    ...     for match in store.find("surges").poll("2s"):
    ...         print(match.id, match["before"].value, match["after"].value)
    1 100 250

    Raises OxiseqError for a folder that cannot be used, UnreachableError, RefusedError.
    """
    if location is None:
        if token is not None:
            raise ArgumentTypeError("token: a store in memory asks for none; say where the server is")
        return Store()
    if not isinstance(location, str | os.PathLike) or not os.fspath(location):
        raise ArgumentValueError(f"a store is opened at a folder or at an address, not {location!r}")
    for package in _NEEDED:
        loaded(package)
    places: Any = import_module("oxiseq.served.places")  # a store in memory needs none of them
    seconds = duration(patience, "patience") / 1e6
    text = os.fspath(location)
    if text.lower().startswith(("http://", "https://")):
        return cast(Store, places.elsewhere(text, token or os.environ.get("OXISEQ_TOKEN"), seconds))
    if _ADDRESS.match(text):
        raise ArgumentValueError(f"{text!r}: a store elsewhere is at http:// or https://; a folder is said by its path")
    if token is not None:
        raise ArgumentTypeError("token: a folder asks for none")
    return cast(Store, places.here(Path(text), seconds))
