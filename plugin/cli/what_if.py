"""`oxiseq what-if`: a draft beside a query."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from oxiseq.cli.options import GENERATED_AT, Duration, QueryFile, QuerySource, Time, time_unit_option
from oxiseq.cli.request import HistoryRequest, TimeUnit
from oxiseq.grammar.languages import LANGUAGES
from oxiseq.importing import loading


@click.command("what-if", short_help="Tell which matches a draft gains and loses.")
@click.argument("draft", metavar="DRAFT", type=QueryFile())
@click.option("--against", "-a", metavar="QUERY", type=QueryFile(), required=True, help="The query as it is.")
@click.option("--language", type=click.Choice(LANGUAGES),
              help="Of both queries. [default: what each file's ending says, else spaseq]")  # fmt: skip
@click.option("--stream", "-s", "streams", metavar="NAME=FILE", multiple=True,
              help="Events of a stream, by IRI or by a name in either query.")  # fmt: skip
@click.option("--location", "-l", metavar="DIR", type=click.Path(exists=True, file_okay=False, path_type=Path),
              help="Instead of files: the events that the server of this folder has kept.")  # fmt: skip
@click.option("--kb", "-k", "kbs", metavar="[IRI=]FILE", multiple=True, help="Knowledge base, as in run.")
@click.option("--from", "begin", metavar="TIME", type=Time(), help="With --location: only events from then on.")
@click.option("--to", "end", metavar="TIME", type=Time(), help="With --location: only events before that.")
@click.option("--start", metavar="TIME", type=Time(), help="Where tumbling windows begin.")
@click.option("--lateness", metavar="DURATION", type=Duration(), default="0s",
              help="How much a stream may be out of order.")  # fmt: skip
@click.option("--type-column", metavar="NAME", default="type", show_default=True, help="CEQL, as in run.")
@click.option("--time-column", metavar="NAME", default="time", show_default=True, help="CEQL, as in run.")
@time_unit_option
@click.option("--rules", metavar="FILE", multiple=True, type=QueryFile(), help="EP-SPARQL, as in run; of both queries.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def what_if_command(
    draft: QuerySource, against: QuerySource, language: str | None, streams: tuple[str, ...], location: Path | None,
    kbs: tuple[str, ...], begin: int | None, end: int | None, start: int | None, lateness: int, type_column: str,
    time_column: str, time_unit: TimeUnit | None, rules: tuple[QuerySource, ...], as_json: bool,
) -> None:  # fmt: skip
    """The matches that DRAFT gains (+) and loses (-) against QUERY over the same events.

    Rows are compared by their time and by the variables that both queries answer.

    \b
    oxiseq what-if draft.spaseq --against rises.spaseq --stream S1=quotes.nq
    oxiseq what-if draft.spaseq --against rises.spaseq --location data --from 2024-05-01
    """
    with loading():
        from oxiseq.cli.history import tell_difference  # noqa: PLC0415  loads the engine: see __init__.py

    request = HistoryRequest(streams, location, kbs, begin, end, start, lateness, GENERATED_AT,
                             (type_column, time_column, time_unit), rules=rules)  # fmt: skip
    draft, against = (replace(source, chosen=language) for source in (draft, against))
    click.echo(tell_difference(draft, against, request, as_json), nl=False)
