"""A query for every kind of index and wait: name → (an index that it must use, its text)."""

from __future__ import annotations

from engine_runs import query

KEYED = "KEYED"
RISING = "FILTER(?bv > PREV(?bv))"
CASES = {
    "heap": ("heap", query("A; B", B="FILTER(?bv > ?av)")),
    "heap, the smaller fires": ("heap", query("A; B", "WITHIN PT0.00003S SLIDING", B="FILTER(?bv <= ?av * 2)")),
    "heap per key": ("heap", query("A: B", "WITHIN PT0.00002S SLIDING", A=KEYED, B=f"{KEYED} FILTER(?bv > ?av)")),
    "two inequalities": ("heap", query("A; B", "WITHIN PT0.00002S", B="FILTER(?bv > ?av && ?bv < 2 * ?av)")),
    "list": ("list", query("A; B", B="FILTER(?bv != ?av)")),
    "asked of Python": ("heap", query("A; B", "WITHIN PT0.00003S", B="FILTER(STR(?bv) < STR(?av))")),
    "exists": ("list", query("A; B", "WITHIN PT0.00003S", B="FILTER EXISTS { ?o :v ?av }")),
    "exists, guard": ("list", query("A; N!; C", "WITHIN PT0.00005S", N="FILTER NOT EXISTS { ?o :v ?av }")),
    "exists, chain": ("chain", query("A, B", B="FILTER NOT EXISTS { ?o :v ?av }")),
    "chain": ("chain", query("A, B, C", B=KEYED, C=f"{KEYED} FILTER(?cv > ?bv)")),
    "direct": ("key", query("A; B; C", "WITHIN PT0.00005S", A=KEYED, B=KEYED, C=KEYED)),
    "any, no key": ("key", query("A: B: C", "WITHIN PT0.00001S SLIDING")),
    "stamp": ("stamp", query("A; N!; C", "WITHIN PT0.00005S", A=KEYED, N=KEYED, C=KEYED)),
    "guard by heap": ("heap", query("A; N!; C", "WITHIN PT0.00005S SLIDING", N="FILTER(?nv > ?av)")),
    "guard by list": ("list", query("A; N!; C", "WITHIN PT0.00005S SLIDING", N="FILTER(?nv != ?av)")),
    "waits, sliding": ("stamp", query("A; B; N!", "WITHIN PT0.00002S SLIDING", A=KEYED, B=KEYED, N=KEYED)),
    "waits, tumbling": ("heap", query("A; B; N!", "WITHIN PT0.00002S", A=KEYED, B=KEYED, N="FILTER(?nv > ?bv)")),
    "leads, sliding": ("start", query("N!; A; B", "WITHIN PT0.00002S SLIDING", A=KEYED, B=KEYED, N=KEYED)),
    "leads, tumbling": ("start", query("N!; A; B", "WITHIN PT0.00005S", A=KEYED, B=KEYED, N=KEYED)),
    "leads, unbounded": ("start", query("N!; A; B", N="?n :k ?av .", A="FILTER(?av > 2)")),
    "repeat": ("chain", query("A; B+; C", "WITHIN PT0.00002S SLIDING", A=KEYED, B=KEYED, C=KEYED)),
    "rising repeat": ("heap", query("A; B;+; C", "WITHIN 12 EVENTS SLIDING", A=KEYED, B=f"{KEYED} {RISING}", C=KEYED)),
    "optional": ("heap", query("A?; (B | C); N", "WITHIN 20 EVENTS", B="FILTER(?bv > 3)", N="FILTER(?nv > ?bv)")),
}
