"""Servers for tests: ours on a thread, the real `oxigraph` as a process; ports are free ones."""

from __future__ import annotations

import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from http_client import ask

from oxiseq.api.store import Store
from oxiseq.live.api import LiveRoutes
from oxiseq.server import ServerSettings, Serving, create_app
from oxiseq.server.app import Answers
from oxiseq.sparql import SparqlEndpoint, SparqlSettings

NO_OXIGRAPH = "the package oxigraph (the real server) is not installed"


@contextmanager
def served(endpoint: Answers, settings: ServerSettings | None = None, live: LiveRoutes | None = None) -> Iterator[str]:
    """The address of a server on a thread, stopped afterwards."""
    chosen = settings if settings is not None else ServerSettings(port=0, threads=8)
    ending = live.service.end_subscriptions if live is not None else None
    serving = Serving(create_app(endpoint, chosen, live), chosen, ending)
    thread = threading.Thread(target=serving.run)
    thread.start()
    try:
        yield serving.address
    finally:
        serving.stop()
        thread.join(30)
        assert not thread.is_alive()


@contextmanager
def ours(settings: SparqlSettings | None = None, store: Store | None = None) -> Iterator[str]:
    """Our server over a store in memory."""
    with served(SparqlEndpoint(store if store is not None else Store(), settings)) as address:
        yield address


def oxigraph_program() -> Path | None:
    """The real server's program, if its package is installed."""
    try:
        files = distribution("oxigraph").files or []
    except PackageNotFoundError:
        return None
    found = [Path(str(file.locate())) for file in files if file.name in ("oxigraph", "oxigraph.exe")]
    # `pip install --target` moves scripts to bin/ beside the package without noting it
    moved = [Path(str(distribution("oxigraph").locate_file("bin/oxigraph")))]
    return next((path.resolve() for path in found + moved if path.is_file()), None)


@contextmanager
def real() -> Iterator[str]:
    """The real `oxigraph serve`, in memory."""
    program = oxigraph_program()
    assert program is not None
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    command = [str(program), "serve", "--bind", f"127.0.0.1:{port}"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            _wait(address, process)
            yield address
        finally:
            process.terminate()


def _wait(address: str, process: subprocess.Popen[bytes]) -> None:
    for _ in range(200):
        assert process.poll() is None, "oxigraph has ended"
        try:
            ask(address, "GET", "/query")
            return
        except OSError:
            time.sleep(0.05)
    raise AssertionError("oxigraph does not answer")
