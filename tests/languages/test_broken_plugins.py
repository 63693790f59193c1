"""Plug-ins that cannot be used are told by name, once; all other languages stay as they are."""

from __future__ import annotations

import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from plugin_folders import TOY

import oxiseq
from oxiseq.grammar import language_names, language_of
from oxiseq.grammar.languages import media_types
from oxiseq.languages import Language, LanguageWarning, LoweredLanguage, Syntax, register, unregister

CEQL = "VOCAB <http://e/> SELECT * FROM S WHERE A"
HEAD = "from oxiseq.languages import Language, LoweredLanguage, Syntax\n"
SYNTAX = "Syntax('{name}', 'Some', lambda text: None, lambda query, text: (), lambda query: '')"


def bring(folder: Path, name: str, value: str, code: str, distribution: str | None = None) -> None:
    """Put a distribution into `folder` whose entry point `name` is `value`, and its module."""
    module = value.partition(":")[0]
    (folder / f"{module}.py").write_text(HEAD + code, encoding="utf-8")
    info = folder / f"{distribution or module}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution or module}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[oxiseq.languages]\n{name} = {value}\n")
    sys.modules.pop(module, None)


BROKEN = {
    "raises": ("raise RuntimeError('no such luck')", "no such luck"),
    "exits": ("import not_there_at_all", "not_there_at_all"),
    "lacks": (f"class Some(LoweredLanguage):\n    syntax = {SYNTAX.format(name='broken')}", "lower"),
    "bare": ("class Some(Language):\n    pass", "abstract"),
    "nothing": ("Some = 5", "has no syntax"),
    "absent": ("", "Some"),
    "renamed": (
        f"class Some(LoweredLanguage):\n    syntax = {SYNTAX.format(name='other')}\n    def lower(self, q): return q",
        "its name is 'other'",
    ),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_one_that_cannot_be_loaded_is_told_and_all_else_works(kind: str, plugged: Path) -> None:
    code, reason = BROKEN[kind]
    bring(plugged, "broken", f"broken_{kind}:Some", code)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nobody asks for it
        assert "broken" in language_names()
        assert oxiseq.Query(CEQL, "ceql").run({"S": []}).variables == ("A",)
    with pytest.warns(LanguageWarning, match=f"broken_{kind}:Some of broken.* for the language 'broken' is ignored"):
        media_types()
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # once
        assert "broken" not in media_types().values() and language_of("some.other") == "spaseq"
    with pytest.raises(oxiseq.OxiseqError, match=f"(?s)'broken' cannot be used: broken_{kind}:Some .*{reason}"):
        oxiseq.Query("whatever", "broken")


def test_of_two_with_one_name_the_first_is_used(plugged: Path, toy: Path) -> None:
    bring(plugged, "then", "second_then:Some", "raise RuntimeError")
    with pytest.warns(LanguageWarning, match="the plug-in .* for the language 'then' is ignored: .* provides one"):
        assert language_names().count("then") == 1
    assert oxiseq.Query("on <http://e/s> of <http://e/>: A", "then").run({"S": []}).variables == ("e0",)


def test_none_takes_the_place_of_ours(plugged: Path) -> None:
    bring(plugged, "ceql", "own_ceql:Some", "raise RuntimeError")
    with pytest.warns(LanguageWarning, match="oxiseq itself has a language of this name"):
        assert language_names().count("ceql") == 1
    assert oxiseq.Query(CEQL, "ceql").run({"S": []}).variables == ("A",)


def test_a_language_that_is_not_known_names_those_that_are(toy: Path) -> None:
    with pytest.raises(oxiseq.OxiseqError, match=r"'no' is not known; known: spaseq, .*, then"):
        oxiseq.Query("whatever", "no")


def test_help_loads_no_plug_in(plugged: Path) -> None:
    bring(plugged, "broken", "loud:Some", "print('loaded')")
    code = f"import sys; sys.path.insert(0, {str(plugged)!r}); from oxiseq.cli import main; main(['run', '--help'])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600, check=True)
    assert "broken" in result.stdout and "loaded" not in result.stdout


# --- those that a program registers -------------------------------------------------------------------


def then(**changes: Any) -> LoweredLanguage[Any]:
    """The toy under another name."""
    sys.path.insert(0, str(TOY))
    try:
        from then_language import Then, ThenQuery, lowered, parse  # noqa: PLC0415  it is on the path only here
    finally:
        sys.path.remove(str(TOY))

    def own(text: str) -> ThenQuery:
        return replace(parse(text), language="own")

    class Own(Then):  # type: ignore[misc]  # no types are known of it
        syntax = Syntax("own", **{"title": "Own", "parse": own, "check": lambda q, t: (), "render": str, **changes})

    assert lowered(parse("on <http://e/s> of <http://e/>: A"))
    return Own()


def test_a_notebook_registers_one_and_again() -> None:
    register(then())
    try:
        assert oxiseq.Query("on <http://e/s> of <http://e/>: A", "own").run({"S": []}).variables == ("e0",)
        with pytest.raises(oxiseq.OxiseqError, match="a language 'own' is already registered"):
            register(then())
        register(then(title="Again"), replace=True)
        assert language_of("x.own") == "own"
    finally:
        unregister("own")
    with pytest.raises(oxiseq.OxiseqError, match="not known"):
        oxiseq.Query("on <http://e/s> of <http://e/>: A", "own")
    with pytest.raises(oxiseq.OxiseqError, match="no language 'own' has been registered"):
        unregister("own")


def test_queries_of_another_name_are_refused() -> None:
    from_elsewhere = then()
    register(then(parse=lambda text: replace(from_elsewhere.syntax.parse(text), language="other")))
    try:
        with pytest.raises(oxiseq.OxiseqError, match="the language 'own' parsed a query of 'other'"):
            oxiseq.Query("on <http://e/s> of <http://e/>: A", "own").run({"S": []})
    finally:
        unregister("own")


def test_what_is_no_language_is_refused() -> None:
    for wrong in (5, None, Language, then().syntax):
        with pytest.raises(oxiseq.OxiseqError, match=r"is not an oxiseq\.languages\.Language"):
            register(wrong)  # type: ignore[arg-type]
    with pytest.raises(oxiseq.OxiseqError, match="is that of 'ceql'"):
        register(then(media_type="application/ceql-query"))
    for name in ("", "Own", "o wn", "sparql", "1own"):
        with pytest.raises(oxiseq.OxiseqError, match="is not a name for a language"):
            Syntax(name, "Own", lambda text: None, lambda query, text: (), str)  # type: ignore[arg-type,return-value]
