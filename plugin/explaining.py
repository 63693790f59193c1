"""`oxiseq.explain`: what a query is compiled to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, overload

from oxiseq.explanation import Explanation
from oxiseq.grammar import load
from oxiseq.grammar.arguments import public
from oxiseq.knowledge import Kb
from oxiseq.languages.registry import check_kb, front_of, rules_of
from oxiseq.spaseq.explanation import SpaseqExplanation


@overload
def explain(text: str, kb: Kb = None, language: Literal["spaseq"] = "spaseq") -> SpaseqExplanation: ...


@overload
def explain(text: str, kb: Kb = None, language: str = "spaseq", *, rules: Sequence[str] = ()) -> Explanation: ...


@public
def explain(text: str, kb: Kb = None, language: str = "spaseq", *, rules: Sequence[str] = ()) -> Explanation:
    """What a query of any language is compiled to: `str()`, `to_json()`, `to_dot()`, `to_svg()`; notebooks show the
    picture. With `kb` the GRAPH patterns of a SPAseq query are asked, so that their rows can be told. `rules` are those
    of an EP-SPARQL query.

    Raises QueryError, KbError, OxiseqError for a language that is not known.

    >>> import oxiseq
    >>> text = '''PREFIX : <http://example.org/>
    ... SELECT ?who ?paid FROM STREAM S <http://example.org/payments>
    ... WHERE { SEQ(A) DEFINE GPM A ON S { ?who :paid ?paid } }'''
    >>> plan = oxiseq.explain(text)
    >>> plan.to_dot().startswith("digraph"), sorted(plan.to_json())[:2]
    (True, ['clauses', 'columns'])
    """
    query = load(text, language)
    front = front_of(query)
    check_kb(front, kb)
    return front.explain(query, kb, rules_of(front, rules))
