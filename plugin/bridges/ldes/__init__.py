"""Linked Data Event Streams (https://w3id.org/ldes) as a source: pages of members that are linked by TREE.

Fetching: one page, politely ─▶ `read_page`: members, relations ─▶ LdesSource: in the order of time ─▶ messages
                                                                      └▶ State: which pages need not be read again

paths.py follows the SHACL paths of a page in bounded steps.
"""

from oxiseq.bridges.ldes.fetching import State
from oxiseq.bridges.ldes.page import LDES, TREE
from oxiseq.bridges.ldes.source import LdesSource

__all__ = ["LDES", "TREE", "LdesSource", "State"]
