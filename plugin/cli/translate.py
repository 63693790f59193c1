"""`oxiseq translate`: a query in another language."""

from __future__ import annotations

from dataclasses import replace

import click

from oxiseq.cli.options import LanguageName, QueryFile, QuerySource, language_option
from oxiseq.grammar.translating import translated_text


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
