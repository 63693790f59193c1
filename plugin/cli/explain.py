"""`oxiseq explain`: what a query is compiled to."""

from __future__ import annotations

from dataclasses import replace
from typing import IO, Literal

import click

from oxiseq.cli.options import QueryFile, QuerySource, any_language_option, flag
from oxiseq.warmup.importing import loading


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
        with loading():
            from oxiseq.cli.sent import sent  # noqa: PLC0415  as below

        told = sent(source, rules)
        click.echo(told.json() if form == "json" else str(told), nl=False)
        return
    with loading():
        from oxiseq.cli.explaining import explained, written  # noqa: PLC0415  loads the engine: see __init__.py

    explanation = explained(source, kbs, rules)
    click.echo(written(explanation, form or "text", svg), nl=False)
