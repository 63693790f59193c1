"""EP-SPARQL's tsunami warning: quakes, then waves, with a rule and RDFS knowledge of the buoys."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from make_events import streams

import oxiseq
from oxiseq.kb_loader import load

HERE = Path(__file__).parent


def main() -> oxiseq.Matches:
    """The warnings."""
    query, rule = ((HERE / f"{name}.epsparql").read_text(encoding="utf-8") for name in ("query", "rises"))
    with TemporaryDirectory() as folder:
        load([HERE / "ocean.ttl"], Path(folder) / "kb", reasoning="rdfs")
        return oxiseq.run(query, streams=streams(), kb=Path(folder) / "kb", language="epsparql", rules=[rule])


if __name__ == "__main__":
    for match in main():
        print(f"{match.at:%H:%M}", *(term.value.rpartition("#")[2] for term in match.values()))
