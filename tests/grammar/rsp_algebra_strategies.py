"""Random queries over windows, as algebra: whatever can be written, whether or not it means something."""

from __future__ import annotations

from typing import Any

import algebra_strategies as s
from hypothesis import strategies as st

from oxiseq.grammar import algebra as a
from oxiseq.grammar import rsp_algebra as r

_names = st.sampled_from(["E1", "E2", "Firsts", "b_2"])
event_patterns: st.SearchStrategy[Any] = st.recursive(
    st.builds(a.EventName, _names),
    lambda e: st.one_of(
        st.builds(a.FirstOf, e), st.builds(a.LastOf, e), st.builds(a.Following, e, e, st.sampled_from(list(a.Choice)))
    ),
    max_leaves=5,
)
_sizes = st.one_of(st.integers(1, 10**12), st.sampled_from([60_000_000, 1_000, 86_400_000_000]))
_times = st.integers(-(10**15), 10**15)
_operators = st.one_of(
    st.builds(r.RangeWindow, _sizes, _sizes, st.booleans()),
    st.builds(r.LandmarkWindow, _times),
    st.builds(r.IntervalWindow, _times, _times),
    st.builds(r.IdentityWindow),
)
_windows = st.builds(r.NamedWindow, s.iris, s.some(_operators, 1), st.none() | s.iris)
_elements = st.one_of(
    st.builds(a.WindowPattern, s.variables | s.iris, s.groups),
    st.builds(a.MatchPattern, event_patterns),
    st.builds(a.OptionalPattern, st.builds(lambda w: a.Group((w,)), st.builds(a.WindowPattern, s.iris, s.groups))),
    st.builds(a.TriplePattern, s.subjects, s.verbs, s.objects),
)
_events = st.builds(r.EventDefinition, _names, s.iris, s.groups, st.sampled_from(["", "FIRST", "LAST"]))
_column = st.one_of(s.variables, st.tuples(s.plain_expressions, s.variables))
_keys = st.one_of(s.plain_expressions, st.tuples(s.plain_expressions, s.variables))
_count = st.none() | st.integers(0, 9)


@st.composite
def _bodies(draw: st.DrawFn, select: bool) -> a.SubSelect:
    modes = [(False, False), (True, False), (False, True)]
    distinct, reduced = draw(st.sampled_from(modes if select else modes[:1]))
    return a.SubSelect(
        draw(st.none() | s.some(_column, 1)) if select else None,
        draw(s.some(_elements, 0, 3).map(a.Group)),
        distinct,
        reduced,
        draw(s.some(_keys, 0, 2)),
        draw(s.some(s.plain_expressions, 0, 2)),
        draw(s.some(st.tuples(s.plain_expressions, st.booleans()), 0, 2)),
        draw(_count),
        draw(_count),
        draw(st.none() | s.inline),
    )


@st.composite
def rsp_queries(draw: st.DrawFn) -> r.RspQuery:
    """A query of one of the languages."""
    form = draw(st.sampled_from(["SELECT", "CONSTRUCT", "ASK"]))
    triples = st.builds(a.TriplePattern, s.subjects, s.verbs, s.objects)
    report = draw(st.none() | st.sampled_from(list(r.Report)))
    unique: Any = st.lists(s.iris, max_size=2, unique=True).map(tuple)
    return r.RspQuery(
        draw(st.sampled_from(["rspql", "spectra", "rsepql"])),
        form,
        draw(_bodies(form == "SELECT")),
        draw(s.some(_windows, 0, 3)),
        draw(s.some(_events, 0, 2)),
        draw(s.some(triples, 0, 3)) if form == "CONSTRUCT" else (),
        report,
        draw(st.none() | s.iris) if report is not None else None,
        draw(st.none() | st.sampled_from(list(r.Consume))),
        draw(st.none() | st.builds(a.OnChange) | st.builds(a.OnClose) | st.builds(a.Every, _sizes)),
        draw(unique),
        draw(unique),
        draw(s.prefixes),
        draw(st.none() | st.just("http://base/x/")),
    )
