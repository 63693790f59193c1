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
    """A query in another language, where its meaning can be kept; else what cannot be, with its place.

    CEQL to SPAseq; RSP-QL, SPECTRA and RSEP-QL to each other; EP-SPARQL to RSEP-QL and back. Comments above the text
    say on which events it means the same.

    \b
    oxiseq translate sells.ceql --to spaseq
    """
    source = replace(query, chosen=language)
    with source.named():
        click.echo(translated_text(source.load(), to), nl=False)
