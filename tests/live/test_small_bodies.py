"""The short way for a small body gives the same bytes as the long one, or leaves it alone."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import RdfFormat, parse

from oxiseq.engine.events.encode import encode_events
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.journal import pack_events
from oxiseq.live.intake import RejectedError, pack_one, read_one, read_with_tables

XSD = "http://www.w3.org/2001/XMLSchema#"
TIME = f'<http://e/ev> <http://www.w3.org/ns/prov#generatedAtTime> "2024-05-01T10:00:00.25Z"^^<{XSD}dateTime> .\n'
OBJECTS = (
    "<http://e/o>",
    "<http://e/é%20x>",
    "_:b",
    "_:c",
    '"text"',
    '""',
    f'"5"^^<{XSD}integer>',
    f'"-12"^^<{XSD}integer>',
    f'"007"^^<{XSD}integer>',
    f'"+1"^^<{XSD}integer>',
    f'"-0"^^<{XSD}integer>',
    f'"0"^^<{XSD}integer>',
    f'"123456789012345678901234567890"^^<{XSD}integer>',
    f'"true"^^<{XSD}boolean>',
    f'"1"^^<{XSD}boolean>',
    f'"x"^^<{XSD}boolean>',
    f'"1.50"^^<{XSD}double>',
    f'"1.50"^^<{XSD}decimal>',
    '"a"@en',
    '"a"@EN',
    '"tab\\there"',
    '"quote\\"d"',
    '"back\\\\slash"',
    '"\\u00E9"',
    '"é"',
    f'"x"^^<{XSD}string>',
    f'"n"^^<{XSD}integer>',
    f'""^^<{XSD}integer>',
    f'"-"^^<{XSD}integer>',
    '"x"^^<http://e/own>',
)
lines = st.builds(
    "{} {} {} {}.\n".format,
    st.sampled_from(["<http://e/s>", "<http://e/t>", "_:b", "_:d"]),
    st.sampled_from(["<http://e/p>", "<http://e/q>", "<http://www.w3.org/ns/prov#generatedAtTime>"]),
    st.sampled_from(OBJECTS),
    st.sampled_from(["<http://e/ev> "] * 9 + ["", "<http://e/other> ", "_:g "]),
)


def agree(body: bytes) -> bool:
    """Whether the short way was taken; then both agree."""
    one = read_one(body)
    if one is None:
        return False
    whole = read_with_tables(body, "nquads")
    assert whole.rejected == 0
    assert (one[0], [one[1]]) == (whole.blob, whole.time.tolist())
    return True


@given(st.lists(lines, max_size=6), st.integers(0, 6), st.booleans())
def test_both_ways_agree(quads: list[str], place: int, twice: bool) -> None:
    quads.insert(place, TIME * (1 + twice))
    agree("".join(quads).encode())


@pytest.mark.parametrize("term", OBJECTS)
def test_each_kind_of_object(term: str) -> None:
    agree(f"{TIME}<http://e/s> <http://e/p> {term} <http://e/ev> .\n".encode())


def test_the_usual_event_takes_the_short_way() -> None:
    number = f'<http://e/s> <http://e/p> "5"^^<{XSD}integer> <http://e/ev> .\n'
    body = f'{TIME}{number}_:b <http://e/p> "x" <http://e/ev> .\n'
    assert agree(body.encode())
    assert agree(body.rstrip().encode())


@pytest.mark.parametrize("body", [b"", b"\n", b"nonsense", TIME.encode(), TIME.encode() * 2])
def test_what_is_no_event_is_left_alone(body: bytes) -> None:
    assert read_one(body) is None
    with suppress(RejectedError):
        read_with_tables(body, "nquads")


@given(st.lists(lines.filter(lambda line: "<http://e/ev>" in line), max_size=6))
def test_a_graph_goes_both_ways(quads: list[str]) -> None:
    text = "".join(quad.replace(" <http://e/ev>", "") for quad in quads).encode()
    try:
        triples = [quad.triple for quad in parse(text, RdfFormat.N_TRIPLES)]
    except SyntaxError:
        return
    blob = pack_one(triples, 7)
    if blob is None:
        return
    terms = TermDictionary()
    assert blob == pack_events(encode_events([(7, triples)], terms), terms)
