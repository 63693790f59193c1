"""SSH brute force: who got in after many failures."""

from __future__ import annotations

from pathlib import Path

from make_events import streams

import oxiseq

HERE = Path(__file__).parent


def main() -> oxiseq.Matches:
    """Run the query."""
    return oxiseq.run((HERE / "query.ceql").read_text(encoding="utf-8"), streams=streams(), language="ceql")


if __name__ == "__main__":
    for match in main():
        address, failures = match["address"].value, match["failures"].value
        print(f"{match.at:%H:%M:%S}  {address} got in after {failures} failures within a minute")
