"""`oxiseq check`: errors and lints of queries, with their places."""

from __future__ import annotations

import json
from dataclasses import replace

import click

from oxiseq.cli.options import QueryFile, QuerySource, any_language_option
from oxiseq.grammar import Finding
from oxiseq.grammar.finding_tools import as_values
from oxiseq.options.query_text import findings_of

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
