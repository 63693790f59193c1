"""A knowledge base loaded from dirty files, reasoned over, and asked beside a stream."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from make_events import FACTORY, streams

import oxiseq
from oxiseq.kb_loader import LoadReport, load

HERE = Path(__file__).parent


def main() -> tuple[LoadReport, list[oxiseq.Match]]:
    """Load the store and ask; the load's report and the matches."""
    with TemporaryDirectory() as folder:
        kb = Path(folder) / "kb"
        sources = [HERE / name for name in ("classes.ttl", "halls.nt", "machines.csv")]
        report = load(sources, kb, reasoning="rdfs", mapping=HERE / "machines.rq", graph=FACTORY)
        text = (HERE / "query.spaseq").read_text(encoding="utf-8")
        return report, list(oxiseq.run(text, streams=streams(), kb=kb))


if __name__ == "__main__":
    report, matches = main()
    print(f"{report.stored} statements, {report.inferred} inferred, {report.quarantined} quarantined: {report.faults}")
    for match in matches:
        print(match.at.time(), match["device"].value, match["first"].value, match["second"].value, match["hall"])
