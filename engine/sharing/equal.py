"""Which queries are equal: from the same state on they find the same, for ever, so that one run does for all of them.

In the flow: queries with an order of their own → **the common part of equal ones** → one state for those that are
in the same (member.py).
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final

from oxiseq.engine.expressions.functions import IMPURE
from oxiseq.engine.flow.epsparql.query import IntervalPlan
from oxiseq.engine.run.alone import AloneRun
from oxiseq.engine.run.fingerprints import fingerprint, text_of
from oxiseq.engine.run.with_kb import KbRun
from oxiseq.grammar.algebra import Call
from oxiseq.grammar.parts import parts

_DRAWN: Final = IMPURE - {"NOW"}


def why_unequal(plan: Any) -> str | None:
    """Why no query is equal to one of this plan, not even one of the same text; None: those of the same plan are."""
    rules = plan.rules if isinstance(plan, IntervalPlan) else ()
    drawn = any(each.name in _DRAWN for whole in (plan.query, *rules) for each in parts(whole, Call))
    return "it draws values by chance" if drawn else None


def equal_by(run: AloneRun, bounds: Hashable) -> Hashable | None:
    """The common part of equal queries, or of alike ones (family.py); None: there are none. bounds: those of
    its state, None without any."""
    if why_unequal(run.plan) is not None:
        return None
    kb = id(run.kb_in_time.present) if isinstance(run, KbRun) else None
    alike = run.alike if bounds is None else None
    what = fingerprint(run.plan) if alike is None else text_of(alike)
    return what, run.lateness, run.order.start, kb, bounds
