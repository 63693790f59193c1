"""Process conformance: a template of Declare and its activities → the text of a SPAseq query that finds violations.

Source: van der Aalst, Pesic, Schonenberg, *Declarative workflows: Balancing between flexibility and support*,
Computer Science - Research and Development 23 (2009). A template states a property of each finished case; these
patterns find the cases, and the places in them, that break it.

In the flow: beside the parser, of which it needs nothing. The templates are data; activities, predicates and bounds
become terms, so that no argument can be anything but a term of the query.
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import Final

from pyoxigraph import Literal, NamedNode

from oxiseq.grammar.errors import ArgumentValueError
from oxiseq.grammar.records import dataclass
from oxiseq.grammar.render import time_span

# --- declare templates -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Template:
    """A template that one query can watch.

    `says`: its meaning; `found`: what a match of the query is. `sequence`: the violation, of the names in `EVENTS`;
    `{times}` in it is the number of occurrences. `timed`: the violation where `{within}` is given, None where the
    template has no such form.
    """

    name: str
    activities: int
    says: str
    found: str
    sequence: str
    timed: str | None = None

    @property
    def ends(self) -> bool:
        """Whether the violation is known only when the case has ended."""
        return "End" in self.sequence

    @property
    def counts(self) -> bool:
        """Whether it takes a number of occurrences."""
        return "{times}" in self.sequence


EVENTS: Final = {
    "A": "{it} = {a}",
    "NextA": "{it} = {a}",
    "B": "{it} = {b}",
    "LaterB": "{it} = {b}",
    "End": "{it} = {end}",
    "NotA": "{it} != {a}",
    "NotB": "{it} != {b}",
    "AorB": "{it} IN ({a}, {b})",
    "One": "{it} IN ({a}, {b})",
    "Other": "{it} IN ({a}, {b}) && {it} != ?one",
    "AorEnd": "{it} IN ({a}, {end})",
    "Earlier": "",
    "Event": "",
    "Next": "(?event = {a}) != ({it} = {b})",
}
"""An event of a case by its name in a sequence → the FILTER on its activity, `{it}`. The variable is the name with a
small first letter. Conditions are filters, not constants of the pattern: an event of a case belongs to its partition
whatever its activity is, so `,` means next in the case."""

TEMPLATES: Final = (
    Template("existence", 1, "A happens at least once in each case", "a case that ended without A", "A!; End"),
    Template(
        "absence",
        1,
        "A happens fewer than N times in each case (N: --times, usually 1)",
        "N occurrences of A, one after the other",
        "A; NextA;{{{times}}}",
    ),
    Template("init", 1, "each case begins with A", "a case whose first event is not A", "Earlier!; NotA"),
    Template("choice", 2, "A or B happens in each case", "a case that ended with neither", "AorB!; End"),
    Template(
        "responded-existence",
        2,
        "where A happens, B happens too, before or after it",
        "an A in a case that ended without any B",
        "B!; A; LaterB!; End",
    ),
    Template(
        "co-existence",
        2,
        "A and B happen both or neither",
        "a case that ended with one of them only",
        "AorB!; One; Other!; End",
    ),
    Template(
        "response", 2, "each A is followed by a B", "an A that no B has followed", "A; B!; End", "A; B! WITHIN {within}"
    ),
    Template("precedence", 2, "B happens only after an A", "a B with no A before it", "A!; B"),
    Template(
        "alternate-response",
        2,
        "each A is followed by a B before the next A",
        "an A, and the A or the end that came before any B",
        "A; B!; AorEnd",
    ),
    Template(
        "chain-response", 2, "the event after each A is a B", "an A, and the other event that came next", "A, NotB"
    ),
    Template(
        "chain-precedence",
        2,
        "the event before each B, if there is one, is an A",
        "a B, and the other event that came just before",
        "NotA, B",
    ),
    Template(
        "chain-succession",
        2,
        "the event after an A is a B, and the one before a B, if there is one, is an A",
        "two events in a row of which the first is A or the second is B, not both",
        "Event, Next",
    ),
    Template(
        "not-co-existence",
        2,
        "A and B do not both happen in a case",
        "one of them, and the next of the other",
        "One; Other",
        "One; Other WITHIN {within}",
    ),
    Template(
        "not-succession", 2, "no A is followed by a B", "an A, and the next B after it", "A; B", "A; B WITHIN {within}"
    ),
    Template("not-chain-succession", 2, "the event after an A is no B", "an A, and the B that came next", "A, B"),
)
"""What can be watched, by the paper's order."""

_TWO: Final = "it is broken in two ways, and a query of SPAseq has one sequence"
REFUSED: Final = {
    "exactly": f"{_TWO}: ask `existence A` and `absence A --times 2`",
    "exclusive-choice": f"{_TWO}: ask `choice A B` and `not-co-existence A B`",
    "succession": f"{_TWO}: ask `response A B` and `precedence A B`",
    "alternate-precedence": f"{_TWO}: ask `precedence A B`, and write a query with SEQ(B; A!; NextB) for two B "
    "without an A between them",
    "alternate-succession": f"{_TWO}: ask `alternate-response A B` and `precedence A B`, and write a query with "
    "SEQ(B; A!; NextB) for two B without an A between them",
}
"""Templates of the paper that no single query can watch → why, and what to ask instead."""


# --- declare -----------------------------------------------------------------------------------------


MOST_TIMES: Final = 1000
"""Occurrences that `absence` counts to at most."""
_SHOWN: Final = 60
"""Characters of a wrong name that a message shows."""
_BY_NAME: Final = {template.name: template for template in TEMPLATES}
_IRI: Final = re.compile(r"<(.*)>|((?:https?://|urn:).*)", re.DOTALL)
_NAME: Final = re.compile(r"\b[A-Z]\w*")


@dataclass(frozen=True, slots=True)
class EventLog:
    """How events of a log are written: the stream, and the predicates of an event's case and activity (IRIs)."""

    stream: str = "urn:oxiseq:stream"
    case: str = "urn:oxiseq:case"
    activity: str = "urn:oxiseq:activity"


USUAL_LOG: Final = EventLog()
"""The default."""


def declare_query(
    template: str,
    *activities: str,
    within: int | None = None,
    end: str | None = None,
    times: int | None = None,
    log: EventLog = USUAL_LOG,
) -> str:
    """The text of a SPAseq query whose matches are the violations of a template.

    `activities`, `end`: names, or IRIs (`<...>`, `http:`, `https:`, `urn:`). `within`: microseconds after which an
    answer comes too late; `end`: the activity that is the last of every case; `times`: how many occurrences are too
    many. Raises ArgumentValueError where the template cannot be expressed, with the reason.

    >>> from oxiseq.grammar.declare import declare_query
    >>> print(declare_query("not-succession", "pay", "cancel").splitlines()[6])
      SEQ(A; B)
    """
    chosen = _template(template)
    _check(chosen, activities, within, end, times)
    terms = dict(zip("ab", (_activity(each) for each in activities), strict=False))
    if end is not None:
        terms["end"] = _activity(end)
    if len(set(terms.values())) < len(terms):
        raise ArgumentValueError(f"{chosen.name}: the activities, and the end of a case, must differ")
    return _text(chosen, _sequence(chosen, within, times), terms, log)


def _template(name: str) -> Template:
    wanted = "-".join(re.split(r"[\s_-]+", name.strip().lower()))
    if wanted in REFUSED:
        raise ArgumentValueError(f"{wanted} cannot be one query: {REFUSED[wanted]}")
    if wanted not in _BY_NAME:
        near = get_close_matches(wanted, [*_BY_NAME, *REFUSED], 1)
        hint = f"; did you mean {near[0]}?" if near else f": there are {', '.join(_BY_NAME)}"
        raise ArgumentValueError(f"there is no template {name[:_SHOWN]!r}{hint}")
    return _BY_NAME[wanted]


def _check(
    template: Template, activities: tuple[str, ...], within: int | None, end: str | None, times: int | None
) -> None:
    """Raises where the template does not take what is given, or needs more."""
    name = template.name
    if len(activities) != template.activities:
        wants = "one activity, A" if template.activities == 1 else "two activities, A and B"
        raise ArgumentValueError(f"{name} takes {wants}; {len(activities)} given")
    if within is not None and template.timed is None:
        raise ArgumentValueError(f"{name} has no form with a time bound (--within)")
    if within is not None and within <= 0:
        raise ArgumentValueError(f"{name}: a time bound (--within) is longer than nothing")
    if times is not None and not template.counts:
        raise ArgumentValueError(f"{name} does not count occurrences (--times)")
    if times is not None and not 1 <= times <= MOST_TIMES:
        raise ArgumentValueError(f"{name}: --times is 1 to {MOST_TIMES}, not {times}")
    if template.ends and (within is None) == (end is None):
        bound = "either --within or --end" if template.timed else "--end"
        raise ArgumentValueError(
            f"{name} wants {bound}: while a case is open, missing activities may still come; --end ACTIVITY names the "
            "last activity of every case" + (", --within DURATION says how long to wait" if template.timed else "")
        )
    if end is not None and not template.ends:
        raise ArgumentValueError(f"{name} is decided without the end of a case (--end)")


def _sequence(template: Template, within: int | None, times: int | None) -> str:
    if within is not None and template.timed is not None:
        return template.timed.format(within=time_span(within))
    if not template.counts:
        return template.sequence
    return "A" if times in (None, 1) else template.sequence.format(times=(times or 1) - 1)


def _text(template: Template, sequence: str, terms: dict[str, str], log: EventLog) -> str:
    names = dict.fromkeys(name for name in _NAME.findall(sequence) if name in EVENTS)
    case, activity, stream = (_iri(each) for each in (log.case, log.activity, log.stream))
    lines = [
        f"# Declare's {template.name}: {template.says}.",
        f"# A match is {template.found}.",
        "SELECT ?case (STARTTIME() AS ?first) (ENDTIME() AS ?last)",
        f"FROM STREAM Log {stream}",
        "PARTITION BY ?case",
        "WHERE {",
        f"  SEQ({sequence})",
    ]
    for name in names:
        variable = f"?{name[0].lower()}{name[1:]}"
        condition = f" FILTER({EVENTS[name].format(it=variable, **terms)})" if EVENTS[name] else ""
        lines.append(
            f"  DEFINE GPM {name} ON Log {{ {variable}Event {case} ?case ; {activity} {variable}{condition} }}"
        )
    return "\n".join([*lines, "}", ""])


def _activity(given: str) -> str:
    """The term of an activity, as a query writes it."""
    if not given.strip():
        raise ArgumentValueError("an activity is a name or an IRI, not an empty text")
    if iri := _IRI.fullmatch(given):
        return _iri(iri[1] if iri[1] is not None else iri[2])
    try:
        return str(Literal(given))
    except ValueError as error:
        raise ArgumentValueError(f"the activity {given!r} is no text of Unicode: {error}") from error


def _iri(given: str) -> str:
    try:
        return str(NamedNode(given.removeprefix("<").removesuffix(">")))
    except ValueError as error:
        raise ArgumentValueError(f"{given!r} is not an IRI: {error}") from error
