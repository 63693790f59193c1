"""`oxiseq load`: a big knowledge base into a store's folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from oxiseq.cli.options import Iri, quiet_option
from oxiseq.warmup.importing import loading


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
    with loading():
        from oxiseq.cli.loading import load_kb  # noqa: PLC0415  loads the engine: see __init__.py

    load_kb(**given)
