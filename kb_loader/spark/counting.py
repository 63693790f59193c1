"""VoID's counts on Spark: those of `void.counted`, of statements that are not in a store yet."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from oxiseq.kb_loader.graphs import INFERRED
from oxiseq.kb_loader.rdfs import TYPE, Term
from oxiseq.kb_loader.spark.terms import in_named, term_of, with_terms
from oxiseq.kb_loader.void import Counts


def counted_on_spark(data: DataFrame, inferred: int | None) -> Counts:
    """Counts of the statements `data` (a column `line`, each line once).

    `inferred`: how many have been inferred; None: nothing was, and what the data has in that graph counts as such.
    """
    if inferred is None:
        inferred = data.where(in_named(INFERRED)).count()
        data = data.where(~in_named(INFERRED))
    facts = with_terms(data)
    typed = facts.where(f.col("p") == str(TYPE)).select("s", "o").distinct()
    return Counts(
        facts.select("s").distinct().count(),
        facts.select("o").distinct().count(),
        _by(facts, "p"),
        _by(typed, "o"),
        inferred or None,
    )


def _by(rows: DataFrame, column: str) -> dict[Term, int]:
    return {term_of(row[column]): row["count"] for row in rows.groupBy(column).count().collect()}
