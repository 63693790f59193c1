"""What the reader's kernels say of a term, against pyoxigraph, normalise and term_value."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode, RdfFormat, parse

from oxiseq.engine.errors import EventError
from oxiseq.engine.events.time import to_microseconds
from oxiseq.engine.kernels.compiling.options import kernel
from oxiseq.engine.kernels.memory.pointers import address_of
from oxiseq.engine.kernels.memory.scan import PADDING, every, find_byte, find_either, find_special
from oxiseq.engine.kernels.terms import plain
from oxiseq.engine.terms.normal import XSD, normalise
from oxiseq.engine.terms.texts import parse_term
from oxiseq.engine.terms.value import term_value

pytestmark = pytest.mark.xdist_group("kernels of plain terms")  # compiled in one worker
SCRATCH = np.zeros(1 << 12, np.uint8)


@kernel
def classified(at: int, end: int, scratch: int) -> tuple[int, int, float, int, int, int]:
    return plain.plain_literal(at, end, scratch)


@kernel
def is_plain_iri(at: int, end: int) -> bool:
    return plain.plain_iri(at, end)


@kernel
def told_time(at: int, end: int) -> tuple[bool, int]:
    return plain.plain_time(at, end)


@kernel
def found(at: int, end: int, one: np.uint64, other: np.uint64) -> tuple[int, int, int]:
    return find_byte(at, end, one), find_either(at, end, one, other), find_special(at, end)


def placed(token: bytes) -> tuple[np.ndarray, int, int]:
    """The token in memory with something else behind it: (what keeps it alive, address, end)."""
    memory = np.frombuffer(token + b'1"' * (PADDING // 2), np.uint8)
    return memory, address_of(memory), address_of(memory) + len(token)


def check_literal(token: str) -> int:
    """The form that the kernel sees; all that it says is compared."""
    memory, at, end = placed(token.encode())
    form, *value, length = classified(at, end, address_of(SCRATCH))
    if form != plain.UNUSUAL:
        written = parse_term(token)
        assert isinstance(written, Literal)
        normal = normalise(written)
        told = SCRATCH[:length].tobytes().decode() if form == plain.NORMALISED else token
        assert told == str(normal)
        assert (form == plain.PLAIN) == (token == str(normal))
        expected = term_value(normal)
        assert tuple(value) == tuple(expected)
        assert np.float64(value[1]).tobytes() == np.float64(expected.number).tobytes()
    del memory
    return int(form)


digits = st.text("0123456789", min_size=1, max_size=20)
numerals = st.one_of(
    digits,
    st.integers(-(10**19), 10**19).map(str),
    st.builds("{}{}.{}".format, st.sampled_from(["", "-", "+"]), digits, digits),
    st.builds(
        "{}{}.{}".format, st.sampled_from(["", "-"]), st.integers(0, 9999), st.text("05", min_size=1, max_size=9)
    ),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.floats(-1e6, 1e6, width=32).map(str),
    st.builds("{}{}{}".format, st.floats(-100, 100).map("{:.3f}".format), st.sampled_from("eE"), st.integers(-20, 20)),
    st.builds("{}e{}{}".format, st.integers(-1000, 1000), st.sampled_from(["+", "-", ""]), digits),
)
NUMBERS = ["integer", "decimal", "double", "float", "long", "int", "short", "byte", "nonNegativeInteger"]


@given(numerals, st.sampled_from(NUMBERS))
@example("0.000000000000001", "decimal")
@example("999999999999999", "double")
@example("999999", "float")
@example("-0", "double")
@example("0.0", "decimal")
@example("0e5", "double")
@example("999999999999999999", "integer")
@example("9007199254740993", "integer")
@example("12345678.5", "float")
def test_numbers(text: str, datatype: str) -> None:
    check_literal(f'"{text}"^^<{XSD}{datatype}>')


fractions = st.one_of(st.just(""), digits.map(".{}".format), st.text("05", min_size=1, max_size=7).map(".{}".format))
zones = st.one_of(
    st.sampled_from(["", "Z", "+00:00", "-00:00", "+14:00", "-13:59", "+14:01", "z"]),
    st.builds("{}{:02}:{:02}".format, st.sampled_from("+-"), st.integers(0, 15), st.integers(0, 61)),
)
dates = st.one_of(
    st.builds(
        "{}{}{}".format, st.datetimes().map(lambda t: t.strftime("%Y-%m-%dT%H:%M:%S").zfill(19)), fractions, zones
    ),
    st.builds(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}{}{}".format,
        st.integers(0, 10_000),
        st.integers(0, 13),
        st.integers(0, 32),
        st.integers(0, 25),
        st.integers(0, 61),
        st.integers(0, 61),
        fractions,
        zones,
    ),
)


@given(dates)
@example("0001-01-01T00:00:00Z")
@example("0000-01-01T00:00:00Z")
@example("9999-12-31T23:59:59.999999999Z")
@example("1900-02-29T00:00:00Z")
@example("2000-02-29T00:00:00+00:00")
@example("2000-01-01T24:00:00")
@example("2000-01-01T00:00:00.000+01:00")
def test_dates(text: str) -> None:
    token = f'"{text}"^^<{XSD}dateTime>'
    check_literal(token)
    check_time(token)


@given(
    st.one_of(numerals, dates),
    st.sampled_from(["integer", "long", "dateTime", "dateTimeStamp", "decimal", "dateTimeS"]),
)
@example("999999999999999999", "integer")
@example("-5", "long")
def test_times(text: str, datatype: str) -> None:
    check_time(f'"{text}"^^<{XSD}{datatype}>')


def check_time(token: str) -> None:
    memory, at, end = placed(token.encode())
    known, time = told_time(at, end)
    if known:
        literal = parse_term(token)
        assert isinstance(literal, Literal)
        try:
            assert time == to_microseconds(literal)
        except EventError:
            pytest.fail(f"{token} is no time, but {time} was read")
    del memory


odd = st.text(
    st.one_of(st.characters(codec="utf-8"), st.sampled_from('\\"@^<>\x7f\x80\ufffd\ufffe\uffff\U0010ffff')), max_size=12
)
tags = st.one_of(
    st.sampled_from(["en", "de-ch", "zh-hans", "EN", "a", "en-", "en--ltr", "abc-de", "abcd"]),
    st.text("ab-1", max_size=7),
)


@given(
    odd,
    st.one_of(
        st.just(""),
        tags.map("@{}".format),
        st.sampled_from(["string", "boolean", "date", "strin"]).map(lambda name: f"^^<{XSD}{name}>"),
        st.sampled_from(["urn:t", "http://www.w3.org/x", "http://a b", "x", ""]).map("^^<{}>".format),
    ),
)
@example("true", f"^^<{XSD}boolean>")
@example("", "")
@example("", f"^^<{XSD}string>")
def test_strings_and_others(text: str, ending: str) -> None:
    token = f'"{text}"{ending}'
    try:
        written = str(parse_term(token)) is not None and parse_term(token)
    except ValueError:
        memory, at, end = placed(token.encode())
        # what is no term at all must not be taken for one, unless the reader's tokens cannot end there
        if '"' not in text and "\\" not in text and ">" not in ending[:-1]:
            assert classified(at, end, address_of(SCRATCH))[0] == plain.UNUSUAL
        del memory
    else:
        assert isinstance(written, Literal)
        check_literal(token)


@given(st.binary(max_size=12))
@example("é".encode("latin-1"))
@example(b"\xed\xa0\x80")
@example(b"\xf4\x90\x80\x80")
@example(b"\xc0\x80")
@example(b"\xe0\x80\x80")
@example(b"\xf0\x80\x80\x80")
def test_bytes_that_are_no_utf8_are_not_plain(content: bytes) -> None:
    if b'"' in content:
        return
    memory, at, end = placed(b'"' + content + b'"')
    form = classified(at, end, address_of(SCRATCH))[0]
    try:
        token = f'"{content.decode()}"'
    except UnicodeDecodeError:
        assert form == plain.UNUSUAL
    else:
        assert form == (plain.PLAIN if str(Literal(content.decode())) == token else plain.UNUSUAL)
    del memory


def test_every_character_is_plain_exactly_when_it_is_written_as_it_stands() -> None:
    for code in [
        *range(0x20),
        *range(0x7E, 0xA1),
        *range(0x7FE, 0x802),
        *range(0xD7FE, 0xE002),
        *range(0xFFFC, 0x10002),
        0x10FFFF,
    ]:
        if 0xD800 <= code < 0xE000:
            continue
        token = f'"{chr(code)}"'
        expected = plain.PLAIN if str(Literal(chr(code))) == token else plain.UNUSUAL
        assert check_literal(token) == expected, hex(code)


iris = st.one_of(
    st.text("ahz:/?#%0Ag@[]'()*+,;=&!$.-_~ \\<{}|^`\"é", max_size=20),
    st.builds("http://{}/{}".format, st.text("a.-:0@[]%", max_size=8), st.text("a%2Fg?#/:@\u00e9", max_size=10)),
    st.builds("{}:{}".format, st.text("aZ1+-.", max_size=4), st.text("a/:?#%41", max_size=8)),
)


@given(iris)
@example("http://a:b")
@example("http://a:80?x#y")
@example("urn:")
@example("http://")
@example("a://b@c")
@example("http://a/%4")
@example("http://a/%")
@example("http://a/#b#c")
def test_plain_iris_are_iris(text: str) -> None:
    if ">" in text:
        return
    memory, at, end = placed(f"<{text}>".encode())
    if is_plain_iri(at, end):
        [quad] = parse(f"<urn:s> <urn:p> <{text}> .", RdfFormat.N_QUADS)
        assert quad.object == NamedNode(text)
    del memory


@pytest.mark.parametrize(
    "text",
    [
        "http://example.org/a/b.c?d=e&f=g#h",
        "https://w3id.org/x",
        "urn:uuid:1-2-3",
        "mailto:a@b",
        "http://a:8080/",
        "http://www.w3.org/1999/02/22-rdf-syntax-ns#type",
        "http://a/%C3%A9",
        "http://example.org",
        "file:///a/b",
    ],
)
def test_usual_iris_are_plain(text: str) -> None:
    memory, at, end = placed(f"<{text}>".encode())
    assert is_plain_iri(at, end)
    del memory


@pytest.mark.parametrize(
    ("token", "form"),
    [
        ('"12.50"^^<XSDdecimal>', plain.NORMALISED),
        ('"1.5E0"^^<XSDdouble>', plain.NORMALISED),
        ('"2024-01-01T00:00:00.000Z"^^<XSDdateTime>', plain.NORMALISED),
        ('"7"^^<XSDint>', plain.NORMALISED),
        ('"12.5"^^<XSDdecimal>', plain.PLAIN),
        ('"été"@fr', plain.PLAIN),
        ('"x"^^<urn:t>', plain.PLAIN),
        ('"2024-01-01T00:00:00Z"^^<XSDdateTime>', plain.PLAIN),
        ('"a\\nb"', plain.UNUSUAL),
        ('"x"@EN', plain.UNUSUAL),
    ],
)
def test_usual_literals_are_not_unusual(token: str, form: int) -> None:
    assert check_literal(token.replace("XSD", XSD)) == form


@given(st.binary(max_size=40), st.integers(0, 255), st.integers(0, 255))
def test_searches(content: bytes, one: int, other: int) -> None:
    memory, at, end = placed(content)
    special = next((i for i, c in enumerate(content) if not 0x20 <= c < 0x7F or c == 0x5C), len(content))
    either = next((i for i, c in enumerate(content) if c in (one, other)), len(content))
    first = next((i for i, c in enumerate(content) if c == one), len(content))
    assert [place - at for place in found(at, end, every(one), every(other))] == [first, either, special]
    del memory
