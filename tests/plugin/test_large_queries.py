"""Queries of a size that nobody writes by hand: read and planned in proportion to their length, or refused while they
are read."""

from __future__ import annotations

import gc
import re
import sys
from collections.abc import Callable, Iterator

import pytest
from profiles import in_the_gate

import oxiseq
from oxiseq.grammar import load
from oxiseq.grammar import trees as sizes

E = "http://e/"
P = f"PREFIX : <{E}> "
WINDOW = (
    P + "REGISTER RSTREAM :o AS SELECT * FROM NAMED WINDOW :w ON :s [RANGE PT10S STEP PT1S] WHERE { WINDOW :w { %s } }"
)
EP = P + "SELECT * FROM STREAM :s WHERE { %s }"
GPM = P + "SELECT * FROM STREAM S :s WHERE { SEQ(A) DEFINE GPM A ON S { %s } }"


def sequence(count: int) -> str:
    """SEQ of so many GPMs, each with variables of its own."""
    names = [f"G{number}" for number in range(count)]
    gpms = " ".join(f"DEFINE GPM {name} ON S {{ ?x{name} :p ?y{name} }}" for name in names)
    return P + f"SELECT * FROM STREAM S :s WHERE {{ SEQ({'; '.join(names)}) {gpms} }}"


def joined(count: int) -> str:
    """The same, joined by one variable."""
    return re.sub(r"\?xG\d+", "?x", sequence(count))


def ceql(count: int) -> str:
    return f"VOCAB <{E}> SELECT * FROM s WHERE {'; '.join(f'A{i} AS x{i}' for i in range(count))} WITHIN 10 SECONDS"


def patterns(count: int) -> str:
    return " ".join(f"?x{i} :p{i} ?x{i + 1} ." for i in range(count))


def filters(count: int) -> str:
    return "?x :p ?y " + " ".join(f"FILTER(?y > {i})" for i in range(count))


def optionals(count: int) -> str:
    return "?x :p ?y " + " ".join(f"OPTIONAL {{ ?x :q{i} ?z{i} }}" for i in range(count))


def rows(count: int) -> str:
    return "?x :p ?y VALUES (?y ?z) { " + " ".join(f"({i} :v{i})" for i in range(count)) + " }"


def ended(count: int) -> str:
    """SEQ with UNTIL, whose FILTER reads what the last GPM but one binds."""
    name = f"G{count - 2}"
    stop = (
        f"UNTIL U DEFINE GPM U ON S {{ ?x :u ?u FILTER(?u > ?y{name} && EVENTTIME() > TIMEOF({name})) }} DEFINE GPM G0 "
    )
    return joined(count).replace("DEFINE GPM G0 ", stop, 1)


SHAPES: dict[str, tuple[str, Callable[[int], str]]] = {
    "SEQ": ("spaseq", sequence),
    "SEQ joined by a variable": ("spaseq", joined),
    "SEQ with UNTIL": ("spaseq", ended),
    "FILTERs of a GPM": ("spaseq", lambda n: GPM % filters(n)),
    "triple patterns of a GPM": ("spaseq", lambda n: GPM % patterns(n)),
    "CEQL": ("ceql", ceql),
    "triple patterns of a window": ("rspql", lambda n: WINDOW % patterns(n)),
    "FILTERs of a window": ("rspql", lambda n: WINDOW % filters(n)),
    "VALUES": ("rspql", lambda n: WINDOW % rows(n)),
    "a path": ("rspql", lambda n: WINDOW % f"?x {'/'.join(f':p{i}' for i in range(n))} ?y"),
    "EP-SPARQL": ("epsparql", lambda n: EP % filters(n)),
    "EP-SPARQL's OPTIONAL": ("epsparql", lambda n: EP % optionals(n)),
    "EP-SPARQL's SEQ": ("epsparql", lambda n: EP % " SEQ ".join(f"{{ ?x{i} :p ?y{i} }}" for i in range(n // 3))),
}


def calls(work: Callable[[], object]) -> int:
    """How many functions are called meanwhile: a measure of work that no other process disturbs."""
    count = 0

    def profile(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    gc.disable()
    sys.setprofile(profile)
    try:
        work()
    finally:
        sys.setprofile(None)
        gc.enable()
    return count


def registered(language: str, text: str) -> Iterator[None]:
    oxiseq.Store().register(text, language=language)


IN_THE_GATE = {
    *("SEQ joined by a variable", "FILTERs of a GPM", "triple patterns of a GPM", "CEQL"),
    *("triple patterns of a window", "VALUES", "EP-SPARQL's SEQ"),
}


@pytest.mark.parametrize("shape", in_the_gate(IN_THE_GATE, SHAPES))
def test_work_grows_as_the_text_does(shape: str) -> None:
    """Four times the text is four times the work, not sixteen."""
    language, made = SHAPES[shape]
    registered_of = [lambda n=n: oxiseq.Store().register(made(n), language=language) for n in (10, 60, 240)]
    registered_of[0]()
    small, large = calls(registered_of[1]), calls(registered_of[2])
    assert large < 6 * small, (small, large)


@pytest.mark.parametrize("made", in_the_gate([joined], [sequence, joined]))
def test_a_thousand_patterns_of_a_sequence_cost_no_more_each_than_a_hundred(made: Callable[[int], str]) -> None:
    load(made(10))
    each = [calls(lambda n=n: oxiseq.Store().register(made(n))) / n for n in (100, 800)]
    assert each[1] < 1.3 * each[0]


@pytest.mark.parametrize("language", ["spaseq", "rspql", "epsparql", "ceql"])
def test_a_text_too_large_is_refused_where_it_is(monkeypatch: pytest.MonkeyPatch, language: str) -> None:
    """While it is read, with the place: what comes behind is not looked at, not even whether it is of the language."""
    monkeypatch.setattr(sizes, "MOST_TOKENS", 50)
    of = {
        "spaseq": GPM % filters(100),
        "rspql": WINDOW % filters(100),
        "epsparql": EP % filters(100),
        "ceql": ceql(100),
    }
    with pytest.raises(oxiseq.QueryError) as refused:
        load(of[language].replace("\n", " ") + " ) ) no query", language)
    assert refused.value.message == "the query is too large: 51 words, names, numbers and marks, at most 50 allowed"
    assert refused.value.code == "size" and refused.value.line == 1 and refused.value.column > 100
    assert str(refused.value).endswith("^" + " " * 0) or "^" in str(refused.value)


def test_a_sequence_of_too_many_patterns_is_refused_at_the_first_that_is_one_too_many() -> None:
    text = sequence(2_001) + " ) ) no query"
    with pytest.raises(oxiseq.QueryError) as refused:
        load(text)
    assert refused.value.message == "the query is too large: 2,001 graph patterns, at most 2,000 allowed"
    assert text[refused.value.span.start :].startswith("DEFINE GPM G2000 ")


def test_brackets_too_deep_are_refused_where_they_are() -> None:
    text = GPM % ("{" * 300 + "?s ?p ?o" + "}" * 300)
    with pytest.raises(oxiseq.QueryError) as refused:
        load(text)
    assert refused.value.message == "the query is nested too deeply: 257 brackets, at most 256 allowed"
    assert refused.value.span.start == text.index("{{{") + 254


PARTS = ["OPTIONAL {{ ?x :q{0} ?z{0} }}", ". ?x :q{0} ?z{0}", "BIND(?y + {0} AS ?z{0})"]


@pytest.mark.parametrize("part", in_the_gate(PARTS[:1], PARTS))
def test_parts_are_joined_as_deep_as_calls_may_be(part: str) -> None:
    """Of EP-SPARQL each part is joined with all before it; what is taken works, what would not is refused."""
    texts = [EP % f"?x :p ?y {' '.join(part.format(i) for i in range(n))}" for n in (299, 300)]
    store = oxiseq.Store()
    store.register(texts[0], language="epsparql")
    for time in (1, 2, 3):
        store.stream(f"{E}s").push(f"<{E}a> <{E}p> {time} .", time)
    with pytest.raises(oxiseq.QueryError, match="more than 300 parts joined") as refused:
        store.register(texts[1], language="epsparql")
    assert refused.value.code == "depth" and texts[1][refused.value.span.start :].startswith(
        part.format(299)[:4].strip(". ")
    )


def test_what_cannot_be_planned_is_refused_as_a_query(monkeypatch: pytest.MonkeyPatch) -> None:
    """No bare RecursionError, which a server would take for a fault of its own."""
    monkeypatch.setattr("oxiseq.grammar.epsparql.checks.MOST_JOINED", 100_000)
    with pytest.raises(oxiseq.QueryError, match="nested too deeply"):
        oxiseq.Store().register(EP % " SEQ ".join(["{ ?x :p ?y }"] * 1_200), language="epsparql")
