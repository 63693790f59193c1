"""The terms of N-Quads lines, taken apart by Spark."""

from __future__ import annotations

from pyoxigraph import RdfFormat, parse
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from oxiseq.kb_loader.rdfs import Term

_LONG = r'(?s)^(".*"(?:@\S+|\^\^<\S*>)?|<<\(.*\)>>)(?: (<\S*>|_:\S+))? \.$'
"""Object and graph, where the object may hold spaces."""


def with_terms(lines: DataFrame) -> DataFrame:
    """Columns s, p, o and g ("" for the default graph) of a column `line`, each a term as N-Quads writes it."""
    parts = lines.select("line", f.split("line", " ", 3).alias("parts"))
    rest = parts.select("line", f.col("parts")[0].alias("s"), f.col("parts")[1].alias("p"), f.col("parts")[2].alias("rest"))
    long = f.col("rest").rlike('^(?:"|<<)')
    words = f.split("rest", " ")
    graph = f.when(f.size(words) > 2, words[1]).otherwise("")
    return rest.select(
        "line", "s", "p",
        f.when(long, f.regexp_extract("rest", _LONG, 1)).otherwise(words[0]).alias("o"),
        f.when(long, f.regexp_extract("rest", _LONG, 2)).otherwise(graph).alias("g"),
    )  # fmt: skip


def no_resource(term: str) -> Column:
    """Whether a column's terms are literals or triples, which cannot be subjects."""
    return f.col(term).startswith('"') | f.col(term).startswith("<<")


def term_of(text: str) -> Term:
    """A term of its N-Quads text."""
    (quad,) = parse(f"<a:a> <a:a> {text} .", format=RdfFormat.N_TRIPLES)
    return quad.object
