"""The same question in SPAseq and in CEQL, over the same trades as RDF graphs and as a table."""

from __future__ import annotations

from pathlib import Path

from make_events import STOCK, streams, table

import oxiseq

HERE = Path(__file__).parent
Times = tuple[int, ...]


def by_spaseq() -> list[Times]:
    """The times of each match's events, ascending."""
    matches = oxiseq.run((HERE / "query.spaseq").read_text(encoding="utf-8"), streams=streams())
    return [tuple(sorted(time for held in match.events.values() for _, time in held)) for match in matches]


def by_ceql() -> list[Times]:
    """The same; `positions` would do as well, since each row is a position of its own."""
    text = (HERE / "query.ceql").read_text(encoding="utf-8")
    matches = oxiseq.run(text, streams={STOCK: table()}, language="ceql")
    return [tuple(sorted({time for held in match.events.values() for _, time in held})) for match in matches]


def main() -> tuple[list[Times], list[Times]]:
    """Both answers."""
    return by_spaseq(), by_ceql()


if __name__ == "__main__":
    spaseq, ceql = main()
    for times in ceql:
        print(", ".join(f"{time // 1_000_000} s" for time in times))
    print(f"{len(ceql)} matches in CEQL, {len(spaseq)} in SPAseq; the same: {sorted(ceql) == sorted(spaseq)}")
