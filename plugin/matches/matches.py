"""The matches of a query, so far or over streams that have ended."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence
from io import BytesIO, TextIOBase
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, BinaryIO, Self, overload

import numpy as np

from oxiseq.engine.errors import ArgumentTypeError
from oxiseq.engine.events.faults import NO_FAULTS, Faults
from oxiseq.engine.extras import loaded
from oxiseq.grammar.arguments import internal, public
from oxiseq.matches.match import Match, moments
from oxiseq.matches.shape import Block, Form
from oxiseq.matches.text import table_of
from oxiseq.matches.write import arrow_table, check_format, opened, result_format, write_blocks
from oxiseq.pictures.drawing import Svg
from oxiseq.pictures.timeline import timeline
from oxiseq.sources.warned import LateBatch, LateEvent, late_events

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

SHOWN = 100
"""Rows of an HTML table."""


if TYPE_CHECKING:
    _Sequence = Sequence[Match]
else:

    class _Sequence:
        """All of a Sequence but its name: Polars takes what is an instance of it apart, and not as an Arrow stream."""

        __contains__, __reversed__ = Sequence.__contains__, Sequence.__reversed__
        index, count = Sequence.index, Sequence.count


@public
class Matches(_Sequence):
    """The matches of a query of whatever language, in the order of `at`: a sequence of `Match`, made when one looks.

    Polars, DuckDB, pandas and pyarrow take it as a table (the Arrow PyCapsule interface).

    >>> import oxiseq
    >>> text = '''PREFIX : <http://example.org/>
    ... SELECT ?paid FROM STREAM S <http://example.org/payments>
    ... WHERE { SEQ(A) DEFINE GPM A ON S { ?who :paid ?paid } }'''
    >>> payment = "<http://example.org/ann> <http://example.org/paid> {} ."
    >>> matches = oxiseq.run(text, streams={"S": [(t, payment.format(t)) for t in range(3)]})
    >>> len(matches), matches[1]["paid"].value, [m.at_us for m in matches[1:]]
    (3, '1', [1, 2])
    >>> matches.to_arrow().column_names
    ['at', 'start', 'end', 'paid', 'events_A']
    >>> matches.write(format="csv")
    b'paid\\r\\n0\\r\\n1\\r\\n2\\r\\n'
    """

    def __init__(
        self,
        block: Block,
        events: int = 0,
        late: Sequence[tuple[str, LateBatch]] = (),
        faults: Faults = NO_FAULTS,
        behind: int = 0,
        total: int | None = None,
        time_columns: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """`oxiseq.run` and `ContinuousQuery` make them."""
        self._block = block
        self._late = late
        self._faults = faults
        self.events = events
        """How many events were read."""
        self.behind = behind
        """At how many events matches may be missing, since the attribute of WITHIN fell too far there (CEQL)."""
        self.total = len(block) if total is None else total
        """How many there are in all: more than these where they are some of the matches of one instant
        (`matches_at`)."""
        self.time_columns = time_columns
        """The column of each table that was read as the time, by the IRI of its stream."""
        block.shape.terms.hold(block.rows.values)

    # --- what they are ------------------------------------------------------------------------------

    @property
    def variables(self) -> tuple[str, ...]:
        """What the query answers, without `?`."""
        return self._block.shape.variables

    @property
    def form(self) -> Form:
        """What a match is: `"SELECT"`: a row of terms; `"CONSTRUCT"`: it has a `graph`; `"ASK"`: `bool(matches)` is the
        answer; `"EVENTS"`: it has `events` and their `positions` (CEQL)."""
        return self._block.shape.form

    @property
    def ended(self) -> bool:
        """Whether they are rows that hold no longer (DSTREAM)."""
        return self._block.shape.ended

    @property
    def late(self) -> int:
        """How many events were older than their stream's watermark, hence not matched."""
        return sum(len(batch) for _, batch in self._late)

    def late_events(self) -> list[LateEvent]:
        """Those events, in order of arrival; a row of a table as its graph."""
        return late_events(self._late, self._block.shape.terms, self._block.shape.vocab)

    @property
    def ignored(self) -> int:
        """How many events the query ignores because the language cannot take them: no tuple events in CEQL, events that
        start after they end in EP-SPARQL."""
        return self._faults.count

    @property
    def ignored_events(self) -> tuple[str, ...]:
        """Which the first of those are, and what is wrong with them."""
        return self._faults.first

    @property
    @internal
    def block(self) -> Block:
        """Their columns."""
        return self._block

    # --- a sequence ---------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._block)

    def __iter__(self) -> Iterator[Match]:
        return map(self._block.match, range(len(self)))

    @overload
    def __getitem__(self, index: int) -> Match: ...

    @overload
    def __getitem__(self, index: slice) -> Self: ...

    def __getitem__(self, index: int | slice) -> Match | Self:
        if isinstance(index, slice):
            return self._with(self._block.take(np.arange(len(self))[index]))
        return self._block.match(range(len(self))[index])

    def sorted(self) -> Self:
        """The same matches, those of one instant by their events."""
        return self._with(self._block.by_events())

    def _with(self, block: Block) -> Self:
        total = self.total if self.total > len(self) else None
        return type(self)(block, self.events, self._late, self._faults, self.behind, total)

    # --- tables and files ---------------------------------------------------------------------------

    def to_arrow(self) -> pa.Table:
        """An Arrow table: `at`, and `start` and `end` where matches have a start (timestamps, UTC), or `end` alone
        where rows may be decided later than they end; a column per variable; a list of event times `events_NAME` for
        each GPM or variable that holds events. Of CEQL also the positions `first`, `last`, `positions` (the set D) and,
        under its name, those that each variable holds.

        A column of numbers of one kind is numeric; IRIs are their text, literals their lexical form.
        """
        return arrow_table(self._block)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """`to_arrow` for whoever speaks the Arrow PyCapsule interface."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def to_pandas(self) -> pd.DataFrame:
        """`to_arrow` as a pandas DataFrame (needs the extra `oxiseq[pandas]`)."""
        loaded("pandas")
        return self.to_arrow().to_pandas()

    @overload
    def write(self, output: None = None, *, format: str) -> bytes: ...

    @overload
    def write(self, output: str | Path | BinaryIO, *, format: str | None = None) -> None: ...

    def write(self, output: str | Path | BinaryIO | None = None, *, format: str | None = None) -> bytes | None:
        """Write them: `"json"`, `"csv"`, `"tsv"` (SPARQL 1.1 results), `"table"` (for people), `"arrow"`, `"parquet"`
        or, for CONSTRUCT, `"nquads"` and RDF messages (`"messages-nquads"`, `"messages-trig"`, `"messages-ntriples"`,
        `"messages-turtle"`, `"messages-ndjsonld"`). `output`: a path, whose ending names the format where `format` does
        not (`.gz` behind it: compressed), or a binary file; without it the bytes are returned.

        Raises OxiseqError for a format that is not known or cannot hold them; OSError.
        """
        if output is None:
            whole = BytesIO()
            self._write(whole, format)
            return whole.getvalue()
        if not isinstance(output, str | Path):
            if not _takes_bytes(output):
                raise ArgumentTypeError(f"output: a path or a file open for bytes ('wb'), not {output!r}"[:200])
            self._write(output, format)
            return None
        check_format(self._block.shape, chosen := format or result_format(output))
        with opened(Path(output)) as file:
            self._write(file, chosen)
        return None

    def _write(self, out: BinaryIO, format: str | None) -> None:
        if format is None:
            raise ArgumentTypeError("give format=: there is no file name to derive it from")
        write_blocks(self._block.shape, [self._block], check_format(self._block.shape, format), out)

    # --- for people ---------------------------------------------------------------------------------

    def timeline(self, most: int = SHOWN) -> Svg:
        """The first `most` matches over time as SVG: a lane per GPM or variable, a band per match."""
        return timeline([moments(match) for match in self[:most]], len(self))

    def _repr_html_(self) -> str:
        header, rows, _ = table_of(self[:SHOWN]._block)
        lines = "".join(_html_row(row, "td") for row in rows)
        table = f"<table><caption>{len(self)} matches</caption>{_html_row(header, 'th')}{lines}</table>"
        return f"<div>{self.timeline() if self else ''}{table}</div>"

    def __repr__(self) -> str:
        return f"<Matches: {len(self)} of ({', '.join(self.variables)})>"


def _takes_bytes(file: object) -> bool:
    """Whether it is something to write to, and not a file of text."""
    return callable(getattr(file, "write", None)) and not isinstance(file, TextIOBase)


def _html_row(cells: Sequence[Any], tag: str) -> str:
    return f"<tr>{''.join(f'<{tag}>{html.escape(cell)}</{tag}>' for cell in cells)}</tr>"
