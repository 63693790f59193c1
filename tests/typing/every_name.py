"""A user's file: every public name, as it is used. Type checkers read it, and find nothing (test_user_file.py)."""

from __future__ import annotations

from datetime import datetime

import oxiseq
from oxiseq import (
    ArgumentTypeError,
    ArgumentValueError,
    ContinuousQuery,
    EventError,
    ExtraError,
    KbError,
    LimitError,
    Match,
    Matches,
    MissingGraphWarning,
    OxiseqError,
    Positions,
    QueryError,
    Snapshot,
    StandingQuery,
    Store,
    StoreChange,
    Stream,
    Why,
)


def answers(text: str) -> Matches:
    """Functions over whole streams."""
    for finding in oxiseq.check(oxiseq.parse(text), text):
        print(finding.severity, finding.line, finding.message)
    print(oxiseq.render(oxiseq.parse(text)), oxiseq.translate(text, to="ceql"), oxiseq.explain(text).to_text())
    reasons: Why = oxiseq.why(text, {"S": "events.nq"})
    print(reasons.found, reasons.stopped)
    return oxiseq.run(text, {"S": [(datetime(2026, 1, 1), "<urn:a> <urn:b> 1 .")]}, lateness="5s", on_error="skip")


def cells(found: Matches) -> list[str]:
    """Of matches."""
    first: Match = found[0]
    some: Matches = found[1:3]
    positions: Positions | None = first.positions
    times: tuple[datetime, int, datetime | None] = first.at, first.at_us, first.start
    print(positions, times, len(some), dict(first), "who" in first, first.events)
    csv: bytes = found.write(format="csv")
    found.write("found.json")
    return [csv.decode(), *(str(match["who"]) for match in found)]


def live(text: str) -> None:
    """A store with streams and queries."""
    store = Store()
    query: ContinuousQuery = store.register(text, lateness="1s")
    stream: Stream = store.stream("http://example.org/payments")
    stream.push("<urn:a> <urn:b> 1 .", 1_000_000)
    stream.push_many([(datetime(2026, 1, 1), "<urn:a> <urn:b> 1 .")])
    query.on_match(lambda match: print(match.at))
    for match in query.matches(timeout=1):
        print(match["who"])
    standing: StandingQuery = store.register("SELECT ?s { ?s ?p ?o }", language="sparql")
    snapshot: Snapshot = standing.snapshot()
    changes: list[StoreChange] = list(standing.take(since=snapshot.number))
    print(changes)


def safely(text: str) -> str:
    """What may be raised."""
    try:
        answers(text)
    except QueryError as error:
        return f"{error.line}:{error.column} {error.message} {error.hint}"
    except EventError as error:
        return f"{error.file}:{error.line} {error.reason}"
    except LimitError as error:
        return f"{error.given} > {error.limit}"
    except ExtraError as error:
        return f"pip install 'oxiseq[{error.extra}]'"
    except (ArgumentTypeError, ArgumentValueError, KbError, OxiseqError) as error:
        return str(error)
    return str(MissingGraphWarning.__name__)
