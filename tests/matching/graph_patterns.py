"""Random events and graph patterns, small enough to join often.

Rolled from one number, as in `tests/strategies.py`. Predicates are subjects too, values repeat in odd lexical
forms, and stand where doubles and floats end: 2^24, 2^53, 2^62, decimals of 18 digits, NaN, ±14 hours.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from pyoxigraph import BlankNode, Literal, NamedNode, Store, Triple, Variable
from reference.patterns import Mu, answer_kb, match_event, take_apart

from oxiseq.engine import kinds
from oxiseq.engine.events.batch import EventBatch
from oxiseq.engine.events.encode import encode_events
from oxiseq.engine.patterns.matcher import Occurrences, StreamMatcher
from oxiseq.engine.patterns.plan import GpmRequest
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.grammar.algebra import Gpm, Term
from oxiseq.grammar.parser import parse
from oxiseq.grammar.scope import split_gpm

E = "http://e/"
XSD = "http://www.w3.org/2001/XMLSchema#"
PREFIXES = f"PREFIX : <{E}> PREFIX xsd: <{XSD}> "
NODES = [NamedNode(E + name) for name in "abcd"] + [BlankNode("x"), BlankNode("y")]
PREDICATES = [NamedNode(E + name) for name in ("p", "q", "r", "a")]


def _typed(kind: str, *texts: str) -> list[Literal]:
    return [Literal(text, datatype=NamedNode(XSD + kind)) for text in texts]


PLAIN = _typed("integer", "1", "2", "3", "01") + _typed("decimal", "1.0", "2.5") + _typed("double", "2e0", "2.0")
ODD = [
    *_typed("integer", "16777217", "9007199254740993", "9007199254740992", "4611686018427387905", "9" * 20, "x"),
    *_typed("decimal", "0.1", "0.100000000000000000", "123456789012345678.5", "9007199254740993.0"),
    *_typed("double", "9007199254740992", "0.1", "NaN", "INF", "-0"),
    *_typed("float", "0.1", "16777216", "NaN"),
    *_typed("byte", "01", "300"),
    *_typed("boolean", "true", "0"),
    *_typed("dateTime", "2020-01-01T00:00:00Z", "2020-01-01T00:00:00+00:00", "2020-01-01T14:00:00"),
    *_typed("date", "2020-01-01"),
    Literal("a"),
    Literal(""),
    Literal("b"),
    Literal("a", language="EN"),
    Literal("a", language="en"),
    Literal("1", datatype=NamedNode(E + "unknown")),
]
CONSTANTS = [
    "1",
    "2.5",
    "2e0",
    '"0.1"^^xsd:float',
    "9007199254740992",
    '"a"',
    '""',
    "true",
    ":a",
    '"a"@en',
    '"2020-01-01T07:00:00"^^xsd:dateTime',
    "0.1",
]
VARIABLES = "xyzuv"


def random_event(dice: random.Random, most: int, odd: bool) -> list[Triple]:
    """Up to `most` triples, often the same ones in another form."""
    values = [*NODES, *NODES, *PLAIN, *PLAIN, *(ODD if odd else [])]
    return [
        Triple(dice.choice([*NODES, PREDICATES[3]]), dice.choice(PREDICATES), dice.choice(values))
        for _ in range(dice.randint(most // 2, most))
    ]


def random_bgp(dice: random.Random, blank: bool = True) -> str:
    """One to four triple patterns: stars, chains, cycles, cross products, whatever comes."""
    names = [f"?{v}" for v in VARIABLES[: dice.randint(1, 5)]]
    if blank and dice.random() < 0.3:
        names += ["_:n", "_:m"]
    patterns = []
    for _ in range(dice.choice([1, 1, 2, 2, 3, 4])):
        subject = dice.choice(names) if dice.random() < 0.93 else dice.choice([":a", ":b"])
        predicate = dice.choice([":p", ":q", ":r"])
        if dice.random() < 0.15:
            predicate = dice.choice([n for n in names if n[0] == "?"] + [":a"])
        object_ = dice.choice(names) if dice.random() < 0.9 else dice.choice([":a", "1", "2.5", '"a"@EN'])
        patterns.append(f"{subject} {predicate} {object_} .")
    return " ".join(patterns)


def random_condition(dice: random.Random, variables: Sequence[str], functions: bool = True) -> str:
    """A FILTER condition over the variables."""

    def operand() -> str:
        chosen = dice.choice(variables) if dice.random() < 0.7 else dice.choice(CONSTANTS)
        if dice.random() < 0.2:
            return f"({chosen} {dice.choice('+-*/')} {dice.choice([*variables, '2', '0.5', '1e0'])})"
        return chosen

    roll = dice.random()
    if functions and roll < 0.2:
        one = dice.choice(variables)
        return dice.choice(
            [
                f"REGEX(STR({one}), 'a')",
                f"STRLEN(STR({one})) > 1",
                f"isLiteral({one})",
                f"LANG({one}) = 'en'",
                f"STR({one}) < STR({dice.choice(variables)})",
                f"{one} < 'b'",
                f"BOUND({one})",
            ]
        )
    if roll < 0.3:
        return f"!({random_condition(dice, variables, functions)})"
    if roll < 0.45:
        connective = dice.choice(["&&", "||"])
        return f"({random_condition(dice, variables, functions)}) {connective} ({operand()} = {operand()})"
    if roll < 0.5:
        return f"{operand()} {dice.choice(['IN', 'NOT IN'])} ({operand()}, {operand()})"
    return f"{operand()} {dice.choice(['=', '!=', '<', '>', '<=', '>='])} {operand()}"


def parsed(body: str, name: str = "A") -> Gpm:
    """The GPM with this body."""
    text = f"SELECT * FROM STREAM S <{E}s> WHERE {{ SEQ({name}) DEFINE GPM {name} ON S {{ {body} }} }}"
    return parse(PREFIXES + text).gpms[0]


def request(gpm: Gpm, keep: Sequence[str] | None = None) -> GpmRequest:
    """A request that keeps all variables of the pattern, or those named."""
    parts = split_gpm(gpm)
    kept = parts.pattern_variables if keep is None else tuple(Variable(name) for name in keep)
    return GpmRequest(gpm.name, parts, kept)


def batch_of(events: Sequence[Sequence[Triple]], terms: TermDictionary) -> tuple[EventBatch, list[dict[int, Term]]]:
    """The batch, and for each event the ids of its blank nodes as the terms that stood there."""
    batch = encode_events(list(enumerate(events)), terms)
    labels: list[dict[int, Term]] = []
    for event, triples in enumerate(events):
        ids = (
            batch.subject[batch.offset[event] : batch.offset[event + 1]],
            batch.object[batch.offset[event] : batch.offset[event + 1]],
        )
        given = {}
        for s, o, triple in zip(*ids, triples, strict=True):
            given |= {int(i): t for i, t in ((s, triple.subject), (o, triple.object)) if isinstance(t, BlankNode)}
        labels.append(given)
    return batch, labels


def as_mappings(
    found: Occurrences, wanted: GpmRequest, labels: Sequence[dict[int, Term]], terms: TermDictionary
) -> list[list[Mu]]:
    """Per event its rows as mappings, in order."""
    rows: list[list[Mu]] = [[] for _ in labels]
    for event, ids in zip(found.event.tolist(), found.values.tolist(), strict=True):
        mapping = frozenset(
            (
                v,
                labels[event].get(i, BlankNode(f"kb{i}")) if terms.columns.kind[i] == kinds.BLANK else terms.term(i),
            )
            for v, i in zip(wanted.keep, ids, strict=True)
            if i != 0
        )
        rows[event].append(mapping)
    assert found.event.tolist() == sorted(found.event.tolist())
    return rows


def expected_mappings(gpm: Gpm, event: Sequence[Triple], kb: Store | None = None) -> set[Mu]:
    """The reference's answer."""
    parts = take_apart(gpm)
    return set(match_event(parts, event, answer_kb(parts, kb), kb))


def assert_as_expected(
    gpms: Sequence[Gpm],
    matcher: StreamMatcher,
    wanted: Sequence[GpmRequest],
    events: Sequence[Sequence[Triple]],
    terms: TermDictionary,
    comparable: Sequence[bool] = (),
    kb: Store | None = None,
) -> None:
    """What the matcher finds for the GPMs on the events, now, is what the reference finds, each mapping once.
    comparable: per GPM whether the reference's answer is known to be right."""
    batch, labels = batch_of(events, terms)
    for number, (gpm, one, found) in enumerate(zip(gpms, wanted, matcher.match(batch), strict=True)):
        if comparable and not comparable[number]:
            continue
        rows = as_mappings(found, one, labels, terms)
        for event, got in zip(events, rows, strict=True):
            assert len(set(got)) == len(got), "a mapping twice"
            assert set(got) == expected_mappings(gpm, event, kb), (str(gpm), event)
