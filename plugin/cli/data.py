"""Commands that bring events and knowledge into other forms: `oxiseq convert`, `import`, `mapping`, `load`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from oxiseq.cli.options import Duration, Iri, flag, quiet_option
from oxiseq.engine.extras import needed

if TYPE_CHECKING:
    from oxiseq.cli import loading
    from oxiseq.mappings import declared
else:
    loading = needed("oxiseq.cli.loading")
    declared = needed("oxiseq.mappings.declared")


# --- convert ---------------------------------------------------------------------------------------------

MESSAGES = ("messages-nquads", "messages-trig", "messages-ntriples", "messages-turtle", "messages-ndjsonld")
FORMATS = ("nquads", "trig", "jelly", "arrow", "parquet", *MESSAGES)


@click.command("convert", short_help="Write events in another format.")
@click.argument("source", metavar="IN", type=click.Path(path_type=Path))
@click.argument("target", metavar="OUT", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--from", "source_format", type=click.Choice(FORMATS), help="Default: by IN's name.")
@click.option("--to", "target_format", type=click.Choice(FORMATS), help="Default: by OUT's name.")
@flag("time_predicate", usual=True)
@flag("on_error", usual=True)
@quiet_option
def convert_command(**given: Any) -> None:
    """Convert events between N-Quads, TriG, RDF Messages (.gz too), Arrow and Parquet event tables.

    Files that end in .nt, .ttl and .ndjsonld hold RDF Messages, and so do N-Quads and TriG that announce them; --to
    messages-nquads and --to messages-trig write these.

    Event tables load without parsing: convert a file that you read often.

    \b
    oxiseq convert quotes.nq.gz quotes.arrow
    """
    loading.convert_events(**given)


# --- import ----------------------------------------------------------------------------------------------


@click.command("import", short_help="Turn raw logs into event tables in time order.")
@click.argument("sources", metavar="SOURCE...", nargs=-1, required=True)
@click.option(
    "--output",
    "-o",
    metavar="DIR",
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="The folder for the tables; the log may continue after tables that are there already.",
)
@click.option(
    "--mapping",
    "-m",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="For tables: a SPARQL CONSTRUCT query that makes each row's graph from its columns, or (.json) "
    "file, a mapping as a stream has one.",
)
@click.option(
    "--time",
    default="time",
    show_default=True,
    metavar="COLUMN",
    help="For tables: the column of times: timestamps, xsd:dateTime or integers.",
)
@flag("time_unit")
@click.option(
    "--every",
    default="1h",
    show_default=True,
    metavar="DURATION",
    type=Duration(least=1),
    help="The span of time in one file: 5m, 1h, 1d or PT1H.",
)
@click.option(
    "--to",
    "format",
    type=click.Choice(["parquet", "arrow"]),
    default="parquet",
    show_default=True,
    help="The tables' format.",
)
@click.option(
    "--engine",
    type=click.Choice(["plain", "spark"]),
    default="plain",
    show_default=True,
    help="Run in this process, or on Spark; on a cluster every worker must see sources and output.",
)
@click.option("--master", metavar="URL", default="local[*]", show_default=True, help="Spark's master.")
@click.option("--memory", metavar="SIZE", default="2g", show_default=True, help="Java memory of Spark.")
@flag("time_predicate", usual=True)
@quiet_option
def import_command(**given: Any) -> None:
    """Turn raw logs into event tables in time order, one file per hour, for `run --stream S=DIR`.

    SOURCE is a file, a folder or a glob: N-Quads, TriG, RDF Messages and event tables; with a mapping also CSV, TSV,
    Parquet and JSON Lines whose rows are events. Bad rows, and rows too late for a file that is already written, go to
    a quarantine folder beside the output.

    \b
    oxiseq import logs/*.csv --mapping quote.rq --output quotes
    oxiseq run rises.spaseq --stream S=quotes
    """
    loading.arrange_events(**given)


# --- mapping ---------------------------------------------------------------------------------------------


@click.group("mapping", short_help="Suggest and try mappings of rows to events; fetch contexts.")
def mapping_command() -> None:
    """Mappings turn rows of CSV, JSON and the like into events: see docs/mappings.md."""


@mapping_command.command("try", short_help="Show the first events that a mapping makes of a file.")
@click.argument("file", metavar="FILE", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--mapping",
    "-m",
    metavar="FILE|NAME",
    required=True,
    help="A CONSTRUCT query, or (.json) a mapping, or the name of a ready one.",
)
@click.option(
    "--first",
    "-n",
    metavar="N",
    default=3,
    show_default=True,
    type=click.IntRange(1, 1000),
    help="How many events are shown.",
)
def try_command(file: Path, mapping: str, first: int) -> None:
    """Show the first events that a mapping makes of a table (CSV, TSV, JSON, JSON Lines, Parquet), the rows that it
    rejects, and its variables that are no columns. The exit status is 1 if there are any of these, or no event.

    \b
    oxiseq mapping try readings.csv --mapping readings.json
    """
    if not loading.shown(file, mapping, first):
        raise SystemExit(1)


@mapping_command.command("suggest", short_help="Print a first mapping for a table.")
@click.argument("file", metavar="FILE", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def suggest_command(file: Path) -> None:
    """Print a first mapping for a table (CSV, TSV, JSON, JSON Lines, Parquet): each column a predicate, with the type
    that all of its texts have. Texts as 007 stay texts. Read it, correct it, and try it.

    \b
    oxiseq mapping suggest readings.csv > readings.json
    """
    click.echo(json.dumps(loading.suggested_for(file), ensure_ascii=False, indent=2))


@mapping_command.command("fetch", short_help="Fetch the JSON-LD contexts of a mapping, and print it.")
@click.argument("file", metavar="FILE", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def fetch_command(file: Path) -> None:
    """Fetch the contexts of a mapping that are null, and print the mapping with them. A server fetches none itself.

    \b
    echo '{"contexts": {"https://www.w3.org/ns/activitystreams": null}}' > wanted.json
    oxiseq mapping fetch wanted.json > mapping.json
    """
    click.echo(
        json.dumps(declared.StreamMapping.fetching(loading.json_of(file)).as_data(), ensure_ascii=False, indent=2)
    )


# --- load ------------------------------------------------------------------------------------------------


@click.command("load", short_help="Load a big knowledge base into a store.")
@click.argument("sources", metavar="SOURCE...", nargs=-1, required=True)
@click.option(
    "--location",
    "-l",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="The store's folder, made if it is not there.",
)
@click.option(
    "--reason",
    "reasoning",
    type=click.Choice(["rdfs"]),
    help="Materialise subClassOf, subPropertyOf, domain and range into <urn:oxiseq:inferred>.",
)
@click.option(
    "--mapping",
    "-m",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="For tables: a SPARQL CONSTRUCT query over their columns.",
)
@click.option("--graph", metavar="IRI", type=Iri(), help="Load what would go to the default graph into this graph.")
@click.option("--skolemise", is_flag=True, help="Replace blank nodes by IRIs.")
@click.option("--strict", is_flag=True, help="Stop at the first bad statement.")
@click.option(
    "--quarantine",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where bad statements go. [default: the location with .quarantine behind it]",
)
@click.option(
    "--engine",
    type=click.Choice(["auto", "plain", "spark"]),
    default="auto",
    show_default=True,
    help="One process, or Spark; auto takes Spark for sources larger than half of the memory.",
)
@click.option("--master", metavar="URL", help="Spark's master. [default: local[*]]")
@click.option("--memory", metavar="SIZE", help="Java memory of Spark's driver and of each executor. [default: 2g]")
@click.option(
    "--parts",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Keep Spark's files (sorted N-Quads, coded Parquet) in this folder, which all workers must see.",
)
@click.option(
    "--shapes",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Validate the store against SHACL shapes; violations are reported in the quarantine.",
)
@click.option(
    "--append", is_flag=True, help="Add to an existing store; a batch that it has already is not added again."
)
@click.option("--batch", metavar="ID", help="The batch's id. [default: made from the files' paths, sizes and times]")
@click.option(
    "--dry-run", is_flag=True, help="Write no store; report what a load would find and how long it would take."
)
@click.option("--restart", is_flag=True, help="Replace an existing store.")
@quiet_option
def load_command(**given: Any) -> None:
    """Load a big knowledge base into a store that `run --kb DIR` reads.

    SOURCE is a file, a folder or a glob: N-Triples, N-Quads, Turtle, TriG, RDF/XML (also .gz, .bz2, .xz, .zst),
    and with a mapping CSV, TSV, Parquet, JSON Lines. Spark reads s3a://BUCKET/FOLDER and the like, table:NAME, and the
    folder of a Delta, Iceberg or Hudi table.

    \b
    oxiseq load dump.nt.gz schema.ttl --location kb --reason rdfs
    oxiseq load people.csv --mapping people.rq --location kb
    oxiseq load dump/ --location kb --engine spark --memory 8g
    oxiseq load today.nt --location kb --append
    oxiseq load dump/ --dry-run
    """
    loading.load_kb(**given)
