"""What `oxiseq serve` does."""

from __future__ import annotations

import ipaddress
import select
import ssl
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias

import click
import numpy as np
from pyoxigraph import Store as RdfStore

from oxiseq.api.store import Store
from oxiseq.cli.settings import BRIDGES, SECOND, SINKS, ServeSettings, seconds
from oxiseq.engine.bounds import SERVED
from oxiseq.engine.errors import ExtraError, OxiseqError
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.kb_loader import open_kb
from oxiseq.kb_loader.coded import is_coded
from oxiseq.kb_loader.marker import not_opened
from oxiseq.warmup.first_run import is_warm

try:
    import flask

    from oxiseq.bridges import BridgeError, BridgeSettings
    from oxiseq.live import LiveService, LiveSettings
    from oxiseq.live.api import LiveRoutes
    from oxiseq.live.bridges import FOLDER, Bridges, Door
    from oxiseq.live.live_query import Budget
    from oxiseq.live.remote import RemoteKnowledge
    from oxiseq.options import room
    from oxiseq.options.addresses import networks_of
    from oxiseq.options.room import overlap
    from oxiseq.server import Answers, ServerSettings, Serving, Tokens, create_app
    from oxiseq.server.connections import raise_open_files
    from oxiseq.server.serving import log_to_stderr, share_arenas
    from oxiseq.server.settings import tls_context
    from oxiseq.sinks import Allowed, DeclaredSink
    from oxiseq.sparql import SparqlEndpoint
    from oxiseq.sparql.processes import InProcesses, Processes, Workers
    from oxiseq.sparql.settings import Limits, SparqlSettings
    from oxiseq.sparql.snapshots import Snapshots, Unchanging, in_memory, on_disk
    from oxiseq.sparql.upstream import RemoteKb, Upstream
except ModuleNotFoundError as error:
    missing = (error.name or "").partition(".")[0]
    raise ExtraError(missing, "server") from error


Tables: TypeAlias = Mapping[str, Mapping[str, Mapping[str, Any]]]
"""Of the settings' file: bridges and sinks, by name."""
_SWITCH: Final = 0.0005
"""Seconds after which a thread lets another one run: Python's 5 ms would add up in the time to a match."""


def serve(request: ServeSettings, tables: Tables) -> None:
    """Serve until SIGTERM or SIGINT, with these bridges and sinks. Raises OxiseqError."""
    sys.setswitchinterval(_SWITCH)
    log_to_stderr(request.log_format)
    share_arenas()
    raise_open_files()  # before the store opens: it takes as many as it sees
    with ExitStack() as opened:
        app, settings, live = application_of(request, opened, tables)
        ending = live.service.end_subscriptions if live is not None else None
        serving = Serving(app, settings, ending)
        serving.stop_on_signals()
        _warn(request)
        click.echo(f"listening at {serving.address}", err=True)
        serving.run()
    click.echo("stopped", err=True)


def application_of(
    request: ServeSettings, opened: ExitStack, tables: Tables
) -> tuple[flask.Flask, ServerSettings, LiveRoutes | None]:
    """What is served, closed with `opened`. Raises OxiseqError."""
    tokens = Tokens(request.read_token, request.write_token, request.token_lines, request.tokens)
    settings = ServerSettings(
        *request.bind,
        request.cors,
        tokens,
        request.max_body,
        request.threads,
        request.subscribers,
        connections=request.connections,
        allowed_hosts=request.allowed_host,
        tls=_tls(request),
        behind_proxy=request.behind_proxy,
    )
    endpoint = endpoint_of(request, opened)
    if isinstance(endpoint, Upstream):
        opened.callback(endpoint.close)
    live = _live(request, endpoint, opened, tables)
    return create_app(endpoint, settings, live), settings, live


def _tls(request: ServeSettings) -> ssl.SSLContext | None:
    """Raises OxiseqError for a certificate that cannot be used."""
    if request.tls_cert is not None:
        return tls_context(request.tls_cert, request.tls_key)
    if request.tls_key is not None:
        raise OxiseqError("--tls-key is without its certificate: --tls-cert says where that is")
    return None


def _live(request: ServeSettings, endpoint: Answers, opened: ExitStack, tables: Tables) -> LiveRoutes | None:
    """Streams and queries beside what may be written to. Raises JournalError, OxiseqError."""
    knowledge = RemoteKnowledge(RemoteKb(endpoint)) if isinstance(endpoint, Upstream) else store_of(endpoint)
    if knowledge is None or request.read_only:
        if tables:
            raise OxiseqError(f"a server that only reads has no streams, hence no {' and no '.join(tables)}")
        return None
    folder = request.location
    if folder is None:
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="oxiseq-")))
    folder.mkdir(parents=True, exist_ok=True)
    durability = request.durability if request.location is not None else "normal"
    budget = Budget(request.max_state_records or None, request.max_state_bytes or None, request.on_state_limit)
    bridges = _bridges(tables.get(BRIDGES, {}), folder)
    settings = LiveSettings(
        subscribers=request.subscribers,
        queries=request.max_queries,
        streams=request.max_streams,
        sinks=request.max_sinks,
        idle=seconds(request.stream_idle),
        retention=request.retention,
        ahead=request.max_ahead or None,
        budget=budget,
        bounds=replace(SERVED, matches=request.instant_matches, rows=request.instant_matches),
        graphs=request.event_triples,
        unasked=request.event_triples_for / SECOND,
        refresh=seconds(request.upstream_refresh),
        union=request.union_default_graph,
        asking=seconds(request.timeout),
        sinks_allowed=Allowed.of(request.sink_host, request.sink_network, request.sink_folder, request.sink_secrets),
        sinks_spare=_spare(request, bridges),
        sinks_declared=tuple(DeclaredSink.of(given, name) for name, given in tables.get(SINKS, {}).items()),
    )
    service = opened.enter_context(LiveService(knowledge, folder, settings, durability))
    if isinstance(endpoint, Upstream):
        assert isinstance(knowledge, RemoteKnowledge)
        endpoint.on_written = knowledge.written
    assert isinstance(endpoint, SparqlEndpoint | Upstream)
    service.prepare(_load)
    routes = LiveRoutes(service, endpoint.evaluations)
    endpoint.offer(routes.services)
    if bridges:
        service.bridges = _into_streams(bridges, routes)
        service.bridges.start()
        opened.callback(service.bridges.stop)
    return routes


def _load() -> None:
    """All kernels are compiled, and Numba is ready for the first one, which takes it a twentieth of a second."""
    if not is_warm():
        from oxiseq.warmup.first_run import warm_up  # noqa: PLC0415  a server that is warm need not load it

        warm_up()
    TermDictionary().texts(np.zeros(0, np.int64))


def _bridges(declared: Mapping[str, Mapping[str, Any]], folder: Path) -> dict[str, BridgeSettings]:
    """Their settings. Raises BridgeError, also for two that note their positions in one file, or one that writes into a
    file that another one follows."""
    made: dict[str, BridgeSettings] = {}
    for name, given in declared.items():
        settings = BridgeSettings.of(given, folder / FOLDER, name)
        for other, theirs in made.items():
            for one, another in ((settings, theirs), (theirs, settings)):
                followed = [] if another.followed is None else [another.followed]
                if (clash := _clash([one.position], [another.position, another.dead_letter, *followed])) or (
                    clash := _clash([one.dead_letter], followed)
                ):
                    raise BridgeError(f"the bridges {other} and {name} both use {clash}: each needs a file of its own")
        made[name] = settings
    return made


def _clash(written: Sequence[Path | None], used: Sequence[Path | None]) -> Path | None:
    """The first path that two lists have in common."""
    pairs = ((one, other) for one in written if one is not None for other in used if other is not None)
    return next((one for one, other in pairs if overlap(one, other)), None)


def _spare(request: ServeSettings, bridges: Mapping[str, BridgeSettings]) -> tuple[Path, ...]:
    """Files of the server, to which no sink writes."""
    found = [request.tokens, request.tls_cert, request.tls_key, request.sink_secrets]
    for each in bridges.values():
        found += [each.followed, each.position, each.dead_letter]
    return tuple(path for path in found if path is not None)


def _into_streams(bridges: Mapping[str, BridgeSettings], routes: LiveRoutes) -> Bridges:
    """Into streams, which are made where they are missing. Raises BridgeError, ExtraError, OxiseqError."""
    for each in bridges.values():
        routes.service.streams.create(each.into)
    return Bridges(routes.service.journal, Door(routes.begin_push, routes.end_push), bridges)


def store_of(endpoint: Answers) -> Store | None:
    """The store behind an endpoint of ours."""
    store = endpoint.store if isinstance(endpoint, SparqlEndpoint) else None
    return store if isinstance(store, Store) else None


def limits_of(request: ServeSettings) -> Limits:
    """Of an answer."""
    return Limits(
        seconds=seconds(request.timeout),
        rows=request.max_rows,
        body=request.max_body,
        running=2 * request.threads,
        memory=request.query_memory,
    )


def endpoint_of(request: ServeSettings, opened: ExitStack) -> Answers:
    """What answers: a store, or another endpoint; its processes end with `opened`. Raises OxiseqError."""
    settings = SparqlSettings(
        request.read_only,
        request.union_default_graph,
        request.allow_service,
        request.allow_load,
        limits_of(request),
        networks_of(request.load_network),
    )
    if request.upstream is not None:
        return Upstream(request.upstream, settings, token=request.upstream_token)
    folder = None if request.read_only else request.location
    store = Store(inner=_store(request), folder=folder)
    if folder is not None:
        store.hold_reserve()
        opened.callback(room.let_go, folder)
    processes = _processes(request, store, opened)
    if processes is not None:
        store.ask_by(partial(InProcesses, processes))
        opened.callback(store.ask_by, None)
    return SparqlEndpoint(store, settings, processes)


def _processes(request: ServeSettings, store: Store, opened: ExitStack) -> Processes | None:
    """Where queries are evaluated that cannot be ended otherwise."""
    if not hasattr(select, "poll"):  # Windows: there they are evaluated here
        return None
    made = Processes(Workers(request.query_memory), _snapshots(request, store))
    opened.callback(made.close)
    return made


def _snapshots(request: ServeSettings, store: Store) -> Snapshots:
    if request.location is None or is_coded(request.location):
        return in_memory(store)
    return Unchanging(request.location) if request.read_only else on_disk(store, request.location)


def _store(request: ServeSettings) -> RdfStore:
    if request.location is None:
        return RdfStore()
    if request.read_only:
        return open_kb(request.location)
    if request.location.is_dir() and room.lacking(request.location):
        room.let_go(request.location)  # a server that was killed held it: to open the store takes room
    try:
        return RdfStore(str(request.location))
    except OSError as error:
        raise not_opened(request.location, error) from error


def _warn(request: ServeSettings) -> None:
    """Open to others without a token is allowed, but not silently."""
    host, _ = request.bind
    guarded = request.write_token is not None or request.tokens is not None or request.token_lines
    if not guarded and not request.read_only and not _is_loopback(host):
        click.echo(f"warning: {host} can be reached by others, and neither --write-token nor --tokens is set", err=True)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
