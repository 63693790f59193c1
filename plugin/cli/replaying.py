"""The work of `oxiseq replay`: `run`, over the event log instead of files."""

from __future__ import annotations

from dataclasses import replace

from oxiseq.cli.request import ReplayRequest
from oxiseq.cli.running import run_query
from oxiseq.journal import FILE_NAME, Journal, LogSource
from oxiseq.languages.registry import language_for


def replay_log(request: ReplayRequest) -> None:
    """Answer the query. Raises OxiseqError and click's usage errors."""
    location, run = request.location, request.run
    asks_kb = language_for(run.query.load()).asks_kb
    if asks_kb and not run.kbs and (location / "CURRENT").exists():  # every RocksDB folder has that file
        run = replace(run, kbs=(str(location),))
    with Journal(location / FILE_NAME, read_only=True) as journal:
        streams = [stream.iri for stream in journal.streams.all()]
        span = [(name, time) for name, time in (("since", request.since), ("until", request.until)) if time is not None]
        place = [f"--location={location}", *(f"--{name}={time}" for name, time in span)]
        run_query(run, {iri: LogSource(journal, iri, request.since, request.until) for iri in streams}, place)
