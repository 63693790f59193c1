"""Events and queries for tests of the live service."""

from __future__ import annotations

import random
from dataclasses import dataclass

from oxiseq.engine.events.time import to_text

EX = "http://example.org/"
POWER, DOORS, ALARMS = f"{EX}power", f"{EX}doors", f"{EX}alarms"
BEGIN = 1_714_557_600_000_000
"""2024-05-01T10:00:00Z in microseconds."""

RISES = f"""PREFIX : <{EX}>
SELECT ?house ?before ?after WITHIN 30 SECONDS
FROM STREAM S <{POWER}>
WHERE {{
  SEQ(A; B)
  DEFINE GPM A ON S {{ ?house :watts ?before }}
  DEFINE GPM B ON S {{ ?house :watts ?after FILTER(?after > 2 * ?before) }}
}}"""
OPENED = f"""PREFIX : <{EX}>
SELECT ?house ?watts ?door WITHIN 20 SECONDS
FROM STREAM S <{POWER}>
FROM STREAM D <{DOORS}>
WHERE {{
  SEQ(A; B)
  DEFINE GPM A ON S {{ ?house :watts ?watts FILTER(?watts > 900) }}
  DEFINE GPM B ON D {{ ?house :opens ?door }}
}}"""
ALARM = f"""PREFIX : <{EX}>
CONSTRUCT {{ ?house :alarm ?watts }} INTO STREAM <{ALARMS}> WITHIN 10 SECONDS
FROM STREAM S <{POWER}>
WHERE {{ SEQ(A) DEFINE GPM A ON S {{ ?house :watts ?watts FILTER(?watts > 850) }} }}"""
ALARMED_TWICE = f"""PREFIX : <{EX}>
SELECT ?house ?first ?second WITHIN 1 MINUTE
FROM STREAM A <{ALARMS}>
WHERE {{
  SEQ(X; Y)
  DEFINE GPM X ON A {{ ?house :alarm ?first }}
  DEFINE GPM Y ON A {{ ?house :alarm ?second }}
}}"""
UNANSWERED = f"""PREFIX : <{EX}>
SELECT ?house ?first ?again WITHIN 30 SECONDS
FROM STREAM S <{POWER}>
WHERE {{
  SEQ(A; (B; C)!; D)
  DEFINE GPM A ON S {{ ?house :watts ?first FILTER(?first > 700) }}
  DEFINE GPM B ON S {{ ?house :watts ?low FILTER(?low < 300) }}
  DEFINE GPM C ON S {{ ?house :watts ?lower FILTER(?lower < 500) }}
  DEFINE GPM D ON S {{ ?house :watts ?again FILTER(?again > 700) }}
}}"""
HIGHEST = RISES.replace("30 SECONDS", "10 SECONDS") + " ORDER BY DESC(?after) ?before LIMIT 3 REPORT ON WINDOW CLOSE"
HIGH = f"""PREFIX : <{EX}>
SELECT ?house ?watts ?more
FROM STREAM <{POWER}> [RANGE 5 SECONDS SLIDE 1 SECONDS]
WHERE {{ ?house :watts ?watts . ?house :watts ?more FILTER(?more > ?watts && ?watts > 500) }}"""
"""Of continuous SPARQL, answered incrementally."""
BUSY = f"""PREFIX : <{EX}>
REGISTER ISTREAM :busy AS
SELECT ?house (MAX(?watts) AS ?most) (COUNT(DISTINCT ?door) AS ?doors)
FROM NAMED WINDOW :w ON <{POWER}> [RANGE PT20S STEP PT5S]
FROM NAMED WINDOW :v ON <{DOORS}> [RANGE PT30S STEP PT5S]
WHERE {{ WINDOW :w {{ ?house :watts ?watts }} WINDOW :v {{ ?house :opens ?door }} }} GROUP BY ?house"""
"""Of continuous SPARQL, asked of Oxigraph."""
LEFT = f"""PREFIX : <{EX}>
REGISTER ISTREAM :left AS
SELECT ?house ?watts ?door
FROM NAMED <{POWER}> WIN [RANGE 20 SECONDS SLIDE 1 SECONDS] AS :w
FROM NAMED <{DOORS}> WIN [RANGE 20 SECONDS SLIDE 1 SECONDS] AS :v
EVENT ON :w {{ ?house :watts ?watts FILTER(?watts > 700) }} AS High
EVENT ON :v {{ ?house :opens ?door }} AS Door
WHERE {{ MATCH {{ High SEQ^r Door }} }}
CONSUME RECENT"""
"""Of RSEP-QL."""

LIMITS = f"{EX}limits"
LIMITED = f"""PREFIX : <{EX}>
SELECT ?house ?watts ?limit ?after WITHIN 30 SECONDS
FROM STREAM S <{POWER}>
WHERE {{
  SEQ(A; B)
  DEFINE GPM A ON S {{ ?house :watts ?watts GRAPH :limits {{ ?house :limit ?limit }} FILTER(?watts > ?limit) }}
  DEFINE GPM B ON S {{ ?house :watts ?after GRAPH :limits {{ ?house :limit ?now }} FILTER(?after < ?now) }}
}}"""
MUTED = f"""PREFIX : <{EX}>
SELECT ?house ?watts ?limit WITHIN 10 SECONDS
FROM STREAM S <{POWER}>
WHERE {{
  SEQ(A)
  DEFINE GPM A ON S {{ ?house :watts ?watts OPTIONAL {{ GRAPH :limits {{ ?house :limit ?limit FILTER(?limit > 500) }} }}
                      FILTER(?watts > 800) }}
}}"""
WINDOWS = f"""PREFIX : <{EX}>
REGISTER RSTREAM :over AS
SELECT ?house ?watts ?limit
FROM NAMED WINDOW :w ON <{POWER}> [RANGE PT5S STEP PT1S]
WHERE {{ WINDOW :w {{ ?house :watts ?watts }} GRAPH :limits {{ ?house :limit ?limit }} FILTER(?watts > ?limit) }}"""
"""Of continuous SPARQL, answered incrementally, with the KB."""
ASKED = f"""PREFIX : <{EX}>
REGISTER ISTREAM :over AS
SELECT ?house ?watts ?limit
FROM NAMED WINDOW :w ON <{POWER}> [RANGE PT5S STEP PT1S]
WHERE {{ WINDOW :w {{ ?house :watts ?watts }} OPTIONAL {{ GRAPH :limits {{ ?house :limit ?limit }} }} }}"""
"""Of continuous SPARQL, asked of Oxigraph, with the KB."""
EVENTS = f"""PREFIX : <{EX}>
REGISTER RSTREAM :over AS
SELECT ?house ?watts ?limit
FROM NAMED <{POWER}> WIN [RANGE 5 SECONDS SLIDE 1 SECONDS] AS :w
EVENT ON :w {{ ?house :watts ?watts GRAPH :limits {{ ?house :limit ?limit }} FILTER(?watts > ?limit) }} AS High
WHERE {{ MATCH {{ High }} }}"""
"""Of RSEP-QL, with the KB in the events."""
INTERVALS = f"""PREFIX : <{EX}>
SELECT ?house ?watts ?limit FROM STREAM <{POWER}>
WHERE {{ ?house :watts ?watts . GRAPH :limits {{ ?house :limit ?limit }} FILTER(?watts > ?limit) }}"""
"""Of EP-SPARQL, with the KB."""


def limits_update(number: int) -> str:
    """An update of the KB that two queries ask: another limit for each house. Twice is as once."""
    drawn = random.Random(number)
    rows = " ".join(f"<{EX}h{house}> <{EX}limit> {drawn.randint(300, 900)} ." for house in range(1, 7))
    return f"CLEAR SILENT GRAPH <{LIMITS}> ; INSERT DATA {{ GRAPH <{LIMITS}> {{ {rows} }} }}"


FELL = f"""PREFIX : <{EX}>
SELECT ?house ?before ?after (getDURATION() AS ?took)
FROM STREAM <{POWER}> FROM STREAM <{DOORS}>
WHERE {{
  {{ {{ ?house :watts ?before }} SEQ {{ ?house :opens ?door }} }} SEQ {{ ?house :watts ?after }}
  FILTER(?after < ?before && getDURATION() < "PT20S"^^<http://www.w3.org/2001/XMLSchema#duration>)
}}"""
"""EP-SPARQL."""


FALLS, RAISED = f"{EX}falls", f"{EX}raised"
FALL = f"""PREFIX : <{EX}>
CONSTRUCT {{ ?house :fell ?after }} INTO STREAM <{FALLS}>
FROM STREAM <{POWER}>
WHERE {{
  {{ ?house :watts ?before }} SEQ {{ ?house :watts ?after }}
  FILTER(?after + 400 < ?before && getDURATION() < "PT20S"^^<http://www.w3.org/2001/XMLSchema#duration>)
}}"""
FELL_TWICE = f"""PREFIX : <{EX}>
SELECT ?house ?first ?second (getDURATION() AS ?took)
FROM STREAM <{FALLS}>
WHERE {{
  {{ ?house :fell ?first }} SEQ {{ ?house :fell ?second }}
  FILTER(getDURATION() < "PT1M"^^<http://www.w3.org/2001/XMLSchema#duration>)
}}
CONSUME RECENT"""
"""EP-SPARQL, of which one feeds the other."""
RAISE = f"""PREFIX : <{EX}>
REGISTER ISTREAM <{RAISED}> AS CONSTRUCT {{ ?house :raised ?watts }}
FROM NAMED WINDOW :w ON <{POWER}> [RANGE PT10S STEP PT10S]
WHERE {{ WINDOW :w {{ ?house :watts ?watts FILTER(?watts > 800) }} }}"""
"""RSP-QL."""
RAISED_TWICE = f"""PREFIX : <{EX}>
SELECT ?house ?first ?second FROM NAMED <{RAISED}> WIN [RANGE PT1M SLIDE PT1S] AS :w
EVENT ON :w {{ ?house :raised ?first }} AS A EVENT ON :w {{ ?house :raised ?second }} AS B
WHERE {{ MATCH {{ A SEQ B }} }} REPORT ON CONTENT CHANGE"""
"""RSEP-QL, which it feeds."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Events of one stream as they are sent."""

    stream: str
    id: str
    body: bytes


def event(name: str, time: int, triple: str) -> str:
    """An event in N-Quads; `triple` without its end."""
    iri = f"<{EX}{name}>"
    stamp = f'"{to_text(time)}"^^<http://www.w3.org/2001/XMLSchema#dateTime>'
    return f"{iri} <http://www.w3.org/ns/prov#generatedAtTime> {stamp} .\n{triple} {iri} .\n"


def power(number: int, time: int, house: int, watts: int) -> str:
    """A house's power."""
    value = f'"{watts}"^^<http://www.w3.org/2001/XMLSchema#integer>'
    return event(f"p{number}", time, f"<{EX}h{house}> <{EX}watts> {value}")


def door(number: int, time: int, house: int) -> str:
    """A door that opens."""
    return event(f"d{number}", time, f"<{EX}h{house}> <{EX}opens> <{EX}door{number % 5}>")


def batches(count: int, seed: int, most: int = 12) -> list[Batch]:
    """Batches of both streams, each stream's times rising."""
    drawn = random.Random(seed)
    times = {POWER: BEGIN, DOORS: BEGIN + 500}
    made, number = [], 0
    for i in range(count):
        stream = POWER if drawn.random() < 0.7 else DOORS
        lines = []
        for _ in range(drawn.randint(1, most)):
            times[stream] += drawn.randint(1, 2_000) * 1000
            number += 1
            house = drawn.randint(1, 6)
            lines.append(
                power(number, times[stream], house, drawn.randint(1, 1000))
                if stream == POWER
                else door(number, times[stream], house)
            )
        made.append(Batch(stream, f"batch-{i}", "".join(lines).encode()))
    return made


AFTER_ALL = "2025-01-01T00:00:00Z"
"""Later than any event here, and no later than now: a server takes nothing far ahead of its clock."""
