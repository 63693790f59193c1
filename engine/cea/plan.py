from dataclasses import dataclass
from oxiseq.grammar.algebra import Expression


@dataclass(frozen=True, slots=True)
class Atom:
    """What is asked of a single event: bit number i of its symbol is atom i of the plan."""

    type: str
    predicates: tuple[Expression, ...]
