"""Local times, weekdays and durations: against zoneinfo and plain arithmetic, in queries, and at the doors."""

from __future__ import annotations

import calendar
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import given
from hypothesis import strategies as st
from profiles import drawn
from pyoxigraph import BlankNode, Literal, NamedNode

import oxiseq
from oxiseq.engine.expressions.times import local, of_durations, round_half_up, weekday

XSD = "http://www.w3.org/2001/XMLSchema#"
ZONES = ("Europe/Berlin", "America/New_York", "Asia/Kolkata", "Pacific/Apia", "Australia/Lord_Howe", "UTC")


def typed(text: str, kind: str) -> Literal:
    return Literal(text, datatype=NamedNode(XSD + kind))


def time(text: str) -> Literal:
    return typed(text, "dateTime")


@pytest.mark.parametrize(
    ("text", "zone", "expected"),
    [
        ("2026-07-20T23:30:00.25Z", "Europe/Berlin", "2026-07-21T01:30:00.25+02:00"),
        ("2026-12-20T23:30:00Z", "Europe/Berlin", "2026-12-21T00:30:00+01:00"),
        ("2026-10-25T00:59:59Z", "Europe/Berlin", "2026-10-25T02:59:59+02:00"),  # the hour that comes twice
        ("2026-10-25T01:00:00Z", "Europe/Berlin", "2026-10-25T02:00:00+01:00"),
        ("2026-03-29T03:30:00+05:30", "Asia/Kolkata", "2026-03-29T03:30:00+05:30"),
        ("1880-01-01T00:00:00Z", "Europe/Berlin", "1880-01-01T00:53:00+00:53"),  # +00:53:28 there and then
        ("2026-01-01T00:00:00.123456789012Z", "America/New_York", "2025-12-31T19:00:00.123456789012-05:00"),
    ],
)
def test_local_time(text: str, zone: str, expected: str) -> None:
    assert local(time(text), Literal(zone)) == time(expected)


@pytest.mark.parametrize(
    ("at", "zone"),
    [
        (time("2026-07-20T10:00:00"), Literal("Europe/Berlin")),  # no offset: which instant is not known
        (time("2026-07-20T10:00:00Z"), Literal("Europe/Nowhere")),
        (time("2026-07-20T10:00:00Z"), Literal("")),
        (time("2026-07-20T10:00:00Z"), Literal("../../etc/passwd")),
        (time("2026-07-20T10:00:00Z"), Literal("Europe/Berlin\0")),
        (time("2026-07-20T10:00:00Z"), NamedNode("urn:Europe")),
        (time("9999-12-31T23:30:00Z"), Literal("Europe/Berlin")),
        (time("0001-01-01T00:00:00Z"), Literal("America/New_York")),
        (time("-0044-03-15T00:00:00Z"), Literal("Europe/Rome")),
        (time("12026-01-01T00:00:00Z"), Literal("Europe/Rome")),
        (typed("2026-07-20", "date"), Literal("Europe/Berlin")),
        (Literal("2026-07-20T10:00:00Z"), Literal("Europe/Berlin")),
        (BlankNode("b"), Literal("Europe/Berlin")),
    ],
)
def test_no_local_time(at: Literal, zone: Literal) -> None:
    assert local(at, zone) is None


@drawn(40)
@given(
    st.datetimes(datetime(1900, 1, 2), datetime(2100, 1, 1)),
    st.sampled_from(ZONES),
    st.integers(-14 * 60, 14 * 60),
)
def test_a_local_time_is_the_same_instant_in_its_zone(at: datetime, zone: str, minutes: int) -> None:
    sign, (hours, rest) = "-" if minutes < 0 else "+", divmod(abs(minutes), 60)
    found = local(time(f"{at.isoformat()}{sign}{hours:02}:{rest:02}"), Literal(zone))
    assert isinstance(found, Literal)
    made = datetime.fromisoformat(found.value)
    instant = at.replace(tzinfo=UTC) - timedelta(minutes=minutes)
    assert made == instant
    offset = instant.astimezone(ZoneInfo(zone)).utcoffset()
    assert offset is not None and abs((made.utcoffset() or timedelta()) - offset) <= timedelta(seconds=30)


@pytest.mark.parametrize(
    ("of", "day"),
    [
        (time("2026-11-30T00:00:00Z"), 1),
        (time("2026-12-06T23:59:59.999-11:00"), 7),
        (time("2026-12-01T10:00:00"), 2),
        (typed("2024-02-29", "date"), 4),
        (typed("2024-02-29+01:00", "date"), 4),
        (typed("2026-02-30", "date"), None),
        (Literal("Monday"), None),
    ],
)
def test_weekday(of: Literal, day: int | None) -> None:
    assert weekday(of) == (None if day is None else Literal(day))


@drawn(40)
@given(st.dates())
def test_weekdays_are_the_calendars(day: datetime) -> None:
    assert weekday(typed(day.isoformat(), "date")) == Literal(calendar.weekday(day.year, day.month, day.day) + 1)


def days(text: str) -> Literal:
    return typed(text, "dayTimeDuration")


@pytest.mark.parametrize(
    ("name", "a", "b", "expected"),
    [
        ("/", days("PT2H"), days("PT90M"), typed("1.333333333333333333", "decimal")),
        ("/", days("-PT1H"), days("PT7M"), typed("-8.571428571428571428", "decimal")),
        ("/", days("PT0S"), days("PT7M"), typed("0", "decimal")),
        ("/", days("PT2H"), Literal(3), days("PT40M")),
        ("/", days("P1D"), typed("0.5", "decimal"), days("P2D")),
        ("*", days("PT1H"), typed("1.5", "decimal"), days("PT1H30M")),
        ("*", Literal(-2), days("PT0.5S"), days("-PT1S")),
        ("*", days("PT1H"), Literal(0), days("PT0S")),
        ("/", typed("P1Y", "yearMonthDuration"), typed("P5M", "yearMonthDuration"), typed("2.4", "decimal")),
        ("/", typed("P1Y", "yearMonthDuration"), Literal(5), typed("P2M", "yearMonthDuration")),
        ("*", typed("P3M", "yearMonthDuration"), typed("0.5", "decimal"), typed("P2M", "yearMonthDuration")),
        ("*", typed("P2Y", "duration"), Literal(2), typed("P4Y", "duration")),
        ("/", days("PT1H"), Literal(0), None),
        ("/", days("PT1H"), days("PT0S"), None),
        ("/", typed("P1M", "yearMonthDuration"), days("P1D"), None),
        ("*", typed("P1M1D", "duration"), Literal(2), None),
        ("/", Literal(2), days("PT1H"), None),
        ("*", days("PT1H"), days("PT1H"), None),
        ("*", days("PT1H"), typed("1e3", "double"), None),
        ("+", days("PT1H"), Literal(1), None),
        ("*", days("P"), Literal(1), None),
        ("*", days("PT"), Literal(1), None),
    ],
)
def test_durations(name: str, a: Literal, b: Literal, expected: Literal | None) -> None:
    assert of_durations(name, a, b) == expected


@drawn(40)
@given(st.integers(-(10**9), 10**9), st.integers(-(10**6), 10**6).filter(bool))
def test_a_duration_times_a_number_over_it_is_the_duration(seconds: int, by: int) -> None:
    a = days(f"{'-' * (seconds < 0)}PT{abs(seconds)}S")
    product = of_durations("*", a, Literal(by))
    assert isinstance(product, Literal)
    assert of_durations("/", product, Literal(by)) == of_durations("*", a, Literal(1))
    if seconds:
        quotient = of_durations("/", product, a)
        assert isinstance(quotient, Literal) and Fraction(quotient.value) == by


def test_halves_are_rounded_up() -> None:
    halves = [Fraction(n, 2) for n in (-3, -1, 1, 3)]
    assert [round_half_up(half) for half in halves] == [-1, 0, 1, 2]


QUERY = """PREFIX : <http://example.org/> PREFIX oxiseq: <urn:oxiseq:> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
SELECT ?hour (oxiseq:weekday(?t2) AS ?day) ((?t2 - ?t1) / "PT1H"^^xsd:dayTimeDuration AS ?hours)
FROM STREAM S <http://example.org/s>
WHERE {
  SEQ(A; B)
  DEFINE GPM A ON S { ?x :at ?t1 BIND(HOURS(oxiseq:local(?t1, "Europe/Berlin")) AS ?hour) }
  DEFINE GPM B ON S { ?y :at ?t2 FILTER((?t2 - ?t1) / 2 < "PT1H"^^xsd:dayTimeDuration) }
}"""


def _events(*times: str) -> list[tuple[int, str]]:
    dated = "^^<http://www.w3.org/2001/XMLSchema#dateTime>"
    return [(n, f'<e:{n}> <http://example.org/at> "{text}"{dated} .') for n, text in enumerate(times)]


def test_functions_are_had_in_filters_columns_and_the_store() -> None:
    found = oxiseq.run(QUERY, {"S": _events("2026-12-01T06:30:00Z", "2026-12-01T08:00:00Z", "2026-12-02T00:00:00Z")})
    assert [(m["hour"].value, m["day"].value, m["hours"].value) for m in found] == [("7", "2", "1.5")]
    text = 'SELECT (<urn:oxiseq:weekday>("2026-12-01"^^<http://www.w3.org/2001/XMLSchema#date>) AS ?d) {}'
    store = oxiseq.open()
    assert [row["d"].value for row in store.query(text)] == ["2"]  # type: ignore[union-attr]
    store.update(f"INSERT {{ <e:a> <e:day> ?d }} WHERE {{ {{ {text} }} }}")
    assert store.query("ASK { <e:a> <e:day> 2 }")
    standing = store.register("SELECT ?d { ?a <e:at> ?t BIND(<urn:oxiseq:weekday>(?t) AS ?d) }", "sparql")
    store.update('INSERT DATA { <e:a> <e:at> "2026-12-05"^^<http://www.w3.org/2001/XMLSchema#date> }')
    assert [row["d"].value for row in standing.snapshot().rows] == ["6"]


@pytest.mark.parametrize(
    ("call", "says"),
    [
        ('oxiseq:local(?t, "Europe/Berln")', "there is no time zone 'Europe/Berln'"),
        ("oxiseq:local(?t)", "takes 2 arguments"),
        ("oxiseq:weekday()", "takes one argument"),
        ("oxiseq:week(?t)", "there is no function <urn:oxiseq:week>"),
    ],
)
def test_wrong_calls_are_refused(call: str, says: str) -> None:
    text = f"""PREFIX : <http://example.org/> PREFIX oxiseq: <urn:oxiseq:>
SELECT ?x FROM STREAM S <http://example.org/s> WHERE {{
  SEQ(A) DEFINE GPM A ON S {{ ?x :at ?t FILTER({call} > 1) }} }}"""
    with pytest.raises(oxiseq.QueryError, match=says.replace("(", r"\(")) as caught:
        oxiseq.run(text, {"S": []})
    assert "line 3" in str(caught.value)


def test_every_zone_of_the_database_is_known() -> None:
    at = time("2026-07-20T10:00:00Z")
    assert [zone for zone in available_timezones() if local(at, Literal(zone)) is None] == []
