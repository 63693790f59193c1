"""`oxiseq explain`: what a query is compiled to."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import click

from oxiseq.cli.options import QueryFile, QuerySource, language_option


@click.command("explain")
@click.argument("query", metavar="QUERY", type=QueryFile())
@language_option
@click.option(
    "--kb", "-k", "kbs", metavar="[IRI=]FILE", multiple=True,
    help="Knowledge base: with it the rows of the GRAPH patterns are told.",
)  # fmt: skip
@click.option("--rules", metavar="FILE", multiple=True, type=QueryFile(),
              help="EP-SPARQL: a CONSTRUCT rule; may be repeated.")  # fmt: skip
@click.option("--dot", "form", flag_value="dot", help="The automaton for Graphviz.")
@click.option("--json", "form", flag_value="json", help="All of it as JSON.")
def explain_command(
    query: QuerySource, language: str | None, kbs: tuple[str, ...], rules: tuple[QuerySource, ...],
    form: Literal["dot", "json"] | None,
) -> None:
    """What a query is compiled to: its automaton, how each graph pattern is answered, what is remembered.

    Of a CEQL query: its automaton, what is asked of each event, window, strategy, consumption.
    Of an EP-SPARQL query: its operators and what each keeps, its rules in their strata.

    \b
    oxiseq explain rises.spaseq --kb companies.ttl
    oxiseq explain rises.spaseq --dot | dot -Tsvg > rises.svg
    """
    from oxiseq.cli.explaining import explained  # noqa: PLC0415  loads the engine: see __init__.py

    click.echo(explained(replace(query, chosen=language), kbs, form or "text", rules), nl=False)
