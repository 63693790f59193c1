"""Which tests are near which sources, by folder: for `make changed` and `.ci/mutation.py`.

    python .ci/near.py              prints the tests that the changes since `main` touch, for pytest
    python .ci/near.py engine/cea   prints those near some files or folders

The gate runs all of them; near tests only answer sooner.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

HERE = Path(__file__).parents[1]
CORPUS = ("test_corpus.py", "test_rsp_corpus.py", "ceql/test_ceql_end_to_end.py", "intervals/test_ep_corpus.py")
SEQUENCES = (
    "test_corpus.py",
    "test_differential.py",
    "engine/test_age_segments.py",
    "engine/test_automaton.py",
    "engine/test_capacities.py",
    "engine/test_ladders.py",
    "engine/test_partitions.py",
    "engine/test_strategies.py",
    "engine/test_sequence_kernels.py",
)
MATCHES = (
    "engine/test_counted_matches.py",
    "engine/test_composed_matches.py",
    "engine/test_ranked_matches.py",
    "engine/test_weighed_matches.py",
    "engine/test_held_matches.py",
    "test_summaries_differential.py",
)
FLOW = (
    "flow",
    "test_rsp_corpus.py",
    "intervals/test_ep_corpus.py",
    "rsp/test_rsp_incremental.py",
    "rsp/test_rsp_told.py",
)
NEAR = {
    "grammar": ("grammar", "translating", "declare", "test_corpus.py"),
    "engine/arrays": ("engine/test_arrays.py", "engine/test_addresses.py", *CORPUS),
    "engine/cea": ("cea", "ceql", "test_corpus.py"),
    "engine/events": ("events", "mappings"),
    "engine/expressions": ("expressions", "engine/test_ranked_matches.py", "engine/test_stateful_exists.py"),
    "engine/flow": FLOW,
    "engine/flow/operators": (*FLOW, "intervals/test_ep_state.py", "rsp/test_rsp_sharing.py"),
    "engine/flow/sharing": ("rsp/test_rsp_sharing.py", "rsp/test_rsp_shared_plans.py", "flow/test_concerns.py"),
    "engine/kernels": ("engine/test_kernel_signatures.py", "engine/test_kernels_as_python.py", *CORPUS),
    "engine/kernels/cea": ("cea", "ceql/test_ceql_end_to_end.py"),
    "engine/kernels/events": ("events",),
    "engine/kernels/expressions": ("expressions",),
    "engine/kernels/flow": FLOW,
    "engine/kernels/matches": MATCHES,
    "engine/kernels/matching": ("matching", "test_corpus.py"),
    "engine/kernels/sequence": SEQUENCES,
    "engine/kernels/terms": ("terms",),
    "engine/matches": MATCHES,
    "engine/matching": ("matching",),
    "engine/order": ("engine/test_arrivals.py", "engine/test_later.py", "buckets"),
    "engine/output": (*MATCHES, "plugin/test_matches.py"),
    "engine/patterns": ("matching",),
    "engine/plan": (*SEQUENCES, "plugin/test_explain_everything.py"),
    "engine/rsp": ("rsp", "windows", "test_rsp_corpus.py"),
    "engine/run": (*SEQUENCES, *MATCHES, "engine/test_shared_runs.py"),
    "engine/sequence": (*SEQUENCES, "engine/test_asked_filters.py", "engine/test_composed_matches.py"),
    "engine/sharing": ("engine/test_shared_runs.py", "engine/test_apart_runs.py"),
    "engine/snapshot": ("snapshot",),
    "engine/standing": ("flow/test_standing.py", "plugin/test_standing_queries.py"),
    "engine/terms": ("terms",),
    "engine/turtle": ("events", "attacks/test_turtle_faults.py"),
    "engine": CORPUS,
    "kb_loader": ("loader",),
    "plugin/api": ("plugin", "opening"),
    "plugin/bridges": ("live/test_bridges.py", "live/test_bridge_files.py", "live/test_bridge_identity.py"),
    "plugin/changes": ("plugin/test_store_changes.py", "plugin/test_live_matches.py"),
    "plugin/cli": ("cli",),
    "plugin/demo": ("examples/test_stock_examples.py", "cli/test_cli_run.py"),
    "plugin/journal": ("journal",),
    "plugin/languages": ("reasons", "languages", "plugin/test_explain_everything.py", *CORPUS),
    "plugin/live": (
        "live/test_live_service.py",
        "live/test_live_standing.py",
        "live/test_bridges.py",
        "live/test_budgets.py",
        "live/test_clocks_taken_over.py",
        "live/test_event_graphs.py",
        "live/test_held_turn.py",
        "live/test_kb_changes.py",
        "live/test_ldes.py",
        "live/test_max_ahead.py",
        "live/test_mending.py",
        "live/test_rebuilding.py",
        "live/test_sink_files.py",
        "live/test_sink_webhooks.py",
        "live/test_small_bodies.py",
        "live/test_topics.py",
        "live/test_verifying.py",
        "server/test_live_http.py",
        "server/test_looking_back.py",
    ),
    "plugin/logs": ("logs",),
    "plugin/mappings": ("mappings", "cli/test_cli_mapping.py"),
    "plugin/matches": ("plugin/test_matches.py", "plugin/test_one_match.py", "plugin/test_live_matches.py"),
    "plugin/options": ("plugin/test_options.py", "cli/test_cli_options.py"),
    "plugin/page": ("server/test_page.py", "server/test_page_files.py"),
    "plugin/pictures": ("pictures",),
    "plugin/rights": ("rights", "server/test_access.py"),
    "plugin/served": ("opening", "server/test_clients.py"),
    "plugin/server": ("server",),
    "plugin/sinks": ("live/test_sink_files.py", "live/test_sink_webhooks.py", "live/test_sink_declared.py"),
    "plugin/sources": ("events", "plugin/test_run_inputs.py"),
    "plugin/spark": ("spark", "buckets"),
    "plugin/sparql": ("server/test_protocol.py", "server/test_graph_store.py", "server/test_http.py"),
    "plugin/testing": ("pattern_tests",),
    "plugin/warmup": ("plugin/test_first_run.py", "engine/test_kernel_archive.py"),
    "plugin": ("plugin",),
    "benchmarks": ("benchmarks", "benchmarks_of_others"),
    "examples": ("examples",),
    "docs": ("docs", "test_readme_links.py"),
    "README.md": ("docs", "test_readme_links.py", "test_doctests.py"),
    "pyproject.toml": ("test_packages.py",),
    "tests/corpus": CORPUS,
}
"""Of the folders that a file is in, the innermost that is named here counts; tests are named from `tests/`."""


def near(source: str) -> Iterable[str]:
    """Returns the tests near a file or folder, as paths from the root of the checkout."""
    path = Path(source)
    if path.parts[0] == "tests" and path.suffix == ".py":
        return _near_test(path)
    named = next((str(each) for each in (path, *path.parents) if str(each) in NEAR), "")
    return [f"tests/{test}" for test in NEAR.get(named, ())]


def _near_test(path: Path) -> Iterable[str]:
    """Returns a module of tests itself; for what tests import, the modules that do, through others, too."""
    if path.name == "conftest.py":
        return [str(path.parent)]
    imports = {
        test.relative_to(HERE): set(re.findall(r"^(?:from|import) (\w+)", test.read_text("utf-8"), re.MULTILINE))
        for test in (HERE / "tests").rglob("*.py")
    }
    found, names = {path}, set[str]()
    while names != {each.stem for each in found}:
        names = {each.stem for each in found}
        found |= {test for test, imported in imports.items() if imported & names}
    return [str(test) for test in found if test.name.startswith("test_")]


def changed(since: str = "main") -> list[str]:
    """Returns the files that differ from where this branch left `since`; what git does not know yet, too."""
    base = _git("merge-base", "HEAD", since)[0]
    return [*_git("diff", "--name-only", base), *_git("ls-files", "--others", "--exclude-standard")]


def commit() -> str:
    """Returns what stands in the names of files of `seen/`: the commit, and whether files differ from it."""
    return _git("describe", "--always", "--dirty", "--exclude", "*")[0]


def _git(*arguments: str) -> list[str]:
    return subprocess.run(("git", *arguments), cwd=HERE, check=True, capture_output=True, text=True).stdout.splitlines()


if __name__ == "__main__":
    tests = {test for source in sys.argv[1:] or changed() for test in near(source)}
    print(*sorted(test for test in tests if (HERE / test).exists()))
