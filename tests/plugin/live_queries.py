"""Query texts and events for the tests of the public API."""

from __future__ import annotations

E = "http://e/"
S, T = E + "s", E + "t"


def query(
    select: str = "SELECT ?who ?first ?second",
    sequence: str = "A; B",
    *,
    window: str = "",
    a: str = "",
    b: str = "FILTER(?second > ?first)",
    n: str = "",
    streams: str = f"FROM STREAM S <{S}>",
) -> str:
    """Payments: `?who :paid ?first` (A), then `?who :paid ?second` (B); N, if used, is `?who :left ?where`."""
    negated = f"DEFINE GPM N ON S {{ ?who :left ?where {n} }}" if "N" in sequence else ""
    second = f"DEFINE GPM B ON S {{ ?who :paid ?second {b} }}" if "B" in sequence else ""
    return f"""PREFIX : <{E}>
{select} {window}
{streams}
WHERE {{
  SEQ({sequence})
  DEFINE GPM A ON S {{ ?who :paid ?first {a} }}
  {second}
  {negated}
}}"""


def paid(amount: int, who: str = "ann") -> str:
    """An event as RDF text."""
    return f"<{E}{who}> <{E}paid> {amount} ."


def left(who: str = "ann") -> str:
    """A negated event."""
    return f"<{E}{who}> <{E}left> <{E}shop> ."


PAYMENTS = [(1, paid(3)), (2, paid(40)), (3, paid(50))]
"""Two matches of `query()`, at 2 and at 3."""

KB = f"""<{E}ann> <{E}name> "Ann" <{E}people> .
<{E}bob> <{E}name> "Bob" <{E}people> .
"""
NAMED = query("SELECT ?first ?name", "A", a="GRAPH :people { ?who :name ?name }")
"""Each payment with the payer's name."""
