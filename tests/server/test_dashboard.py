"""The example's Grafana dashboard and compose file name what there is."""

from __future__ import annotations

import json
import re
from pathlib import Path

from oxiseq.api.store import Store
from oxiseq.cli.server import serve_command
from oxiseq.live import LiveService, LiveSettings

EXAMPLE = Path(__file__).parents[2] / "examples" / "11-server"
LABELS = re.compile(r"\b(?:by|without) \(([^)]*)\)|\{\{(\w+)\}\}")


def test_the_dashboard_asks_for_metrics_and_labels_that_there_are(tmp_path: Path) -> None:
    dashboard = json.loads((EXAMPLE / "grafana.json").read_text())
    targets = [target for panel in dashboard["panels"] for target in panel["targets"]]
    text = "\n".join(target["expr"] + " " + target["legendFormat"] for target in targets)
    with LiveService(Store(), tmp_path, LiveSettings(idle=None), "normal") as service:
        told = service.metrics.text().decode()
        series = {line.split()[2] for line in told.splitlines() if line.startswith("# TYPE")}
        series |= {f"{name}_bucket" for name in series}
    asked = set(re.findall(r"\boxiseq_\w+", text))
    assert len(asked) > 10
    assert asked <= series
    labels = {word for found in LABELS.findall(text) for word in re.findall(r"\w+", " ".join(found))}
    assert labels == {"stream", "query", "le"}
    ids = [panel["id"] for panel in dashboard["panels"]]
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in dashboard["panels"]]
    assert len(set(ids)) == len(ids) == len(set(places))


def test_the_compose_file_builds_from_a_dockerfile_and_sets_what_can_be_set() -> None:
    text = (EXAMPLE / "compose.yaml").read_text()
    build = dict(re.findall(r"^ +(context|dockerfile): (\S+)$", text, re.MULTILINE))
    assert ((EXAMPLE / build["context"]).resolve() / build["dockerfile"]).is_file()
    names = {f"OXISEQ_{(param.name or '').upper()}" for param in serve_command.params}
    assert set(re.findall(r"OXISEQ_\w+", text)) <= names
