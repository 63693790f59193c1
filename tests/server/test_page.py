"""The page in a real browser, headless: the guided example, errors under the text, streams, tokens, a phone, the dark.

One server and one browser for all; each test opens the page anew.
"""

from __future__ import annotations

import csv
import json
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

import pytest

pytest.importorskip("selenium", reason="selenium is not installed: pip install --group test")

from http_client import ask
from selenium.common.exceptions import TimeoutException
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys
from servers import ours, served
from test_upstream_live import EX, NAMED, PAID, TURTLE, in_front, people

from benchmarks.browser import Scheme, browser, complaints, hosts, missing, open_page, show, until, value
from oxiseq.api.store import Store
from oxiseq.live import LiveService, LiveSettings
from oxiseq.live.api import LiveRoutes
from oxiseq.server import ServerSettings, Tokens
from oxiseq.sinks import Allowed
from oxiseq.sparql import SparqlEndpoint, SparqlSettings

if TYPE_CHECKING:
    from selenium.webdriver.chrome.webdriver import WebDriver

pytestmark = [
    pytest.mark.skipif(missing() is not None, reason=str(missing())),
    pytest.mark.xdist_group("page"),  # one browser, one server and one replay of the guided example
]
STREAM = "http://example.org/power"
GOOD = f"""PREFIX : <http://example.org/>
SELECT ?house WITHIN 1 HOUR
FROM STREAM S <{STREAM}>
WHERE {{
  SEQ(A; B)
  DEFINE GPM A ON S {{ ?house :watts ?low }}
  DEFINE GPM B ON S {{ ?house :watts ?high FILTER(?high > ?low) }}
}}"""
EDITOR = "document.getElementById('editor').shadowRoot"


@contextmanager
def server(folder: Path, tokens: Tokens | None = None) -> Iterator[str]:
    store = Store()
    endpoint = SparqlEndpoint(store)
    settings = ServerSettings(port=0, threads=8, live=8, tokens=tokens or Tokens())
    with LiveService(
        store, folder, LiveSettings(idle=0.05, heartbeat=0.5, sinks_allowed=Allowed(folder=folder / "out")), "normal"
    ) as service:
        routes = LiveRoutes(service, endpoint.evaluations)
        endpoint.offer(routes.services)
        with served(endpoint, settings, routes) as address:
            yield address


@pytest.fixture(scope="module")
def driver() -> Iterator[WebDriver]:
    with browser() as made:
        yield made


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with server(tmp_path_factory.mktemp("journal")) as given:
        yield given


@pytest.fixture
def page(driver: WebDriver, address: str) -> Iterator[WebDriver]:
    """Open, and in the end without a complaint on the console, or a request to another host."""
    show(driver, 1280, 900)
    complaints(driver), hosts(driver)
    open_page(driver, address)
    yield driver
    assert complaints(driver) == []
    assert hosts(driver) == {urlsplit(address).netloc}


def write(driver: WebDriver, text: str, language: str, name: str = "") -> None:
    """As a user who pastes a text: the modules of the page are the same for all who import them."""
    driver.execute_async_script(
        "const [text, language, name, done] = arguments;"
        "import('/ui/js/panels/workbench.js').then((part) => { part.put(text, language, name); done(); })",
        text,
        language,
        name,
    )


def click(driver: WebDriver, element: str) -> None:
    driver.execute_script(f"document.getElementById('{element}').click()")


@pytest.mark.slow
def test_the_guided_example_shows_matches_as_they_come(page: WebDriver) -> None:
    click(page, "guide")
    until(page, "document.querySelectorAll('#matches tbody tr').length", 120)
    assert value(page, "document.getElementById('notice').textContent").startswith("Replaying")  # live, not at the end
    until(page, "document.getElementById('notice').dataset.kind === 'good'", 120)
    rows = value(page, "document.querySelectorAll('#matches tbody tr').length")
    assert rows > 10
    assert value(page, "document.querySelectorAll('#timeline .bar').length") == rows
    lanes = "[...document.querySelectorAll('#timeline .lane-name')].map(each => each.textContent)"
    assert value(page, lanes) == ["A", "B", "C", "match"]
    assert value(page, "document.querySelectorAll('#automaton .state').length") == 3
    assert until(page, "document.querySelector('#automaton .state .count').textContent.includes('waiting')")
    facts = until(page, "document.querySelector('#detail .facts')?.textContent")  # the last match is chosen at the end
    assert "NASDAQ" in facts or "NYSE" in facts
    assert value(page, "document.querySelectorAll('#detail .card-event').length") == 4
    assert value(page, "document.querySelectorAll('#detail dt').length") > 6


def test_the_timeline_is_operated_by_keys(page: WebDriver) -> None:
    _guided(page)
    until(page, "document.querySelectorAll('#timeline .bar').length > 2")
    page.execute_script("document.querySelector('#timeline .bar[tabindex=\"0\"]').focus()")
    ActionChains(page).send_keys(Keys.ARROW_RIGHT, Keys.ENTER).perform()
    chosen = until(page, "document.querySelector('#timeline .bar[aria-selected=true]')?.dataset.match")
    assert until(page, "document.getElementById('detail-title').textContent") == f"Match {chosen}"
    assert until(page, "document.querySelectorAll('#detail dd').length")


def test_errors_are_underlined_where_they_are(page: WebDriver) -> None:
    write(page, GOOD.replace("SEQ(A; B)", "SEQ(A; Q)"), "spaseq")
    assert until(page, f"{EDITOR}.querySelector('.cm-lintRange-error')?.textContent") == "Q"
    assert "Line 5" in value(page, "document.getElementById('finding').textContent")
    write(page, "SELECT * { ?s ?p }", "sparql")
    until(page, f"{EDITOR}.querySelector('.cm-lintRange-error')?.textContent === '}}'")
    write(page, "SELECT * { ?s ?p ?o }", "sparql")
    until(page, "document.getElementById('finding').textContent === ''")


def test_run_and_register_from_the_editor(page: WebDriver) -> None:
    write(page, "INSERT DATA { <urn:a> <urn:likes> 'tea' }", "sparql")
    click(page, "run")
    until(page, "document.getElementById('result-title').textContent === 'Done'")
    write(page, "SELECT ?o { ?s <urn:likes> ?o }", "sparql")
    click(page, "run")
    until(page, "document.querySelector('#result td')?.textContent === 'tea'")
    write(page, GOOD, "spaseq", "rises")
    click(page, "register")
    until(page, "document.querySelector('#queries [data-query=rises]')?.ariaPressed === 'true'")
    page.execute_async_script(
        "const done = arguments[1]; Promise.all([[1, 10], [2, 20]].map(([time, watts]) => fetch("
        "`/streams/${encodeURIComponent(arguments[0])}?time=${time}000000`, { method: 'POST', body: "
        "`<urn:h> <http://example.org/watts> ${watts} .`, headers: { 'Content-Type': 'text/turtle' } }))).then(done)",
        STREAM,
    )
    assert until(page, "document.querySelector('#streams .name')")


def test_an_answer_comes_and_goes(page: WebDriver) -> None:
    write(page, "SELECT ?what { <urn:ann> <urn:drinks> ?what }", "sparql", "drinks")
    click(page, "register")
    until(page, "document.querySelector('#queries [data-query=drinks]')?.ariaPressed === 'true'")
    rows = "[...document.querySelectorAll('#answer td')].map(each => each.textContent).join()"
    for text, told in (
        ("INSERT DATA { <urn:ann> <urn:drinks> 'tea', 'milk' }", "milk,tea"),
        ("DELETE DATA { <urn:ann> <urn:drinks> 'tea' }", "milk"),
    ):
        write(page, text, "sparql")
        click(page, "run")
        until(page, f"{rows}.split(',').sort().join() === '{told}'")
    assert "+0 −1" in value(page, "document.getElementById('answer-count').textContent")
    assert value(page, "document.getElementById('matches-part').hidden")
    assert until(page, "document.querySelector('#automaton svg')")
    click(page, "why")
    verdict = until(page, "document.querySelector('#past .verdict')?.textContent", 60)
    assert verdict.startswith("1 row in what the knowledge base holds.")
    assert value(page, "document.getElementById('compare').hidden")
    click(page, "pause")
    until(page, "document.getElementById('pause').textContent === 'Resume'")
    write(page, "", "sparql")


def test_the_plan_of_another_language_is_drawn(page: WebDriver) -> None:
    write(page, "VOCAB <http://example.org/> SELECT * FROM S WHERE SELL ; BUY", "ceql", "trades")
    click(page, "register")
    until(page, "document.querySelectorAll('#automaton svg.o .n').length === 3")  # BUY ends a match: a double border
    assert value(page, "document.querySelectorAll('#automaton style').length") == 0
    assert "atoms" in value(page, "document.querySelector('#automaton pre').textContent")
    page.execute_async_script(
        "const done = arguments[0], push = (time, type) => fetch("
        "`/streams/${encodeURIComponent('http://example.org/S')}?time=${time}000000`, { method: 'POST', body: "
        "`_:e a <http://example.org/${type}> .`, headers: { 'Content-Type': 'text/turtle' } });"
        "push(1, 'SELL').then(() => push(2, 'HOLD')).then(done)"
    )
    click(page, "why")
    verdict = until(page, "document.querySelector('#past .verdict')?.textContent", 60)
    assert verdict.startswith("0 matches in 2 events")
    assert verdict.endswith("It comes no further than before BUY is complete.")


def test_what_is_there_is_offered(page: WebDriver) -> None:
    write(page, "", "spaseq")
    page.execute_script(f"{EDITOR}.querySelector('.cm-content').focus()")
    ActionChains(page).send_keys("PREFIX pro").perform()
    options = f"[...{EDITOR}.querySelectorAll('.cm-completionLabel')].map(each => each.textContent)"
    until(page, f"{options}.join() === 'prov'")  # while it is typed, there are others
    time.sleep(0.3)  # what has just appeared is not taken yet: Enter may have been meant for the text
    ActionChains(page).send_keys(Keys.ENTER).perform()
    text = f"{EDITOR}.querySelector('.cm-content').textContent"
    until(page, f"{text} === 'PREFIX prov: <http://www.w3.org/ns/prov#>'")


def test_why_and_why_not_by_keys(page: WebDriver) -> None:
    _guided(page)
    page.execute_script("document.getElementById('past-until').focus()")
    while not value(page, "document.activeElement.id === 'why'"):  # through the parts of a date
        ActionChains(page).send_keys(Keys.TAB).perform()
    ActionChains(page).send_keys(Keys.ENTER).perform()
    verdict = until(page, "document.querySelector('#past .verdict')?.textContent", 60)
    known = value(page, "document.querySelector('#queries [data-query=guide-v-shape] .figure b').textContent")
    assert verdict.startswith(f"{known} matches in 230 events, 2008-07-01 to 2009-05-29")
    stages = "[...document.querySelectorAll('ul.funnel li')].map(each => each.querySelector('code').textContent)"
    assert value(page, stages) == ["A", "A; B", "A; B; C"]
    assert value(page, "document.querySelector('.share .full').style.width") == "100%"
    page.execute_script(
        "document.getElementById('past-since').value = '2008-11-24T00:00';"
        "document.getElementById('past-until').value = '2008-12-05T00:00'"
    )
    click(page, "why")
    until(page, "document.querySelector('#past .verdict')?.textContent.startsWith('0 matches in 8 events')")
    assert "FILTER(?p2 <= 0.88 * ?p1)" in value(page, "document.querySelector('#past .reasons').textContent")
    assert value(page, "document.querySelector('.funnel .stop code').textContent") == "A; B"
    page.execute_script("document.getElementById('past-until').value = document.getElementById('past-since').value")
    click(page, "why")
    until(page, "document.querySelector('#past').textContent === 'The query’s streams keep no events of that time.'")


def test_what_the_text_in_the_editor_would_gain_and_lose(page: WebDriver) -> None:
    _guided(page)
    write(page, "SELECT * { ?s ?p ?o }", "sparql")
    click(page, "compare")
    until(page, "document.querySelector('#past .bad')?.textContent.startsWith('The editor holds SPARQL')")
    text = value(page, "fetch('/ui/guide/v-shape.spaseq').then(each => each.text())")
    write(page, text.replace("0.88", "0.8"), "spaseq")
    click(page, "compare")
    verdict = until(page, "document.querySelector('#past .verdict')?.textContent", 60)
    signs = value(page, "[...document.querySelectorAll('#past tbody tr')].map(each => each.className)")
    counts = [signs.count("gained"), signs.count("lost")]
    assert verdict.startswith(f"The editor’s text gains {counts[0]} and loses {counts[1]} of the matches of guide-v")
    assert counts[1] > 5
    write(page, text, "spaseq")
    click(page, "compare")
    until(page, "document.querySelector('#past .verdict')?.textContent.includes('gains 0 and loses 0')")


def test_what_a_match_derives_from_is_saved_as_rdf(page: WebDriver, tmp_path: Path) -> None:
    _guided(page)
    page.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)})
    page.execute_script("document.querySelector('#matches tbody button').click()")
    until(page, "document.querySelector('#detail-rdf a')")
    page.execute_script("document.querySelector('#detail-rdf a').click()")
    for _ in range(100):
        if found := list(tmp_path.glob("guide-v-shape-match-*.trig")):
            break
        time.sleep(0.05)
    assert found[0].read_text().count("wasDerivedFrom") == 4  # three events, and the graph of the facts
    assert "urn:oxiseq:match:guide-v-shape:" in found[0].read_text()


def test_a_phone_and_the_dark(page: WebDriver) -> None:
    _guided(page)
    show(page, 390, 844, "dark")
    until(page, "innerWidth === 390")
    assert value(page, "document.documentElement.scrollWidth") == 390
    ground = value(page, "getComputedStyle(document.body).backgroundColor")
    assert ground == "rgb(18, 22, 23)"
    click(page, "why")
    until(page, "document.querySelector('#past .reasons')", 60)
    assert value(page, "document.documentElement.scrollWidth") == 390
    show(page, 390, 844, "light")
    until(page, "getComputedStyle(document.body).backgroundColor !== 'rgb(18, 22, 23)'")


def test_the_token_is_asked_for_once_and_kept(driver: WebDriver, tmp_path: Path) -> None:
    with server(tmp_path, Tokens(read="secret", write="more")) as guarded:
        driver.get(guarded)
        until(driver, "document.getElementById('token').open")
        ActionChains(driver).send_keys("secret", Keys.TAB, Keys.TAB, Keys.ENTER).perform()
        until(driver, "document.getElementById('status').dataset.state === 'good'")
        assert value(driver, "sessionStorage.getItem('oxiseq-token')") == "secret"
        open_page(driver, guarded)
        assert not value(driver, "document.getElementById('token').open")
        driver.get("about:blank")


def test_a_server_that_is_read_only_says_what_it_refuses(driver: WebDriver) -> None:
    endpoint = SparqlEndpoint(Store(), SparqlSettings(read_only=True))
    with served(endpoint, ServerSettings(port=0, threads=8)) as address:
        open_page(driver, address)
        complaints(driver)
        mode = value(driver, "document.getElementById('mode').textContent")
        assert mode.startswith("Read-only: queries are answered; updates are refused, and there are no streams")
        assert value(driver, "document.getElementById('status').dataset.state") == "good"
        shown = "[...document.querySelectorAll('.needs-live')].filter(each => each.offsetParent !== null).length"
        assert value(driver, shown) == 0
        assert value(driver, "[...document.getElementById('language').options].map(each => each.value)") == ["sparql"]
        write(driver, "ASK { }", "sparql")
        click(driver, "run")
        until(driver, "document.getElementById('result-title').textContent === 'Yes'")
        write(driver, "SELECT * { ?s ?p }", "sparql")
        click(driver, "run")  # errors are told by the answer: nothing is checked while one types
        until(driver, f"{EDITOR}.querySelector('.cm-lintRange-error')?.textContent === '}}'")
        assert len(complaints(driver)) == 1  # that answer, and nothing before it
        write(driver, "INSERT DATA { <urn:a> <urn:b> <urn:c> }", "sparql")
        click(driver, "run")
        until(driver, "document.getElementById('notice').textContent === 'the server is read-only'")
        driver.get("about:blank")


def test_in_front_of_another_endpoint(driver: WebDriver, tmp_path: Path) -> None:
    with ExitStack() as behind:
        url = behind.enter_context(ours())
        people(url, ann="Ann")
        with in_front(url, tmp_path) as (address, _):
            open_page(driver, address)
            complaints(driver)
            mode = "document.getElementById('mode').textContent"
            assert until(driver, f"{mode}.endsWith('nothing yet. Ask again')")
            write(driver, NAMED, "spaseq", "named")
            click(driver, "register")
            until(driver, "document.querySelector('#queries [data-query=named]')?.ariaPressed === 'true'", 60)
            until(driver, f"/1 pattern, asked \\d{{4}}-/.test({mode})")
            event = f"<{EX}ann> <{EX}paid> 5 .".encode()
            for second in (1, 2):
                assert ask(address, "POST", f"{PAID}?time={second}000000", [TURTLE], event).status == 200
            until(driver, "document.querySelectorAll('#matches tbody button').length")
            driver.execute_script("document.querySelector('#matches tbody button').click()")  # rows come and go
            facts = until(driver, "document.querySelector('#detail .facts')?.textContent")
            assert "facts that it used" in facts and "Ann" in facts
            click(driver, "why")
            until(driver, "document.querySelector('#past .verdict')?.textContent.startsWith('2 matches in 2')", 60)
            assert complaints(driver) == []
            behind.close()  # the endpoint goes away: what is kept goes on
            write(driver, "ASK { }", "sparql")
            click(driver, "run")
            until(driver, "document.getElementById('notice').textContent.includes('refused')")
            driver.execute_script("document.querySelector('#mode button').click()")
            until(driver, f"{mode}.includes('It does not answer now')")
            assert value(driver, "document.getElementById('status').dataset.state") == "good"
            driver.get("about:blank")


def _guided(page: WebDriver) -> None:
    """The example has run; by an earlier test, if this one is not alone."""
    if not value(page, "document.querySelector('#queries [data-query=guide-v-shape]') !== null"):
        click(page, "guide")
        until(page, "document.getElementById('notice').dataset.kind === 'good'", 120)
    page.execute_script("document.querySelector('#queries [data-query=guide-v-shape]').click()")
    until(page, "document.querySelectorAll('#matches tbody tr').length")


def test_the_automaton_shows_what_a_trailing_negation_waits_for_and_the_bounds_of_gaps(page: WebDriver) -> None:
    text = GOOD.replace("SEQ(A; B)", "SEQ(A; B WITHIN 10 MINUTES; N! WITHIN 5 MINUTES)").replace(
        "DEFINE GPM B", "DEFINE GPM N ON S { ?house :off ?low }\n  DEFINE GPM B"
    )
    write(page, text, "spaseq", "quiet")
    click(page, "register")
    until(page, "document.getElementById('query-name').textContent === 'quiet'")
    until(page, "document.querySelectorAll('#automaton .state').length === 3")
    texts = "[...document.querySelectorAll('#automaton .{}')].map(each => each.textContent)"
    assert value(page, texts.format("end .letter")) == ["end"]
    assert value(page, texts.format("guard")) == ["no N"]
    assert value(page, texts.format("limit")) == ["up to 10 minutes", "up to 5 minutes"]
    assert value(page, "document.querySelector('#automaton .end').classList.contains('final')")
    wide = value(page, "document.querySelector('#automaton svg').getBoundingClientRect().width")
    show(page, 390, 844)
    narrow = until(
        page,
        "document.querySelector('#automaton svg').getBoundingClientRect().width < 600 && "
        "document.querySelector('#automaton svg').getBoundingClientRect().width",
    )
    assert narrow < wide
    place = "document.getElementById('automaton')"
    assert value(page, f"{place}.scrollWidth > {place}.clientWidth")  # it scrolls by itself, the page does not
    assert value(page, "document.documentElement.scrollWidth <= 390")
    show(page, 1280, 900)
    more = "DEFINE GPM N ON S { ?house :off ?n }\n  DEFINE GPM M ON S { ?house :lock ?m }\n  DEFINE GPM B"
    write(page, GOOD.replace("SEQ(A; B)", "SEQ(A; (N; M)!; B)").replace("DEFINE GPM B", more), "spaseq", "groups")
    click(page, "register")
    until(page, "document.querySelector('#automaton .guard')?.textContent.trim() === 'no N then M'")


def _axe(driver: WebDriver, part: str | None = None) -> list[str]:
    """What axe-core finds against the rules of accessibility, in the page or a part: rule, element, why."""
    if not value(driver, "'axe' in window"):
        driver.execute_script(files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8"))
    found = driver.execute_async_script(
        "const [part, done] = arguments;"
        "axe.run(part ?? document, { resultTypes: ['violations'] }).then(found => done(found.violations))",
        part,
    )
    return [f"{rule['id']} {node['target']}: {node['failureSummary']}" for rule in found for node in rule["nodes"]]


@pytest.mark.parametrize(
    "shown",
    [
        [(1400, "light"), (390, "dark")],
        pytest.param([(1400, "dark"), (390, "light")], marks=pytest.mark.full),
    ],
    ids=["each width and scheme", "the other way round"],
)
def test_axe_finds_nothing(page: WebDriver, shown: list[tuple[int, Scheme]]) -> None:
    _guided(page)
    page.execute_script("document.querySelector('#matches tbody button').click()")
    until(page, "document.querySelectorAll('#detail .subject').length")
    _values(page, "pred:price")
    click(page, "why")
    until(page, "document.querySelector('#past .verdict')", 60)
    for width, scheme in shown:
        show(page, width, 900, scheme)
        until(page, f"innerWidth === {width} && matchMedia('(prefers-color-scheme: {scheme})').matches")
        until(page, "document.querySelector('#timeline svg').clientWidth <= innerWidth")  # drawn for this width
        assert _axe(page) == [], (width, scheme)
        assert value(page, f"document.documentElement.scrollWidth <= {width}"), (width, scheme)


def test_a_price_is_drawn_under_the_match_that_it_made(page: WebDriver) -> None:
    _guided(page)
    page.execute_script("document.querySelector('#matches tbody button').click()")
    until(page, "document.querySelectorAll('#detail mark').length === 3")  # a price of three events was matched
    _values(page, "pred:price")
    until(page, "document.querySelectorAll('#series .mark').length === 3")
    assert value(page, "document.querySelectorAll('#series .line').length") == 1  # of the company of the match
    heights = "[...document.querySelectorAll('#series .mark')].map(each => Number(each.getAttribute('cy')))"
    _, low, back = value(page, heights)
    assert low > back  # downwards is less: the V
    points = "document.querySelector('#series .line').getAttribute('points').split(' ').length"
    assert value(page, points) == 230
    _values(page, "none")
    assert value(page, "document.getElementById('series').hidden")


def test_values_of_several_things_have_a_scale_each(page: WebDriver) -> None:
    script = """
    const done = arguments[0];
    import('/ui/js/draw/series.js').then(({ series }) => {
      const points = (values) => values.map((value, i) => ({ time: i, value }));
      const lines = [{ name: 'a', points: points([1, 2, 3]) }, { name: 'b', points: points([1000, 3000, 2000]) }];
      const marks = [{ name: 'b', time: 1, value: 3000, lane: 0, gpm: 'B' }];
      const made = series({ lines, marks, from: 0, to: 2, left: 60, width: 600 });
      done(made.map((svg) => [svg.getAttribute('aria-label'), svg.querySelectorAll('.mark').length]));
    });"""
    made = page.execute_async_script(script)
    assert made == [["Values of a from 1 to 3", 0], ["Values of b from 1,000 to 3,000", 1]]


def test_an_empty_answer_says_how_to_go_on(page: WebDriver) -> None:
    _run(page, "SELECT ?s { ?s <urn:nothing> ?o }")
    until(page, "document.querySelector('#result .link')")
    page.execute_script("document.querySelector('#result .link').click()")
    assert until(page, "document.getElementById('data').open")
    page.execute_script("document.getElementById('data').close()")


def test_rows_that_came_in_lead_to_a_query_that_runs(page: WebDriver) -> None:
    rows = "time,machine,temp\\n" + "".join(f"2025-03-02T10:0{i}:00Z,press,{90 + i}\\n" for i in range(3))
    click(page, "put-data")
    page.execute_script(
        "const [text] = arguments, at = (id) => document.getElementById(id);"
        "at('data-format').value = 'text/csv'; at('data-iri').value = 'http://example.org/first/rows';"
        "at('data-text').value = text; at('data-format').dispatchEvent(new Event('change'));",
        rows.replace("\\n", "\n"),
    )
    until(page, "document.querySelector('#mapping-tried .card-event')")
    click(page, "data-send")
    until(page, "document.getElementById('first-query')")
    click(page, "first-query")
    until(page, f"{EDITOR}.querySelector('.cm-content').innerText.includes('?second > ?first')")
    click(page, "run")
    until(page, "document.getElementById('result-title').textContent === '2 rows'", 60)


def test_a_stretch_of_time_is_looked_at_by_dragging_and_by_buttons(page: WebDriver) -> None:
    _guided(page)
    until(page, "document.querySelectorAll('#timeline .bar').length > 20")
    until(page, "document.querySelector('#automaton .state')")  # above it: what comes later moves what is below
    all_bars = value(page, "document.querySelectorAll('#timeline .bar').length")
    drawing = page.find_element("css selector", "#timeline svg")
    ActionChains(page).move_to_element_with_offset(drawing, -200, -40).click_and_hold().move_by_offset(
        150, 0
    ).release().perform()
    words = until(page, "document.getElementById('drawn').textContent")
    some = value(page, "document.querySelectorAll('#timeline .bar').length")
    assert 0 < some < all_bars and words == f"{some} in this stretch"
    click(page, "zoom-out")
    until(page, f"document.querySelectorAll('#timeline .bar').length > {some}")
    click(page, "whole")
    until(page, f"document.querySelectorAll('#timeline .bar').length === {all_bars}")
    assert value(page, "document.getElementById('whole').disabled")


XSD = "http://www.w3.org/2001/XMLSchema#"
MANY = f"""PREFIX : <http://example.org/>
SELECT ?n WITHIN 1 HOUR SLIDING FROM STREAM S <{STREAM}/many>
WHERE {{ SEQ(A) DEFINE GPM A ON S {{ ?house :n ?n }} }}"""


def test_twelve_thousand_matches_are_densities_and_pages(page: WebDriver, address: str) -> None:
    write(page, MANY, "spaseq", "many")
    click(page, "register")
    until(page, "document.getElementById('query-name').textContent === 'many'")
    time_of = "<http://www.w3.org/ns/prov#generatedAtTime>"
    lines = "".join(
        f'<urn:h> <http://example.org/n> "{n}"^^<{XSD}integer> <urn:e{n}> .\n'
        f'<urn:e{n}> {time_of} "2026-01-01T{n // 3600:02}:{n // 60 % 60:02}:{n % 60:02}Z"^^<{XSD}dateTime> .\n'
        for n in range(12_001)
    )
    path = f"/streams/{quote(STREAM + '/many', safe='')}"
    assert ask(address, "POST", path, [("content-type", "application/n-quads")], lines.encode()).status == 200
    until(page, "document.getElementById('match-count').textContent === '12,001 so far'", 60)
    columns = "[...document.querySelectorAll('#timeline .dense')].flatMap(each => each.getAttribute('d').match(/M/g))"
    until(page, f"{columns}.length > 100")
    page.execute_script(
        "const column = document.querySelector('#timeline .dense'), { left, width } = column.getBoundingClientRect();"
        "column.dispatchEvent(new PointerEvent('pointermove', { bubbles: true, clientX: left + width / 2 }))"
    )
    assert value(page, "/^[1-9]\\d* matches$/.test(document.querySelector('#timeline title').textContent)")
    assert value(page, "document.querySelectorAll('#timeline *').length") < 100
    page.refresh()  # what was found before is read in parts
    until(page, "document.querySelector('[data-query=many]')")
    page.execute_script("document.querySelector('[data-query=many]').click()")
    first_row = "document.querySelector('#matches tbody tr')?.dataset.id"
    until(page, f"{first_row} === '12001'", 60)
    click(page, "older")
    until(page, f"{first_row} === '11901'")
    click(page, "oldest")  # which the page does not hold
    until(page, f"{first_row} === '100'")
    assert value(page, "document.getElementById('oldest').disabled")
    page.execute_script(
        "const box = document.getElementById('go-to'); box.value = '1234'; box.dispatchEvent(new Event('change'))"
    )
    until(page, f"{first_row} === '1234'")
    until(page, "document.querySelector('#matches .chosen')?.dataset.id === '1234'")
    click(page, "newer")
    until(page, f"{first_row} === '1334'")
    click(page, "newest")
    until(page, f"{first_row} === '12001'")


def _values(driver: WebDriver, name: str) -> None:
    """Choose what is drawn under the timeline."""
    box = "document.getElementById('values')"
    until(driver, f"[...{box}.options].some(each => each.text === '{name}')")
    driver.execute_script(
        f"const box = {box}; box.value = [...box.options].find(each => each.text === '{name}').value;"
        "box.dispatchEvent(new Event('change'))"
    )


def _run(driver: WebDriver, text: str) -> None:
    write(driver, text, "sparql")
    driver.execute_script("document.getElementById('result-title').textContent = ''")
    click(driver, "run")
    until(driver, "document.getElementById('result-title').textContent")


def _view(driver: WebDriver, name: str) -> None:
    driver.execute_script(
        f"[...document.querySelectorAll('#result-views button')].find(each => each.textContent === '{name}').click()"
    )


def test_rows_are_sorted_paged_drawn_and_saved(page: WebDriver, tmp_path: Path) -> None:
    values = " ".join(f"({n} {n * n % 251} 'p{n}, \"x\"' {50 + n / 1000} {8 - n / 1000})" for n in range(230))
    _run(page, f"SELECT ?n ?square ?name ?lat ?lon {{ VALUES (?n ?square ?name ?lat ?lon) {{ {values} }} }}")
    assert value(page, "document.getElementById('result-title').textContent") == "230 rows"
    column = "[...document.querySelectorAll('#result tbody tr')].map(row => row.cells[{}].textContent)"
    assert value(page, column.format(0)) == [str(n) for n in range(100)]
    page.execute_script("document.querySelectorAll('#result .sort')[1].click()")
    squares = sorted(n * n % 251 for n in range(230))
    assert value(page, column.format(1)) == [str(n) for n in squares[:100]]
    page.execute_script("document.querySelectorAll('#result .sort')[1].click()")
    assert value(page, column.format(1)) == [str(n) for n in squares[:-101:-1]]
    page.execute_script("[...document.querySelectorAll('#result .tools button')].at(-1).click()")
    assert value(page, "document.querySelector('#result .tools .muted').textContent") == "rows 101 to 200"
    _view(page, "Chart")
    assert value(page, "document.querySelectorAll('#result .column').length") == 60
    _view(page, "Map")
    assert value(page, "document.querySelectorAll('#result .place').length") == 230
    assert _axe(page, "#result-part") == []
    page.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)})
    _view(page, "CSV")
    for _ in range(100):
        if (tmp_path / "result.csv").exists():
            break
        time.sleep(0.05)
    with (tmp_path / "result.csv").open(newline="") as file:
        rows = list(csv.reader(file))
    assert len(rows) == 231 and rows[0] == ["n", "square", "name", "lat", "lon"]
    assert rows[230][2] == 'p229, "x"'


def test_a_graph_is_drawn(page: WebDriver) -> None:
    _run(page, "CONSTRUCT { <urn:a> <urn:knows> <urn:b> . <urn:b> <urn:name> 'Bea' } {}")
    assert value(page, "document.querySelector('#result pre').textContent.includes('Bea')")
    _view(page, "Drawing")
    until(page, "document.querySelectorAll('#result .node').length === 3")
    assert value(page, "document.querySelectorAll('#result .arrow').length") == 2


def test_a_result_says_what_it_is_not_drawn_from(page: WebDriver) -> None:
    _run(page, "SELECT ?x { VALUES ?x { 'a' 'b' } }")
    views = "[...document.querySelectorAll('#result-views button')].map(each => each.textContent)"
    assert value(page, views) == ["CSV", "JSON"]  # neither numbers nor places
    _run(page, "SELECT ?x { VALUES ?x { } }")
    assert value(page, "document.getElementById('result-title').textContent") == "0 rows"


def test_data_is_put_in_as_events_and_as_facts(page: WebDriver, address: str) -> None:
    click(page, "put-data")
    page.execute_script("document.getElementById('data-iri').value = 'http://example.org/typed'")
    page.find_element("id", "data-text").send_keys("[] <http://example.org/value> 42 .")
    click(page, "data-send")
    until(
        page,
        "document.getElementById('notice').textContent === 'One event is accepted. Write a query over this stream.'",
    )
    assert b"42" in ask(address, "GET", f"/streams/{quote('http://example.org/typed', safe='')}/events").body
    click(page, "put-data")
    page.find_element("id", "data-text").clear()
    page.find_element("id", "data-text").send_keys("not turtle")
    click(page, "data-send")
    until(page, "document.getElementById('data-said').dataset.kind === 'bad'")  # and what was written is still there
    assert value(page, "document.getElementById('data-text').value") == "not turtle"
    assert _axe(page, "#data") == []
    page.execute_script("document.getElementById('data').close()")
    assert len(complaints(page)) == 1  # of the browser, about the refusal


def test_a_file_that_is_dropped_is_a_graph_of_the_knowledge_base(page: WebDriver) -> None:
    page.execute_script(
        "const files = new DataTransfer(); files.items.add(new File(['<urn:dropped> <urn:is> 7 .'], 'kb.ttl'));"
        "document.dispatchEvent(new DragEvent('drop', { dataTransfer: files, bubbles: true, cancelable: true }))"
    )
    until(page, "document.getElementById('data-text').value.includes('dropped')")
    assert value(page, "document.getElementById('data-kb').checked")
    page.execute_script("document.getElementById('data-graph').value = 'urn:g'")
    click(page, "data-send")
    until(page, "document.getElementById('notice').textContent === 'Added to the knowledge base, graph urn:g.'")
    _run(page, "SELECT ?o { GRAPH <urn:g> { <urn:dropped> <urn:is> ?o } }")
    assert value(page, "document.querySelector('#result td').textContent") == "7"


def test_drafts_stand_in_tabs_that_outlive_a_reload(page: WebDriver, address: str) -> None:
    write(page, "SELECT ?first {}", "sparql")
    write(page, "SELECT ?second {}", "sparql")
    tabs = "document.querySelectorAll('#tabs .tab [aria-pressed]').length"
    before = value(page, tabs)
    page.execute_script("document.querySelector('#tabs .tab [aria-pressed]').click()")
    open_page(page, address)
    assert value(page, tabs) == before > 1
    page.execute_script("[...document.querySelectorAll('#tabs .tab [aria-pressed]')].at(-1).click()")
    text = f"{EDITOR}.querySelector('.cm-content').textContent"
    until(page, f"{text} === 'SELECT ?second {{}}'")
    page.execute_script("[...document.querySelectorAll('#tabs [aria-label^=Close]')].at(-1).click()")
    assert value(page, tabs) == before - 1


def test_every_template_is_a_query_without_errors(page: WebDriver, address: str) -> None:
    templates = page.execute_async_script(
        "import('/ui/js/editor/templates.js').then(part => arguments[0](part.TEMPLATES))"
    )
    assert {"sparql", "spaseq", "ceql", "rspql", "epsparql"} == set(templates)
    for language, texts in templates.items():
        for name, text in texts.items():
            kind = [("content-type", f"application/{language}-query")]
            found = json.loads(ask(address, "POST", "/check", kind, text.encode()).body)["findings"]
            assert [each for each in found if each["severity"] == "error"] == [], (language, name)
    page.execute_script(
        "const box = document.getElementById('language'); box.value = 'spaseq'; box.dispatchEvent(new Event('change'));"
        "const list = document.getElementById('template'); list.value = list.options[1].value;"
        "list.dispatchEvent(new Event('change'))"
    )
    until(page, f"{EDITOR}.querySelector('.cm-content').textContent.includes('SEQ(A; B)')")


def test_a_query_is_registered_with_its_options_and_changed_after_a_preview(page: WebDriver, address: str) -> None:
    write(page, GOOD, "spaseq", "versions")
    page.execute_script(
        "document.getElementById('option-lateness').value = '5s'; document.getElementById('option-budget').value = '7'"
    )
    click(page, "register")
    until(page, "document.getElementById('query-name').textContent === 'versions'")
    record = json.loads(ask(address, "GET", "/queries/versions").body)
    assert (record["lateness"], record["max_state_bytes"]) == ("5s", 7 * 1048576)
    write(page, GOOD.replace("?high > ?low", "?high > 2 * ?low"), "spaseq", "versions")
    click(page, "compare")
    until(page, "document.getElementById('deploy').hidden === false", 60)
    click(page, "deploy")
    until(page, "document.getElementById('notice').textContent.startsWith('versions has the new text')")
    record = json.loads(ask(address, "GET", "/queries/versions").body)
    assert "2 * ?low" in record["text"] and record["lateness"] == "5s"
    assert value(page, "document.getElementById('deploy').hidden")


WATTS = ((1, "h", 10), (2, "g", 5), (3, "h", 20), (4, "h", 30), (6, "g", 50))


def test_the_automaton_is_looked_at_as_it_was(page: WebDriver, address: str) -> None:
    stream = f"{STREAM}/states"
    write(page, GOOD.replace(STREAM, stream), "spaseq", "past-states")
    click(page, "register")
    until(page, "document.getElementById('query-name').textContent === 'past-states'")
    for second, house, watts in WATTS:
        path, text = f"/streams/{quote(stream, safe='')}?time={second}000000", f"<urn:{house}> <{EX}watts> {watts} ."
        assert ask(address, "POST", path, [("content-type", "text/turtle")], text.encode()).status == 200
    until(page, "document.querySelector('#automaton .state') && document.querySelector('#timeline .bar')")
    click(page, "past-states")
    words = until(page, "document.getElementById('moment-words').textContent", 60)
    assert words == "1970-01-01 00:00:06 · 3 matches until then"
    page.execute_script("document.getElementById('moment').focus()")
    ActionChains(page).send_keys(Keys.HOME, Keys.ARROW_RIGHT).perform()
    waiting = "document.querySelector('#automaton .count').textContent"
    until(page, f"{waiting} === '2 waiting'")
    until(page, "document.querySelector('#timeline .now')")
    ActionChains(page).send_keys(Keys.HOME).perform()
    until(page, f"{waiting} === '1 waiting'")
    assert _axe(page, "#query") == []
    click(page, "play")
    until(
        page,
        "document.getElementById('moment').value === '4' && document.getElementById('play').textContent === 'Play'",
    )
    click(page, "now")
    until(page, f"{waiting} === '2 waiting' && document.getElementById('states').hidden")
    page.execute_script("document.querySelector('#matches tbody button').click()")
    until(page, "document.querySelector('#detail .instant button')")
    page.execute_script("document.querySelector('#detail .instant button').click()")
    words = until(page, "document.querySelector('#detail .instant h4')?.textContent", 60)
    assert words.endswith("1 to 1 of 1")
    assert value(page, "document.querySelectorAll('#detail .instant tbody tr').length") == 1
    assert _axe(page, "#detail") == []


def test_rows_are_put_in_by_a_mapping_that_is_suggested_and_tried(page: WebDriver, address: str) -> None:
    click(page, "put-data")
    page.execute_script(
        "document.getElementById('data-iri').value = 'http://example.org/rows';"
        "const format = document.getElementById('data-format'); format.value = 'text/csv';"
        "format.dispatchEvent(new Event('change'));"
        "const text = document.getElementById('data-text');"
        "text.value = 'id,temp,code,ts\\n7,21.5,007,1714557600\\n8,22.5,010,1714557601';"
        "text.dispatchEvent(new Event('input'))"
    )
    click(page, "mapping-suggest")
    told = until(
        page,
        "document.querySelector('#mapping-tried .card-event') && document.getElementById('mapping-tried').innerText",
    )
    assert "left out" not in told and "21.5" in told
    suggested = json.loads(value(page, "document.getElementById('mapping-text').value"))
    assert suggested["predicates"]["ex:code"] == "code"
    assert _axe(page, "#data") == []
    page.execute_script(
        "const box = document.getElementById('mapping-text');"
        "box.value = box.value.replace('xsd:decimal', 'xsd:string');"
        "box.dispatchEvent(new Event('input'))"
    )
    until(page, "document.getElementById('mapping-text').value.includes('xsd:string')")
    click(page, "data-send")
    until(
        page, "document.getElementById('notice').textContent === 'Events: 2 accepted. Write a query over this stream.'"
    )
    record = json.loads(ask(address, "GET", f"/streams/{quote('http://example.org/rows', safe='')}").body)
    assert (record["next"], record["mapping"]["predicates"]["ex:temp"]["datatype"]) == (2, "xsd:string")


def test_sinks_are_added_shown_and_deleted(page: WebDriver, address: str) -> None:
    write(page, GOOD, "spaseq", "delivered")
    page.execute_script(
        "const kind = document.getElementById('option-sink-kind');"
        "kind.value = 'file'; kind.dispatchEvent(new Event('change'));"
        "document.getElementById('option-sink-id').value = 'log';"
        "document.getElementById('option-sink-path').value = 'delivered.jsonl'"
    )
    click(page, "register")
    until(page, "document.querySelector('#sinks tbody td')?.textContent === 'log'")
    (sink,) = json.loads(ask(address, "GET", "/queries/delivered/sinks").body)["sinks"]
    assert (sink["kind"], sink["path"], sink["state"]) == ("file", "delivered.jsonl", "delivering")
    click(page, "add-sink")
    assert _axe(page, "#sink") == []
    click(page, "sink-send")
    until(page, "document.getElementById('sink-said').textContent === 'Give the sink a name.'")
    page.execute_script(
        "document.getElementById('sink-id').value = 'chat'; document.getElementById('sink-url').value = 'http://127.0.0.1:1/x'"
    )
    click(page, "sink-send")
    until(page, "document.getElementById('sink-said').textContent.includes('--sink-host')")  # what nobody has allowed
    page.execute_script("document.getElementById('sink').close(); window.confirm = () => true")
    page.execute_script("document.querySelector('#sinks tbody button').click()")
    until(page, "!document.getElementById('no-sinks').hidden")
    assert len(complaints(page)) == 1  # of the browser, about the refusal


def test_the_http_api_is_a_page_that_people_read(driver: WebDriver, address: str) -> None:
    show(driver, 390, 844)
    open_page(driver, f"{address}/ui/api.html")
    names = value(driver, "[...document.querySelectorAll('.path')].map(each => each.textContent)")
    assert "/streams/{stream}" in names and len(names) > 20
    driver.execute_script("document.querySelectorAll('details').forEach(each => { each.open = true; })")
    assert _axe(driver) == [] and complaints(driver) == []
    assert value(driver, "document.documentElement.scrollWidth <= 390")


STORIES = [
    story["name"] for story in json.loads(files("oxiseq.page").joinpath("static/gallery.json").read_text())["stories"]
]


@pytest.mark.parametrize(
    "stories", [STORIES[:1], pytest.param(STORIES, marks=pytest.mark.full)], ids=["the first", "all"]
)
@pytest.mark.slow
def test_every_story_of_the_gallery_finds_a_match_with_one_click(page: WebDriver, stories: list[str]) -> None:
    assert len(STORIES) > 12
    seen = []
    reduced = {"features": [{"name": "prefers-reduced-motion", "value": "reduce"}]}  # its events come without pauses
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", reduced)
    click(page, "gallery-open")
    until(page, f"document.querySelectorAll('#gallery-stories li').length === {len(STORIES)}")
    assert _axe(page, "#gallery") == []
    for name in stories:
        page.execute_script(
            "document.getElementById('gallery').open || document.getElementById('gallery-open').click()"
        )
        until(page, f"document.querySelector('[data-story={name}]') && document.getElementById('gallery').open")
        page.execute_script(f"window.confirm = () => true; document.querySelector('[data-story={name}]').click()")
        until(page, "document.getElementById('notice').dataset.kind", 180)  # its kernels may have to be compiled
        assert value(page, "document.getElementById('notice').dataset.kind") == "good", name
        until(page, f"document.getElementById('query-name').textContent === 'example-{name}'")
        rows = f"document.querySelector('[data-query=example-{name}] .figure b')?.textContent !== '0'"
        try:
            until(page, rows, 20)
        except TimeoutException:
            continue
        seen.append(name)
        page.execute_script("document.getElementById('notice').dataset.kind = ''")
    assert seen == stories
