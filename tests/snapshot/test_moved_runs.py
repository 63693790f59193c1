"""Single cases: another process, long streams of every index, labels of blank nodes, what the KB answered before."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "engine"))
import numpy as np
from engine_cases import CASES
from engine_runs import STREAM, Driven, E, query, random_readings
from loaded import load
from profiles import in_the_gate
from pyoxigraph import Literal
from saved_runs import Life

from oxiseq.engine.cea.plan import compile_ceql
from oxiseq.engine.events.encode import encode_events
from oxiseq.engine.matches.partitions import PartitionTable
from oxiseq.engine.run.tuples import TupleRun
from oxiseq.engine.snapshot.container import unpack
from oxiseq.engine.snapshot.saving import restore, save
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.saved import KnownTerms, SavedTerms

PROGRAM = Path(__file__).with_name("other_process.py")


def test_another_process_goes_on(tmp_path: Path) -> None:
    text = query("A; B+; C", "WITHIN PT0.0001S SLIDING", A="KEYED", B="KEYED FILTER(?bv > ?av)", C="KEYED")
    readings = random_readings(7, 600, "abcn")
    expected = Driven(text).answer(readings)
    here = Driven(text)
    here.push(readings[:300])
    first = here.advance()
    (tmp_path / "snapshot").write_bytes(save(here.run, here.terms))
    arguments = [sys.executable, PROGRAM, tmp_path / "snapshot", text, "300"]
    there = subprocess.run(arguments, capture_output=True, text=True, timeout=600, check=False)
    assert there.returncode == 0, there.stderr
    rest = ast.literal_eval(there.stdout)
    assert first and rest
    assert first + rest == expected


@pytest.mark.parametrize("name", in_the_gate([*CASES][::3], CASES))
def test_long_stream(name: str) -> None:
    text = CASES[name][1]
    readings = random_readings(len(name), 400, "abcn")
    expected = Driven(text).answer(readings)
    moving, found = Driven(text), []
    for low in range(0, len(readings), 40):
        moving.push(readings[low : low + 40])
        found += moving.advance()
        other = Driven(text)
        other.terms.intern_all(Literal(f"another {n}") for n in range(low))
        other.run = restore(save(moving.run, moving.terms), other.plan, other.terms, other.kb)
        moving = other
    assert found + moving.finish() == expected


def labels(life: Life) -> list[str]:
    return [columns[0] for _, columns, _ in life.found]


def test_blank_nodes_keep_their_labels_where_none_has_been_made() -> None:
    text = query("A; B", "", "SELECT ?a")
    event = f"_:x <{E}kind> <{E}a> . _:x <{E}k> 1 . _:x <{E}v> 1 ."
    second = event.replace(f"<{E}a>", f"<{E}b>")
    life = Life(text)
    for time in (1, 2):
        life.push(STREAM, (time, event.replace("1 .", f'"{time}" .')))
    life.move(TermDictionary())
    life.push(STREAM, (3, second.replace("1 .", '"3" .')))
    life.finish()
    kept = labels(life)
    made = life.terms.text(life.terms.blank())
    assert len(set(kept)) == 2 and {int(label[3:].partition("@")[0]) for label in kept} == {1, 2}
    assert int(made[3:]) > 2


def test_rows_keep_what_the_kb_answered_for_them() -> None:
    """The KB changes while nothing runs: a match of a row that came before is enriched by the answer of then, of
    which nothing else is saved."""
    text = query("A; B", "", "SELECT ?limit", A="GRAPH :g { ?e :of ?k ; :limit ?limit }").replace("?ak", "?k")
    then = f"_:x <{E}of> <{E}key> <{E}g> .\n_:x <{E}limit> <urn:then> <{E}g> .\n"
    others = [f"<{E}e{n}> <{E}of> <{E}k{n}> <{E}g> .\n<{E}e{n}> <{E}limit> <urn:{n}> <{E}g> .\n" for n in range(99)]
    event = f'<{E}t> <{E}kind> <{E}a> . <{E}t> <{E}k> <{E}key> . <{E}t> <{E}v> "1" .'
    life = Life(text, then + "".join(others))
    life.push(STREAM, (1, event))
    life.push(STREAM, (2, event))
    life.advance()
    assert b"urn:then" in texts_of(life) and b"urn:98" not in texts_of(life)
    life.kb_text = then.replace("then", "now")
    life.move(TermDictionary())
    life.push(STREAM, (3, event.replace(f"<{E}a>", f"<{E}b>")))
    life.finish()
    assert sorted(labels(life)) == ["<urn:now>", "<urn:then>"]  # of the event that waited, and of the row


def texts_of(life: Life) -> bytes:
    """The texts that a snapshot holds."""
    text: bytes = unpack(save(life.run, life.terms))["terms"]["text"].tobytes()
    return text


def test_a_blank_node_of_before_is_no_value_of_afterwards() -> None:
    """PARTITION BY an attribute whose values are blank nodes: the labels of new ones may be those of old ones."""
    text = "VOCAB <http://e/> SELECT * FROM s1 WHERE A; B PARTITION BY [k]"
    rdf_type = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
    terms = TermDictionary()
    run = TupleRun(compile_ceql(load(text, "ceql")), terms)
    a, b = (f"<{E}t> <{rdf_type}> <{E}{kind}> .\n<{E}t> <{E}k> _:value .\n" for kind in "AB")
    run.push(STREAM, encode_events([(1, a)], terms))
    run.advance()
    other = TermDictionary()
    moved = restore(save(run, terms), compile_ceql(load(text, "ceql")), other)
    moved.push(STREAM, encode_events([(2, b)], other))
    moved.settle()
    assert moved.advance() == []
    assert moved.state["partitions"] == 2


def test_a_blank_node_of_the_kb_is_the_one_that_the_dictionary_knows() -> None:
    """As when several runs, each saved alone, go on in one dictionary."""
    terms = TermDictionary()
    nodes = np.array([terms.kb_blank("x"), terms.blank(), terms.kb_blank("y")], np.uint32)
    named = SavedTerms(terms)
    named.ids(nodes)
    state, fresh, other = named.state(), TermDictionary(), TermDictionary()
    x, _, y = KnownTerms(state, fresh).ids(nodes).tolist()
    assert fresh.kb_blanks == {"x": x, "y": y}
    assert [fresh.text(x), fresh.text(y)] == [terms.text(int(nodes[0])), terms.text(int(nodes[2]))]
    known = other.kb_blank("y")
    for _ in range(2):
        ids = KnownTerms(state, other).ids(nodes).tolist()
        assert len({*ids, 0}) == 4
        assert ids[2] == known
        assert other.kb_blanks == {"y": known, "x": ids[0]}


class Everything:
    """A runner that remembers something of each partition."""

    records = 0

    def begin_partitions(self, fresh: np.ndarray, count: int) -> None:
        pass

    def partitions_in_use(self, count: int) -> np.ndarray:
        return np.ones(count, np.bool_)


def test_partitions_are_numbered_as_before() -> None:
    terms, other = TermDictionary(), TermDictionary()
    values = [Literal("a\nb"), Literal("x", language="en"), Literal("1"), Literal("")]
    rows = np.array([terms.intern_all(values), terms.intern_all(values[::-1])]).T
    table, again = (PartitionTable(2, Everything(), 1, each) for each in (terms, other))
    numbers = table.number(rows)
    named = SavedTerms(terms)
    state = table.save(named)
    other.intern_all([Literal("new"), *values])
    again.restore(state, KnownTerms(named.state(), other))
    moved = np.array([other.intern_all(values), other.intern_all(values[::-1])]).T
    assert again.find(moved).tolist() == numbers.tolist() and sorted(numbers) == [0, 1, 2, 3]
    assert again.number(moved[:, ::-1]).tolist() == numbers[::-1].tolist()
    assert again.number(moved[:, [0, 0]]).min() == 4 and again.live == 8
    assert table.bytes > 2 * sum(len(str(value)) for value in values)
