"""Lints of comparisons: a value with itself, a string with what is a number elsewhere; in all languages with FILTER."""

from __future__ import annotations

import pytest

from oxiseq.grammar import check, parse

P = "PREFIX : <http://e/>\nPREFIX xsd: <http://www.w3.org/2001/XMLSchema#>\n"
PATTERN = "?x :p ?t1 . ?x :q ?t2 ."
QUERIES = {
    "spaseq": "SELECT * WITHIN 1 HOUR FROM STREAM S <http://e/s> WHERE {{ SEQ(A) DEFINE GPM A ON S {{ {} }} }}",
    "rspql": "REGISTER RSTREAM <http://e/o> AS SELECT * FROM NAMED WINDOW :w ON <http://e/s> [RANGE PT10S STEP PT5S] "
    "WHERE {{ WINDOW :w {{ {} }} }}",
    "spectra": "SELECT * FROM STREAM <http://e/s> [RANGE 10 SECONDS SLIDE 1 SECONDS] WHERE {{ {} }}",
    "rsepql": "SELECT * FROM NAMED <http://e/s> WIN [RANGE 10 SLIDE 1] AS :w EVENT ON :w {{ {} }} AS E1 "
    "WHERE {{ MATCH {{ E1 }} }}",
    "epsparql": "SELECT * FROM STREAM <http://e/s> WHERE {{ {} FILTER(getDURATION() < 5) }}",
}


def lints(language: str, condition: str) -> list[tuple[str, str, str]]:
    """(code, what it points at, hint) of the two lints."""
    text = P + QUERIES[language].format(f"{PATTERN} {condition}")
    found = check(parse(text, language), text)
    assert not [f for f in found if f.severity == "error"]
    return [(f.code, text[f.span.start : f.span.end], f.hint) for f in found if f.code in ("itself", "kinds")]


@pytest.mark.parametrize("language", QUERIES)
def test_every_language_has_them(language: str) -> None:
    other = ("itself", "?t1 > ?t1", "compare with another variable")
    assert lints(language, "FILTER(?t1 > ?t1)") == [other]
    string = ("kinds", "?t1 > 'eight'", "compare with a number")
    assert lints(language, "FILTER(?t1 > 'eight') FILTER(?t1 < 100)") == [string]


KINDS = {
    "a number in quotes": ("FILTER(?t1 > '8' && ?t1 < 100)", ["?t1 > '8'"], "write 8 without quotes"),
    "on the other side": ("FILTER('eight' <= ?t1) FILTER(?t1 = 8)", ["'eight' <= ?t1"], "compare with a number"),
    "calculated with": ("FILTER(?t1 > 'eight') BIND(?t1 + 1 AS ?n)", ["?t1 > 'eight'"], "compare with a number"),
    "compared with what is a number": (
        "FILTER(?t1 > 'eight' && ?t2 > ?t1 && ?t2 < 9)",
        ["?t1 > 'eight'"],
        "compare with a number",
    ),
    "a time": (
        'FILTER(?t1 > "2020") FILTER(?t1 < "2021-01-01T00:00:00Z"^^xsd:dateTime)',
        ['?t1 > "2020"'],
        "write 2020 without quotes",
    ),
    "inside EXISTS": (
        "FILTER(?t1 < 9) FILTER EXISTS { ?x :r ?y FILTER(?t1 > 'eight') }",
        ["?t1 > 'eight'"],
        "compare with a number",
    ),
    "nothing else is known": ("FILTER(?t1 > 'eight') FILTER(?t2 > 8)", [], ""),
    "strings only": ("FILTER(?t1 > 'eight') FILTER(?t1 != 'nine')", [], ""),
    "equality may look for both": ("FILTER(?t1 = 1 || ?t1 = 'one')", [], ""),
    "in a language": ("FILTER(?t1 > 'eight'@en) FILTER(?t1 > 8)", [], ""),
}


@pytest.mark.parametrize("name", KINDS)
def test_kinds(name: str) -> None:
    condition, places, hint = KINDS[name]
    found = lints("spaseq", condition)
    assert [place for code, place, _ in found if code == "kinds"] == places
    assert all(h == hint for _, _, h in found)


@pytest.mark.parametrize(
    ("condition", "places"),
    [
        ("?t1 = ?t1", ["?t1 = ?t1"]),
        ("?t1 > 3 || ?t1 != ?t1", ["?t1 != ?t1"]),
        ("?t1 + 1 <= ?t1 + 1", ["?t1 + 1 <= ?t1 + 1"]),
        ("?t1 > ?t2", []),
        ("1 = 1", []),
        ("?t1 * RAND() < ?t1 * RAND()", []),
        ("?t1 + 1 > ?t1", []),
    ],
)
def test_itself(condition: str, places: list[str]) -> None:
    assert [place for _, place, _ in lints("spaseq", f"FILTER({condition})")] == places


def test_two_gpms_of_a_sequence_share_their_variables_uses() -> None:
    text = P + (
        "SELECT ?t1 (?t2 - ?t1 AS ?rise) WITHIN 1 HOUR FROM STREAM S <http://e/s> WHERE { SEQ(A; B+)\n"
        "DEFINE GPM A ON S { ?x :p ?t1 FILTER(?t1 > 'eight') }\n"
        "DEFINE GPM B ON S { ?x :p ?t2 FILTER(?t2 > PREV(?t2)) } }"
    )
    (found,) = check(parse(text), text)
    assert (found.code, found.line, found.column) == ("kinds", 4, 38)
    assert found.message == '?t1 is used as a number elsewhere, "eight" is a string: this is never true'
