"""Complex events as blobs of the journal."""

from __future__ import annotations

from typing import Final

import numpy as np

from oxiseq.ceql.event import ComplexShape
from oxiseq.ceql.formats import HEAD as SHOWN
from oxiseq.ceql.formats import listed
from oxiseq.engine.output.batch import MatchBatch
from oxiseq.engine.output.complex_events import ComplexEvents
from oxiseq.journal import Heading
from oxiseq.journal.rows import pack_rows

_INTEGER: Final = "^^<http://www.w3.org/2001/XMLSchema#integer>"
HEAD: Final = SHOWN[1:]
"""Columns before those of their variables: start, end, positions. The journal has the time of every match itself."""


def heading_of(shape: ComplexShape) -> Heading:
    """What a query's complex events have in common; the letters are told with each blob."""
    return Heading((*HEAD, *shape.variables))


def pack_complex(batch: ComplexEvents, shape: ComplexShape) -> bytes:
    """Complex events as rows: start, end and positions, then by variable the positions that it holds, with blanks
    between them."""
    texts: dict[str, int] = {}
    letters: dict[tuple[tuple[str, str], ...], int] = {}
    codes = np.zeros((len(batch), len(HEAD) + len(shape.variables)), np.int64)
    event_letter = np.zeros(len(batch.positions), np.int32)
    for i in range(len(batch)):
        event = shape.match(batch, i)
        held = event.held
        lists = [event.positions, *(held.get(variable, ()) for variable in shape.variables)]
        cells = [f'"{event.start}"{_INTEGER}', f'"{event.end}"{_INTEGER}', *(f'"{listed(each)}"' for each in lists)]
        codes[i] = [texts.setdefault(cell, len(texts) + 1) for cell in cells]
        for row in range(int(batch.ends[i]), int(batch.ends[i + 1])):
            position, stream = int(batch.positions[row]), shape.plan.streams[int(batch.event_stream[row])]
            holders = tuple((variable, stream) for variable, positions in held.items() if position in positions)
            event_letter[row] = letters.setdefault(holders, len(letters))
    rows = MatchBatch(batch.time, np.zeros((len(batch), 0), np.uint32), batch.ends, event_letter, batch.event_time)
    heading = Heading((*HEAD, *shape.variables), tuple(letters))
    return pack_rows(rows, heading, codes, [text.encode() for text in texts])

