"""The kinds of terms and the quality bits of their values (matching.md, section 2).

Plain integers, so that Numba takes them as constants.
"""

from __future__ import annotations

from typing import Final

NONE: Final = 0
"""No term: the id 0, unbound."""
IRI: Final = 1
BLANK: Final = 2
STRING: Final = 3
LANGSTRING: Final = 4
BOOLEAN: Final = 5
INTEGER: Final = 6
"""xsd:integer and every type derived from it."""
DECIMAL: Final = 7
FLOAT: Final = 8
DOUBLE: Final = 9
DATETIME: Final = 10
UNKNOWN: Final = 11
"""A literal of an unknown datatype, or an ill-typed one."""
OTHER: Final = 12
"""A well-formed literal of another known type (date, time, durations, gYear...), or a triple term."""

ROUNDED: Final = 1
"""`number` is the value, correctly rounded to a double."""
EXACT_INTEGER: Final = 2
"""`exact` is the value: an integer, a decimal's mantissa, a boolean's 0 or 1, a dateTime's microseconds."""
ZONED: Final = 4
"""A dateTime with a time zone."""
EMPTY: Final = 4
"""The empty string."""
EXACT_NUMBER: Final = 8
"""`number` is the value, without rounding."""
SCALE_SHIFT: Final = 4
"""A decimal's value is `exact` · 10^-scale; the scale (at most 15) is in the bits from this one on."""
MAX_SCALE: Final = 15

# Times of events, in microseconds since 1970: sums of a time, a window and a lateness stay far within 64 bits.
FIRST_TIME: Final = -62_135_596_800_000_000
"""0001-01-01T00:00:00Z, the first time that is taken."""
LAST_TIME: Final = 253_402_300_799_999_999
"""9999-12-31T23:59:59.999999Z, the last one."""
