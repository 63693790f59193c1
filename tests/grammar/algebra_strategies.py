"""Hypothesis strategies for algebra as the parser gives it.

Every value is in the parser's own form: sequences of two or more, a sub-query alone in its group, columns
of a template numbered in their order.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from pyoxigraph import BlankNode, Literal, NamedNode, Variable

from oxiseq.grammar import algebra as a

XSD = "http://www.w3.org/2001/XMLSchema#"

names = st.sampled_from(["A", "B", "C_1", "Rise", "WITHIN", "x"])
variables = st.sampled_from([Variable(n) for n in ("a", "b", "price2", "x_y", "SELECT")])
iris = st.sampled_from(
    [
        NamedNode(i)
        for i in (
            "http://e/a",
            "http://e/b#c",
            "http://e/b#",
            "http://e/b#x-y",
            "http://e/b#x.y",
            "urn:x:1",
            "http://e/%20é",
            "http://www.w3.org/1999/02/22-rdf-syntax-ns#type",
        )
    ]
)
blanks = st.sampled_from([BlankNode("x"), BlankNode("anon1"), BlankNode("b-1")])
_lexical = st.one_of(
    st.text(max_size=4, alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
    st.sampled_from(["1", "01", "-1", "+2.50", ".5", "1e3", "-1.5E-2", "true", "TRUE", "NaN", "a\"b'\\\n\r\t", "1."]),
)
_datatypes = st.sampled_from(
    [NamedNode(XSD + n) for n in ("integer", "decimal", "double", "boolean", "string", "date")]
    + [NamedNode("http://e/b#dt")]
)
literals = st.one_of(
    st.builds(Literal, _lexical),
    st.builds(lambda text, d: Literal(text, datatype=d), _lexical, _datatypes),
    st.builds(lambda text, tag: Literal(text, language=tag), _lexical, st.sampled_from(["en", "de-at"])),
)
subjects = st.one_of(variables, iris, blanks)
objects = st.one_of(variables, iris, blanks, literals)
verbs = st.one_of(variables, iris)


def pairs(items: st.SearchStrategy[object], most: int = 3) -> st.SearchStrategy[tuple[object, ...]]:
    """Two or more."""
    return st.lists(items, min_size=2, max_size=most).map(tuple)


def some(items: st.SearchStrategy[object], least: int = 0, most: int = 3) -> st.SearchStrategy[tuple[object, ...]]:
    return st.lists(items, min_size=least, max_size=most).map(tuple)


# --- paths ------------------------------------------------------------------------------------------

_negated = st.builds(a.PathNegated, some(st.one_of(iris, st.builds(a.PathInverse, iris)), 0, 2))
_any_path = st.recursive(
    st.one_of(iris, _negated),
    lambda p: st.one_of(
        st.builds(a.PathInverse, p),
        st.builds(a.PathSequence, pairs(p)),
        st.builds(a.PathAlternative, pairs(p)),
        st.builds(a.PathRepeat, p, st.sampled_from("*+?")),
    ),
    max_leaves=4,
)
paths = _any_path.filter(lambda p: not isinstance(p, NamedNode))

# --- expressions and patterns -----------------------------------------------------------------------

_BINARY = ["||", "&&", "=", "!=", "<", ">", "<=", ">=", "+", "-", "*", "/"]
_leaves = st.one_of(
    variables,
    iris,
    literals,
    st.builds(a.Prev, variables),
    st.sampled_from([a.MatchFunction("STARTTIME"), a.MatchFunction("TIMEOF", "A"), a.MatchFunction("COUNT", "B")]),
    st.just(a.Aggregate("COUNT", None)),
)


def _calls(e: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    two = st.tuples(e, e)
    return st.one_of(
        st.builds(a.Call, st.sampled_from(_BINARY), two),
        st.builds(a.Call, st.sampled_from(["!", "NEGATE", "PLUS"]), st.tuples(e)),
        st.builds(a.Call, st.sampled_from(["IN", "NOT IN"]), some(e, 1, 3)),
        st.builds(a.Call, st.just("REGEX"), two),
        st.builds(a.Call, st.just("COALESCE"), some(e)),
        st.builds(a.FunctionCall, iris, some(e, 1, 2), st.booleans()),
        st.builds(a.FunctionCall, iris, st.just(())),
        st.builds(a.Aggregate, st.sampled_from(["SUM", "COUNT"]), e, st.booleans()),
        st.builds(a.Aggregate, st.just("GROUP_CONCAT"), e, st.booleans(), st.sampled_from([None, ", ", '"'])),
    )


plain_expressions = st.recursive(_leaves, _calls, max_leaves=6)
_triples = st.one_of(
    st.builds(a.TriplePattern, subjects, verbs, objects), st.builds(a.PathPattern, subjects, paths, objects)
)


@st.composite
def _values(draw: st.DrawFn) -> a.Values:
    heads = draw(st.lists(variables, max_size=2, unique=True))
    row = st.tuples(*[st.one_of(iris, literals, st.none()) for _ in heads])
    return a.Values(tuple(heads), draw(some(row)))


inline = _values()


def _elements(groups: st.SearchStrategy[a.Group]) -> st.SearchStrategy[object]:
    e = st.one_of(plain_expressions, st.builds(a.Exists, groups, st.booleans()))
    return st.one_of(
        _triples,
        st.builds(a.Filter, e),
        st.builds(a.Bind, e, variables),
        _values(),
        st.builds(a.OptionalPattern, groups),
        st.builds(a.Minus, groups),
        st.builds(a.Union, pairs(groups)),
        st.builds(a.GraphPattern, st.one_of(variables, iris), groups),
        groups,
    )


def _sub_selects(groups: st.SearchStrategy[a.Group]) -> st.SearchStrategy[a.Group]:
    column = st.one_of(variables, st.tuples(plain_expressions, variables))
    mode = st.sampled_from([(False, False), (True, False), (False, True)])
    count = st.none() | st.integers(0, 9)

    def build(
        projection: Any,
        where: a.Group,
        modes: tuple[bool, bool],
        keys: Any,
        having: Any,
        order: Any,
        bounds: tuple[int | None, int | None],
        values: Any,
    ) -> a.Group:
        query = a.SubSelect(projection, where, *modes, keys, having, order, *bounds, values)
        return a.Group((query,))

    return st.builds(
        build,
        st.none() | some(column, 1),
        groups,
        mode,
        some(st.one_of(plain_expressions, st.tuples(plain_expressions, variables)), 0, 2),
        some(plain_expressions, 0, 2),
        some(st.tuples(plain_expressions, st.booleans()), 0, 2),
        st.tuples(count, count),
        st.none() | _values(),
    )


groups = st.recursive(
    some(_triples, 0, 3).map(a.Group),
    lambda inner: st.one_of(some(_elements(inner), 0, 3).map(a.Group), _sub_selects(inner)),
    max_leaves=4,
)

# --- SEQ --------------------------------------------------------------------------------------------

_ops = st.sampled_from(list(a.Op))


def _around(e: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    bounds = st.tuples(st.integers(0, 3), st.none() | st.integers(0, 3))
    return st.one_of(
        st.builds(a.Sequence, e, some(st.tuples(_ops, e), 1)),
        st.builds(a.Conjunction, pairs(e)),
        st.builds(a.Disjunction, pairs(e)),
        st.builds(lambda i, b, c: a.Repeat(i, b[0], b[1], c), e, bounds, st.none() | _ops),
        st.builds(a.Maybe, e),
        st.builds(a.Not, e),
        st.builds(a.Bounded, e, st.sampled_from(list(a.BoundKind)), st.integers(0, 10**12)),
    )


sequences = st.recursive(st.builds(a.Atom, names), _around, max_leaves=8)

# --- queries ----------------------------------------------------------------------------------------


@st.composite
def _constructs(draw: st.DrawFn) -> a.Construct:
    triples, columns = [], []
    for _ in range(draw(st.integers(0, 3))):
        target = draw(objects)
        if draw(st.booleans()):
            target = Variable(f"value{len(columns) + 1}")
            columns.append(a.Projection(target, draw(plain_expressions)))
        triples.append(a.TriplePattern(draw(subjects), draw(verbs), target))
    return a.Construct(tuple(triples), draw(st.none() | iris), tuple(columns))


selections = st.none() | st.builds(a.Selection, st.sampled_from(list(a.Strategy)))
consumptions = st.none() | st.builds(a.Consumption, st.booleans())
limits = st.none() | st.builds(a.Limit, st.integers(0, 9))
_iterations = st.builds(a.Aggregate, st.sampled_from(["FIRST", "LAST"]), variables)
_shown = st.one_of(plain_expressions, st.builds(a.Aggregate, st.sampled_from(["SUM", "AVG", "MIN"]), _iterations))
_reports = st.one_of(
    st.none(),
    st.builds(a.OnChange),
    st.builds(a.OnClose),
    st.builds(a.Every, st.one_of(st.integers(0, 10**12), st.sampled_from([1_000, 60_000_000, 86_400_000_000]))),
)
summaries = st.builds(
    a.Summary,
    some(st.one_of(plain_expressions, st.tuples(plain_expressions, variables)), 0, 2),
    some(_shown, 0, 2),
    some(st.tuples(_shown, st.booleans()), 0, 2),
    _reports,
)
_forms = st.one_of(
    st.just(a.Ask()),
    st.builds(
        a.Select,
        st.none() | some(st.builds(a.Projection, variables, st.none() | plain_expressions), 1),
        st.booleans(),
        selections,
    ),
    _constructs(),
)
windows = st.builds(
    a.Window,
    st.one_of(st.integers(1, 10**12), st.sampled_from([60_000_000, 1_000, 86_400_000_000])),
    st.booleans(),
    st.booleans(),
)
prefixes = st.dictionaries(
    st.sampled_from(["", "e", "ex-1"]), st.sampled_from(["http://e/", "http://e/b#", "urn:x:"]), max_size=3
).map(lambda p: tuple(p.items()))
queries = st.builds(
    a.Query,
    _forms,
    some(st.builds(a.Stream, names, iris)),
    sequences,
    some(st.builds(a.Gpm, names, names, groups), 0, 2),
    st.none() | windows,
    prefixes,
    st.none() | st.just("http://base/x/"),
    st.none() | st.builds(a.Partition, some(variables, 1)),
    consumptions,
    limits | st.builds(a.Limit, st.integers(1, 9), st.integers(0, 9)),
    some(st.builds(a.Filter, plain_expressions), 0, 2),
    st.none() | sequences,
    summaries,
    st.none() | st.builds(a.Sample, st.integers(1, 9), st.integers(0, 9)),
)
