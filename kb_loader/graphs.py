"""The graphs that loading writes beside the data."""

from pyoxigraph import NamedNode

INFERRED = NamedNode("urn:oxiseq:inferred")
"""What `rdfs.reason` has inferred."""
STATISTICS = NamedNode("urn:oxiseq:statistics")
"""What `void.describe` has counted."""
DATASET = NamedNode("urn:oxiseq:dataset")
"""The name of the store's data in the statistics."""
