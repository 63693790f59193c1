"""A plan's operators at work."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from oxiseq.engine.flow import plan as p
from oxiseq.engine.flow.delta import I64
from oxiseq.engine.flow.operators.arrange import ArrangeNode
from oxiseq.engine.flow.operators.best import BestNode
from oxiseq.engine.flow.operators.closure import ClosureNode
from oxiseq.engine.flow.operators.computing import ExtendNode, FilterNode
from oxiseq.engine.flow.operators.distinct import ConsolidateNode, DistinctNode
from oxiseq.engine.flow.operators.follow import FollowNode
from oxiseq.engine.flow.operators.group import GroupNode
from oxiseq.engine.flow.operators.in_time import TimeTermNode, cover, lasting, triples
from oxiseq.engine.flow.operators.join import JoinAllNode, JoinNode, LookNode, LookupNode
from oxiseq.engine.flow.operators.node import ALL_TIME, Node
from oxiseq.engine.flow.operators.reach import ReachNode
from oxiseq.engine.flow.operators.rows import RowByRow, UnionNode, pick
from oxiseq.engine.flow.operators.sources import ConstantNode, Fed, Windowed
from oxiseq.engine.kernels.flow import copying, happening
from oxiseq.engine.terms.dictionary import TermDictionary
from oxiseq.engine.terms.order import TermOrder


def build(
    plan: p.FlowPlan, terms: TermDictionary, known: Mapping[int, Node] = MappingProxyType({}), clock: I64 = ALL_TIME
) -> list[Node]:
    """A node for each form, in the same order. known: by place those that are at work already, for other plans too;
    clock: that of rows that happen at some time."""
    nodes: list[Node] = []
    order = TermOrder(terms)
    for place, (form, width, raw) in enumerate(zip(plan.forms, plan.widths, plan.raw, strict=True)):
        if place in known:
            nodes.append(known[place])
            continue
        nodes.append(_node(form, width, nodes, terms, order, clock))
        nodes[-1].out.raw = raw
    return nodes


def _node(form: p.Form, width: int, nodes: list[Node], terms: TermDictionary, order: TermOrder, clock: I64) -> Node:
    children = [nodes[place].out for place in p.inputs(form)]
    match form:
        case p.Patterns():
            return Windowed(width)
        case p.Asked() | p.Quads() | p.Graphs() | p.Given():
            return Fed(width)
        case p.Constant():
            return ConstantNode(form, terms)
        case p.Filter():
            return FilterNode(form, children[0], terms)
        case p.Extend():
            return ExtendNode(form, children[0], terms, clock)
        case p.Pick():
            return pick(form, children[0])
        case p.Negate():
            return RowByRow(copying.negate, width, children[0])
        case p.Union():
            return UnionNode(children, form.marked)
        case p.Lasting():
            return lasting(form, children[0])
        case p.Follow():
            return FollowNode(form, children[0], children[1])
        case p.Arrange():
            return ArrangeNode(form, children[0], clock=clock)
        case p.Join(left, right):
            return JoinNode(_arranged(nodes[left]), _arranged(nodes[right]))
        case p.JoinAll(patterns):
            return JoinAllNode(form, width, [_windowed(nodes[place]) for place in patterns], terms)
        case p.Lookup(_, table):
            return LookupNode(form.bound, children[0], _arranged(nodes[table]), terms)
        case p.Triples():
            return triples(form, children[0], terms)
        case p.Look(_, kept):
            return LookNode(form, children[0], _arranged(nodes[kept]))
        case p.Cover():
            return cover(form, children[0], clock)
        case p.Sometime():
            return RowByRow(happening.sometime, width, children[0])
        case p.TimeTerm():
            return TimeTermNode(form, children[0], terms)
        case p.Closure():
            return ClosureNode(form, children[0], clock)
        case p.Distinct():
            return DistinctNode(children[0], lifetime=form.lifetime, clock=clock)
        case p.Group():
            return GroupNode(form, children[0], terms)
        case p.Best():
            return BestNode(form, children[0], terms, order)
        case p.Consolidate():
            return ConsolidateNode(children[0])
        case p.Once():
            return ConsolidateNode(children[0], once=True, numbered=form.numbered)
        case p.Reach():
            return ReachNode(children[0])


def _arranged(node: Node) -> ArrangeNode:
    """A join's input. Raises TypeError for anything but an arrangement."""
    if not isinstance(node, ArrangeNode):
        raise TypeError(f"a join of {type(node).__name__}")
    return node


def _windowed(node: Node) -> ArrangeNode:
    """The rows of a source. Raises TypeError for any other operator."""
    if not isinstance(node, Windowed):
        raise TypeError(f"a join of {type(node).__name__}")
    return node.rows
