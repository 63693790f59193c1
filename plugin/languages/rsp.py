"""Continuous SPARQL and RSEP-QL: rows at instants."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from oxiseq.engine.kb import KnowledgeBase
from oxiseq.engine.kernels.matching import match
from oxiseq.engine.kernels.windows import advance
from oxiseq.engine.rsp.plan import RspOptions, compile_rsp
from oxiseq.engine.run.rsp import RspRun
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.explanation import Explanation
from oxiseq.first_run import announce
from oxiseq.grammar.languages import Language
from oxiseq.grammar.rsp_algebra import RspQuery
from oxiseq.knowledge import Kb, knowledge_of
from oxiseq.languages.front import LOG, Front
from oxiseq.matches.shape import Shape
from oxiseq.options import Options
from oxiseq.reasons.read import read_streams
from oxiseq.reasons.report import Why, WhyRequest
from oxiseq.reasons.rsp.asking import Source
from oxiseq.reasons.rsp.why import why_windows
from oxiseq.rsp.explain import explain_rsp
from oxiseq.rsp.shape import rsp_shape


def _unsaid(options: Options) -> RspOptions:
    """What the text of a query leaves open."""
    return RspOptions(options.report, options.at, options.consumption)


class RspqlFront(Front[RspQuery]):
    """SPARQL over windows (semantics.md 6)."""

    language: ClassVar[Language] = "rspql"
    media_type: ClassVar[str] = "application/rspql-query"

    def prepare(self, tell: Callable[[str], object] = LOG.warning) -> None:
        announce((match.match_events, advance.advance), tell)

    def compile(
        self, query: RspQuery, terms: TermDictionary, kb: KnowledgeBase, options: Options
    ) -> tuple[RspRun, Shape]:
        plan = compile_rsp(query, terms, _unsaid(options))
        return RspRun(plan, terms, kb, options.origin, options.lateness), rsp_shape(plan, terms)

    def explain(self, query: RspQuery, kb: Kb, rules: Sequence[str] = ()) -> Explanation:
        return explain_rsp(compile_rsp(query, TermDictionary()))

    def why(self, query: RspQuery, streams: Mapping[str, Any], kb: Kb, options: Options, asked: WhyRequest) -> Why:
        history = read_streams({iri: iri for iri in query.streams}, streams, asked.reading)
        source = Source(query, history, knowledge_of(kb), asked.bounds)
        return why_windows(source, _unsaid(options), asked.provenance)



class SpectraFront(RspqlFront):
    """The same under the name of its evaluation."""

    language: ClassVar[Language] = "spectra"
    media_type: ClassVar[str] = "application/spectra-query"


class RsepqlFront(RspqlFront):
    """Windows and event patterns (semantics.md 4)."""

    language: ClassVar[Language] = "rsepql"
    media_type: ClassVar[str] = "application/rsepql-query"
