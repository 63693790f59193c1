"""Knowledge bases that cannot be asked."""

from __future__ import annotations

from pyoxigraph import QuerySolutions

from oxiseq.engine.errors import KbError
from oxiseq.engine.kb import StoreKb


class FailingKb(StoreKb):
    """Fails while it is `failing`, and once when it is asked for the `fails`-th time."""

    fails = 0
    failing = False

    def solutions(self, query_text: str) -> QuerySolutions:
        """As asked, or KbError."""
        if self.fails:
            self.fails -= 1
            if not self.fails:
                raise KbError("once")
        if self.failing:
            raise KbError("not now")
        return super().solutions(query_text)
