"""What was said of a query when it was registered, as its language's front takes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from oxiseq.durations import LONGEST, duration_text
from oxiseq.engine.errors import OxiseqError
from oxiseq.engine.events.time import to_microseconds
from oxiseq.engine.rsp.plan import UNSAID
from oxiseq.languages.front import Front, Options, said, without_reports
from oxiseq.languages.registry import rules_of


def options_of(front: Front[Any], given: Mapping[str, Any]) -> Options:
    """From the journal's JSON values. Raises OxiseqError for what the language does not take."""
    begin = None if given.get("start") is None else to_microseconds(given["start"])
    options = Options(
        begin, _lateness(given.get("lateness", 0)), given.get("streamNames", {}),
        said=said(given.get("report"), given.get("instants"), given.get("consumption")),
        rules=rules_of(front, given.get("rules", ())), reads=tuple(given.get("reads", ())),
    )  # fmt: skip
    without_reports(front, options)
    return options


def fitting(front: Front[Any], options: Options) -> Options:
    """As far as a query of another language takes them."""
    return replace(
        options, stream_names=options.stream_names if front.language == "ceql" else {},
        said=options.said if front.takes_reports else UNSAID,
        rules=options.rules if front.language == "epsparql" else (),
    )  # fmt: skip


def _lateness(stored: object) -> int:
    """The journal stores microseconds."""
    if isinstance(stored, int) and not isinstance(stored, bool) and 0 <= stored <= LONGEST:
        return stored
    raise OxiseqError(f"stored lateness {stored!r}: microseconds up to {duration_text(LONGEST)} are expected")
