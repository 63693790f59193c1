"""Small SEQ expressions and what they are compiled to: ways, guards, states, live keys, indexes."""

from __future__ import annotations

import pytest
from engine_runs import query
from loaded import load
from pyoxigraph import Variable

from oxiseq.engine.errors import LimitError
from oxiseq.engine.plan.query import QueryPlan, compile_query
from oxiseq.engine.sequence.positions import START, Automaton, Guard, Position, build_automaton
from oxiseq.engine.sequence.states import Value, ValueKind
from oxiseq.engine.terms.dictionary import TermDictionary


def plan(text: str) -> QueryPlan:
    return compile_query(load(text), TermDictionary())


def automaton(sequence: str, window: str = "WITHIN 1 HOUR") -> Automaton:
    return build_automaton(load(query(sequence, window)).sequence)


def letters(position: Position) -> str:
    return "|".join("&".join(letter) for letter in position.letters)


def guard(found: Guard) -> str:
    """`N`; of a negated group `(N;M)`, its steps."""
    steps = ["|".join("&".join(letter) for letter in step) for step in found.steps]
    return steps[0] if len(steps) == 1 else f"({';'.join(steps)})"


def ways(found: Automaton) -> set[str]:
    """`A;B`: from A to B by `;`; `A;!NB` with N absent; `^A`: A begins; `B$`: B may end (`B!N$` if N is absent)."""

    def name(at: int) -> str:
        """The letters, with the number of the copy if there are several."""
        text = letters(found.positions[at])
        same = [i for i, p in enumerate(found.positions) if letters(p) == text]
        return text if len(same) == 1 else f"{text}{same.index(at) + 1}"

    made = set()
    for way in found.transitions:
        guards = "".join("!" + guard(g) for g in way.left + way.right)
        source = "^" if way.source == START else name(way.source) + way.op.value
        made.add(f"{source}{guards}{name(way.target)}")
    for ending in found.endings:
        made.add(name(ending.source) + "".join("!" + guard(g) for g in ending.guards) + "$")
    return made


WAYS = {
    "A": "^A A$",
    "A; B": "^A A;B B$",
    "A, B: C": "^A A,B B:C C$",
    "A; (B, C)": "^A A;B B,C C$",
    "A & B": "^A&B A&B$",
    "A; (B | C)": "^A A;B|C B|C$",
    "(A | B) & C": "^A&C|B&C A&C|B&C$",
    "A; ((B, C) | D)": "^A A;B A;D B,C C$ D$",
    "A+; B": "^A A;A A;B B$",  # nothing positive before it: Definition 13
    "A; B+; C": "^A A;B B,B B;C C$",  # Definition 14
    "A; B:+": "^A A;B B:B B$",
    "A{2}; B": "^A1 A1;A2 A2;B B$",
    "A; B{1,2}": "^A A;B1 B1,B2 B1$ B2$",
    "A; B{2,}": "^A A;B1 B1,B2 B2,B2 B2$",
    "A; B{0,2}; C": "^A A;B1 B1,B2 B1;C B2;C A;C C$",
    "A?; B": "^A ^B A;B B$",
    "A; B?, C": "^A A;B B,C A,C C$",
    "A; B?": "^A A;B A$ B$",
    "A; N!; B": "^A A;!NB B$",
    "A, N!; B": "^A A;!NB B$",
    "A; N!; B!, C": "^A A,!N!BC C$",
    "A; (N | B)!; C": "^A A;!N!BC C$",
    "A; (N & B)!; C": "^A A;!N&BC C$",
    "N!; A; B": "^!NA A;B B$",
    "A; N!": "^A A!N$",
    "A; B?; N!; C": "^A A;B A;!NC B;!NC C$",
    "N!; B?; C": "^!NB ^!NC B;C C$",
    "(A; B)+; C": "^A A;B B;A B;C C$",
    "A; (B; C)+": "^A A;B B;C C,B C$",
}


@pytest.mark.parametrize("sequence", WAYS)
def test_ways_of_a_sequence(sequence: str) -> None:
    assert ways(automaton(sequence)) == set(WAYS[sequence].split())


def test_a_repeat_that_a_skip_brings_to_the_front_chains_by_its_place() -> None:
    """`A?; B+`: by `;` where A is skipped, by `,` where it is taken."""
    assert ways(automaton("A?; B+")) == {"^A", "^B1", "A;B2", "B1;B1", "B2,B2", "B1$", "B2$"}


@pytest.mark.parametrize(
    ("sequence", "ambiguous"),
    [("A; B+; C", False), ("(A+)+", True), ("(A+; B)+", False), ("A{1,2}:+; B", True), ("A; (B | C)", False)],
)
def test_ambiguous_sequences_are_marked(sequence: str, ambiguous: bool) -> None:
    assert automaton(sequence).ambiguous is ambiguous


def test_loops_of_positions() -> None:
    a, b, c = automaton("(A; B+)+; C").positions
    assert (len(a.loops), len(b.loops), len(c.loops)) == (1, 2, 0)
    assert b.loops[0] == a.loops[0]


# --- live keys --------------------------------------------------------------------------------------


def keys(text: str) -> dict[str, set[str]]:
    """`AB` (from A to B) → what its runs are still asked for; `A$` waits for its window to end."""
    found = plan(text)
    graph = found.runner.sequence.graph
    made: dict[str, set[str]] = {}
    for edge, key in zip(graph.edges, found.runner.sequence.keys, strict=True):
        source = (
            "^"
            if edge.source == START
            else letters(found.runner.automaton.positions[graph.states[edge.source].position])
        )
        target = "|".join("&".join(arm.letter) for arm in edge.arms) or "$"
        made.setdefault(source + target, set()).update(value_text(value) for value in key)
    return made


def value_text(value: Value) -> str:
    if value.variable is None:
        return value.kind.value
    mark = "previous " if value.kind is ValueKind.PREVIOUS else ""
    return mark + value.variable.value


V_SHAPE = query(
    "A; B; C",
    "WITHIN 1 HOUR",
    A="KEYED",
    B="KEYED FILTER(?bv < ?av)",
    C="KEYED FILTER(?cv > ?bv)",
)


def test_v_shape_forgets_the_first_price() -> None:
    assert keys(V_SHAPE) == {"^A": set(), "AB": {"k", "av"}, "BC": {"k", "bv"}}


def test_what_nothing_asks_for_is_not_kept() -> None:
    assert keys(query("A; B; C")) == {"^A": set(), "AB": set(), "BC": set()}
    assert keys(query("A; B; C", A="KEYED", B="KEYED")) == {"^A": set(), "AB": {"k"}, "BC": set()}
    assert keys(query("A; B; C", C="FILTER(?cv > ?av)")) == {"^A": set(), "AB": {"av"}, "BC": {"av"}}


def test_a_row_supplies_what_it_joins_on() -> None:
    """B brings ?k again, hence the run need not keep A's."""
    (edge,) = [e for e in plan(V_SHAPE).runner.sequence.graph.edges if e.arms and e.arms[0].letter == ("B",)]
    assert [(v.value, value_text(x)) for v, x in edge.arms[0].check.equal] == [("k", "k")]


def test_guards_are_asked_too() -> None:
    assert keys(query("A; N!; B", N="FILTER(?nv > ?av)"))["AB"] == {"av"}
    assert keys(query("A, N!, B", N="FILTER(?nv > ?av)"))["AB"] == set()  # vacuous: nothing stands in between


def test_a_loop_keeps_the_previous_iteration_only() -> None:
    rising = keys(query("A; B;+; C", A="KEYED", B="KEYED FILTER(?bv > PREV(?bv))", C="KEYED"))
    assert rising["AB"] == {"k"}
    assert rising["BB"] >= {"k", "bv"}
    assert "av" not in rising["BB"]
    assert rising["BC"] == {"k"}


def test_iterations_are_fresh_and_the_last_one_stays() -> None:
    """?bv of one iteration does not join the next one's; C compares with the last."""
    found = keys(query("A; B+; C", C="FILTER(?cv > ?bv)"))
    assert found["BB"] == set()
    assert found["BC"] == {"bv"}


def test_trailing_negation_in_a_sliding_window_keeps_the_start() -> None:
    assert keys(query("A; N!", "WITHIN 1 HOUR SLIDING", A="KEYED", N="KEYED"))["A$"] == {"k", "start"}
    assert keys(query("A; N!", "WITHIN 1 HOUR", A="KEYED", N="KEYED"))["A$"] == {"k"}


def test_leading_negation_in_a_sliding_window_keeps_its_last_clock() -> None:
    assert keys(query("N!; A; B", "WITHIN 1 HOUR SLIDING"))["AB"] == {"negated"}
    assert keys(query("N!; A; B", "WITHIN 1 HOUR"))["AB"] == set()


# --- states -----------------------------------------------------------------------------------------


def test_a_state_knows_what_is_bound() -> None:
    """After `A?; B` a run has met A or not: C's filter on ?av needs two states of B."""
    found = plan(query("A?; B; C", C="FILTER(?cv > ?av)"))
    positions = [letters(found.runner.automaton.positions[s.position]) for s in found.runner.sequence.graph.states]
    assert sorted(positions) == ["A", "B", "B", "C", "C"]
    assert Variable("av") in {v.variable for s in found.runner.sequence.graph.states for v in s.values}


def test_irrelevant_skips_share_their_states() -> None:
    found = plan(query("A?; B?; C?; D"))
    assert len(found.runner.sequence.graph.states) == 4


def shared_optionals(count: int) -> str:
    """A query with `count` optional parts whose values the last filter adds up."""
    names = [f"G{i}" for i in range(count)]
    gpms = "\n".join(f"DEFINE GPM {n} ON S {{ ?x{n} :v ?{n} }}" for n in names)
    total = " + ".join(f"?{n}" for n in names)
    return (
        f"PREFIX : <http://e/> SELECT * WITHIN 1 HOUR FROM STREAM S <http://e/s1> WHERE {{ "
        f"SEQ({'?; '.join(names)}?; Z)\n{gpms}\nDEFINE GPM Z ON S {{ ?z :v ?zv FILTER(?zv > {total}) }} }}"
    )


def test_too_many_states_are_refused() -> None:
    assert len(plan(shared_optionals(4)).runner.sequence.graph.states) <= 2**5
    with pytest.raises(LimitError, match="states") as refusal:
        plan(shared_optionals(14))
    assert refusal.value.given > refusal.value.limit


def test_too_many_positions_are_refused() -> None:
    assert len(automaton("A{1,2000}").positions) == 2_000
    with pytest.raises(LimitError, match="positions"):
        automaton("A{1,3000}")
    with pytest.raises(LimitError, match="positions"):
        automaton("(A{100}; B{100}){100}")


# --- indexes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (query("A; B", A="KEYED", B="KEYED"), ("key",)),
        (query("A; B", B="FILTER(?bv > ?av)"), ("heap",)),
        (query("A; B", B="FILTER(?bv = ?av)"), ("list",)),
        (query("A; B", B="FILTER(?bv != ?av)"), ("list",)),
        (query("A; B", B="FILTER(?bv > ?av || ?bv < 3)"), ("list",)),
        (query("A; B", B="FILTER(?bv != ?av && ?bv < ?av)"), ("heap",)),
        (query("A, B", B="FILTER(?bv > ?av)"), ("chain",)),
        (query("A; N!; B", A="KEYED", N="KEYED", B="KEYED"), ("key", "stamp")),
        (query("A; N!; B", N="FILTER(?nv > ?av)"), ("list", "heap")),
        (query("A; N!; B", N="FILTER(?nv != ?av)"), ("list", "list")),
    ],
    ids=lambda given: given.partition("SEQ")[2] if isinstance(given, str) else "+".join(given),
)
def test_index_of_the_last_edge(text: str, words: tuple[str, ...]) -> None:
    assert plan(text).runner.sequence.indexes[-1] == words
