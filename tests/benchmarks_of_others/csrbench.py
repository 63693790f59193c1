"""CSRBench's seven queries, and readings in SRBench's vocabulary.

From the paper (Dell'Aglio, Calbimonte, Balduini, Corcho, Della Valle, *On Correctness in RDF Stream Processor
Benchmarking*, ISWC 2013), the W3C wiki's page CSRBench and the benchmark's repositories (github.com/dellaglio/
csrbench-oracle and csrbench-oracle-engines; all read in stored copies) are: what each query asks, its window, its
thresholds, the vocabulary, the kinds of answers the oracle allows. The texts are ours, the readings are made up.

1, 2 and 5 are one question over other windows: which air temperatures are above 80? 3 asks for humidities in a range,
4 for a mean, 6 joins two readings of one sensor, 7 compares all sensors with the sensor C1190.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

STREAM = "http://cwi.nl/SRBench/observations"
OM = "http://knoesis.wright.edu/ssw/ont/sensor-observation.owl#"
WEATHER = "http://knoesis.wright.edu/ssw/ont/weather.owl#"
SENS = "http://knoesis.wright.edu/ssw/"
SECOND = 1_000_000
TEMPERATURE, HUMIDITY = "AirTemperature", "RelativeHumidity"

_HOT = """?obs om-owl:observedProperty weather:_AirTemperature ; om-owl:procedure ?sensor ;
         om-owl:result [ om-owl:floatValue ?value ] FILTER(?value > 80)"""
_QUERIES = {
    "q1": ("?sensor ?obs", 10, 10, _HOT),
    "q2": ("?sensor ?obs", 1, 1, _HOT),
    "q3": (
        "?sensor ?obs ?value",
        4,
        4,
        """?obs om-owl:observedProperty weather:_RelativeHumidity ;
         om-owl:procedure ?sensor ; om-owl:result [ om-owl:floatValue ?value ] FILTER(?value > 24 && ?value < 49)""",
    ),
    "q4": ("(AVG(?value) AS ?avg)", 4, 4, _HOT),
    "q5": ("?sensor ?obs", 5, 1, _HOT),
    "q6": (
        "?sensor ?ob1 ?value1 ?obs",
        5,
        5,
        """
    ?ob1 om-owl:procedure ?sensor ; om-owl:observedProperty weather:_AirTemperature ;
         om-owl:result [ om-owl:floatValue ?value1 ] .
    ?obs om-owl:procedure ?sensor ; om-owl:observedProperty weather:_AirTemperature ;
         om-owl:result [ om-owl:floatValue ?value ] FILTER(?value1 > ?value) FILTER(?value > 75)""",
    ),
    "q7": (
        "?sensor ?ob1",
        5,
        5,
        """
    ?ob om-owl:procedure sens-obs:System_C1190 ; om-owl:observedProperty weather:_AirTemperature ;
        om-owl:result [ om-owl:floatValue ?value ] .
    ?ob1 om-owl:procedure ?sensor ; om-owl:observedProperty weather:_AirTemperature ;
         om-owl:result [ om-owl:floatValue ?value1 ] FILTER(?value1 > ?value)""",
    ),
}
"""Name → (columns, seconds of its range, of its step, what it asks of the window)."""
NAMES = tuple(_QUERIES)


class Reading(NamedTuple):
    """What a sensor says at a second."""

    second: int
    sensor: str
    kind: str
    value: int


def query(name: str, report: str = "RSTREAM", when: str = "REPORT ON WINDOW CLOSE") -> str:
    """One of the seven. As they stand here C-SPARQL and SPARQLstream read them; CQELS: ISTREAM, and no REPORT."""
    columns, size, step, asked = _QUERIES[name]
    return f"""PREFIX om-owl: <{OM}>
PREFIX weather: <{WEATHER}>
PREFIX sens-obs: <{SENS}>
REGISTER {report} sens-obs:{name} AS
SELECT {columns}
FROM NAMED WINDOW sens-obs:w ON <{STREAM}> [RANGE PT{size}S STEP PT{step}S]
WHERE {{
  WINDOW sens-obs:w {{ {asked} }}
}}
{when}
"""


def stream(readings: Iterable[Reading], later: int = 0) -> dict[str, list[tuple[int, str]]]:
    """The readings in order of time, those of one second in one graph; all stamped `later` by so many microseconds."""
    graphs: dict[int, list[str]] = {}
    for each in sorted(readings):
        graphs.setdefault(each.second, []).append(_graph(each))
    return {STREAM: [(second * SECOND + later, "\n".join(lines)) for second, lines in graphs.items()]}


def _graph(reading: Reading) -> str:
    second, sensor, kind, value = reading
    made = f"{kind}_{sensor}_{second}_{value}"
    it, result = f"<{SENS}Observation_{made}>", f"<{SENS}MeasureData_{made}>"
    return "\n".join(
        [
            f"{it} <{OM}observedProperty> <{WEATHER}_{kind}> .",
            f"{it} <{OM}procedure> <{SENS}System_{sensor}> .",
            f"{it} <{OM}result> {result} .",
            f'{result} <{OM}floatValue> "{value}"^^<http://www.w3.org/2001/XMLSchema#double> .',
        ]
    )
