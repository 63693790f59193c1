"""The store's normal form of a term (semantics.md, section 7).

In the flow: RDF text → parser's term → **normal form** → id. pyoxigraph's store normalises literals
when they enter it, its parser does not; terms of streams must be brought to the same form before they can
join with the KB.

`normalise` promises exactly what the store does: whatever the few patterns below do not already know to be
unchanged is passed to a fresh in-memory store and read back (about 7 µs; a store that is kept and cleared
takes 60 times longer). Tests compare both ways.
"""

from __future__ import annotations

import re
from typing import Final

from pyoxigraph import Literal, NamedNode, Quad, Store, Triple

XSD: Final = "http://www.w3.org/2001/XMLSchema#"
RDF_LANG_STRING: Final = "http://www.w3.org/1999/02/22-rdf-syntax-ns#langString"

_PROBE = NamedNode("urn:oxiseq:probe")

# Lexical forms that the store returns unchanged. At most 15 digits, where every number is far from
# the limits of i64, of 18 fractional digits and of a double's precision.
_NORMAL: Final[dict[str, re.Pattern[str]]] = {
    XSD + "boolean": re.compile(r"true|false"),
    XSD + "integer": re.compile(r"0|-?[1-9][0-9]{0,14}"),
    XSD + "decimal": re.compile(r"0|-?[1-9][0-9]{0,14}|-?(?:0|[1-9][0-9]{0,6})\.[0-9]{0,7}[1-9]"),
    XSD + "double": re.compile(r"-?[1-9][0-9]{0,14}|0|-?(?:0|[1-9][0-9]{0,6})\.[0-9]{0,7}[1-9]"),
    XSD + "float": re.compile(r"-?[1-9][0-9]{0,5}|0|-?(?:0|[1-9][0-9]{0,2})\.[0-9]{0,2}[1-9]"),
    # an invalid day or zone is kept as written too, so only 24:00:00, +00:00 and trailing zeros matter
    XSD + "dateTime": re.compile(
        r"[0-9]{4}-[0-9]{2}-[0-9]{2}T(?:[01][0-9]|2[0-3]):[0-9]{2}:[0-9]{2}(?:\.[0-9]{0,8}[1-9])?Z?"
    ),
}

_DECIMAL: Final = XSD + "decimal"
_DECIMAL_TYPE: Final = NamedNode(_DECIMAL)
_TRAILING_ZEROS = re.compile(r"-?[1-9][0-9]{0,6}\.[0-9]{0,7}0|-?0\.[0-9]{0,5}[1-9]0{1,2}")
"""A decimal, not 0, whose normal form lacks the zeros at the end: prices, above all."""

_DOUBLE: Final = XSD + "double"
_LONG_DOUBLE = re.compile(r"-?(?:0|[1-9][0-9]{0,14})\.([0-9]{0,17}[1-9])")


def normalise(literal: Literal) -> Literal:
    """The literal as the store writes it: equal to what comes back after `store.add`.

    The same object is returned when nothing changes. Idempotent.
    """
    datatype = literal.datatype.value
    if datatype == XSD + "string":
        return literal
    pattern = _NORMAL.get(datatype)
    if pattern is not None:
        text = literal.value
        if pattern.fullmatch(text) is not None:
            return literal
        if datatype == _DECIMAL and _TRAILING_ZEROS.fullmatch(text) is not None:
            return Literal(text.rstrip("0").rstrip("."), datatype=_DECIMAL_TYPE)
        if datatype == _DOUBLE and _is_shortest_double(text):
            return literal
    changed = ask_store(literal)
    if not isinstance(changed, Literal):  # the store never turns a literal into anything else
        raise TypeError(f"the store made {changed} of {literal}")
    return literal if changed == literal else changed


def _is_shortest_double(text: str) -> bool:
    """Python and the store both write the shortest digits that give the double back, the nearest of them to
    it; but a double in the very middle of two (its last bit is one place behind its last digit) is
    rounded to even by Python, upwards by the store: `False` for that one, as for all others.
    """
    found = _LONG_DOUBLE.fullmatch(text)
    if found is None:
        return False
    number = float(text)
    return repr(number) == text and not (number * 2.0 ** (len(found[1]) + 1)).is_integer()


def normalise_triple(triple: Triple) -> Triple:
    """A triple term (RDF 1.2) with its literals in the store's normal form."""
    changed = ask_store(triple)
    if not isinstance(changed, Triple):  # as above
        raise TypeError(f"the store made {changed} of {triple}")
    return triple if changed == triple else changed


def ask_store(term: Literal | Triple) -> object:
    """The term as a new in-memory store returns it."""
    store = Store()
    store.add(Quad(_PROBE, _PROBE, term))
    return next(iter(store)).object
