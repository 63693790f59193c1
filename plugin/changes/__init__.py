"""What a change of the store's content changes, as quads: for standing queries over the store (operators.md, 4.5).

    a method of the store ─▶ methods ─────────────────────────────┐
    an update's text ─▶ operations ─▶ steps ─▶ its text rewritten ┴▶ pyoxigraph, one transaction
                                        │ what was there before        │
                                        └────────▶ content ◀───────────┘ what its WHEREs found
                                                      │
    listeners ◀── Change: quads removed and added, graphs dropped and created; or Anew: ask again

A `Change` is exact: what it adds was not there before, what it removes was. Nothing is read twice and nothing is
estimated: the update itself says what its WHERE has found, by a function that it calls for each solution. What cannot
be described so, or has more than `limits.MOST` quads, is passed on as `Anew`: everything may have changed. A change
that fails notifies nobody. While nobody listens none of this is done.
"""

from oxiseq.changes.change import Anew, Change, Changed, Listener, Listeners, Listening
from oxiseq.changes.methods import METHODS, carried_out

__all__ = ["METHODS", "Anew", "Change", "Changed", "Listener", "Listeners", "Listening", "carried_out"]
