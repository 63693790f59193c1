"""What is refused before the store sees it: calls to other servers, and texts that would exhaust the stack.

pyoxigraph (0.5) fetches for SERVICE and LOAD and has no switch for that. LOAD is carried out by us (`loading`) or not
at all. Whether a text has such a call is decided by pyoxigraph's own parser: if the word occurs at all, every
occurrence is changed to a word of no meaning and the result is run on an empty store. It is still SPARQL exactly when
the word was a name, a comment or part of a literal. No tokenizer can be led astray here, for none decides; keywords
cannot be written with escapes.
"""

from __future__ import annotations

import re
import string
from collections.abc import Sequence

from pyoxigraph import DefaultGraph
from pyoxigraph import Store as RdfStore

from oxiseq.changes.operations import depth
from oxiseq.sparql.loading import NOTHING, Loading, loadings, replaced
from oxiseq.sparql.problems import Problem, sparql_problem
from oxiseq.sparql.settings import SparqlSettings

_APART = "send each LOAD as an update of its own, or write blanks around each < that means less-than"
_END = "\n\x00"  # never SPARQL, in no string or comment either
_LONG_BEFORE_COUNTED = 200


def check_query(text: str, settings: SparqlSettings, base: str) -> None:
    """Raises Problem: 413 (too long), 400 (too deep, malformed), 403 (SERVICE)."""
    check_size(text, settings)
    check_calls(text, settings, base, update=False)


def check_size(text: str, settings: SparqlSettings) -> None:
    """Raises Problem: 413 (too long), 400 (too deep)."""
    if len(text) > settings.limits.query:
        raise Problem(413, "the query is too long", f"{len(text)} characters, at most {settings.limits.query}")
    _check_depth(text, settings)


def check_syntax(text: str, base: str, *, update: bool = False) -> None:
    """Raises Problem 400 for a text that is no query, or no update; one with SERVICE (an update with LOAD, too) is not
    evaluated, for that would call it."""
    lower = text.lower()
    calls = "service" in lower or (update and "load" in lower)
    if not calls and (failed := _failure(text, base, update=update)) is not None:
        raise sparql_problem(text, failed, update=update) from None


def check_update(text: str, settings: SparqlSettings, base: str) -> None:
    """Raises Problem: 400 (too deep, malformed), 403 (SERVICE or LOAD)."""
    _check_depth(text, settings)
    check_calls(text, settings, base, update=True)


def check_calls(text: str, settings: SparqlSettings, base: str, *, update: bool) -> None:
    """Raises Problem: 400 (malformed), 403 (SERVICE or LOAD that is not allowed). The LOADs that are (`loadings`) are
    all that there are, and are nothing else."""
    found = loadings(text, base) if update and settings.allow_load else ()
    words = ("service",) * (not settings.allow_service) + ("load",) * update
    rest = replaced(text, found, [NOTHING] * len(found))
    _refuse(rest, words, base, update=update, loads=len(found), allowed=settings.allow_load)
    for loading in found:
        _check_keyword(text, found, loading, base)


def _check_keyword(text: str, found: Sequence[Loading], looked_at: Loading, base: str) -> None:
    """Raises Problem 400 if one of an update's LOADs is none for pyoxigraph: then the update, which is SPARQL without
    them, is so with another word there, too."""
    kept = [text[each.start : each.end] if each is looked_at else NOTHING for each in found]
    if _failure(_without(replaced(text, found, kept), "load"), base, update=True) is None:
        raise Problem(400, "the place of LOAD cannot be determined", _APART)


def _check_depth(text: str, settings: SparqlSettings) -> None:
    if len(text) <= _LONG_BEFORE_COUNTED:
        return
    found = depth(text)
    if found > settings.limits.nesting:
        limit = settings.limits.nesting
        raise Problem(400, "nested too deeply", f"brackets are nested {found} deep, at most {limit}")


def _refuse(
    text: str, words: tuple[str, ...], base: str, *, update: bool, loads: int = 0, allowed: bool = False
) -> None:
    """`loads`: how many LOADs have been taken out of the text, which is then to be well-formed in any case; `allowed`:
    whether it might have had them."""
    changed = text
    for word in words:
        changed = _without(changed, word)
    if changed == text and not loads:
        return
    failed = _failure(changed, base, update=update)
    if failed is None:
        return
    used = [word for word in words if re.search(word, text, re.IGNORECASE | re.ASCII)]
    if not used or not _could_be_complete(text, base, update=update):
        failed = _failure(text + _END, base, update=update) or failed
        raise sparql_problem(text, failed, update=update) from None
    if allowed:
        used = [word for word in used if word != "load"]
    if not used:
        raise Problem(400, "the place of LOAD cannot be determined", _APART)
    called = " or ".join(word.upper() for word in used)
    options = " or ".join(f"--allow-{word}" for word in used)
    elsewhere = " outside of its streams" if "service" in used else ""
    raise Problem(
        403,
        "calls to other servers are not allowed",
        f"the text uses {called}{elsewhere}; the server was started without {options}",
    )


def _without(text: str, word: str) -> str:
    """Each occurrence with another last letter (of the same case), one that makes no word that is there."""
    stem = word[:-1]
    lower = text.lower()
    letter = next((c for c in string.ascii_lowercase if c != word[-1] and stem + c not in lower), None)
    if letter is None:
        raise Problem(403, "calls to other servers are not allowed", f"too many words beginning with {stem}")

    def changed(found: re.Match[str]) -> str:
        last = letter.upper() if found[0][-1].isupper() else letter
        return found[0][:-1] + last

    return re.sub(word, changed, text, flags=re.IGNORECASE | re.ASCII)


def _failure(text: str, base: str, *, update: bool) -> SyntaxError | None:
    """Why a text is no SPARQL. An update is carried out on an empty store, which is the only way to ask; a query is
    not: it could take for ever without any data. That its dataset is given twice is found after it has been parsed."""
    empty = RdfStore()
    try:
        if update:
            empty.update(text, base_iri=base)
        else:
            empty.query(text, base_iri=base, use_default_graph_as_union=True, default_graph=[DefaultGraph()])
    except SyntaxError as error:
        return error
    except (ValueError, OSError, RuntimeError):
        return None
    return None


def _could_be_complete(text: str, base: str, *, update: bool) -> bool:
    """Whether the parser comes to the text's end: it then stops at the sign that we put there.

    Good enough to decide between 403 and 400: the text is refused either way.
    """
    error = _failure(text + _END, base, update=update)
    lines = text.count("\n") + 2
    return error is not None and f"error at {lines}:" in str(error)
