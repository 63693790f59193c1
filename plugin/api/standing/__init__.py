"""Queries that stand over the store: a snapshot of the answer, then what comes and goes with each update.

    store.register(text, language="sparql") ─▶ StandingQuery
                                                   ▲
    store.listen ─▶ queue ─▶ Standings ─▶ engine/standing ─▶ StoreChange ─▶ history, callbacks

Any SELECT, ASK or CONSTRUCT over the knowledge base, FROM, FROM NAMED and GRAPH ?g included, with what SPARQL has.

>>> import oxiseq
>>> store = oxiseq.Store()
>>> store.update("PREFIX : <http://e/> INSERT DATA { :a :knows :b . :b :knows :c }")
>>> query = store.register(
...     '''PREFIX : <http://e/>
... SELECT ?who (COUNT(*) AS ?friends) WHERE { ?who :knows ?whom } GROUP BY ?who''',
...     language="sparql",
...     name="friends",
... )
>>> snapshot = query.snapshot()
>>> snapshot.number, sorted((row["who"].value, row["friends"].value) for row in snapshot.rows)
(0, [('http://e/a', '1'), ('http://e/b', '1')])
>>> store.update("PREFIX : <http://e/> INSERT DATA { :a :knows :c }")
>>> for change in query.changes(timeout="0s"):
...     print(
...         change.number,
...         [row["friends"].value for row in change.removed],
...         "→",
...         [row["friends"].value for row in change.added],
...     )
2 ['1'] → ['2']

**What is told.** `query.snapshot()` has `rows`, `number` and `at`: the answer after all updates made so far. Each
`StoreChange` is one update's (or one transaction's) difference: `added` and `removed`, mappings from names to terms
(None: unbound), a row as often as its multiplicity changes; of CONSTRUCT `Triple`s; of ASK nothing, but `answer`, True
or False. `at` is when the update was made, `number` the id: it rises, by the rows (triples) that the change has. A
snapshot and all changes above its number make the answer of now. ORDER BY without LIMIT has no meaning here.

**How it is read.** `query.changes(since=None, timeout=None)` waits for the next ones; without `since` it goes on behind
what has been handed out before, with `since` behind that number. `query.take()`: all that are there. `query.on_change(
callback, since=None)` calls back from another thread, first with those kept above `since`; `close()` what it returns to
end that. `query.catch_up()`: all updates made before are taken in (callbacks may come later). `keep`: how many rows of
changes are kept to resume from; a `since` before those raises CursorError: take a new snapshot.

**What is promised.** Each change of the store is one step: changes are complete and in their order, whoever makes them
(`update`, `add`, `extend`, bulk loads, the server), and none is told twice. The update does no more than queue what has
changed; a thread works it through. A query that is registered meanwhile sees what the store holds at that moment. A
change that is not told quad by quad (a bulk load, `touch`) is one step, too: the query is begun anew and its answers
compared. Queries do not harm one another, nor updates: `query.state` is

    followed  by operators, which are given the quads that came and went
    asked     of the store, when a quad of one of its patterns has changed; `reason` says why: more than `most_triples`
              quads to hold, mostly. Several updates in a row may then be told as one. Neither updates nor other queries
              wait meanwhile; `snapshot()` and `take()` do, unless they are told not to. One that takes longer than
              `most_asking` fails. (In this process the store cannot be interrupted: it works on to its end. A server
              asks in processes, which it ends.)
    failed    `reason` says why: an answer, or one step of a join, of more than `most_rows` rows, mostly (at its
              registration such a query is refused). It changes no more; `restart()` begins anew and
              tells the difference

What is asked differs from what is followed in three things that Oxigraph answers in its own way: `:zz :p* ?o` where
`:zz` is nowhere in the store, a triple that several graphs of FROM hold (it is there more than once), `!(^:p|:q)`.

`query.explain()` shows the operators. `query.close()` ends it. `store.standing`: all of them.
"""

from oxiseq.api.standing.change import Snapshot, StoreChange
from oxiseq.api.standing.query import StandingQuery, Subscription
from oxiseq.api.standing.standings import Standings

__all__ = ["Snapshot", "StandingQuery", "Standings", "StoreChange", "Subscription"]
