"""No query harms another: each finds what it finds alone, whatever else is registered, comes and goes.

Up to fifty SPAseq queries of one store: random ones, and relatives of each other (the same under another name, with
variables or GPMs named otherwise, with other thresholds, windows and answers). What is compared, and how, is in
among_others.py. A failure is made small and printed as a script.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import astuple
from random import Random

import pytest
from among_others import (
    Close,
    Forget,
    Look,
    Player,
    Punctuate,
    Push,
    Register,
    Remove,
    Restart,
    Seen,
    Settle,
    Situation,
    Step,
    Tag,
    difference,
    pasted,
    reduced,
)
from engine_runs import E, query
from hypothesis import Phase, given
from hypothesis import strategies as st
from loaded import load
from profiles import drawn
from store_worlds import Given, World
from strategies import SMALL, Dice, graph, knowledge, n_triples_term, situation
from test_ranking_differential import ranked
from test_shared_runs import KEYED, WINDOWS, alike, of_endings, of_thresholds, of_windows, random_query
from test_summaries_differential import summarised

from oxiseq.engine.sharing.dispatching import Outcome
from oxiseq.grammar.errors import QueryError

WITHOUT_SHRINKING = [Phase.explicit, Phase.reuse, Phase.generate]  # `reduced` does it, and better
STREAMS = (E + "s1", E + "s1", E + "s1", E + "s2", E + "s3")


# --- queries --------------------------------------------------------------------------------------


def anything(dice: Random) -> list[str]:
    """A query with all that the language has; it may rank or sum up its matches."""
    found = situation(Dice(dice.randrange(2**62)), clauses=dice.random() < 0.6, trailing=dice.random() < 0.2)
    change = dice.choice([None, None, ranked, summarised])
    changed = None if change is None else change(found, dice.randrange(2**30))
    return [(found if changed is None else changed).text]


def exploding(dice: Random) -> list[str]:
    """One that has too many matches at an instant, mappings on an event, or rows of an operator."""
    window = dice.choice(["", "WITHIN PT0.00003S SLIDING", "WITHIN 20 EVENTS"])
    crossed = "?x1 ?p ?x2 . ?x3 ?q ?x4 . ?x5 ?r ?x6 ."
    return [
        dice.choice(
            [
                query("A : B:+ : C", window),
                query("A ; B+ ; C", window),
                query("B+", window),
                query("A; B; C+", window, dice.choice(["SELECT NEXT *", "SELECT MAX *", "SELECT LAST *"])),
                query("A; B", window, A=crossed),
                query("A & B", window, A="?x1 ?p ?x2 .", B="?x3 ?q ?x4 ."),
                query("B+; N!", window or WINDOWS[1], N=KEYED),
            ]
        )
    ]


KNOWN = [
    "GRAPH :tags {{ ?{0} :tag ?tag }}",
    "GRAPH :tags {{ ?{0} :tag ?{0}t }} FILTER(?{0}t >= ?{0}v)",
    "GRAPH :tags {{ ?{0} :tag 1 }}",
    "GRAPH :g {{ ?e :of ?{0}v }}",
    "GRAPH :g {{ ?e :of ?k ; :limit ?limit }}",
    "GRAPH :g {{ ?{0} :limit ?v }}",
    "GRAPH ?g {{ ?{0} ?p ?limit }}",
    "OPTIONAL {{ GRAPH :tags {{ ?{0} :tag ?{0}t }} }}",
    "MINUS {{ GRAPH :tags {{ ?{0} :tag 1 }} }}",
]
OPERATED = [
    "OPTIONAL {{ ?{0} :w ?w }}",
    "OPTIONAL {{ ?{0} :v ?{0}w FILTER(?{0}w > 5) }}",
    "{{ ?{0} :v ?{0}u }} UNION {{ ?{0} :k ?{0}u }}",
    "FILTER EXISTS {{ ?{0} :w ?m }}",
    "FILTER NOT EXISTS {{ ?{0} :w 1 }}",
    "MINUS {{ ?{0} :k 1 }}",
    "?{0} :v|:w ?{0}p .",
    "VALUES ?{0}y {{ 1 2 3 }} ?{0} :k ?{0}y .",
    "BIND(?{0}v + 1 AS ?{0}x)",
]
TIMED = [
    'FILTER(EVENTTIME() > "1970-01-01T00:00:00.00002Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>)',
    "FILTER(STRLEN(STR(EVENTTIME())) > ?{0}v)",
]


def made(dice: Random) -> list[str]:
    """Some with letters whose rows Python makes: of what the KB knows, of operators, of times, of joined events."""
    sequence = dice.choice(["A; B", "A, B", "A: B+", "A; B;+; C", "A & B; C", "A; (B & C)", "A & B", "A; N!; B"])
    window = dice.choice([*WINDOWS, *[WINDOWS[2]] * 2])
    select = dice.choice(
        ["SELECT *", "SELECT *", "SELECT *", "SELECT DISTINCT ?k ?tag", "SELECT ?a (STR(?limit) AS ?l)"]
    )
    texts = []
    gpms = {name: "" for name in "ABCN" if name in sequence}
    for name in gpms:
        more = [dice.choice(dice.choice([KNOWN, KNOWN, KNOWN, OPERATED, OPERATED, TIMED]))] * (dice.random() < 0.6)
        more += [dice.choice(OPERATED)] * (dice.random() < 0.1)
        if name == "B" and dice.random() < 0.3:
            more.append(dice.choice(["FILTER(?bv > ?av)", "FILTER(EVENTTIME() != TIMEOF(A))"]))
        gpms[name] = " ".join([dice.choice([KEYED, KEYED, ""]), *more]).format(name.lower())
    for _ in range(dice.choice([1, 1, 2])):
        ways = query(sequence, window, select, **gpms), query(sequence, window, **gpms), query(sequence, window)
        texts.append(next(text for text in ways if _accepted(text)))
        gpms["A"] = f"{gpms['A']} FILTER(?av > {dice.randint(1, 9)})"
    return texts


def counted(dice: Random) -> list[str]:
    """Some whose answers are of groups of matches; those of one draw differ in thresholds or keys."""
    sequence = dice.choice(["A; B", "A: B", "A; B;+; C", "A: B+", "A, B", "A; N!; B", "N!; A; B", "A : B:+ : C"])
    window = dice.choice(["", "WITHIN PT0.00001S", "WITHIN PT0.00003S", *["WITHIN PT0.00001S SLIDING"] * 4])
    measures = ["COUNT(*)", "SUM(?av)", "MAX(?av)", "COUNT(DISTINCT ?av)", "AVG(LAST(?bv))", "GROUP_CONCAT(?av)"]
    texts = []
    for _ in range(dice.choice([1, 1, 2, 3])):
        keys = dice.choice(["", "?k", "?av", "(ENDTIME() AS ?t)", "(ENDTIME() AS ?t) ?k", "(STARTTIME() AS ?s)"])
        shown = " ".join(f"({dice.choice(measures)} AS ?m{number})" for number in range(dice.choice([1, 1, 2])))
        group = f"GROUP BY {keys}" if keys else ""
        having = dice.choice(["", "", f"HAVING (COUNT(*) > {dice.randint(0, 3)})"])
        report = dice.choice(
            ["", "", "", "REPORT ON CONTENT CHANGE", "REPORT ON WINDOW CLOSE", "REPORT EVERY PT0.000004S"]
        )
        gpms = {
            name: dice.choice([KEYED, KEYED, f"{KEYED} FILTER(?{name.lower()}v > {dice.randint(1, 9)})"])
            for name in "ABCN"
        }
        names = " ".join(key for key in ("?k", "?av", "?t", "?s") if key in keys.replace("(ENDTIME() AS ?t)", "?t"))
        clauses = f"{window} {dice.choice(SUPPRESSED)}"
        texts += [f"{query(sequence, clauses, f'SELECT {names} {shown}', **gpms)} {group} {having} {report}"]
    return [text for text in texts if _accepted(text)] or [query(sequence, window, "SELECT (COUNT(*) AS ?n)")]


ASKED_AGAIN = [
    "FILTER EXISTS { ?o :v ?av }",
    "FILTER NOT EXISTS { ?o :k ?av FILTER(?o != ?b) }",
    "FILTER(EXISTS { ?b :k ?ak } || ?bv > ?av)",
    "FILTER EXISTS { GRAPH :g { ?e :of ?av } ?b :k ?ak }",
]


SUPPRESSED = ["", "", "", "SUPPRESS PT0.000004S", "SUPPRESS PT0.00001S BY ?k", "SUPPRESS PT0.00002S BY ?av"]
"""Most of them are refused with some of the endings."""
REPORTS = [" REPORT ON CONTENT CHANGE", " REPORT ON WINDOW CLOSE", " REPORT EVERY PT0.000007S"]


def choosing(dice: Random) -> list[str]:
    """Some that keep some of the matches of an instant, which may consume what they have found."""
    several = ["A; B", "A: B", "A: B: C", "A: B:+ : C", "A: B:+", "A, B", "A & B", "A & B: C"]
    sequence = dice.choice([*several, "A: N!: B", "A: B; N!", "A: (B; N!)?", "N!; A: B"])
    window = dice.choice(["", "WITHIN PT0.00001S", "WITHIN PT0.00001S SLIDING", "WITHIN PT0.00003S SLIDING"])
    gpms = {name: dice.choice([KEYED, "", ""]) for name in "ABCN" if name in sequence}
    if "A" in gpms and "B" in gpms and dice.random() < 0.3:
        gpms["B"] += f" {dice.choice(ASKED_AGAIN)}"
    consumes = dice.choice(["", "CONSUME BY ANY", "CONSUME BY PARTITION"])
    repeated = "B" in gpms and "B:+" in sequence
    shown = dice.choice(["*", "*", "?a", "DISTINCT ?av", "(SUM(?bv) AS ?s)" if repeated else "?a ?av"])
    endings = ["", "", f" LIMIT {dice.randint(1, 4)}", f" ORDER BY {dice.choice(['', 'DESC'])}(?av) LIMIT 2"]
    endings += [f" SAMPLE {dice.randint(1, 3)}"]
    if repeated:
        endings += [" ORDER BY DESC(SUM(?bv)) LIMIT 2", " ORDER BY SUM(?bv) ?av LIMIT 3 OFFSET 1"]
    if dice.random() < 0.3:  # rows of summed, whose matches are listed or folded
        summed = ["(COUNT(*) AS ?n)", "?av (COUNT(*) AS ?n) (SUM(?av) AS ?s)", "(ENDTIME() AS ?t) (MAX(?av) AS ?m)"]
        shown = dice.choice([*summed, "(SUM(SUM(?bv)) AS ?s) (COUNT(*) AS ?n)"] if repeated else summed)
        keys = {"?av": "?av", "(ENDTIME": "(ENDTIME())"}.get(shown.split("(")[0].strip() or shown[:8], "")
        endings = [f" {f'GROUP BY {keys}' if keys else ''}{report}" for report in ("", *REPORTS)]
    elif dice.random() < 0.2:
        endings = [f"{each}{REPORTS[1]}" for each in endings[2:]]
    condition = dice.choice(["?av > 3", "?av + ?bv < 20", "SUM(?bv) < 12" if repeated else "?bv > 1"])
    texts = []
    for _ in range(dice.choice([1, 1, 2, 3])):
        strategy = dice.choice(["", "", "NEXT ", "LAST ", "MAX "])
        clauses = f"{dice.choice([consumes, ''])} {dice.choice(SUPPRESSED)}"
        text = query(sequence, f"{window} {clauses}", f"SELECT {strategy}{shown}", **gpms)
        if dice.random() < 0.3:
            text = text.replace(f"SEQ({sequence})", f"SEQ({sequence}) FILTER({condition})")
        ways = [text + dice.choice(endings), text, query(sequence, window or WINDOWS[1], **gpms)]
        texts.append(next(text for text in ways if _accepted(text)))
    return texts


def of_ladders() -> Callable[[Random], list[str]]:
    """Queries of a few kinds that come again and again with another threshold of their first event, or window."""
    kinds: list[str] = []

    def some(dice: Random) -> list[str]:
        if not kinds or dice.random() < 0.15:
            kinds.append(_of_a_ladder(dice))
        kind = dice.choice(kinds)
        several = [kind.replace("LEAST", str(dice.randint(0, 12))) for _ in range(dice.choice([1, 2, 2, 5]))]
        return [text.replace("LAST", f"{dice.choice([5, 12, 30]):02}") for text in several]

    return some


def _of_a_ladder(dice: Random) -> str:
    sequence = dice.choice(["A; B", "A; B", "A: B+", "A, B", "A; B;+; C", "A; N!; B", "A: B: C", "A", "A; (B: C)+"])
    window = dice.choice(["", "WITHIN PT0.00001S SLIDING", "WITHIN PT0.00003S SLIDING", "WITHIN PT0.00003S SLIDING"])
    if dice.random() < 0.4:
        return _counted_on_a_ladder(dice, sequence)
    select = dice.choice(["SELECT *", "SELECT *", "SELECT ?b", "SELECT DISTINCT ?av", "SELECT (?av + 1 AS ?n)"])
    gpms = {name: dice.choice([KEYED, KEYED, ""]) for name in "BCN" if name in sequence}
    if "B" in gpms and dice.random() < 0.5:
        gpms["B"] += dice.choice([" FILTER(?bv > ?av)", " FILTER(?bv > 3)", " FILTER(STRLEN(STR(?bv)) > ?av - 9)"])
    more = dice.choice(OPERATED).format("a") if dice.random() < 0.1 else ""
    gpms["A"] = dice.choice([KEYED, ""]) + more + dice.choice([" FILTER(?av >= LEAST)", " FILTER(LEAST > ?av)"])
    ways = query(sequence, window, select, **gpms), query(sequence, window, **gpms)
    bare = query(sequence, window, A=gpms["A"])
    return next(text for text in (*ways, bare) if _accepted(text.replace("LEAST", "3")))


def _counted_on_a_ladder(dice: Random, sequence: str) -> str:
    """Windows differ, too; most are not composed."""
    gpms = {name: dice.choice([KEYED, KEYED, ""]) for name in "BCN" if name in sequence}
    if "B" in gpms:
        gpms["B"] += dice.choice(["", " FILTER(?bv > ?av)", " FILTER(?bv < ?av + 3)"])
    gpms["A"] = dice.choice([KEYED, ""]) + dice.choice(["", " FILTER(?av >= LEAST)", " FILTER(LEAST > ?av)"])
    keys = dice.choice(
        ["(ENDTIME() AS ?t)", "(ENDTIME() AS ?t)", "(ENDTIME() AS ?t) ?av", "(STARTTIME() AS ?t)", "?av"]
    )
    shown = dice.choice(["(COUNT(*) AS ?n)", "(SUM(?av) AS ?n)", "(COUNT(DISTINCT ?av) AS ?n)"])
    names = " ".join(name for name in ("?t", "?av") if name in keys)
    select = f"SELECT {names} {shown}"
    return f"{query(sequence, 'WITHIN PT0.0000LASTS SLIDING', select, **gpms)} GROUP BY {keys}"


def parted(dice: Random) -> list[str]:
    """Some whose instants are those of the same partitions."""
    sequence = dice.choice(
        ["A, B", "A; B, C", "A, B+", "A; N!; B", "A, (B | C)", "A+; B", "N!; A, B", "A, N!", "A: B, C"]
    )
    window = dice.choice(WINDOWS[1:3] if sequence == "A, N!" else WINDOWS[:3])
    base = {name: KEYED for name in "ABCN" if name in sequence and (name != "N" or dice.random() < 0.6)}
    if dice.random() < 0.2:
        base["B"] = "?other :k ?k ."
    texts = []
    for _ in range(dice.choice([2, 3, 5])):
        chosen = dice.choice(["SELECT *", "SELECT *", "SELECT NEXT *", "SELECT MAX ?k", "SELECT DISTINCT ?k"])
        gpms = {name: f"{gpm} FILTER(?{name.lower()}v > {dice.randint(0, 9)})" for name, gpm in base.items()}
        chosen = "SELECT *" if "MAX" in chosen and "N!" in sequence else chosen
        texts.append(query(sequence, f"{window} PARTITION BY ?k", chosen, **dice.choice([base, gpms])))
    return texts


def groups(dice: Random) -> list[str]:
    """Some that belong together, or one."""
    ways: list[Callable[[Random], list[str]]] = [alike, of_windows, of_thresholds, anything, anything, anything]
    ways += [lambda dice: [random_query(dice)], lambda dice: [of_endings(dice)], exploding, exploding, made, made]
    ways += [choosing, choosing, counted, counted, parted]
    return dice.choice(ways)(dice)


def related(dice: Random, text: str) -> str:
    """The query again, the same or with a change that leaves its meaning, or nearly."""
    changed = dice.choice([_itself, _itself, _other_variables, _other_gpms, _other_thresholds, _other_window])(
        dice, text
    )
    return changed if _accepted(changed) else text


def _accepted(text: str) -> bool:
    try:
        load(text)
    except QueryError:
        return False
    return True


def _itself(dice: Random, text: str) -> str:
    return text


def _other_variables(dice: Random, text: str) -> str:
    """Variables have other names, whose order is another one, too."""
    names = sorted(set(re.findall(r"\?(\w+)", text)))
    others = dict(zip(names, (f"x{n}" for n in dice.sample(range(90), len(names))), strict=True))
    return re.sub(r"\?(\w+)", lambda found: f"?{others[found[1]]}", text)


def _other_gpms(dice: Random, text: str) -> str:
    names = sorted(set(re.findall(r"DEFINE GPM (\w)\b", text)))
    others = dict(zip(names, dice.sample([*"PQRTUVWXYZ"], len(names)), strict=True))
    return re.sub(rf"(?<![\w?:\"])({'|'.join(names)})(?!\w)", lambda found: others[found[1]], text)


def _other_thresholds(dice: Random, text: str) -> str:
    return re.sub(r"([<>=] )\d+(?=\b(?!\.))", lambda found: f"{found[1]}{dice.randint(1, 20)}", text)


def _other_window(dice: Random, text: str) -> str:
    text = re.sub(r"WITHIN PT0\.0000\d+S", f"WITHIN PT0.0000{dice.choice([2, 5, 9, 15, 30]):02}S", text, count=1)
    return re.sub(r"WITHIN \d+ EVENTS", f"WITHIN {dice.choice([1, 2, 3, 5, 9])} EVENTS", text, count=1)


# --- situations -------------------------------------------------------------------------------------


class Drawing:
    """Steps, one after the other. tight: the bounds of an instant are soon passed; `ways`: to some queries."""

    def __init__(self, seed: int, *, tight: bool, ways: Callable[[Random], list[str]] = groups) -> None:
        self.dice, self.tight, self.ways = Random(seed), tight, ways
        self.steps = list[Step]()
        self.texts: dict[str, str] = {}
        """By name those that are registered."""
        self.known = list[str]()
        """All that have been."""
        self.now, self.count, self.tagged = 0, 0, 0
        self.kinds = "abcn"
        self.streams = self.dice.choice([(E + "s1",), (E + "s1",), STREAMS])
        self.values = self.dice.choice([3, 20])

    def situation(self) -> Situation:
        dice = self.dice
        most = dice.choice([2, 3, 4, 6, 8, 8, 12, 16, 25, 50])
        while len(self.texts) < most * dice.choice([0.5, 0.8, 1]):
            self.register(most)
        for _ in range(dice.choice([12, 25, 40])):
            self.step(most)
        steps, kb = tuple(self.steps), knowledge(Dice(dice.randrange(2**62)))
        if not self.tight:
            return Situation(steps, kb)
        return Situation(
            steps,
            kb,
            matches=dice.choice([100, 30, 8]),
            made=dice.choice([1 << 14, 50]),
            rows=dice.choice([10_000, 60, 12, 5]),
            compared=dice.choice([1 << 25, 60]),
        )

    def step(self, most: int) -> None:
        dice = self.dice
        way = dice.choice("p" * 30 + "^" * 3 + "l" * 3 + "r" * 3 + "k" + "m" + "f" * 5 + "scx" * 2)
        if way == "p":
            self.push()
        elif way == "^":
            self.steps.append(Punctuate(dice.choice(self.streams), self.now + dice.randint(-2, 3)))
        elif way == "l":
            self.steps.append(Look())
        elif way == "r":
            self.register(most)
        elif way == "k":
            self.tagged += 1
            value = n_triples_term(dice.choice(SMALL))
            thing = f"<{E}{dice.choice(['t1', 't2'])}>" if dice.random() < 0.5 else f"<{E}tag{self.tagged}>"
            where = dice.choice([f"<{E}tag> {value} <{E}tags>", f"<{E}limit> {value} <{E}g>"])
            self.steps.append(Tag(f"{thing} {where} ."))
        elif way == "m":
            self.steps.append(Restart(dice.randrange(2**30)))
        elif self.texts:
            name = dice.choice([*self.texts])
            kind = {"s": Settle, "f": Forget, "c": Close, "x": Remove}[way]
            self.steps.append(kind(name))
            if kind in (Close, Remove):
                del self.texts[name]

    def register(self, most: int) -> None:
        """Some come at once: lateness and start are theirs in common, or they would have little to share."""
        dice = self.dice
        texts = [related(dice, dice.choice(self.known))] if self.known and dice.random() < 0.3 else self.ways(dice)
        texts += [related(dice, dice.choice(texts)) for _ in range(dice.choice([0, 0, 1, 2, 4]))]
        dice.shuffle(texts)
        lateness = dice.choice([0, 0, 0, 0, 2, 4])
        start = dice.choice([None, None, None, None, self.now + 3])
        bound = dice.choice([None, None, None, 4, 12])
        for text in texts[: max(most - len(self.texts), 0)]:
            self.count += 1
            name = f"q{self.count}"
            self.steps.append(Register(name, text, lateness, start, bound))
            self.texts[name] = text
            self.known.append(text)

    def push(self) -> None:
        dice = self.dice
        if dice.random() < 0.2:
            self.kinds = dice.choice(["a", "ab", "abc", "abcn", "abcn", "abhn", "i", "abhin", "b", "bc"])
        stream = dice.choice(self.streams)
        self.steps.append(Push(stream, tuple(self.event() for _ in range(dice.choice([1, 1, 1, 2, 5, 12])))))

    def event(self) -> tuple[int, str]:
        dice = self.dice
        self.now += dice.choice([0, 1, 1, 1, 2, 7])
        time = max(self.now - dice.choice([0, 0, 0, 0, 0, 1, 3, 6]), 0)
        if dice.random() < 0.3:
            return time, graph(Dice(dice.randrange(2**62)), SMALL)
        kind, key, value = dice.choice(self.kinds), dice.randint(1, 3), dice.randint(1, self.values)
        thing = dice.choice([f"<{E}{kind}{time}-{key}-{value}>", f"<{E}t{key}>", "_:b"])
        numbers = [(name, n_triples_term(str(number))) for name, number in (("k", key), ("v", value))]
        return time, "".join(f"{thing} <{E}{p}> {o} .\n" for p, o in [("kind", f"<{E}{kind}>"), *numbers])


def fail_small(found: Situation) -> None:
    if difference(found) is not None:
        small = reduced(found)
        print(pasted(small))
        pytest.fail(str(difference(small)))


@drawn(25, phases=WITHOUT_SHRINKING)
@given(st.integers(0, 2**62))
@pytest.mark.slow
def test_each_query_finds_what_it_finds_alone(seed: int) -> None:
    fail_small(Drawing(seed, tight=False).situation())


@drawn(50, phases=WITHOUT_SHRINKING)
@given(st.integers(0, 2**62))
@pytest.mark.slow
def test_so_it_does_where_rows_are_made(seed: int) -> None:
    fail_small(Drawing(seed, tight=False, ways=made).situation())


@drawn(50, phases=WITHOUT_SHRINKING)
@given(st.integers(0, 2**62))
@pytest.mark.slow
def test_so_it_does_where_it_keeps_some_of_an_instant(seed: int) -> None:
    fail_small(Drawing(seed, tight=False, ways=choosing).situation())


@drawn(25, phases=WITHOUT_SHRINKING)
@given(st.integers(0, 2**62), st.booleans())
@pytest.mark.slow
def test_so_it_does_where_edges_stand_once_for_many(seed: int, tight: bool) -> None:
    fail_small(Drawing(seed, tight=tight, ways=of_ladders()).situation())


@drawn(25, phases=WITHOUT_SHRINKING)
@given(st.integers(0, 2**62))
@pytest.mark.slow
def test_so_it_does_where_matches_are_counted(seed: int) -> None:
    fail_small(Drawing(seed, tight=False, ways=counted).situation())


@drawn(25, phases=WITHOUT_SHRINKING)
@given(st.integers(0, 2**62))
@pytest.mark.slow
def test_so_it_does_where_instants_are_those_of_partitions(seed: int) -> None:
    fail_small(Drawing(seed, tight=False, ways=parted).situation())


@drawn(25, phases=WITHOUT_SHRINKING)
@given(st.integers(0, 2**62))
@pytest.mark.slow
def test_a_bound_is_each_query_s_own(seed: int) -> None:
    fail_small(Drawing(seed, tight=True).situation())


def test_situations_have_something_to_compare() -> None:
    """Matches, late events, errors and states that become too large; or the test above would say nothing."""
    seen = Seen()
    for seed in range(60):
        player = Player(Drawing(seed, tight=True).situation())
        player.play()
        seen = Seen(*(one + other for one, other in zip(astuple(seen), astuple(player.seen), strict=True)))
        if seen.matches > 300 and min(astuple(seen)) > 0:
            return
    pytest.fail(str(seen))


def readings(kinds: str, begin: int) -> Push:
    """Of these kinds, a microsecond apart."""
    lines = (("kind", "<{E}{kind}>"), ("k", n_triples_term("1")), ("v", n_triples_term("2")))
    return Push(
        E + "s1",
        tuple(
            (time, "".join(f"<{E}{kind}{time}> <{E}{p}> {o.format(E=E, kind=kind)} .\n" for p, o in lines))
            for time, kind in enumerate(kinds, begin)
        ),
    )


EXPLODES = query("A : B:+ : C", "WITHIN PT0.00003S SLIDING")
QUIET = [
    query("A; B", "WITHIN PT0.00001S SLIDING", A=KEYED, B=KEYED),
    query("A; C", "WITHIN PT0.00003S"),
    query("A; C", "WITHIN PT0.00003S", A="FILTER(?av > 1)"),
    query("A : B:+ : C", "WITHIN PT0.000003S SLIDING"),
    query("A : B:+ : C", "WITHIN PT0.00003S SLIDING", "SELECT (COUNT(*) AS ?n)"),
    query("N!; A: B", "WITHIN 5 EVENTS SLIDING"),
]


@pytest.mark.parametrize("place", [0, 3, len(QUIET)])
def test_a_query_that_explodes_harms_no_other(place: int) -> None:
    """2^14 matches would end at an event, 500 are allowed; after three such instants the query is stopped."""
    texts = [*QUIET[:place], EXPLODES, *QUIET[place:]]
    register = tuple(Register(f"q{number}", text) for number, text in enumerate(texts))
    runs = tuple(readings("a" + "b" * 14 + "c" + "ab", 40 * number) for number in range(9))
    player = Player(Situation((*register, *runs, readings("z", 400)), matches=500))
    assert player.play() is None
    assert player.seen.errors == 3 and player.seen.matches > 100


def test_what_came_too_late_for_a_query_ends_no_wait_that_it_brings_among_others() -> None:
    """It ends those of the others, which wait in the same bucket."""
    keyed = {**dict.fromkeys("AN", KEYED), "B": f"{KEYED} FILTER(?bv >= ?av)"}
    texts = [query("A; N!; B", "WITHIN PT0.00003S SLIDING", select, **keyed) for select in ("SELECT *", "SELECT ?b")]
    texts.append(query("A; N!; B", "WITHIN PT0.00004S SLIDING", **keyed))
    register = tuple(Register(f"q{number}", text) for number, text in enumerate(texts))
    [(time, event)] = readings("a", 0).events
    first = Push(E + "s1", ((time, event.replace('"2"', '"1"')),))  # it waits by itself, where the second one does
    steps = (readings("a", 3), Settle("q0"), readings("n", 3), readings("x", 5), readings("bz", 6))
    player = Player(Situation((*register, first, *steps)))
    assert player.play() is None
    assert player.seen.late == 1


def test_one_that_is_counted_with_a_longer_window_goes_and_leaves_the_others_theirs() -> None:
    """They are counted together, and among those of an automaton."""
    counts = "SELECT ?k (COUNT(DISTINCT ?av) AS ?n)"
    texts = [query("A: B+", f"WITHIN PT0.0000{size}S SLIDING", counts, A=KEYED, B=KEYED) for size in (10, 30)]
    texts.append(query("A, B", "WITHIN PT0.00001S SLIDING", counts, A=KEYED, B=KEYED))
    grouped = [f"{text} GROUP BY (ENDTIME()) ?k" for text in texts]
    register = tuple(Register(f"q{number}", text) for number, text in enumerate(grouped))
    player = Player(Situation((*register, readings("ab", 0), Remove("q1"), readings("bb", 5), readings("z", 9))))
    assert player.play() is None
    assert player.seen.matches > 3


def test_a_failure_is_made_small() -> None:
    """And is a script that can be pasted."""
    texts = [query("A; B"), query("A; C", "WITHIN PT0.00003S SLIDING"), query("A & B")]
    steps = [Register(f"q{number}", text, lateness=number) for number, text in enumerate(texts)]
    whole = Situation((*steps, readings("abcabc", 0), Look(), Restart(1), readings("aabb", 9), Settle("q1")))
    with pytest.MonkeyPatch.context() as patch:
        usual = World.given

        def loses(world: World, outcomes: list[Outcome]) -> Given:
            """Among others every second row of a query with a window."""
            given = usual(world, outcomes)
            names = [text for text in world.texts if "WITHIN" in text]
            return [
                (number, rows[1:] if len(world.texts) > 1 and world.texts[number] in names else rows, *rest)
                for number, rows, *rest in given
            ]

        patch.setattr(World, "given", loses)
        small = reduced(whole)
        assert difference(small) is not None
        shown: dict[str, object] = {}
        exec(small.script().replace("print(", "found = (", 1), shown)
        assert shown["found"] == difference(small)
    assert sum(isinstance(step, Register) for step in small.steps) == 2
    assert sum(len(step.events) for step in small.steps if isinstance(step, Push)) <= 3
    assert difference(small) is None
