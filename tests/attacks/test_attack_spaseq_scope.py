"""A door of its own: the text of a SPAseq query with many conditions on other GPMs, and events that they ask again."""

from __future__ import annotations

from time import process_time

import pytest
from pyoxigraph import Literal, NamedNode, Triple

import oxiseq
from oxiseq.grammar import Finding, check, load, parse

E = "http://e/"
HEAD = (
    f"PREFIX : <{E}>\nSELECT * WITHIN 1 HOUR FROM STREAM S <{E}s> WHERE {{ SEQ(A : B)\n"
    "DEFINE GPM A ON S { ?a :p ?x }\nDEFINE GPM B ON S { ?b :q ?y . %s } }"
)
MANY = 2_000
BODIES = {
    "OPTIONAL": "OPTIONAL {{ ?b :r{0} ?v{0} FILTER(?v{0} > ?x) }}",
    "MINUS": "MINUS {{ ?b :r{0} ?x }}",
    "sub-SELECT": "{{ SELECT ?b {{ ?b :r{0} ?x }} }}",
    "groups": "{{ ?b :r{0} ?v{0} FILTER(?x < ?v{0}) }}",
}


def findings(body: str) -> tuple[Finding, ...]:
    text = HEAD % body
    query = parse(text)
    begun = process_time()
    found = check(query, text)
    assert process_time() - begun < 5  # it takes half a second; the square of the length would be minutes
    return found


@pytest.mark.parametrize("name", BODIES)
def test_every_one_of_many_is_told(name: str) -> None:
    errors = [f for f in findings("\n".join(BODIES[name].format(i) for i in range(MANY))) if f.severity == "error"]
    assert len(errors) == MANY
    assert {f.message.split(" inside ")[0] for f in errors} == {"?x of A is not in scope"}


def test_many_legal_ones_are_looked_at_once() -> None:
    assert findings("".join(f"FILTER EXISTS {{ ?b :r{i} ?v{i} FILTER(?v{i} > ?x) }}" for i in range(MANY))) == ()
    chained = "".join(f"?b :r{i} ?v{i} . FILTER(?v{i} < ?v{i + 1})" for i in range(MANY)) + f"?b :s ?v{MANY} ."
    found = findings(chained + "FILTER(?v0 > 1) FILTER(?v9 > 'nine')")
    assert [f.code for f in found] == ["unjoined", "kinds"]


def test_nesting_is_answered_or_refused() -> None:
    for depth in (30, 3_000):
        inside = "FILTER EXISTS { ?b :r ?z " * depth + "FILTER(?z > ?x)" + "}" * depth
        text = HEAD % inside
        try:
            load(text)
        except oxiseq.QueryError as error:
            assert "nested too deeply" in str(error)
            assert depth > 30


@pytest.mark.parametrize("value", ['"', "\\", "} UNION { ?s ?p ?o", "\n\r\t", "\0", "\U0001f600", "a" * 100_000, "%b"])
def test_any_value_of_another_event_is_asked_as_it_is(value: str) -> None:
    def event(subject: str, predicate: str, value: str) -> Triple:
        return Triple(NamedNode(E + subject), NamedNode(E + predicate), Literal(value))

    text = HEAD % "FILTER EXISTS { ?o :is ?x }"
    first, same = event("a", "p", value), event("c", "is", value)
    other, second = event("c", "is", f"{value}."), event("b", "q", "1")
    found = oxiseq.run(text, {"S": [(1, [first]), (2, [second, other]), (3, [second, same])]})
    assert [m.events["B"][0][1] for m in found] == [3]


def test_a_large_event_is_read_once_however_many_wait() -> None:
    waiting = 200
    events = [(i, f'<{E}a> <{E}p> "{i}" .') for i in range(waiting)]
    things = "\n".join(f'<{E}t{i}> <{E}is> "{i}" .' for i in range(0, 4_000, 2))
    events.append((waiting, f'<{E}b> <{E}q> "1" .\n{things}'))
    begun = process_time()
    found = oxiseq.run(HEAD % "FILTER EXISTS { ?o :is ?x }", {"S": events})
    assert len(list(found)) == waiting / 2
    assert process_time() - begun < 10
