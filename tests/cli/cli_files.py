"""Queries and events that the tests of the command line run."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from click.testing import CliRunner, Result

from oxiseq.cli import main

EX = "http://example.org/"
STREAM = f"{EX}payments"
AT = "http://www.w3.org/ns/prov#generatedAtTime"
XSD = "http://www.w3.org/2001/XMLSchema#"
BEGIN = datetime(2024, 5, 1, 10, tzinfo=UTC)
BEGIN_MICROSECONDS = 1_714_557_600_000_000

GPMS = """
  DEFINE GPM A ON S { ?who :paid ?first }
  DEFINE GPM B ON S { ?who :paid ?second FILTER(?second >= 10 * ?first) }
"""


def query(
    form: str = "SELECT ?who ?first ?second", window: str = "WITHIN 1 HOUR", seq: str = "A; B", gpms: str = GPMS
) -> str:
    """A query over payments."""
    prefix = f"PREFIX : <{EX}>\n{form} {window}\n"
    return f"{prefix}FROM STREAM S <{STREAM}>\nWHERE {{\n  SEQ({seq})\n{gpms}}}\n"


NAMED = query(
    "SELECT ?who ?second ?name",
    gpms=GPMS.replace("FILTER", "GRAPH ?g { ?who :name ?name } FILTER"),
)
BIGGER = query("CONSTRUCT { ?who :jumped ?second . _:x :of ?who }")
UNPAID = query("SELECT ?who ?first", "WITHIN 5 MINUTES", "A; B!")


def event(name: str, minute: float, triples: Iterable[str]) -> str:
    """An event in N-Quads; `triples` as `s p o`."""
    time = (BEGIN + timedelta(minutes=minute)).isoformat().replace("+00:00", "Z")
    lines = [f'<{EX}{name}> <{AT}> "{time}"^^<{XSD}dateTime> .']
    return "\n".join([*lines, *(f"{triple} <{EX}{name}> ." for triple in triples)]) + "\n"


def payment(who: str, amount: int) -> str:
    """One triple."""
    return f'<{EX}{who}> <{EX}paid> "{amount}"^^<{XSD}integer>'


EVENTS = (
    event("e1", 0, [payment("ann", 3)])
    + event("e2", 1, [payment("bob", 50)])
    + event("e3", 2, [payment("ann", 40)])
    + event("e4", 3, [payment("ann", 60), payment("bob", 600)])
)
KB = f'<{EX}ann> <{EX}name> "Ann" <{EX}kb> .\n<{EX}bob> <{EX}name> "Bob" <{EX}kb> .\n'


def write(folder: Path, name: str, text: str) -> str:
    """A file; its path as text."""
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def oxiseq(*arguments: object, stdin: str | None = None) -> Result:
    """The command line in this process; an exception that is not an exit fails the test."""
    result = CliRunner().invoke(main, [str(a) for a in arguments], input=stdin)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result
