"""`python -m oxiseq.demo FILE`: the demonstration's events as a file (.nq, .trig, each also .gz, .arrow, .parquet)."""

from __future__ import annotations

import sys

from oxiseq.demo.show import daily_events
from oxiseq.engine.errors import OxiseqError
from oxiseq.engine.events.encode import encode_events
from oxiseq.engine.events.open import write_events
from oxiseq.engine.terms.dictionary import TermDictionary


def main(arguments: list[str]) -> int:
    """Write the daily quotes; the exit status."""
    if len(arguments) != 1:
        print("usage: python -m oxiseq.demo FILE", file=sys.stderr)
        return 2
    terms = TermDictionary()
    try:
        count = write_events([encode_events(daily_events(), terms)], terms, arguments[0])
    except (OxiseqError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{count:,} events written to {arguments[0]}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
