"""What `oxiseq.spark` raises and warns of. This module needs no engine: see order.py."""

from __future__ import annotations

from oxiseq.grammar.errors import OxiseqError


class SparkError(OxiseqError):
    """What `oxiseq.spark` cannot do, and what to do about it."""


class CheckpointError(OxiseqError):
    """A checkpoint that was made for other arguments, another query or another version of oxiseq."""


class OnePartitionWarning(UserWarning):
    """A query has no key to partition by: one task does all the matching."""


def check_buckets(saved: int, wanted: int) -> None:
    """Raise CheckpointError for a state of another number of buckets."""
    if saved != wanted:
        raise CheckpointError(f"the checkpoint is of {saved} buckets, not {wanted}: pass buckets={saved}")
