"""Hypothesis strategies for small EP-SPARQL queries, rules, streams and knowledge bases."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from pyoxigraph import BlankNode, Literal, NamedNode, Triple, Variable

from oxiseq.grammar import algebra as a
from oxiseq.grammar.ep_algebra import EpQuery

XSD = "http://www.w3.org/2001/XMLSchema#"
E = "http://e/"
PREDICATES = [NamedNode(E + n) for n in "pqr"]
THINGS = [NamedNode(E + n) for n in "xy"]
NUMBERS = [Literal(n) for n in (1, 2)]
VARIABLES = [Variable(n) for n in "stuv"]

variables = st.sampled_from(VARIABLES)
_subjects = st.one_of(variables, variables, variables, st.sampled_from(THINGS))
_objects = st.one_of(variables, variables, variables, st.sampled_from([*THINGS, *NUMBERS]))
_verbs = st.one_of(*[st.sampled_from(PREDICATES)] * 5, variables)
triples = st.builds(a.TriplePattern, _subjects, _verbs, _objects)

_iris = st.sampled_from(PREDICATES)
_paths = st.recursive(
    _iris | st.builds(a.PathNegated, st.lists(_iris | st.builds(a.PathInverse, _iris), max_size=2).map(tuple)),
    lambda p: st.one_of(
        st.builds(a.PathInverse, p),
        st.builds(a.PathSequence, st.tuples(p, p)),
        st.builds(a.PathAlternative, st.tuples(p, p)),
        st.builds(a.PathRepeat, p, st.sampled_from("*+?")),
    ),
    max_leaves=3,
).filter(lambda p: not isinstance(p, NamedNode))
_path_patterns = st.builds(a.PathPattern, _subjects, _paths, _objects)

# --- conditions -------------------------------------------------------------------------------------

_lengths = st.one_of(
    st.integers(0, 6).map(Literal),
    st.sampled_from(["PT0.000002S", "PT0.000003S", "PT0.0000025S", "-PT1S"]).map(
        lambda t: Literal(t, datatype=NamedNode(XSD + "duration"))
    ),
    st.just(Literal("PT0.000004S", datatype=NamedNode(XSD + "dayTimeDuration"))),
    variables,
)
_moments = st.one_of(
    st.integers(0, 6).map(Literal),
    st.integers(0, 6).map(lambda n: Literal(f"1970-01-01T00:00:00.00000{n}Z", datatype=NamedNode(XSD + "dateTime"))),
)
_comparison = st.sampled_from(["<", "<=", ">", ">=", "=", "!="])


def _call(*args: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.builds(a.Call, _comparison, st.tuples(*args))


_duration = st.just(a.MatchFunction("getDURATION"))
_time = st.sampled_from([a.MatchFunction("getSTARTTIME"), a.MatchFunction("getENDTIME")])
_plain = st.one_of(
    _call(variables, variables),
    _call(variables, st.sampled_from([*NUMBERS, *THINGS])),
    st.builds(lambda v: a.Call("BOUND", (v,)), variables),
)
_timed = st.one_of(*[_call(_duration, _lengths)] * 2, _call(_lengths, _duration), _call(_time, _moments))
_simple = st.one_of(_plain, _timed)
conditions = st.one_of(
    _simple,
    _simple,
    st.builds(lambda x, y: a.Call("&&", (x, y)), _simple, _simple),
    st.builds(lambda x, y: a.Call("||", (x, y)), _simple, _simple),
    st.builds(lambda x: a.Call("!", (x,)), _simple),
)

# --- patterns ---------------------------------------------------------------------------------------


@st.composite
def _values(draw: st.DrawFn) -> a.Values:
    heads = draw(st.lists(variables, min_size=1, max_size=2, unique=True))
    cell = st.one_of(st.sampled_from([*THINGS, *NUMBERS]), st.none())
    return a.Values(tuple(heads), tuple(draw(st.lists(st.tuples(*[cell for _ in heads]), max_size=3))))


_basic = st.lists(triples, min_size=1, max_size=2).map(lambda t: a.Group(tuple(t)))
_operators = st.sampled_from(list(a.TimeOp))


def _elements(groups: st.SearchStrategy[a.Group]) -> st.SearchStrategy[Any]:
    timed = st.builds(a.TimedPattern, _operators, groups, groups)
    return st.one_of(
        triples,
        timed,
        timed,
        st.builds(a.TimedPattern, _operators, timed, groups),
        _path_patterns,
        st.builds(a.Union, st.tuples(groups, groups)),
        st.builds(a.TimedPattern, _operators, groups, st.builds(a.Union, st.tuples(groups, groups))),
        st.builds(a.OptionalPattern, groups),
        st.builds(a.Minus, groups),
        st.builds(a.Filter, conditions),
        st.builds(a.Filter, conditions),
        st.builds(a.Filter, st.builds(a.Exists, groups, st.booleans())),
        st.builds(a.Filter, st.builds(lambda e: a.Call("!", (e,)), st.builds(a.Exists, groups, st.booleans()))),
        st.builds(a.Bind, st.one_of(_duration, variables.map(lambda v: a.Call("+", (v, Literal(1))))), variables),
        _values(),
        st.builds(a.GraphPattern, st.just(NamedNode(E + "g")), _basic),
        groups,
    )


def _sub_selects(groups: st.SearchStrategy[a.Group]) -> st.SearchStrategy[a.Group]:
    chosen = st.none() | st.lists(variables, min_size=1, max_size=2, unique=True).map(tuple)
    return st.builds(lambda where, p, d: a.Group((a.SubSelect(p, where, distinct=d),)), groups, chosen, st.booleans())


def _deeper(groups: st.SearchStrategy[a.Group]) -> st.SearchStrategy[a.Group]:
    plain = st.lists(_elements(groups), min_size=1, max_size=3).map(lambda e: a.Group(tuple(e)))
    return st.one_of(plain, plain, plain, _sub_selects(groups))


groups = st.recursive(_basic, _deeper, max_leaves=4)
wide_groups = st.lists(_elements(groups), min_size=1, max_size=3).map(lambda e: a.Group(tuple(e)))
_distinct = st.sampled_from([False, False, True])
queries = st.builds(lambda where, d: EpQuery(a.Select(None, d), where), wide_groups, _distinct)


@st.composite
def chains(draw: st.DrawFn, plain: bool = False) -> EpQuery:
    """SEQs of triple patterns, mostly answered; `plain`: with nothing but conditions."""
    operands: list[Any] = []
    for number in range(draw(st.integers(2, 3))):
        subject = draw(st.sampled_from([VARIABLES[0], VARIABLES[0], Variable(f"s{number}")]))
        inside: list[Any] = [a.TriplePattern(subject, draw(st.sampled_from(PREDICATES[:2])), Variable(f"o{number}"))]
        if plain and draw(st.booleans()):
            inside.append(a.Filter(draw(_plain)))
        elif not plain and draw(st.integers(0, 5)) == 0:
            inside.append(draw(st.one_of(triples, _path_patterns, st.builds(a.OptionalPattern, _basic))))
        operands.append(a.Group(tuple(inside)))
        if not plain and draw(st.integers(0, 7)) == 0:
            operands[-1] = a.Union((operands[-1], draw(_basic)))
    found, *rest = operands
    for operand in rest:
        found = a.TimedPattern(a.TimeOp.SEQ, found, operand)
    same = st.builds(a.Call, st.sampled_from(["=", "!="]), st.tuples(variables, variables))  # Oxigraph orders IRIs
    beside = [st.builds(a.Filter, same)] if plain else [st.builds(a.Filter, conditions), st.builds(a.Minus, _basic)]
    more = draw(st.lists(st.one_of(beside), max_size=1))
    return EpQuery(a.Select(None, False), a.Group((found, *more)))


# --- rules ------------------------------------------------------------------------------------------

_made = st.builds(
    a.TriplePattern,
    st.one_of(variables, st.sampled_from(THINGS)),
    st.sampled_from(PREDICATES),
    st.one_of(variables, variables, st.sampled_from([*THINGS, *NUMBERS]), st.just(BlankNode("n"))),
)
rules = st.builds(lambda t, where: EpQuery(a.Construct((t,)), where), _made, groups)

# --- streams and knowledge --------------------------------------------------------------------------


def facts_of(predicates: list[NamedNode]) -> st.SearchStrategy[Triple]:
    """Triples."""
    return st.builds(Triple, st.sampled_from(THINGS), st.sampled_from(predicates), st.sampled_from([*THINGS, *NUMBERS]))


facts = facts_of(PREDICATES)


@st.composite
def streams(
    draw: st.DrawFn, most: int = 5, least: int = 1, made: st.SearchStrategy[Triple] = facts
) -> list[tuple[int, int, list[Triple]]]:
    """(start, end, triples) in order of ends, of which several may be the same."""
    events = []
    end = 0
    for _ in range(draw(st.integers(least, most))):
        end += draw(st.integers(0, 2))
        start = draw(st.sampled_from([end, end, end, max(end - 1, 0), max(end - 2, 0)]))
        events.append((start, end, draw(st.lists(made, min_size=1, max_size=2))))
    return events
