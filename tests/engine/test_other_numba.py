"""Under a Numba that kernels/compiling was not tried with, kernels are compiled in Numba's own way."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PRETEND = "import numba; numba.__version__ = '0.99.0'; from oxiseq.engine.kernels.compiling import options; "
SORTED = """
import numpy as np
from pyoxigraph import Literal
from oxiseq.engine.terms.content import content_order
from oxiseq.engine.terms.dictionary import TermDictionary
terms = TermDictionary()
ids = np.array([[terms.intern(Literal(text))] for text in 'cab'], np.uint32)
assert content_order(np.zeros(3, np.int64), ids, terms, ids[:0, 0]).tolist() == [1, 2, 0]
"""
QUERY = """
import oxiseq
text = '''SELECT ?x ?y FROM STREAM S <http://e/s> WHERE { SEQ(A; B)
  DEFINE GPM A ON S { ?x <http://e/p> ?a }
  DEFINE GPM B ON S { ?x <http://e/p> ?y FILTER(?y > ?a) OPTIONAL { ?x <http://e/q> ?z } } }'''
events = [(i, f"<http://e/x> <http://e/p> {i} .") for i in range(5)]
assert len(oxiseq.run(text, {"http://e/s": events})) == 4
"""


def pretended(code: str, cache: Path) -> None:
    """Run it in a process that takes its Numba for another one."""
    subprocess.run(
        [sys.executable, "-c", f"{PRETEND}assert options.PLAIN\n{code}"],
        check=True,
        timeout=900,
        env={**os.environ, "NUMBA_CACHE_DIR": str(cache)},
    )


@pytest.mark.slow
def test_kernels_compile(tmp_path: Path) -> None:
    pretended(SORTED, tmp_path)


@pytest.mark.full
def test_a_query_with_all_its_kernels(tmp_path: Path) -> None:
    pretended(QUERY, tmp_path)
