"""A query with a trailing negation whose results another query reads, and the events of issue 40."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

EX = "http://example.org/"
SOURCE, OTHER, ALERTS = f"{EX}source", f"{EX}other", f"{EX}alerts"
UNANSWERED = f"""PREFIX : <{EX}>
CONSTRUCT {{ ?k :alert ?a }} INTO STREAM <{ALERTS}>
WITHIN 10 SECONDS SLIDING
FROM STREAM S <{SOURCE}>
WHERE {{
  SEQ(A; B; N!)
  DEFINE GPM A ON S {{ ?a :kind :a . ?a :key ?k }}
  DEFINE GPM B ON S {{ ?b :kind :b . ?b :key ?k }}
  DEFINE GPM N ON S {{ ?n :kind :n . ?n :key ?k }}
}}"""
SEEN = f"""PREFIX : <{EX}>
CONSTRUCT {{ ?k :alert ?c }} INTO STREAM <{ALERTS}>
FROM STREAM S <{OTHER}>
WHERE {{ SEQ(C) DEFINE GPM C ON S {{ ?c :kind :c . ?c :key ?k }} }}"""
"""Writes the same stream, with what it has seen at once."""
READ = f"""PREFIX : <{EX}>
SELECT ?k ?x FROM STREAM R <{ALERTS}> WHERE {{ SEQ(X) DEFINE GPM X ON R {{ ?k :alert ?x }} }}"""
SILENT = f"""PREFIX : <{EX}>
SELECT ?k ?x FROM STREAM R <{ALERTS}>
WHERE {{
  SEQ(X; Y! WITHIN 4 SECONDS)
  DEFINE GPM X ON R {{ ?k :alert ?x }}
  DEFINE GPM Y ON R {{ ?l :alert ?y }}
}}"""
"""No result within four seconds of one: it waits for what never comes."""

Sent = tuple[int, str]
"""Seconds, and a graph in N-Triples."""


def seen(time: int, kind: str, key: str) -> Sent:
    """An event of a kind with a key."""
    iri = f"<{EX}{kind}{time}>"
    return time, f"{iri} <{EX}kind> <{EX}{kind}> . {iri} <{EX}key> <{EX}{key}> ."


ISSUE = [seen(0, "a", "k1"), seen(5, "a", "k2"), seen(6, "b", "k2"), seen(9, "b", "k1")]
ISSUE += [seen(time, "t", "z") for time in range(11, 20)]


def parts(events: Iterable[Sent], sizes: Iterable[int]) -> Iterator[list[Sent]]:
    """The events in batches of these sizes; the rest as one."""
    left = list(events)
    for size in sizes:
        if left:
            yield left[:size]
            left = left[size:]
    if left:
        yield left
