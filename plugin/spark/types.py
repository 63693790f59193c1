"""Types of the columns of matches: strings, RDF terms, or what Spark makes of their lexical forms.

In the flow: `match(types=...)` → **types** → what workers emit (`Form`), and the casts behind it. A value that is
bound and has no place in its type becomes null, and is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Final, Literal, TypeAlias

from pyspark.errors import PySparkException
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import AtomicType, DataType, StringType, StructField, StructType

from oxiseq.grammar.languages import AnyQuery
from oxiseq.spark.answers import TERM_PARTS
from oxiseq.spark.errors import SparkError
from oxiseq.spark.facts import Facts
from oxiseq.spark.inference import inferred
from oxiseq.spark.order import Form

Types: TypeAlias = Literal["text", "ntriples", "terms", "infer"] | Mapping[str, str]
_NAMED: Final = ("text", "ntriples", "terms", "infer")
TERM: Final = StructType([StructField(part, StringType()) for part in TERM_PARTS])
"""A term: `value` (IRI, label or lexical form), `datatype`, `lang` (also with `--` and the base direction), `kind`
(iri, blank, literal, triple)."""


def form_of(types: Types) -> Form:
    """What workers emit. Raises SparkError."""
    if isinstance(types, Mapping) or types == "infer":
        return "text"
    if types not in _NAMED:
        raise SparkError(f"types is {', '.join(_NAMED)}, or the type of each column by name, not {types!r}")
    return types


def casts(types: Types, query: AnyQuery, names: list[str], known: Callable[[], Facts]) -> dict[str, str]:
    """Column → its type, where that is another one than string. Raises SparkError."""
    if types == "infer":
        found = inferred(query, known())
        return {name: found[name] for name in names if name in found}
    if not isinstance(types, Mapping):
        return {}
    for name, kind in types.items():
        if name not in names:
            raise SparkError(f"types: the query has no column ?{name}; it has {', '.join(names) or 'none'}")
        if not isinstance(_parsed(name, kind), AtomicType):
            raise SparkError(f"types: {name} is {kind}; a term has one value: a number, a string, a boolean or a time")
    return dict(types)


def cast(column: Column, kind: str | None) -> Column:
    """A column of lexical forms as a type of Spark's."""
    return column if kind is None else column.try_cast(kind)


def cast_errors(kinds: Mapping[str, str], columns: Mapping[str, Column]) -> Column:
    """How many values are bound and have no place in their type."""
    failed = [
        F.count_if(columns[name].isNotNull() & columns[name].try_cast(kind).isNull()) for name, kind in kinds.items()
    ]
    return reduce(Column.__add__, failed, F.lit(0).cast("bigint"))


def _parsed(name: str, kind: object) -> DataType:
    wrong = f"types: {name} is {kind!r}, which is no type of Spark SQL's"
    if not isinstance(kind, str) or not kind.strip():
        raise SparkError(wrong)
    try:
        return DataType.fromDDL(kind)
    except PySparkException as error:
        raise SparkError(wrong) from error
