"""The functions that an expression may call by name, and how many arguments each takes."""

from __future__ import annotations

from typing import Final

from oxiseq.grammar.terms import XSD

MANY = 1_000_000

ITERATION_VALUES = frozenset({"FIRST", "LAST"})
"""The value of an expression in the first and in the last iteration of a repeated GPM of SPAseq."""
AGGREGATES = frozenset({"COUNT", "SUM", "MIN", "MAX", "AVG", "SAMPLE", "GROUP_CONCAT"})

MATCH_FUNCTIONS = {
    "STARTTIME": False,
    "ENDTIME": False,
    "DURATION": False,
    "DETECTTIME": False,
    "SUPPRESSED": False,
    "EVENTTIME": False,
    "TIMEOF": True,
}
"""Functions of a match (semantics.md 2.1, 2.6a), or of an event in a GPM's FILTER (2.5b) → whether they take a GPM's
name. `COUNT` takes one too."""
OF_A_MATCH = frozenset({"STARTTIME", "ENDTIME", "DURATION", "DETECTTIME", "SUPPRESSED"})
"""Those of them that only a whole match has."""

_BY_ARITY: dict[tuple[int, int], str] = {
    (0, 0): "RAND NOW UUID STRUUID",
    (0, 1): "BNODE",
    (
        1,
        1,
    ): "STR LANG DATATYPE BOUND IRI URI ABS CEIL FLOOR ROUND STRLEN UCASE LCASE ENCODE_FOR_URI YEAR MONTH DAY"
    " HOURS MINUTES SECONDS TIMEZONE TZ MD5 SHA1 SHA256 SHA384 SHA512 ISIRI ISURI ISBLANK ISLITERAL ISNUMERIC"
    " ISTRIPLE SUBJECT PREDICATE OBJECT",
    (2, 2): "LANGMATCHES CONTAINS STRSTARTS STRENDS STRBEFORE STRAFTER STRLANG STRDT SAMETERM",
    (3, 3): "IF TRIPLE",
    (2, 3): "REGEX SUBSTR",
    (3, 4): "REPLACE",
    (0, MANY): "CONCAT COALESCE",
}

BUILTINS: dict[str, tuple[int, int]] = {name: arity for arity, names in _BY_ARITY.items() for name in names.split()}
"""Built-in calls of SPARQL 1.1, and of 1.2 for triple terms → the least and the most number of arguments."""

IRI_MAKERS: Final = frozenset({"IRI", "URI"})
"""Functions that make an IRI of a text. Where the query has a BASE their calls have it as a second argument."""

ALL_NAMES = tuple(sorted(AGGREGATES | MATCH_FUNCTIONS.keys() | BUILTINS.keys() | {"PREV"}))

_TYPES = (
    "string boolean integer decimal float double dateTime date time duration dayTimeDuration",
    "yearMonthDuration gYear gYearMonth gMonth gMonthDay gDay",
)
CASTS = frozenset(XSD + name for line in _TYPES for name in line.split())
"""The casts that the store knows; each takes one argument."""

GEOSPARQL = "http://www.opengis.net/def/function/geosparql/"
_GEO = (
    "area asGeoJSON centroid convexHull coordinateDimension difference dimension distance ehContains ehCoveredBy",
    "ehCovers ehDisjoint ehEquals ehInside ehMeet ehOverlap envelope getSRID intersection isEmpty isSimple length",
    "perimeter rcc8dc rcc8ec rcc8eq rcc8ntpp rcc8ntppi rcc8po rcc8tpp rcc8tppi relate sfContains sfCrosses sfDisjoint",
    "sfEquals sfIntersects sfOverlaps sfTouches sfWithin spatialDimension symDifference union",
)
GEO_FUNCTIONS = frozenset(GEOSPARQL + name for line in _GEO for name in line.split())
"""The functions of GeoSPARQL that the store knows by IRI."""

LOCAL: Final = "urn:oxiseq:local"
"""`oxiseq:local(?t, "Europe/Berlin")`: the same instant as a local time."""
WEEKDAY: Final = "urn:oxiseq:weekday"
"""`oxiseq:weekday(?t)`: 1 for Monday to 7 for Sunday."""
OWN_FUNCTIONS: Final = {LOCAL: 2, WEEKDAY: 1}
"""Functions that oxiseq adds, by IRI → the number of arguments."""

MIRRORED_ORDER: Final = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}
"""An order of two operands → the one that says the same of them the other way round."""
MIRRORED: Final = {**MIRRORED_ORDER, "=": "=", "!=": "!="}
"""The same of every comparison."""
