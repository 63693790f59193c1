"""What the product does for each query language.

    language.py   `Language`: what every language can do · registry.py: which there are
    spaseq/ ceql/ epsparql/ rsp/   ours: each with its explanations, reasons and the shape of its matches
    lowered.py    `LoweredLanguage`: one that says in its own words what another can say
    reasons/      why, and why not, in one form · explanation.py, driving.py, graphs.py: the same for all

Another package brings a language as a plug-in: a `Language` under an entry point of the group `oxiseq.languages`, named
as the language; or `register` makes one known in a process, a notebook for instance. Nothing of oxiseq changes for it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from oxiseq.grammar.languages import LanguageWarning, Syntax, unregister
    from oxiseq.languages.language import Language
    from oxiseq.languages.lowered import LoweredLanguage
    from oxiseq.languages.registry import register

_HOMES = {
    "Language": "languages.language",
    "LanguageWarning": "grammar.languages",
    "LoweredLanguage": "languages.lowered",
    "Syntax": "grammar.languages",
    "register": "languages.registry",
    "unregister": "grammar.languages",
}

__all__ = ["Language", "LanguageWarning", "LoweredLanguage", "Syntax", "register", "unregister"]


def __getattr__(name: str) -> Any:
    """Names are imported when they are first used: they load the engine (PEP 562)."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"oxiseq.{_HOMES[name]}"), name)
