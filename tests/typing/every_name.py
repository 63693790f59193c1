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
    LateWarning,
    LimitError,
    LintWarning,
    Match,
    Matches,
    MissingGraphWarning,
    OxiseqError,
    Positions,
    Query,
    QueryError,
    Snapshot,
    StandingQuery,
    Store,
    StoreChange,
    Stream,
    StreamMapping,
    Why,
)


def answers(text: str) -> Matches:
    """A query over whole streams."""
    query = Query(text)
    for finding in query.check():
        print(finding.severity, finding.line, finding.message)
    print(query.language, query.streams, query.variables, query.translate("ceql"), query.explain().json())
    reasons: Why = query.why({"S": "events.nq"}, since="2026-01-01", limit=3)
    print(reasons.found, reasons.stopped)
    return oxiseq.run(query, {"S": [(datetime(2026, 1, 1), "<urn:a> <urn:b> 1 .")]}, lateness="5s", on_error="skip")


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
    with oxiseq.open("folder") as served:
        kept: Stream = served.stream("http://example.org/payments")
        kept.push("<urn:a> <urn:b> 1 .", 1_000_000, key="one")
        with served.register(text, name="paid", replace=True) as found:
            print(found.status, found.sinks, found.cursor)
    store: Store = oxiseq.open()
    query: ContinuousQuery = store.register(text, lateness="1s")
    stream: Stream = store.stream("http://example.org/payments")
    mapping: StreamMapping = StreamMapping({"predicates": {"http://example.org/paid": "amount"}, "time": "ts"})
    store.stream("http://example.org/payments", mapping=mapping).push({"amount": 5, "ts": 1_000_000})
    stream.push("<urn:a> <urn:b> 1 .", 1_000_000)
    print(stream.extend([(datetime(2026, 1, 1), "<urn:a> <urn:b> 1 .")]))
    query.subscribe(lambda match: print(match.at)).close()
    print(len(query.matches(limit=5)))
    for match in query.poll("1s"):
        print(match["who"])
    standing: StandingQuery = store.register("SELECT ?s { ?s ?p ?o }", language="sparql")
    snapshot: Snapshot = standing.snapshot()
    changes: list[StoreChange] = list(standing.poll(after=snapshot.number))
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
    return str(MissingGraphWarning.__name__ + LateWarning.__name__ + LintWarning.__name__)
