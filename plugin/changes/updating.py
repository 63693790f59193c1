"""An update carried out, and what it has changed."""

from __future__ import annotations

from itertools import islice
from typing import Any

from pyoxigraph import NamedNode
from pyoxigraph import Store as RdfStore

from oxiseq.changes import limits
from oxiseq.changes.change import Anew, Change, Changed
from oxiseq.changes.content import Content
from oxiseq.changes.limits import NotFollowedError, TooMuchError
from oxiseq.changes.operations import operations, parts
from oxiseq.changes.steps import Function, Put, Step, Steps
from oxiseq.engine.attended import check

_UNREADABLE = (SyntaxError, ValueError, OSError, RuntimeError, NotFollowedError)


def updated(store: RdfStore, update: str, **options: Any) -> Changed:
    """As `pyoxigraph.Store.update`, which see for options and errors; after an error nothing has been changed."""
    if len(update) > limits.MOST_BYTES:
        store.update(update, **options)
        return Anew("a long update")
    content = Content(store)
    try:
        text, steps = _followed(update, options)
        for step in steps:
            check()
            step.look(content)
    except TooMuchError:
        store.update(update, **options)
        return Anew("an update of many quads")
    except _UNREADABLE:
        return compared(store, update, **options)
    return _carried_out(store, update, text, steps, content, options)


def _followed(update: str, options: dict[str, Any]) -> tuple[str, list[Step]]:
    """The text to be carried out, and its steps. Raises what `Steps.of` does."""
    found = operations(update)
    steps_of = Steps(update, options)
    steps: list[Step] = []
    instead: list[str | None] = []
    for operation in found:
        own = steps_of.of(operation)
        steps += own
        instead.append(None if own[0].text is None else " ;\n".join(step.text or "" for step in own))
    return "".join(parts(update, found, instead)), steps


def _carried_out(
    store: RdfStore, update: str, text: str, steps: list[Step], content: Content, options: dict[str, Any]
) -> Changed:
    if len(steps) == 1 and isinstance(steps[0], Put) and not steps[0].graphs:
        store.extend(steps[0].quads)  # the same in one transaction, and the text is not parsed again
    else:
        functions: dict[NamedNode, Function] = dict(options.get("custom_functions") or {})
        for step in steps:
            functions |= step.functions
        try:
            store.update(text, **(options | {"custom_functions": functions}))
        except SyntaxError:  # it is ours, or has not been understood; pyoxigraph parses before it does anything
            return compared(store, update, **options)
    try:
        for step in steps:
            step.follow(content)
    except TooMuchError:
        return Anew("an update of many quads")
    return content.change()


def compared(store: RdfStore, update: str, **options: Any) -> Changed:
    """The same by comparing the whole store before and after, which must be small; else listeners must query again."""
    before = _whole(store)
    check()
    store.update(update, **options)
    after = _whole(store) if before is not None else None
    if before is None or after is None:
        return Anew("an update that cannot be followed")
    removed, added = (tuple(a[0] - b[0]) for a, b in ((before, after), (after, before)))
    dropped, created = (tuple(a[1] - b[1]) for a, b in ((before, after), (after, before)))
    return Change(removed, added, dropped, created)


def _whole(store: RdfStore) -> tuple[set[Any], set[Any]] | None:
    """All quads and all named graphs; None where they are too many."""
    quads, graphs = (list(islice(each, limits.MOST_COMPARED + 1)) for each in (iter(store), store.named_graphs()))
    return None if max(len(quads), len(graphs)) > limits.MOST_COMPARED else (set(quads), set(graphs))
