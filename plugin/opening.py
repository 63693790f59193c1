"""`oxiseq.open`: a store in memory, in a folder, or at a server elsewhere."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final, overload

from oxiseq.durations import Duration, duration
from oxiseq.engine.errors import OxiseqError
from oxiseq.kb_loader.marker import not_opened
from oxiseq.store import Store

if TYPE_CHECKING:
    from oxiseq.served import ServedStore

_PATIENCE: Final = "30s"


@overload
def open() -> Store: ...


@overload
def open(location: str | os.PathLike[str], *, token: str | None = None, patience: Duration = ...) -> ServedStore: ...


def open(
    location: str | os.PathLike[str] | None = None, *, token: str | None = None, patience: Duration = _PATIENCE
) -> Store | ServedStore:
    """A store: without `location` in memory; in a folder, made if there is none, durable by the server's own journal,
    with its recovery and the ids of its matches; or, for `http://` and `https://`, at a running `oxiseq serve`. All three
    have the same streams, queries and matches, and `pyoxigraph.Store`'s methods for the knowledge base.

    `token`: for a server that asks for one; without it `OXISEQ_TOKEN` of the environment. `patience`: for how long a
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
    ...     for match in store.find("surges").wait("2s"):
    ...         print(match.id, match["before"].value, match["after"].value)
    1 100 250

    Raises OxiseqError for a folder that cannot be used, UnreachableError, RefusedError.
    """
    if location is None:
        if token is not None:
            raise OxiseqError("token: a store in memory asks for none; say where the server is")
        return Store()
    if not isinstance(location, str | os.PathLike):
        raise OxiseqError(f"a store is opened at a folder or at an address, not {location!r}")
    try:
        import oxiseq.served
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        raise OxiseqError(f"a durable store needs {missing}: pip install 'oxiseq[server]'") from error
    del oxiseq
    seconds = duration(patience, "patience") / 1e6
    text = os.fspath(location)
    if text.startswith(("http://", "https://")):
        return _elsewhere(text, token if token is not None else os.environ.get("OXISEQ_TOKEN"), seconds)
    if token is not None:
        raise OxiseqError("token: a folder asks for none")
    return _here(Path(text), seconds)


def _elsewhere(address: str, token: str | None, patience: float) -> ServedStore:
    import httpx

    from oxiseq.served import ServedStore
    from oxiseq.served.knowledge import ServedKnowledge
    from oxiseq.served.wire import Wire

    headers = {} if token is None else {"authorization": f"Bearer {token}"}
    try:
        client = httpx.Client(base_url=address, headers=headers, timeout=httpx.Timeout(30.0, read=330.0))
    except (httpx.InvalidURL, ValueError) as error:
        raise OxiseqError(f"{address!r} is no address of a server: {error}") from error
    wire = Wire(client, patience)
    try:
        wire.send("GET", "streams")  # whether it is there, is one of ours, and lets us in
    except OxiseqError:
        wire.close()
        raise
    return ServedStore(address, wire, ServedKnowledge(wire), lambda: None)


def _here(folder: Path, patience: float) -> ServedStore:
    import httpx

    from oxiseq.live import LiveService
    from oxiseq.live.api import LiveRoutes
    from oxiseq.served import ServedStore
    from oxiseq.served.here import Here
    from oxiseq.served.wire import Wire
    from oxiseq.sparql.evaluation import Evaluations
    from oxiseq.sparql.settings import Limits

    with ExitStack() as opened:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            store = Store(str(folder))
        except OSError as error:
            raise not_opened(folder, error) from error
        opened.callback(store.close)
        service = opened.enter_context(LiveService(store, folder))
        client = httpx.Client(transport=Here(LiveRoutes(service, Evaluations(Limits()))), base_url="http://localhost")
        return ServedStore(str(folder), Wire(client, patience), store, opened.pop_all().close)
