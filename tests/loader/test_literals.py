"""Literals brought to the store's form outside of a store."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode, Quad, RdfFormat, Store, Triple, serialize

from oxiseq.kb_loader.literals import normalised

XSD = "http://www.w3.org/2001/XMLSchema#"
A = NamedNode("http://example.org/a")
TYPES = [
    "integer",
    "int",
    "byte",
    "decimal",
    "double",
    "float",
    "boolean",
    "date",
    "dateTime",
    "time",
    "gYear",
    "string",
    "dayTimeDuration",
    "hexBinary",
]
TEXTS = st.one_of(
    st.sampled_from(
        [
            "01",
            "-0",
            "+1.50",
            "1e3",
            "NaN",
            "true",
            "1",
            "2020-02-31",
            "2020-01-01",
            "-0001",
            "2020",
            "PT36H",
            "2020-01-01T24:00:00.000+02:00",
            "24:00:00",
            '"',
            "\\",
            "^^<",
            '"^^<' + XSD + "integer>",
        ]
    ),
    st.from_regex(r"-?[0-9]{1,20}(\.[0-9]{1,18})?", fullmatch=True),
    st.text(max_size=8),
)
LITERALS = st.one_of(
    st.builds(lambda text, of: Literal(text, datatype=NamedNode(XSD + of)), TEXTS, st.sampled_from(TYPES)),
    st.builds(lambda text: Literal(text, datatype=A), TEXTS),
    st.builds(Literal, TEXTS),
    st.builds(lambda text: Literal(text, language="en"), TEXTS),
)
OBJECTS = st.one_of(LITERALS, st.builds(lambda literal: Triple(A, A, literal), LITERALS))


@given(st.lists(OBJECTS, max_size=8))
def test_the_form_is_the_stores(objects: list[Literal | Triple]) -> None:
    quads = [Quad(NamedNode(f"http://example.org/{i}"), A, o) for i, o in enumerate(objects)]
    lines = normalised(serialize(quads, format=RdfFormat.N_QUADS) or b"").splitlines(keepends=True)
    store = Store()
    store.extend(quads)
    kept = [next(iter(store.quads_for_pattern(q.subject, None, None))) for q in quads]
    assert lines == [serialize([q], format=RdfFormat.N_QUADS) for q in kept]
