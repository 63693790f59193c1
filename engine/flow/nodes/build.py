"""A plan's operators at work."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from oxiseq.engine.flow import plan as p
from oxiseq.engine.flow.delta import I64
from oxiseq.engine.flow.nodes import following, happening, linear
from oxiseq.engine.flow.nodes.arrange import Arrange
from oxiseq.engine.flow.nodes.best import Best
from oxiseq.engine.flow.nodes.closure import Closure
from oxiseq.engine.flow.nodes.computing import Extend, Filter
from oxiseq.engine.flow.nodes.consolidate import Consolidate
from oxiseq.engine.flow.nodes.distinct import Distinct
from oxiseq.engine.flow.nodes.fed import Fed, Windowed
from oxiseq.engine.flow.nodes.group import Group
from oxiseq.engine.flow.nodes.join import Join, JoinAll
from oxiseq.engine.flow.nodes.lookup import Lookup
from oxiseq.engine.flow.nodes.node import ALL_TIME, Node
from oxiseq.engine.flow.nodes.reach import Reach
from oxiseq.engine.kernels.flow import copying
from oxiseq.engine.kernels.flow import happening as kernels
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
            return linear.Constant(form, terms)
        case p.Filter():
            return Filter(form, children[0], terms)
        case p.Extend():
            return Extend(form, children[0], terms, clock)
        case p.Pick():
            return linear.pick(form, children[0])
        case p.Negate():
            return linear.RowByRow(copying.negate, width, children[0])
        case p.Union():
            return linear.Union(children, form.marked)
        case p.Lasting():
            return happening.lasting(form, children[0])
        case p.Follow():
            return following.Follow(form, children[0], children[1])
        case p.Arrange():
            return Arrange(form, children[0], clock=clock)
        case p.Join(left, right):
            return Join(_arranged(nodes[left]), _arranged(nodes[right]))
        case p.JoinAll(patterns):
            return JoinAll(form, width, [_windowed(nodes[place]) for place in patterns], terms)
        case p.Lookup(_, table):
            return Lookup(form.bound, children[0], _arranged(nodes[table]), terms)
        case p.Triples():
            return happening.triples(form, children[0], terms)
        case p.Look(_, kept):
            return happening.Look(form, children[0], _arranged(nodes[kept]))
        case p.Cover():
            return happening.cover(form, children[0], clock)
        case p.Sometime():
            return linear.RowByRow(kernels.sometime, width, children[0])
        case p.TimeTerm():
            return happening.TimeTerm(form, children[0], terms)
        case p.Closure():
            return Closure(form, children[0], clock)
        case p.Distinct():
            return Distinct(children[0], lifetime=form.lifetime, clock=clock)
        case p.Group():
            return Group(form, children[0], terms)
        case p.Best():
            return Best(form, children[0], terms, order)
        case p.Consolidate():
            return Consolidate(children[0])
        case p.Once():
            return Consolidate(children[0], once=True, numbered=form.numbered)
        case p.Reach():
            return Reach(children[0])


def _arranged(node: Node) -> Arrange:
    """A join's input. Raises TypeError for anything but an arrangement."""
    if not isinstance(node, Arrange):
        raise TypeError(f"a join of {type(node).__name__}")
    return node


def _windowed(node: Node) -> Arrange:
    """The rows of a source. Raises TypeError for any other operator."""
    if not isinstance(node, Windowed):
        raise TypeError(f"a join of {type(node).__name__}")
    return node.rows
