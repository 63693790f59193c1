"""Lints of what people write and mean otherwise, each with what the query does instead.

first-value   COALESCE(PREV(?v), ...): a condition with PREV is not looked at in the first iteration
skipped       `,` with PARTITION BY passes over events that no pattern puts into the partition, by a constant
"""

from __future__ import annotations

from collections.abc import Iterator

from pyoxigraph import BlankNode, Variable

from oxiseq.grammar.algebra import Call, Filter, Group, Op, Prev, Sequence, TriplePattern
from oxiseq.grammar.errors import Finding
from oxiseq.grammar.finding_tools import at_pattern, lint_finding
from oxiseq.grammar.parts import parts
from oxiseq.grammar.places import Overview, elements


def habits(seen: Overview) -> Iterator[Finding]:
    """All of them."""
    for gpm in seen.gpms.values():
        for element in gpm.pattern.elements:
            if isinstance(element, Filter) and any(map(_falls_back, parts(element.condition, Call))):
                yield lint_finding(
                    "first-value",
                    "COALESCE(PREV(...), ...) admits any first value: a condition with PREV begins with the second",
                    at_pattern(r"(?i:COALESCE)\s*\((?=[^,]*(?i:PREV))", element.span, seen.text),
                    "give the first iteration a GPM and a FILTER of its own in front of the repeat",
                )
    yield from _skipped(seen)


def _falls_back(call: Call) -> bool:
    return call.name == "COALESCE" and any(True for arg in call.args[:1] for _ in parts(arg, Prev))


def _skipped(seen: Overview) -> Iterator[Finding]:
    partition = seen.query.partition
    if partition is None:
        return
    by = set(partition.by)
    binding = [gpm for gpm in seen.parts.values() if by <= set(gpm.pattern_variables)]
    groups = [each for each in elements(seen.query.sequence) if isinstance(each, Sequence)]
    strict = [group.span for group in groups if any(op is Op.STRICT for op, _ in group.rest)]
    if strict and binding and all(_names_a_value(gpm.pattern) for gpm in binding):
        yield lint_finding(
            "skipped",
            "`,` passes over events of the same value of PARTITION BY that no pattern here matches",
            strict[0],
            "compare constants in a FILTER: an event is of a partition by a pattern without its FILTERs",
        )


def _names_a_value(pattern: Group) -> bool:
    """Whether a constant object, at the top level, lets only some events match."""
    triples = (element for element in pattern.elements if isinstance(element, TriplePattern))
    return any(not isinstance(triple.object, Variable | BlankNode) for triple in triples)
