"""The valid statements of Turtle and TriG text, and what is wrong in the rest.

In the flow: bytes → **runs of units** → pyoxigraph → quads and flaws. A block of clean text is one call of the
parser. Where that fails, smaller runs are tried: halves down to one unit, then twice as many each time. So the cost is
that of the text plus a little for each fault.

A bad unit is left out as a whole. It may have taken others with it: where a dot or a closing quote is missing, reading
continues at the next line within it that seems to begin a statement. Each such step takes from a stock of patience,
which valid text fills again; without it a unit is cut short. This bounds the time for text that is all faults.

What was declared before (prefixes, the base, the graph that is open) stays: it precedes each run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import IO, Final, NamedTuple

from pyoxigraph import BlankNode, Quad, RdfFormat, parse

from oxiseq.engine.errors import syntax_reason
from oxiseq.engine.rdf import guarded
from oxiseq.engine.turtle.scan import (
    Kind,
    Unit,
    graph_name,
    line_ends,
    long_string_before,
    next_unit,
    prefixes_in,
    restart,
    without_comments,
)
from oxiseq.grammar.byte_order import MARK

_BLOCK: Final = 1 << 22
"""Bytes that are read at a time, at least."""
_QUICK: Final = 1 << 14
"""Units of a run from which on whole blocks are tried first."""
_PATIENCE: Final = 1 << 24
"""Bytes of bad units that may be read again, at most in stock."""
_FILL: Final = 16
"""Bytes of patience for each byte that has been dealt with."""
_SHORT: Final = 1 << 9
"""Bytes of a unit that are read without a pause."""
KEPT: Final = 8_000
"""Bytes of a bad statement's text that are kept."""


_REST: Final = " .;,])}"
"""What may be left of a bad statement behind it in its line."""


class Flaw(NamedTuple):
    """A bad statement: the line of its error and its last line (from 1), why, its text (cut at KEPT bytes)."""

    line: int
    last: int
    reason: str
    text: str


def valid_statements(
    content: IO[bytes], format: RdfFormat, base: str | None, tell: Callable[[Flaw], object]
) -> Iterator[list[Quad]]:
    """The valid statements of Turtle or TriG text, in lists; flaws go to `tell` before what comes behind them.

    What reading `content` raises is raised when all before it has been returned.
    """
    return _Reading(content, format, base, tell).lists()


class _Reading:
    """The text not read yet, and the declarations before it."""

    def __init__(self, content: IO[bytes], format: RdfFormat, base: str | None, tell: Callable[[Flaw], object]) -> None:
        self._content = content
        self._format = format
        self._trig = format == RdfFormat.TRIG
        self._tell = tell
        self._text = b""
        self._at = 0
        self._fresh, self._ended = True, False
        self._broken: Exception | None = None
        self._counted, self._line = 0, 1
        """A place in the text, and its line."""
        self._prefixes: dict[str, str] = {}
        self._base = base
        self._graph: bytes | None = None
        """The name of the graph that is open at `_at`."""
        self._graph_line = 0
        self._step = _QUICK
        """Units to be tried together."""
        self._patience = _PATIENCE
        self._flaw: Flaw | None = None
        """The last one, as long as it may still grow."""
        self._flaw_end = 0
        self._error: SyntaxError | None = None

    def lists(self) -> Iterator[list[Quad]]:
        """All lists of statements."""
        while True:
            if len(self._text) - self._at < _BLOCK:
                self._read(_BLOCK)
            if self._step >= _QUICK and self._at < len(self._text) and (found := self._block()) is not None:
                yield found
                continue
            units = self._units()
            if units:
                yield from self._halved(units)
            elif self._ended:
                break
            else:
                self._read(len(self._text) - self._at)  # as much again: a long unit is read a few times only
        if self._graph is not None and self._broken is None:
            self._told(Flaw(self._graph_line, self._graph_line, 'the graph is not closed: "}" expected', ""))
        self._told(None)
        if self._broken is not None:
            raise self._broken

    # --- text ---------------------------------------------------------------------------------------

    def _read(self, size: int) -> None:
        if self._ended:
            return
        self._line_at(self._at)
        self._counted -= self._at
        self._flaw_end -= self._at
        parts = [self._text[self._at :]]
        self._at = 0
        wanted = max(size, _BLOCK)
        try:
            while wanted > 0 and (part := self._content.read(min(wanted, _BLOCK))):
                parts.append(part)
                wanted -= len(part)
            self._ended = wanted > 0
        except Exception as error:  # whatever it is: it is raised behind what has been read
            self._broken, self._ended = error, True
        text = b"".join(parts)
        self._text = text.removeprefix(MARK) if self._fresh else text
        self._fresh = False

    def _line_at(self, place: int) -> int:
        """The line of a place that is not before the one of the last call."""
        self._line += line_ends(self._text, self._counted, place)
        self._counted = max(self._counted, place)
        return self._line

    def _units(self) -> list[Unit]:
        """The next units, up to `_step`."""
        found: list[Unit] = []
        at = self._at
        while len(found) < self._step:
            unit = next_unit(self._text, at, self._room(), ended=self._ended, trig=self._trig)
            if unit is None:
                break
            found.append(unit)
            at = unit.end
        return found

    def _room(self) -> int | None:
        """Bytes that a unit may have; None: any number."""
        return None if self._patience >= _BLOCK else max(_SHORT, self._patience)

    # --- runs ---------------------------------------------------------------------------------------

    def _block(self) -> list[Quad] | None:
        """The statements up to the text's last line that ends with a dot or "}", if all is well up to there."""
        ends = [len(self._text)] if self._ended else [self._text.rfind(mark, self._at) + 1 for mark in self._marks()]
        for end in ends:
            if end <= self._at or (self._graph is not None and self._text.find(b"{", self._at, end) >= 0):
                continue  # another graph might be open at its end
            quads = self._parsed(self._text[self._at : end], self._graph)
            if quads is not None:
                self._told(None)
                self._graph = _kept_name(self._graph, quads)
                self._done(end)
                return quads
        return None

    def _marks(self) -> tuple[bytes, ...]:
        return (b"}\n", b".\n") if self._trig and self._graph is None else (b".\n",)

    def _halved(self, units: list[Unit]) -> Iterator[list[Quad]]:
        """The units' statements, up to one that is left out: the text behind it is read again."""
        done = 0
        while done < len(units):
            run = units[done : done + self._step]
            quads = self._tried(run)
            if quads is not None:
                yield quads
                done += len(run)
                self._step = min(2 * self._step, _QUICK)
            elif len(run) > 1:
                self._step = len(run) // 2
            else:
                if not self._left_out(run[0]):
                    return
                done += 1

    def _tried(self, run: list[Unit]) -> list[Quad] | None:
        """The statements of a run, if they are all valid."""
        opening, filled, graph = None, False, self._graph
        for unit in run:
            if unit.kind is Kind.STATEMENT:
                filled = True
                continue
            if (unit.kind is Kind.OPEN) == (graph is not None):
                return None  # nested, or closed twice
            opening, filled = unit if unit.kind is Kind.OPEN else None, False
            graph = None if opening is None else graph_name(self._text[unit.begin : unit.end])
            if opening is not None and graph is None:
                return None
        begin, end = run[0].begin, run[-1].end
        quads = self._parsed(self._text[begin:end], graph)
        if quads is None:
            return None
        self._told(None)
        if opening is not None:
            self._graph_line = self._line_at(begin) + line_ends(self._text, begin, opening.begin)
        self._graph = _kept_name(graph, quads) if filled else graph
        self._done(end)
        return quads

    def _parsed(self, text: bytes, graph: bytes | None) -> list[Quad] | None:
        """The text's statements, in the graph that is open; `graph`: that which is open behind them."""
        used = prefixes_in(text) | prefixes_in(self._graph or b"")
        known = [(p, iri) for p in used if (iri := self._prefixes.get(p.decode("utf-8", "replace"))) is not None]
        head = b"".join(b"@prefix %b: <%b> . " % (prefix, iri.encode()) for prefix, iri in sorted(known))
        if self._graph is not None:
            head += self._graph + b" { "
        tail = b"\n}" if graph is not None else b""
        parser = parse(head + text + tail, format=self._format, base_iri=self._base)
        try:
            guarded(text, self._format)
            quads = list(parser)
        except SyntaxError as error:
            self._error = error
            return None
        self._prefixes.update(parser.prefixes)
        self._base = parser.base_iri
        return quads

    def _done(self, end: int) -> None:
        self._patience = min(_PATIENCE, self._patience + _FILL * (end - self._at))
        self._at = end

    # --- faults -------------------------------------------------------------------------------------

    def _left_out(self, unit: Unit) -> bool:
        """Tell what is wrong with a unit that is not valid by itself, and continue after it, or within it.

        Whether it is behind it, so that the units that follow still hold.
        """
        if unit.kind is Kind.CLOSE:
            self._flawed(unit.begin, unit.end, 1, 'no graph is open here: "}" closes none')
            return True
        if unit.kind is Kind.OPEN and graph_name(self._text[unit.begin : unit.end]) is not None:
            return self._left_out_graph(unit)
        if unit.kind is Kind.OPEN:
            self._parsed(self._text[unit.begin : unit.end], b"")  # which says where it fails
        line, reason = self._why()
        place = self._within(unit, line - 1)
        self._flawed(unit.begin, unit.end if place is None else place, line, reason)
        if place is None and unit.kind is Kind.OPEN and self._graph is None:
            return self._left_out_block(unit)
        return place is None

    def _why(self) -> tuple[int, str]:
        assert self._error is not None, "a run of one unit has been parsed"
        return self._error.lineno or 1, syntax_reason(self._error)

    def _within(self, unit: Unit, line: int) -> int | None:
        """Where to continue within a bad unit whose error is in its line number `line` (from 0)."""
        if line_ends(self._text, unit.begin, unit.end) == 0:
            return None
        string = long_string_before(self._text, unit, line)
        if string is not None and not self._goes_on(unit):
            place = restart(self._text, unit, string, in_strings=True)
        else:
            place = restart(self._text, unit, line, in_strings=False)
        self._spend(unit, unit.end if place is None else place)
        return place

    def _spend(self, unit: Unit, end: int) -> None:
        self._patience = min(_PATIENCE, self._patience - (unit.end - unit.begin) + _FILL * (end - unit.begin))

    def _goes_on(self, unit: Unit) -> bool:
        """Whether what follows is valid, or nothing does: then the strings are closed where they seem to be."""
        follows = next_unit(self._text, unit.end, self._room(), ended=self._ended, trig=self._trig)
        if follows is None:
            return self._ended
        declared = self._prefixes.copy(), self._base
        valid = (
            follows.kind is Kind.CLOSE
            or self._parsed(self._text[follows.begin : follows.end], b"" if follows.kind is Kind.OPEN else self._graph)
            is not None
        )
        self._prefixes, self._base = declared
        return valid

    def _left_out_graph(self, unit: Unit) -> bool:
        """An opening brace behind a name: within a graph, or the name is none."""
        if self._graph is not None:
            reason = f'the graph of line {self._graph_line} is not closed: "}}" expected before this'
            self._flawed(unit.begin, unit.begin, 1, reason)
            self._graph = None
            self._at = unit.begin
            return False
        line, reason = self._why()
        self._flawed(unit.begin, unit.end, line, reason)
        return self._left_out_block(unit)

    def _left_out_block(self, unit: Unit) -> bool:
        """Behind a bad opening: leave out all up to the "}", if it comes before another "{": nobody knows its graph."""
        at, begin = unit.end, unit.end
        while at - begin < max(_SHORT, self._patience):
            follows = next_unit(self._text, at, self._room(), ended=self._ended, trig=True)
            if follows is None and not self._ended:
                before = self._at
                self._read(len(self._text) - self._at)
                at, begin = at - before, begin - before
                continue
            if follows is None or follows.kind is Kind.OPEN:
                break
            at = follows.end
            if follows.kind is Kind.CLOSE:
                self._grown(at, "; what is in its braces is left out")
                return False
        self._patience -= at - begin
        return False

    def _flawed(self, begin: int, end: int, line: int, reason: str) -> None:
        """Text is left out, for an error in its line number `line` (from 1). Reading continues at `end`."""
        if self._broken is not None and end == len(self._text):  # cut off: the reader reports that itself
            self._at = end
            return
        first = self._line_at(begin)
        bad_end = without_comments(self._text, begin, end)
        kept = self._text[begin : min(bad_end, begin + KEPT)].decode("utf-8", "replace")
        last = first + line_ends(self._text, begin, bad_end)
        flaw = self._flaw
        if flaw is not None and not line_ends(self._text, self._flaw_end, begin) and not kept.strip(_REST):
            self._flaw = Flaw(flaw.line, last, flaw.reason, f"{flaw.text} {kept}")
        else:
            self._told(Flaw(min(first + line - 1, last), last, reason, kept))
        self._at = self._flaw_end = end

    def _grown(self, end: int, reason: str) -> None:
        """The flaw continues up to `end`."""
        flaw = self._flaw
        assert flaw is not None
        last = flaw.last + line_ends(self._text, self._flaw_end, end)
        text = self._text[self._flaw_end : min(end, self._flaw_end + KEPT)].decode("utf-8", "replace")
        self._flaw = Flaw(flaw.line, last, flaw.reason + reason, (flaw.text + text)[:KEPT])
        self._at = self._flaw_end = end

    def _told(self, flaw: Flaw | None) -> None:
        """The flaw before is complete; this is the next one, or there is none yet."""
        if self._flaw is not None:
            self._tell(self._flaw)
        self._flaw = flaw


def _kept_name(graph: bytes | None, quads: list[Quad]) -> bytes | None:
    """The name of an open graph that the last of the quads is in: a blank node without a label has one now, so that
    what follows goes to the same graph."""
    if graph is None or not graph.startswith(b"[") or not quads:
        return graph
    name = quads[-1].graph_name
    assert isinstance(name, BlankNode)
    return b"_:" + name.value.encode()
