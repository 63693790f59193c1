"""The work of `oxiseq explain`, `why`, `compare` and `test`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import IO, Any, Final, Literal

import click

from oxiseq.api.comparison import compared
from oxiseq.api.store import Store
from oxiseq.cli.options import HistoryRequest, QuerySource
from oxiseq.cli.progress import counted, lines, working
from oxiseq.cli.running import check_place, check_span, checked_kb, combined, kb_for, kept_events, stream_files, told
from oxiseq.grammar.languages import STANDING, AnyQuery
from oxiseq.grammar.over_store import load_over_store
from oxiseq.languages.explanation import Explanation
from oxiseq.languages.reasons.read import Span, reading_of
from oxiseq.languages.reasons.report import SHOWN, Why, WhyRequest
from oxiseq.languages.reasons.where.subject import why_over_store
from oxiseq.languages.registry import language_for
from oxiseq.options import HISTORY, QUERY, SOURCES, Options, fitting, said_as_data
from oxiseq.sources.knowledge import Kb, kb_store, knowledge_of
from oxiseq.testing.cases import ENDING
from oxiseq.testing.run import each_result, failure_text
from oxiseq.testing.words import TestFileError

# --- explain ---------------------------------------------------------------------------------------------


@working("compiling", quiet=False)
def explained(source: QuerySource, kbs: Sequence[str], rules: Sequence[QuerySource] = ()) -> Explanation:
    """The explanation. Raises QueryError, KbError, LimitError."""
    if source.language == STANDING:
        with source.named():
            return Store(inner=kb_store(combined(kbs))).register(source.text, language=STANDING).explain()
    query = source.load()
    language = language_for(query)
    checked_kb(language, kbs)
    with source.named():
        given = said_as_data(language.name, {"rules": [rule.text for rule in rules]})
        return language.explain(query, combined(kbs), given.rules)


def written(explanation: Explanation, form: Literal["text", "dot", "json"], svg: IO[str] | None) -> str:
    """The explanation on the terminal; with `svg` the picture goes there, and no text is written."""
    if svg is not None:
        svg.write(explanation.svg() + "\n")
        return ""
    if form == "json":
        return json.dumps(explanation.json(), indent=2, ensure_ascii=False) + "\n"
    return explanation.dot() if form == "dot" else str(explanation)


# --- why, compare ----------------------------------------------------------------------------------------

_DOORS: Final = (QUERY, SOURCES, HISTORY)


@working("looking back", quiet=False)
def tell_why(source: QuerySource, request: HistoryRequest, form: str) -> str:
    """`text`, `json` or `prov`. Raises OxiseqError and click's usage errors."""
    why = _why_over_store(source, request) if source.language == STANDING else _why_over_streams(source, request)
    if form == "json":
        return json.dumps(why.to_json(), indent=2, ensure_ascii=False) + "\n"
    return why.to_prov() if form == "prov" else str(why)


def _why_over_store(source: QuerySource, request: HistoryRequest) -> Why:
    given = [*(["stream"] if request.streams else []), *(name for name in request.given if name != "limit")]
    if of_events := [f"--{name.replace('_', '-')}" for name in given]:
        raise click.UsageError(f"a query over the store reads no events: leave out {', '.join(of_events)}")
    with source.named():
        query = load_over_store(source.text)
        kb = knowledge_of(kb_for(request.kbs, request.location, asks_kb=True))
        return why_over_store(query, kb, request.given.get("limit", SHOWN))


def _why_over_streams(source: QuerySource, request: HistoryRequest) -> Why:
    query = source.load()
    language = language_for(query)
    checked_kb(language, request.kbs)
    with source.named():
        options = said_as_data(language.name, request.given, _DOORS, told(request.streams))
    with source.named(), _streams(request, [query], options) as (streams, kb):
        options = replace(options, reads=options.reads or tuple(streams))
        read = language.driver(query, None, options).streams.values()
        reading = reading_of(options, None if request.location is None else Span())
        mine = {iri: events for iri, events in streams.items() if iri in read}
        return language.why(query, mine, kb, options, WhyRequest(reading, options.limit))


@working("running both queries", quiet=False)
def tell_difference(draft: QuerySource, against: QuerySource, request: HistoryRequest, as_json: bool) -> str:
    """Gained and lost. Raises OxiseqError and click's usage errors."""
    queries = draft.load(), against.load()
    options = said_as_data(language_for(queries[1]).name, request.given, _DOORS, told(request.streams))
    check_span(request.location, options)
    with _streams(request, queries, options) as (streams, kb):
        options = replace(options, reads=options.reads or tuple(streams))
        found = compared(*queries, streams, kb, options, fitting(language_for(queries[0]).name, options))
    return json.dumps(found.to_json(), indent=2, ensure_ascii=False) + "\n" if as_json else str(found)


@contextmanager
def _streams(
    request: HistoryRequest, queries: Sequence[AnyQuery], options: Options
) -> Iterator[tuple[Mapping[str, Any], Kb]]:
    """Stream IRI → its events, and the knowledge base: the folder's where none is named."""
    check_place(request.streams, request.location)
    kb = kb_for(request.kbs, request.location, all(language_for(query).asks_kb for query in queries))
    if request.location is None:
        yield stream_files(request.streams, _names(queries, options)), kb
        return
    with kept_events(request.location, options) as streams:
        yield streams, kb


def _names(queries: Sequence[AnyQuery], options: Options) -> dict[str, str]:
    """Name → IRI of all streams of the queries; a name that means two streams is none."""
    names: dict[str, str] = {}
    for query in queries:
        language = language_for(query)
        for name, iri in language.driver(query, None, fitting(language.name, options)).streams.items():
            if names.setdefault(name, iri) != iri:
                raise click.UsageError(f"the queries mean different streams by {name}: give --stream by IRI")
    return names


# --- test ------------------------------------------------------------------------------------------------


@lines(lambda: "running the cases", quiet=False)
def run_tests(given: Sequence[Path], only: str | None, *, stop: bool, why: bool, quiet: bool) -> bool:
    """Runs the cases and reports each; returns whether all passed. Raises TestFileError, QueryError, KbError."""
    begun, passed, failed, last = perf_counter(), 0, 0, None
    for path, result in each_result(list(_files(given)), lambda case: only is None or only in case.name):
        if path != last and not quiet:
            click.echo(str(path))
        last = path
        if result.passed:
            passed += 1
            if not quiet:
                click.echo(f"  {click.style('pass', fg='green')}  {result.case.name}")
            continue
        failed += 1
        name = f"{path}: {result.case.name}" if quiet else result.case.name
        click.echo(f"  {click.style('FAIL', fg='red', bold=True)}  {name}")
        click.echo("".join(f"        {line}\n" for line in failure_text(result, why=why).split("\n")), nl=False)
        if stop:
            break
    click.echo(f"{passed} passed, {failed} failed, {perf_counter() - begun:.1f} s", err=True)
    if not passed and not failed:
        raise TestFileError(f"no case was run: {counted(len(given), 'name', 'names')} given")
    return not failed


def _files(given: Sequence[Path]) -> Iterator[Path]:
    for path in given:
        if path.is_dir():
            yield from sorted(path.rglob(f"*{ENDING}"))
        else:
            yield path
