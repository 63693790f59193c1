"""Words of other languages for streams that people bring along: C-SPARQL, CQELS, SQL's MATCH_RECOGNIZE. They are
answered with what to write instead."""

from __future__ import annotations

import re
from typing import Final

from oxiseq.grammar.slips.slip import Said, Slip

_UNITS: Final = {"ms": "MILLISECONDS", "s": "SECONDS", "m": "MINUTES", "h": "HOURS", "d": "DAYS"}
_DURATION: Final = re.compile(r"(\d+)\s*(ms|s|m|h|d)\b", re.IGNORECASE)
_REGISTER: Final = re.compile(
    r"\bREGISTER\s+(QUERY|STREAM)\s+(?:<[^<>\s]*>|[\w:]+)?\s*(?:COMPUTED?\s+EVERY\s+(\d+\s*\w+))?", re.IGNORECASE
)
_STREAM: Final = re.compile(r"\bSTREAM\s+(<[^<>\s]*>|[\w-]*:[\w-]*)\s*\[([^\[\]]*)\]", re.IGNORECASE)
_RECOGNIZE: Final = re.compile(r"\b(MATCH_RECOGNIZE|ONE\s+ROW\s+PER\s+MATCH|AFTER\s+MATCH\s+SKIP)\b", re.IGNORECASE)
_PATTERN: Final = re.compile(r"\A\s*(VOCAB)\b|\bSEQ\s*\(", re.IGNORECASE)
"""Of CEQL and of SPAseq."""
_IN_WHERE: Final = re.compile(r"\{[^{}]*\Z", re.DOTALL)


def foreign(s: Slip) -> Said | None:
    """The slip is in, or just after, such words."""
    if (found := _RECOGNIZE.search(s.text)) is not None:
        if (pattern := _PATTERN.search(s.text)) is not None:
            where = "before WHERE" if pattern[1] is None else "behind the formula"
            return Said(
                "matches may overlap, as with TO NEXT ROW; for PAST LAST ROW write CONSUME BY ANY, or CONSUME BY "
                f"PARTITION, {where}",
                f"{found[0].upper()} is SQL's",
                found.span(),
            )
        return Said(
            "in SPAseq: SELECT ... WITHIN 1 HOUR FROM STREAM S <...> WHERE { SEQ(A; B+; C) DEFINE GPM A ON S { ... } } "
            "PARTITION BY ...: SEQ for PATTERN, a GPM for each DEFINE",
            f"{found[0].upper()} is SQL's",
            found.span(),
        )
    if (found := _near(_REGISTER, s)) is not None and (found[2] or found[1].upper() == "QUERY" or not _ours(s)):
        every = f", and REPORT EVERY {_written(found[2])} at the end" if found[2] else ""
        how = "ISTREAM <name> AS CONSTRUCT" if found[1].upper() == "STREAM" else "RSTREAM AS SELECT"
        return Said(
            f"in RSP-QL: REGISTER {how} ... FROM STREAM <...> [RANGE 10 MINUTES STEP 1 MINUTES]{every}",
            f"REGISTER {found[1].upper()} is C-SPARQL's",
            found.span(),
        )
    if (found := _near(_STREAM, s)) is not None and _IN_WHERE.search(s.text, 0, found.start()):
        window = _window(found[2])
        return Said(
            f"in RSP-QL: FROM NAMED WINDOW :w ON {found[1]} {window} before WHERE, and WINDOW :w {{ ... }} here",
            "STREAM <...> [...] { ... } is CQELS's",
            found.span(),
        )
    return None


def _ours(s: Slip) -> bool:
    """Whether RSTREAM, ISTREAM or DSTREAM is missing behind our own REGISTER."""
    return "REPORTED" in s.accepts


def _near(pattern: re.Pattern[str], s: Slip) -> re.Match[str] | None:
    """The match that contains the slip, or that comes just before it."""
    for found in pattern.finditer(s.text):
        if found.start() <= s.at and not s.text[found.end() : s.at].strip():
            return found
    return None


def _window(text: str) -> str:
    """CQELS's window in our words."""
    words = text.split()
    head = words[0].upper() if words else ""
    if head == "TRIPLES" and len(words) > 1:
        return f"[RANGE {words[1]} EVENTS SLIDE 1 EVENTS]"
    times = [_written(each[0]) for each in _DURATION.finditer(text)]
    if head == "RANGE" and times:
        return f"[RANGE {times[0]} SLIDE {times[-1]}]" if len(times) > 1 else f"[RANGE {times[0]} TUMBLING]"
    return "[RANGE 10 SECONDS SLIDE 1 SECONDS]"


def _written(duration: str) -> str:
    found = _DURATION.fullmatch(duration.strip())
    return f"{found[1]} {_UNITS[found[2].lower()]}" if found else duration
