"""The terms of N-Quads lines, taken apart by Spark."""

from __future__ import annotations

from pyoxigraph import NamedNode, RdfFormat, parse
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from oxiseq.kb_loader.rdfs import Term

_LONG = r'(?s)^(".*"(?:@\S+|\^\^<\S*>)?|<<\(.*\)>>)(?: (<\S*>|_:\S+))? \.$'
"""Object and graph, where the object may hold spaces."""


def with_terms(lines: DataFrame) -> DataFrame:
    """Columns s, p, o and g ("" for the default graph) of a column `line`, each a term as N-Quads writes it.

    Only what is used is computed: a term that is read alone costs that term.
    """
    line, rest = f.col("line"), f.col("rest")
    two = f.substring_index(line, " ", 2)
    parts = lines.select(
        line,
        f.substring_index(line, " ", 1).alias("s"),
        f.substring_index(two, " ", -1).alias("p"),
        line.substr(f.length(two) + 2, f.length(line)).alias("rest"),
    )
    plain = rest.endswith('" .') & rest.startswith('"')  # a string and no graph
    second = f.substring_index(f.substring_index(rest, " ", 2), " ", -1)
    return parts.select(
        "line",
        "s",
        "p",
        f.when(plain, rest.substr(f.lit(1), f.length(rest) - 2))
        .when(no_resource("rest"), f.regexp_extract("rest", _LONG, 1))
        .otherwise(f.substring_index(rest, " ", 1))
        .alias("o"),
        f.when(plain, "")
        .when(no_resource("rest"), f.regexp_extract("rest", _LONG, 2))
        .otherwise(f.when(second != ".", second).otherwise(""))
        .alias("g"),
    )


def in_named(graph: NamedNode) -> Column:
    """Whether a `line` is in a named graph. Lines that do not end with its name cost next to nothing."""
    as_object = f.col("line").rlike(rf"^\S+ \S+ {graph} \.$")  # in the default graph
    return f.col("line").endswith(f" {graph} .") & ~as_object


def no_resource(term: str) -> Column:
    """Whether a column's terms are literals or triples, which cannot be subjects."""
    return f.col(term).startswith('"') | f.col(term).startswith("<<")


def term_of(text: str) -> Term:
    """A term of its N-Quads text."""
    (quad,) = parse(f"<a:a> <a:a> {text} .", format=RdfFormat.N_TRIPLES)
    return quad.object
