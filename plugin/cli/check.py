"""`oxiseq check`: errors and lints of queries, with their places."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import click

from oxiseq.cli.options import QueryFile, QuerySource, any_language_option
from oxiseq.grammar import Finding, QueryError, parse
from oxiseq.grammar.languages import STANDING
from oxiseq.grammar.over_store import check_over_store
from oxiseq.options.query_text import QueryText

_COLOURS = {"error": "red", "lint": "yellow"}


@click.command("check", short_help="Tell errors and lints of queries, with their places.")
@click.argument("queries", metavar="QUERY...", nargs=-1, required=True, type=QueryFile())
@any_language_option
@click.option("--json", "as_json", is_flag=True, help="One JSON list of findings on stdout.")
@click.pass_context
def check_command(
    ctx: click.Context, queries: tuple[QuerySource, ...], language: str | None, as_json: bool
) -> None:
    """Errors and lints of queries, with their places.

    QUERY is a file (.ceql, .epsparql, .rspql, .spectra, .rsepql, and .rq or .sparql for SPARQL that stands over the
    store, tell the language, any other ending SPAseq), or - for stdin.

    The exit status is 1 if there is an error, 0 if there are only lints.
    """
    queries = tuple(replace(source, chosen=language) for source in queries)
    found = [(source, finding) for source in queries for finding in findings(source)]
    if as_json:
        click.echo(json.dumps([as_values(source, finding) for source, finding in found], indent=2))
    else:
        for source, finding in found:
            click.echo(shown(source, finding))
        errors = sum(f.severity == "error" for _, f in found)
        click.echo(f"{_count(len(queries), 'query', 'queries')}, {_count(errors, 'error', 'errors')}, "
                   f"{_count(len(found) - errors, 'lint', 'lints')}", err=True)  # fmt: skip
    if any(finding.severity == "error" for _, finding in found):
        ctx.exit(1)


def findings(source: QuerySource) -> tuple[Finding, ...]:
    """What is wrong with a query: the one syntax error, or all that the checks find."""
    if source.language != STANDING:
        return QueryText.of(source.text, source.language).check()
    try:
        return tuple(check_over_store(parse(source.text, "rspql"), source.text))
    except QueryError as error:
        return (error.to_finding(),)


def as_values(source: QuerySource, found: Finding) -> dict[str, Any]:
    """A finding as JSON values: the file, then what grammar/errors.py writes, with the end's line and column."""
    values = found.to_json()
    before = source.text[: values["end"]]
    values["end_line"] = before.count("\n") + 1
    values["end_column"] = len(before) - (before.rfind("\n") + 1) + 1
    return {"file": source.name, **values}


def shown(source: QuerySource, found: Finding) -> str:
    """`file:line:column: error: message`, the line with a caret, the hint."""
    _, *below = str(found).removeprefix(found.message).split("\n")
    place = f"{source.name}:{found.line}:{found.column}"
    severity = click.style(found.severity, fg=_COLOURS[found.severity], bold=True)
    return "\n".join([f"{place}: {severity}: {found.message} [{found.code}]", *below[1:]])


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"
