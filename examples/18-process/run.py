"""Process conformance: which orders of a shop break which rule of Declare."""

from __future__ import annotations

from make_events import LOG, streams

import oxiseq
from oxiseq.grammar.declare import declare_query

DAY = 86_400_000_000
RULES = {
    "response pay ship, within 2 days": declare_query("response", "pay", "ship", within=2 * DAY, log=LOG),
    "response pay ship": declare_query("response", "pay", "ship", end="close", log=LOG),
    "precedence pay ship": declare_query("precedence", "pay", "ship", log=LOG),
    "not-co-existence cancel pay": declare_query("not-co-existence", "cancel", "pay", log=LOG),
    "init order": declare_query("init", "order", log=LOG),
    "existence ship": declare_query("existence", "ship", end="close", log=LOG),
}
"""The first one is query.spaseq."""


def main() -> dict[str, oxiseq.Matches]:
    """Each rule's violations."""
    return {rule: oxiseq.run(text, streams=streams()) for rule, text in RULES.items()}


if __name__ == "__main__":
    for rule, found in main().items():
        print(f"{rule}:")
        for match in found:
            case, first, last = (match[name].value for name in ("case", "first", "last"))
            print(f"  {case.rsplit('/', 1)[-1]}: {first} to {last}")
