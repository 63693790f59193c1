"""What a query on Spark may be refused for."""

from oxiseq.engine.errors import OxiseqError


class SparkError(OxiseqError):
    """Something that `oxiseq.spark` cannot do, and what to do about it."""
