"""Definitions of semantics.md 2.5c, 2.5d and 2.6c that can be said in two ways, on random queries: the reference's
answer to UNTIL, PERMUTE and SUPPRESS is that to what they stand for, spelled out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product

from hypothesis import given
from hypothesis import strategies as st
from loaded import load
from profiles import drawn
from pyoxigraph import NamedNode, RdfFormat, Store, Variable, parse
from strategies import Dice, E, Situation, situations

from oxiseq.grammar.algebra import (
    SUPPRESSED,
    Aggregate,
    Atom,
    Gpm,
    Group,
    Limit,
    Projection,
    Query,
    Select,
    Summary,
    Suppression,
    TriplePattern,
)
from reference.aggregates import integer
from reference.evaluate import ReferenceResult, evaluate
from reference.expand import names_in
from reference.facts import answer, matches, query_text
from reference.output import Row
from reference.permute import read
from reference.scopes import shown
from reference.summaries import is_summary

SEEDS = st.integers(0, 2**62)
OPS = (";", ";", ":", ":", ",")


# --- queries of facts.py, random ------------------------------------------------------------------


def events(dice: Dice, kinds: str) -> str:
    """Some fifteen things of these kinds, some at one instant, on both streams."""
    tokens, time = [], 0
    for _ in range(dice.between(9, 15)):
        time += dice.pick([0, 1, 1, 1, 2])
        things = "&".join(f"{dice.pick(kinds)}{dice.pick([1, 1, 2])}" for _ in range(dice.pick([1, 1, 1, 2])))
        tokens.append(f"{'2:' if dice.chance(20) else ''}{things}@{time}")
    return " ".join(tokens)


@dataclass
class Bodies:
    """What GPMs bind: ?x, ?k if it is `keyed`, and ?kx; FILTERs by name."""

    keyed: frozenset[str]
    filters: dict[str, list[str]]

    def text(self, names: Sequence[str], kinds: Mapping[str, str] | None = None) -> dict[str, str]:
        """As facts.py has them. `kinds`: of names that stand for another one's events."""
        found = {}
        for name in names:
            low, kind = name.lower(), (kinds or {}).get(name, name).lower()
            key = f"?{low} :k ?k ." if name in self.keyed else ""
            conditions = " ".join(f"FILTER({c})" for c in self.filters.get(name, ()))
            found[name] = f"?{low} :kind :{kind} ; :k ?k{low} . {key} {conditions}"
        return found


def bodies(dice: Dice, names: str) -> Bodies:
    """A third of them join."""
    joined = dice.chance(35)
    return Bodies(frozenset(n for n in names if joined and dice.chance(60)), {})


def window(dice: Dice) -> str:
    return dice.pick(["", "", "", "WITHIN PT0.000008S SLIDING", "WITHIN PT0.000009S", "WITHIN 6 EVENTS SLIDING"])


def comparison(dice: Dice, one: str, others: Sequence[str]) -> str:
    """A strict condition on the numbers of these GPMs."""
    right = " + ".join(f"?k{name.lower()}" for name in others)
    return f"?k{one.lower()} {dice.pick(['<', '<=', '<=', '!=', '>=', '='])} {right}"


# --- PERMUTE --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Element:
    """An element of a PERMUTE: its text, its GPMs, whether it ties with others, whether FILTERs may look into it."""

    text: str
    names: str
    simple: bool = True
    plain: bool = True


def elements(dice: Dice, ways: Sequence[str]) -> list[Element]:
    """Two or three, of the GPMs A to F."""
    names, found = iter("ABCDEF"), []
    for _ in range(dice.pick([2, 2, 3])):
        kind, a = dice.pick(ways), next(names)
        match kind:
            case "atom":
                found.append(Element(a, a))
            case "and":
                found.append(Element(f"({a} & {(b := next(names))})", a + b))
            case "or":
                found.append(Element(f"({a} | {(b := next(names))})", a + b, plain=False))
            case "repeat":
                found.append(Element(f"{a}{dice.pick(OPS)}{{1,2}}", a, False, False))
            case _:
                found.append(Element(f"({a}{dice.pick(OPS)} {(b := next(names))})", a + b, False, False))
    return found


def weak_orders(elements: Sequence[Element]) -> Iterator[list[list[Element]]]:
    """Every way to rank them, ties between simple ones only."""
    for ranks in product(range(len(elements)), repeat=len(elements)):
        if set(ranks) == set(range(max(ranks) + 1)):
            blocks = [[e for e, r in zip(elements, ranks, strict=True) if r == rank] for rank in range(max(ranks) + 1)]
            if all(len(block) == 1 or all(e.simple for e in block) for block in blocks):
                yield blocks


def spelled(
    blocks: list[list[Element]], op: str, given: Bodies, waiting: Mapping[str, tuple[str, str]]
) -> tuple[str, Bodies] | None:
    """An alternative as a sequence, its FILTERs in the GPM that is matched last. `waiting`: GPM → GPMs that its FILTER
    mentions, and the FILTER, in which `@A` is the time of A. None if it mentions one that is not there."""
    rank = {name: number for number, block in enumerate(blocks) for e in block for name in e.names}
    filters = {name: list(found) for name, found in given.filters.items()}
    for name, (mentions, condition) in waiting.items():
        if name not in rank:
            continue
        if not set(mentions) <= rank.keys():
            return None
        host = max([name, *mentions], key=lambda n: (rank[n], n == name))
        filters.setdefault(host, []).append(timed(condition, host))
    texts = [block[0].text if len(block) == 1 else f"({' & '.join(e.text for e in block)})" for block in blocks]
    return f"{op} ".join(texts), Bodies(given.keyed, filters)


def timed(condition: str, host: str) -> str:
    return re.sub(r"@(\w)", lambda found: "EVENTTIME()" if found[1] == host else f"TIMEOF({found[1]})", condition)


def waiting_filters(dice: Dice, elements: Sequence[Element]) -> dict[str, tuple[str, str]]:
    """FILTERs of plain elements on others."""
    found = {}
    plain = [e for e in elements if e.plain]
    for each in plain:
        others = [e for e in plain if e is not each]
        if not others or not dice.chance(50):
            continue
        name = dice.pick(each.names)
        mentions = "".join(dice.pick(e.names) for e in dice.some(others, 2))
        condition = comparison(dice, name, mentions)
        if dice.chance(30):
            condition = f"@{mentions[0]} {dice.pick(['<=', '>', '!='])} @{name}"
            mentions = mentions[0]
        found[name] = mentions, condition
    return found


@drawn(400)
@given(SEEDS)
def test_permute_is_the_union_of_its_alternatives(seed: int) -> None:
    dice = Dice(seed)
    some, op = elements(dice, ["atom", "atom", "atom", "and", "or", "repeat", "group"]), dice.pick(OPS)
    given, waiting = bodies(dice, "ABCDEFXYU"), waiting_filters(dice, some)
    until = "U" if dice.chance(30) else ""
    if until and dice.chance(50):
        given.filters["U"] = [comparison(dice, "U", some[0].names[0])]
    before = f"X{dice.pick(OPS)} " if dice.chance(30) else ""
    after = f"{dice.pick(OPS)} Y" if dice.chance(30) else ""
    if dice.chance(20):
        given.filters["Y"] = [comparison(dice, "Y", some[0].names[0])]
    lasting = " LASTING PT0.000004S" if dice.chance(20) else ""
    bound = f" {dice.pick(['WITHIN', 'AFTER'])} PT0.000002S" if before and dice.chance(30) else ""
    count = dice.between(1, len(some)) if dice.chance(30) else None
    optional = dice.chance(20) and count is None
    kinds = "".join(e.names for e in some).lower() + "x" * bool(before) + "y" * bool(after) + until.lower()
    stream, within = events(dice, kinds), window(dice)
    texts = [f"{e.text}?" if optional and e.simple and i else e.text for i, e in enumerate(some)]
    inside = Bodies(given.keyed, dict(given.filters))
    for name, (_, condition) in waiting.items():
        inside.filters[name] = [timed(condition, name)]
    of = "" if count is None else f" {count} OF "
    seq = f"{before}PERMUTE{of}({f'{op} '.join(texts)}){lasting}{bound}{after}"
    found = matches(seq, stream, bodies=inside.text("ABCDEFXYU"), window=within, until=until)
    if optional:
        subsets = [[some[0], *rest] for rest in kept(some[1:])]
    else:
        subsets = [list(each) for each in combinations(some, len(some) if count is None else count)]
    expected = []
    for subset in subsets:
        for blocks in weak_orders(subset):
            if (alternative := spelled(blocks, op, given, waiting)) is not None:
                text, of_it = alternative
                one = f"{before}({text}){lasting}{bound}{after}"
                expected += matches(one, stream, bodies=of_it.text("ABCDEFXYU"), window=within, until=until)
    assert found == sorted(expected), (seq, inside, stream, within)


def kept(elements: Sequence[Element]) -> Iterator[list[Element]]:
    """Each simple one with and without."""
    for keep in product((True, False), repeat=len(elements)):
        if all(k or e.simple for k, e in zip(keep, elements, strict=True)):
            yield [e for e, k in zip(elements, keep, strict=True) if k]


# --- UNTIL ----------------------------------------------------------------------------------------


@drawn(400)
@given(SEEDS)
def test_until_is_a_negation_in_every_gap(seed: int) -> None:
    """Of sequences without repeats: U's copies T, U, V, W, one for each gap that can know what its FILTER mentions."""
    dice = Dice(seed)
    given = bodies(dice, "ABCDEFGU")
    names = iter("ABCDEFG")
    steps: list[tuple[str, str]] = []
    for _ in range(dice.pick([2, 2, 3, 4])):
        a = next(names)
        if dice.chance(25) and len(steps) < 3:
            b = next(names)
            steps.append((f"({a} {dice.pick('&|')} {b})", a + b))
        else:
            steps.append((a, a))
    ops = [dice.pick(OPS) for _ in steps]
    negated = [dice.chance(10) for _ in steps]
    mentions = dice.pick([n for _, some in steps for n in some]) if dice.chance(50) else ""
    condition = comparison(dice, "U", mentions) if mentions else ""
    trailing = "; N! WITHIN PT0.000002S" if dice.chance(15) else ""
    kinds = "".join(own for _, own in steps).lower()
    stream, within = events(dice, kinds * 2 + "u" + "n" * (bool(trailing) or any(negated))), window(dice)
    plain, watched, bound = steps[0][0], steps[0][0], set(steps[0][1])
    copies = iter("TVWU")
    extra: dict[str, str] = {}
    for (text, own), op, absent in zip(steps[1:], ops[1:], negated[1:], strict=True):
        gap = ""
        if not mentions or mentions in bound:
            copy = next(copies)
            extra |= {copy: given.text("U")["U"].replace("?u", f"?{copy.lower()}").replace("?ku", f"?k{copy.lower()}")}
            if condition:
                extra[copy] += f" FILTER({condition.replace('?ku', f'?k{copy.lower()}')})"
            gap = f"; {copy}!"
        if absent:
            name = "HIJK"[len(bound) % 4]
            if name not in extra:
                extra[name] = f"?{name.lower()} :kind :n ; :k ?k{name.lower()} ."
                plain, watched = f"{plain}; {name}!", f"{watched}; {name}!"
        plain, watched = f"{plain}{op} {text}", f"{watched}{gap}{op} {text}"
        bound |= set(own)
    until = dict(extra)
    until["U"] = given.text("U")["U"] + (f" FILTER({condition})" if condition else "")
    own_bodies = given.text("ABCDEFG")
    found = matches(plain + trailing, stream, bodies=own_bodies | until, window=within, until="U")
    expected = matches(watched + trailing, stream, bodies=own_bodies | extra, window=within)
    assert found == expected, (plain, watched, until, stream, within)


@drawn(300)
@given(SEEDS)
def test_until_in_a_repeat_is_until_in_what_it_unrolls_to(seed: int) -> None:
    """`A op B chain{1,3} op C`: B, D, E are its iterations; what is not bound before is fresh in each of them."""
    dice = Dice(seed)
    op, chain, behind = (dice.pick([*OPS, ":", ":"]) for _ in range(3))
    shares = {name: dice.chance(35) for name in "ABCU"}
    asks = dice.pick(["", "A", "B", "B"])
    test = dice.pick(["<", ">", "!=", "="])

    def body(name: str, kind: str, key: str | None) -> str:
        low = name.lower()
        return f"?{low} :kind :{kind} ; :k ?k{low} . " + (f"?{low} :k ?{key} ." if key else "")

    def key(name: str, number: int) -> str | None:
        """The variable that stands for ?k: each iteration has its own unless A binds it."""
        if not shares[name]:
            return None
        return "k" if shares["A"] or name == "A" or not shares["B"] else f"k{number}x"

    stream, within = events(dice, "aabbbbbccuu"), window(dice)
    whole = {
        "A": body("A", "a", key("A", 0)),
        "B": body("B", "b", "k" if shares["B"] else None),
        "C": body("C", "c", "k" if shares["C"] else None),
        "U": body("U", "u", "k" if shares["U"] else None) + (f" FILTER(?ku {test} ?k{asks.lower()})" if asks else ""),
    }
    found = matches(f"A{op} B{chain}{{1,3}}{behind} C", stream, bodies=whole, window=within, until="U")
    expected = []
    for count in (1, 2, 3):
        iterations = "BDE"[:count]
        bodies_ = {"A": whole["A"]} | {n: body(n, "b", key("B", i)) for i, n in enumerate(iterations)}
        bodies_["C"] = body("C", "c", key("C", count - 1))
        text = "A"
        for number, name in enumerate([*iterations, "C"]):
            last = "A" if number == 0 else iterations[number - 1]
            if not (asks == "B" and number == 0):
                copy = "STVW"[number]
                # before the first iteration ?k is free where A does not bind it
                known = key("U", number - 1) if number or shares["A"] else None
                other = {"A": "a", "B": last.lower()}.get(asks)
                bodies_[copy] = body(copy, "u", known)
                bodies_[copy] += f" FILTER(?k{copy.lower()} {test} ?k{other})" if asks else ""
                text += f"; {copy}!"
            text += f"{op if number == 0 else behind if name == 'C' else chain} {name}"
        for one in matches(text, stream, bodies=bodies_, window=within):
            times = {part[0]: part[1:] for part in one.split(" ")}
            expected.append(f"A{times['A']} B{','.join(times[n] for n in iterations)} C{times['C']}")
    assert found == sorted(expected), (whole, op, chain, behind, stream, within)


def by_reference(query: Query, situation: Situation) -> ReferenceResult:
    kb = Store()
    kb.load(situation.kb.encode(), format=RdfFormat.N_QUADS)
    streams = {
        iri: [
            (time, None if text == "^" else [q.triple for q in parse(text.encode(), format=RdfFormat.N_TRIPLES)])
            for time, text in arrivals
        ]
        for iri, arrivals in situation.streams.items()
    }
    return evaluate(query, streams, kb, lateness=situation.lateness)


@drawn(150)
@given(situations() | situations(trailing=True))
def test_until_drops_matches_with_such_an_event_between_their_steps(situation: Situation) -> None:
    """Of any sequence, where U joins with nothing."""
    query = load(situation.text)
    pattern = Group((TriplePattern(Variable("u__"), NamedNode(f"{E}kind"), NamedNode(f"{E}a")),))
    query = replace(query, gpms=(*query.gpms, Gpm("U__", query.streams[0].name, pattern)), form=Select(None))
    if is_summary(query):
        return
    everything, found = by_reference(query, situation), by_reference(replace(query, until=Atom("U__")), situation)
    alone = Query(Select(None), query.streams, Atom("U__"), query.gpms)
    times = {row.end for row in by_reference(alone, situation).rows}

    def survives(row: Row) -> bool:
        steps = {time for events in row.events.values() for _, time in events}
        return not any(min(steps) < time < max(steps) and time not in steps for time in times)

    assert [told(row) for row in found.rows] == [told(row) for row in everything.rows if survives(row)]


def told(row: Row) -> tuple[object, ...]:
    return row.at, row.end, row.bindings, row.events


# --- SUPPRESS -------------------------------------------------------------------------------------


def covered(rows: Sequence[Row], keys: Sequence[object], interval: int, limit: Limit | None) -> list[tuple[Row, int]]:
    """The rows that are emitted, each with the number of those dropped since the last one of its key: by definition,
    from all pairs."""
    emitted: list[int] = []
    dropped: list[int] = []
    for i, row in enumerate(rows):
        if any(keys[j] == keys[i] and row.at - rows[j].at < interval for j in emitted):
            dropped.append(i)
            continue
        beside = [j for j in emitted if (rows[j].partition, rows[j].end) == (row.partition, row.end)]
        if limit is None or len(beside) < limit.count:
            emitted.append(i)
    return [
        (rows[i], sum(1 for j in dropped if keys[j] == keys[i] and last(emitted, keys, i) < j < i)) for i in emitted
    ]


def last(emitted: Sequence[int], keys: Sequence[object], i: int) -> int:
    return max((j for j in emitted if j < i and keys[j] == keys[i]), default=-1)


SHAPES = {
    "A": "",
    "A : B": "",
    "A ; B": "PARTITION BY ?k",
    "A : B:{1,2}": "WITHIN PT0.000006S SLIDING",
    "A; B?": "",
    "A : B; N! WITHIN PT0.000002S": "PARTITION BY ?k",
    "A : (B | C)": "WITHIN PT0.000005S CONSUME BY ANY",
}


def suppressing(dice: Dice) -> tuple[Query, str]:
    """A query of facts.py over a and b, and events of it."""
    seq = dice.pick(list(SHAPES))
    keyed = {n: f"?{n.lower()} :kind :{n.lower()} ; :k ?k ; :k ?k{n.lower()} ." for n in "AB"}
    text = query_text(seq, window=SHAPES[seq], bodies=keyed if "?k" in SHAPES[seq] or dice.chance(30) else None)
    kinds = "".join(name for name in "abcn" if name.upper() in seq)
    return read(text), events(dice, kinds)


@drawn(300)
@given(SEEDS)
def test_suppress_drops_what_an_emitted_row_covers(seed: int) -> None:
    dice = Dice(seed)
    query, stream = suppressing(dice)
    limit = Limit(dice.pick([1, 1, 2])) if dice.chance(40) else None
    binds = {gpm.name: shown(gpm.pattern) for gpm in query.gpms}
    visible = list(dict.fromkeys(v for name in names_in(query.sequence) for v in binds[name]))
    by = tuple(dice.some([v for v in visible if v.value.startswith("k")], 2)) if dice.chance(60) else None
    columns = tuple(Projection(v) for v in visible)
    everything = replace(query, form=Select(columns), limit=limit)
    interval, dropped = dice.between(1, 8), Projection(Variable("dropped__"), SUPPRESSED)
    suppressed = replace(everything, form=Select((*columns, dropped)), suppression=Suppression(interval, by))
    rows, found = answer(everything, stream).rows, answer(suppressed, stream).rows
    partition = query.partition.by if query.partition is not None else ()
    keys = [tuple(row.bindings.get(v) for v in (partition if by is None else by)) for row in rows]
    expected = covered(rows, keys, interval, limit)
    assert [told(row) for row in found] == [
        told(replace(row, bindings={**row.bindings, dropped.variable: integer(n)})) for row, n in expected
    ]


@drawn(200)
@given(SEEDS)
def test_suppress_drops_rows_of_groups(seed: int) -> None:
    """GROUP BY a variable, which is the key; a count of matches beside it."""
    dice = Dice(seed)
    query, stream = suppressing(dice)
    key, dropped = Variable("ka"), Projection(Variable("dropped__"), SUPPRESSED)
    columns = (Projection(key), Projection(Variable("n__"), Aggregate("COUNT", None)))
    grouped = replace(query, form=Select(columns), summary=Summary(group_by=(key,)))
    interval = dice.between(1, 8)
    suppression = Suppression(interval, (key,) if dice.chance(50) else None)
    suppressed = replace(grouped, form=Select((*columns, dropped)), suppression=suppression)
    rows, found = answer(grouped, stream).rows, answer(suppressed, stream).rows
    expected = covered(rows, [row.bindings.get(key) for row in rows], interval, None)
    assert [told(row) for row in found] == [
        told(replace(row, bindings={**row.bindings, dropped.variable: integer(n)})) for row, n in expected
    ]
