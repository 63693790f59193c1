"""Standing queries over the store: a snapshot of the answer, then the rows that each update adds and removes.

    store.register(text, language="sparql") ─▶ StandingQuery
                                                   ▲
    store.listen ─▶ queue ─▶ Standings ─▶ engine/standing ─▶ StoreChange ─▶ history, callbacks

Any SPARQL SELECT, ASK or CONSTRUCT over the knowledge base, FROM, FROM NAMED and GRAPH ?g included.

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

**Results.** `query.snapshot()` has `rows`, `number` and `at`: the answer after all updates so far. Each
`StoreChange` is one update's (or one transaction's) difference: `added` and `removed`, mappings from names to terms
(None: unbound), a row as often as its multiplicity changes; for CONSTRUCT `Triple`s; for ASK only `answer`, True or
False. `at` is the time of the update, `number` the id: it grows by the number of rows (triples) of the change. A
snapshot and all changes above its number give the current answer. ORDER BY without LIMIT has no effect here.

**Reading.** `query.changes(after=None, timeout=None)` waits for the next changes; without `after` it continues after
the last one that it returned, with `after` after that number. `query.poll()`: all that are available. `query.on_change(
callback, after=None)` calls back from another thread, first with the kept changes above `after`; `close()` the returned
subscription to end it. `query.catch_up()` waits until all earlier updates are applied (callbacks may come later).
`keep`: how many rows of changes are kept to resume from; an older `after` raises CursorError: take a new snapshot.

**Guarantees.** Each change of the store is one step: changes are complete and in order, whoever makes them (`update`,
`add`, `extend`, bulk loads, the server), and each is emitted once. The update only queues the changed quads; a thread
processes them. A query that is registered in between sees the content of the store at that moment. A change that is
not reported quad by quad (a bulk load, `touch`) is one step, too: the query is evaluated again and its answers are
compared. Queries do not affect one another, nor updates: `query.state` is

    followed  by operators, which receive the added and removed quads
    asked     of the store again when a quad of one of its patterns has changed; `reason` says why: mostly because it
              would hold more than `most_triples` quads. Several updates in a row may then give one change. Updates and
              other queries do not wait for it; `snapshot()` and `poll()` do, unless they are called with `wait=False`.
              A query that takes longer than `most_asking` fails. (In this process the store cannot be interrupted: the
              evaluation runs to its end. A server evaluates in processes, which it ends.)
    failed    `reason` says why: an answer, or one step of a join, of more than `most_rows` rows, mostly (at its
              registration such a query is refused). Its answer no longer changes; `restart()` evaluates it
              again and emits the difference

Asked queries differ from followed ones in three cases that Oxigraph evaluates in its own way: `:zz :p* ?o` where
`:zz` is nowhere in the store, a triple that several graphs of FROM hold (it is there more than once), `!(^:p|:q)`.

`query.explain()` shows the operators. `query.close()` ends it. `store.standing`: all of them.
"""

from oxiseq.api.standing.query import Snapshot, StandingQuery, StoreChange
from oxiseq.api.standing.standings import Standings

__all__ = ["Snapshot", "StandingQuery", "Standings", "StoreChange"]
