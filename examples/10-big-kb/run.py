"""A knowledge base loaded from dirty files, reasoned over, and asked beside a stream."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import oxiseq
from oxiseq.kb_loader import LoadReport, load

HERE = Path(__file__).parent
FACTORY = "http://example.org/factory"
MINUTE = 60_000_000

# (minute, device, degrees): m3 is a lamp, no machine; m2 is hot once only within ten minutes
READINGS = [(0, "m1", 85), (1, "m3", 90), (2, "m2", 95), (4, "m3", 91), (5, "m1", 70), (8, "m1", 88), (20, "m2", 99)]


def heat() -> list[tuple[int, str]]:
    """The readings as events."""
    integer = "http://www.w3.org/2001/XMLSchema#integer"
    return [
        (minute * MINUTE, f'<{FACTORY}#{device}> <{FACTORY}#heat> "{degrees}"^^<{integer}> .')
        for minute, device, degrees in READINGS
    ]


def main() -> tuple[LoadReport, list[oxiseq.Match]]:
    """Load the store and ask; the load's report and the matches."""
    with TemporaryDirectory() as folder:
        kb = Path(folder) / "kb"
        sources = [HERE / name for name in ("classes.ttl", "halls.nt", "machines.csv")]
        report = load(sources, kb, reasoning="rdfs", mapping=HERE / "machines.rq", graph=FACTORY)
        text = (HERE / "query.spaseq").read_text(encoding="utf-8")
        return report, list(oxiseq.run(text, streams={"S": heat()}, kb=kb))


if __name__ == "__main__":
    report, matches = main()
    print(f"{report.stored} statements, {report.inferred} inferred, {report.quarantined} quarantined: {report.faults}")
    for match in matches:
        print(match.datetime.time(), match["device"].value, match["first"].value, match["second"].value, match["hall"])
