"""Real readings of a continuous glucose monitor, from the PyPI package bokeh_sampledata: one patient, seven
months of 2010, a reading every five minutes with gaps. The times have no zone in the source; they are taken as UTC.
"""

from __future__ import annotations

from bokeh_sampledata.glucose import data

STREAM = "http://clinic.example/glucose"
_EVENT = (
    "<http://clinic.example/patient1> <http://clinic.example/vocab#glucose> "
    '"{}"^^<http://www.w3.org/2001/XMLSchema#integer> .'
)


def readings() -> list[tuple[int, int]]:
    """(microseconds, mg/dl), in order; two readings may have the same time, which makes them one event."""
    times = data.index.to_numpy().astype("datetime64[us]").astype("int64")
    return list(zip(times.tolist(), data["glucose"].tolist(), strict=True))


def streams() -> dict[str, list[tuple[int, str]]]:
    """The events of the stream."""
    return {STREAM: [(time, _EVENT.format(value)) for time, value in readings()]}
