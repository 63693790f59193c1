"""Commands over queries and files: `run`, `check`, `explain`, `translate`, `declare`, `test`, `why`, `compare`."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

import click

from oxiseq.cli.data import MESSAGES
from oxiseq.cli.options import (
    Duration,
    HistoryRequest,
    LanguageName,
    QueryFile,
    QuerySource,
    RunRequest,
    any_language_option,
    flag,
    flags,
    given_options,
    language_option,
    log_option,
    quiet_option,
)
from oxiseq.engine.extras import needed
from oxiseq.grammar import Finding
from oxiseq.grammar.declare import REFUSED, TEMPLATES, USUAL_LOG, EventLog, declare_query
from oxiseq.grammar.errors import as_values
from oxiseq.grammar.translating import translated_text
from oxiseq.options import HISTORY, LATE_POLICIES, OPTIONS, QUERY, RUN, SOURCES
from oxiseq.options.query_text import findings_of

if TYPE_CHECKING:
    from oxiseq.cli import explaining, running, sent
else:
    explaining = needed("oxiseq.cli.explaining")
    running = needed("oxiseq.cli.running")
    sent = needed("oxiseq.cli.sent")


# --- run -------------------------------------------------------------------------------------------------

FORMATS = ("table", "json", "csv", "tsv", "arrow", "parquet", "nquads", *MESSAGES)


@click.command("run", short_help="Run a query over events in files or in a server's folder.")
@click.argument("query", metavar="QUERY", type=QueryFile())
@click.option(
    "--stream",
    "-s",
    "streams",
    metavar="NAME=FILE",
    multiple=True,
    help="Events of a stream, by the query's name for it or its IRI; FILE alone if the query has one stream. "
    "N-Quads, TriG, RDF Messages (.gz too), Arrow or Parquet event tables; tables of rows: CSV, Arrow, "
    "Parquet.",
)
@log_option
@language_option
@click.option(
    "--kb",
    "-k",
    "kbs",
    metavar="[IRI=]FILE",
    multiple=True,
    help="Knowledge base: an RDF file (into the graph IRI, if given) or a store's folder; several are merged.",
)
@click.option("--format", "-f", "format_", type=click.Choice(FORMATS), help="Default: by OUTPUT's name, else table.")
@click.option("--output", "-o", type=click.Path(dir_okay=False, path_type=Path), help="Write to a file, not to stdout.")
@click.option(
    "--late",
    "late",
    metavar="warn|error|ignore|FILE",
    default=None,
    help=f"{OPTIONS['late'].help} A FILE gets them; its name gives the format, as in convert.",
)
@flags(QUERY, SOURCES, RUN, HISTORY, without=("limit", "late"))
@click.option("--sort", is_flag=True, help="Order matches of equal end time by the times of their events.")
@quiet_option
def run_command(
    query: QuerySource,
    streams: tuple[str, ...],
    location: Path | None,
    language: str | None,
    kbs: tuple[str, ...],
    format_: str | None,
    output: Path | None,
    late: str | None,
    sort: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Run a query over files of events, or over the events that a server has kept.

    QUERY is a file, or - for stdin. With --location the streams are those of the folder's log, by their IRIs, and the
    knowledge base is the folder's current store unless --kb is given; the server may be running.
    Files are sorted by time first; a pipe is a stream, read as it comes.
    Matches go to stdout in order of end time, a summary to stderr.
    CSV, TSV and JSON are the W3C's results formats, which have no column for the time: select (ENDTIME() AS ?time) to
    get one. nquads writes the graphs of a CONSTRUCT query as events, messages-... as RDF
    messages.
    A CEQL query gives time, start, end and positions, then the positions that each variable holds. Queries over windows
    (.rspql, .spectra, .rsepql) give rows in the order of the instants that emit them. EP-SPARQL rows in a table begin
    with start and end; a query that names no stream reads all given streams.

    \b
    oxiseq run rises.spaseq --stream S1=quotes.nq.gz --kb companies.ttl
    oxiseq run rises.spaseq -s S1=quotes.arrow -o rises.parquet
    oxiseq run sells.ceql -s Stock=trades.csv -f json
    oxiseq run averages.rspql -s readings.nq.gz --stream-operator RSTREAM
    oxiseq run rises.spaseq --location data --since 2024-05-01T10:00:00Z --until 2024-05-01T11:00:00Z
    """
    policy = late if late in LATE_POLICIES else None
    running.run_query(
        RunRequest(
            replace(query, chosen=language),
            streams,
            location,
            kbs,
            format_,
            output,
            None if late is None or policy else Path(late),
            sort,
            quiet,
            given_options({**options, "late": policy}),
            options["rules"],
        )
    )


# --- check -----------------------------------------------------------------------------------------------

_COLOURS = {"error": "red", "lint": "yellow"}


@click.command("check", short_help="Report errors and lints of queries, with line and column.")
@click.argument("queries", metavar="QUERY...", nargs=-1, required=True, type=QueryFile())
@any_language_option
@click.option("--json", "as_json", is_flag=True, help="One JSON list of findings on stdout.")
@click.pass_context
def check_command(ctx: click.Context, queries: tuple[QuerySource, ...], language: str | None, as_json: bool) -> None:
    """Report errors and lints of queries, with line and column.

    QUERY is a file, or - for stdin. Its ending gives the language: .ceql, .epsparql, .rspql, .spectra, .rsepql, and .rq
    or .sparql for a SPARQL query over the store; any other is SPAseq.

    The exit status is 1 if there is an error, 0 if there are only lints.
    """
    queries = tuple(replace(source, chosen=language) for source in queries)
    found = [(source, finding) for source in queries for finding in findings_of(source.text, source.language)]
    if as_json:
        click.echo(json.dumps([{"file": s.name, **as_values(f, s.text)} for s, f in found], indent=2))
    else:
        for source, finding in found:
            click.echo(shown(source, finding))
        errors = sum(f.severity == "error" for _, f in found)
        click.echo(
            f"{_count(len(queries), 'query', 'queries')}, {_count(errors, 'error', 'errors')}, "
            f"{_count(len(found) - errors, 'lint', 'lints')}",
            err=True,
        )
    if any(finding.severity == "error" for _, finding in found):
        ctx.exit(1)


def shown(source: QuerySource, found: Finding) -> str:
    """`file:line:column: error: message`, the line with a caret, the hint."""
    _, *below = str(found).removeprefix(found.message).split("\n")
    place = f"{source.name}:{found.line}:{found.column}"
    severity = click.style(found.severity, fg=_COLOURS[found.severity], bold=True)
    return "\n".join([f"{place}: {severity}: {found.message} [{found.code}]", *below[1:]])


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


# --- explain ---------------------------------------------------------------------------------------------


@click.command("explain", short_help="Show what a query compiles to; draw it.")
@click.argument("query", metavar="QUERY", type=QueryFile())
@any_language_option
@click.option(
    "--kb",
    "-k",
    "kbs",
    metavar="[IRI=]FILE",
    multiple=True,
    help="Knowledge base; with it, the number of rows of each GRAPH pattern is shown.",
)
@flag("rules")
@click.option("--dot", "form", flag_value="dot", help="The automaton, or the windows or operators, for Graphviz.")
@click.option("--json", "form", flag_value="json", help="All of it as JSON.")
@click.option(
    "--svg",
    metavar="FILE",
    type=click.File("w", encoding="utf-8", lazy=True),
    help="Write the picture to a file; - is standard output.",
)
@click.option("--upstream", is_flag=True, help="What a server in front of an endpoint sends there, as text or --json.")
def explain_command(
    query: QuerySource,
    language: str | None,
    kbs: tuple[str, ...],
    rules: tuple[QuerySource, ...],
    form: Literal["dot", "json"] | None,
    svg: IO[str] | None,
    upstream: bool,
) -> None:
    """Show what a query compiles to: its automaton, how each graph pattern is answered, what is kept in memory, and by
    which key its events can be partitioned, as on Spark.

    CEQL: the automaton, the conditions on each event, window, strategy and consumption.
    Queries over windows: the windows, events and patterns, and how the query is evaluated.
    EP-SPARQL: the operators and what each keeps, the rules in their strata.
    SPARQL over the store (.rq, .sparql): the operators and what is kept of the knowledge base.

    \b
    oxiseq explain rises.spaseq --kb companies.ttl
    oxiseq explain rises.spaseq --svg rises.svg
    oxiseq explain rises.spaseq --dot | dot -Tpng > rises.png
    oxiseq explain joined.rq --upstream
    """
    source = replace(query, chosen=language)
    if upstream:
        if form == "dot" or svg is not None or kbs:
            raise click.UsageError("--upstream goes with --json only")
        told = sent.sent(source, rules)
        click.echo(told.json() if form == "json" else str(told), nl=False)
        return
    explanation = explaining.explained(source, kbs, rules)
    click.echo(explaining.written(explanation, form or "text", svg), nl=False)


# --- translate -------------------------------------------------------------------------------------------


@click.command("translate", short_help="Show a query in another language.")
@click.argument("query", metavar="QUERY", type=QueryFile())
@click.option("--to", "to", type=LanguageName(), required=True, help="The language to show it in.")
@language_option
def translate_command(query: QuerySource, to: str, language: str | None) -> None:
    """Translate a query where another language can express it; otherwise say what it cannot express, and where.

    CEQL to SPAseq; RSP-QL, SPECTRA and RSEP-QL to each other; EP-SPARQL to RSEP-QL and back. Comments above the result
    say for which events the two agree.

    \b
    oxiseq translate sells.ceql --to spaseq
    """
    source = replace(query, chosen=language)
    with source.named():
        click.echo(translated_text(source.load(), to), nl=False)


# --- declare ---------------------------------------------------------------------------------------------


@click.command("declare", short_help="Write the query that finds violations of a process rule.")
@click.argument("template", metavar="[TEMPLATE", required=False)
@click.argument("activities", metavar="[A [B]]]", nargs=-1)
@click.option(
    "--within", metavar="DURATION", type=Duration(least=1), help="How long a response may take: 5s, 2h, PT5S."
)
@click.option("--end", metavar="ACTIVITY", help="The activity that ends every case.")
@click.option("--times", metavar="N", type=int, help="For `absence`: how many occurrences are too many.")
@click.option("--stream", metavar="IRI", default=USUAL_LOG.stream, show_default=True, help="The stream of the log.")
@click.option(
    "--case", metavar="IRI", default=USUAL_LOG.case, show_default=True, help="The predicate of an event's case."
)
@click.option(
    "--activity",
    metavar="IRI",
    default=USUAL_LOG.activity,
    show_default=True,
    help="The predicate of an event's activity.",
)
def declare_command(
    template: str | None,
    activities: tuple[str, ...],
    within: int | None,
    end: str | None,
    times: int | None,
    stream: str,
    case: str,
    activity: str,
) -> None:
    """Write the SPAseq query that finds violations of a process rule, from a template of Declare; without TEMPLATE,
    list the templates. A and B are activities: names, or IRIs (<...>, http:, https:, urn:). See
    docs/process-conformance.md.

    \b
    oxiseq declare response order ship --within 2d > late.spaseq
    oxiseq declare precedence pay ship --case http://shop.example/case
    """
    if template is None:
        click.echo(_listed(), nl=False)
        return
    log = EventLog(stream, case, activity)
    click.echo(declare_query(template, *activities, within=within, end=end, times=times, log=log), nl=False)


def _listed() -> str:
    """The templates, each with its arguments and its meaning, and those that are refused."""
    rows = []
    for each in TEMPLATES:
        bound = "(--within | --end)" if each.ends and each.timed else "--end" if each.ends else ""
        bound = "[--within]" if each.timed and not each.ends else "[--times]" if each.counts else bound
        rows.append((f"{each.name} {'A B'[: 2 * each.activities - 1]} {bound}".rstrip(), each.says))
    rows += [(name, why) for name, why in REFUSED.items()]
    width = max(len(usage) for usage, _ in rows)
    return "".join(f"{usage:<{width}}  {about}\n" for usage, about in rows)


# --- test ------------------------------------------------------------------------------------------------


@click.command("test", short_help="Run tests of queries (*.oxitest.toml).")
@click.argument("files", metavar="FILES...", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--only", "-k", metavar="TEXT", help="Run only cases whose name contains this.")
@click.option("--exitfirst", "-x", is_flag=True, help="Stop at the first failure.")
@click.option("--no-why", is_flag=True, help="Do not explain why matches are missing.")
@click.option("--quiet", "-q", is_flag=True, help="Only failures and the summary.")
@click.pass_context
def test_command(
    ctx: click.Context, files: tuple[Path, ...], only: str | None, exitfirst: bool, no_why: bool, quiet: bool
) -> None:
    """Run tests of queries.

    FILES end in .oxitest.toml, or are folders with such files. Each case has events, a query and the matches that it
    must find, at the end or at given times of the clock. The exit status is 1 if a case fails.

    \b
    oxiseq test alarms.oxitest.toml
    oxiseq test examples -k absence
    """
    if not explaining.run_tests(files, only, stop=exitfirst, why=not no_why, quiet=quiet):
        ctx.exit(1)


test_command.__test__ = False  # type: ignore[attr-defined]  # pytest collects functions by their names


# --- why -------------------------------------------------------------------------------------------------


@click.command("why", short_help="Explain why a query matches, and why not.")
@click.argument("query", metavar="QUERY", type=QueryFile())
@language_option
@click.option("--stream", "-s", "streams", metavar="NAME=FILE", multiple=True, help="Events of a stream, as in run.")
@log_option
@click.option("--kb", "-k", "kbs", metavar="[IRI=]FILE", multiple=True, help="Knowledge base, as in run.")
@flags(QUERY, SOURCES, HISTORY)
@click.option("--json", "form", flag_value="json", help="All of it as JSON.")
@click.option(
    "--prov", "form", flag_value="prov", help="Print which events and facts the matches come from, as PROV-O in TriG."
)
def why_command(
    query: QuerySource,
    language: str | None,
    streams: tuple[str, ...],
    location: Path | None,
    kbs: tuple[str, ...],
    form: str | None,
    **options: Any,
) -> None:
    """Explain why a query matches, and why not.

    SPAseq: for each graph pattern, how many events it saw and how many passed its constants, the pattern, each FILTER
    and the knowledge base; for the sequence, how many matches each prefix has. CEQL: for each event of the formula, how
    many events have its type and pass each condition; for the automaton, how many events complete each position. For
    both: which conditions of the first step without a match would let it match if left out one at a time, with the
    events that come closest.

    Queries over windows and EP-SPARQL: what the windows and streams hold, how many rows each pattern has, how many
    remain after each part of WHERE, and how many there would be without one condition of the first part that leaves
    none.

    SPARQL over the store (.rq, .sparql): the same over what the knowledge base holds.

    \b
    oxiseq why rises.spaseq --stream S1=quotes.nq --since 2024-05-01T10:00:00Z --until 2024-05-01T11:00:00Z
    oxiseq why rises.spaseq --location data --prov > matches.trig
    """
    request = HistoryRequest(streams, location, kbs, given_options(options))
    click.echo(explaining.tell_why(replace(query, chosen=language), request, form or "text"), nl=False)


# --- compare ---------------------------------------------------------------------------------------------


@click.command("compare", short_help="Compare a draft with a query: which matches it gains and loses.")
@click.argument("draft", metavar="DRAFT", type=QueryFile())
@click.option("--against", "-a", metavar="QUERY", type=QueryFile(), required=True, help="The current query.")
@language_option
@click.option(
    "--stream",
    "-s",
    "streams",
    metavar="NAME=FILE",
    multiple=True,
    help="Events of a stream, by IRI or by a name in either query.",
)
@log_option
@click.option("--kb", "-k", "kbs", metavar="[IRI=]FILE", multiple=True, help="Knowledge base, as in run.")
@flags(QUERY, SOURCES, HISTORY, without=("limit",))
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def compare_command(
    draft: QuerySource,
    against: QuerySource,
    language: str | None,
    streams: tuple[str, ...],
    location: Path | None,
    kbs: tuple[str, ...],
    as_json: bool,
    **options: Any,
) -> None:
    """Show the matches that DRAFT gains (+) and loses (-) compared with QUERY over the same events.

    Matches are compared by their time and by the variables that both queries select.

    \b
    oxiseq compare draft.spaseq --against rises.spaseq --stream S1=quotes.nq
    oxiseq compare draft.spaseq --against rises.spaseq --location data --since 2024-05-01
    """
    request = HistoryRequest(streams, location, kbs, given_options(options))
    draft, against = (replace(source, chosen=language) for source in (draft, against))
    click.echo(explaining.tell_difference(draft, against, request, as_json), nl=False)
