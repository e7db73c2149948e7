"""The pages of `packtok explore` in a real browser: accessibility, keyboard, phone, dark mode, no JavaScript.

Screenshots are written to the folder that ``PACKTOK_SCREENSHOTS`` names; the default is
``target/screenshots``.
"""

from __future__ import annotations

import base64
import importlib.util
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from explore_site import Served, make_base, served, write_corpus, write_metadata
from extent import extent
from repository import ROOT

import packtok
from packtok.catalog.index import build_index
from packtok.data.run import open_run
from packtok.explore.site import site_of_file, site_of_folder

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
webdriver = pytest.importorskip("selenium.webdriver")
from selenium.common.exceptions import StaleElementReferenceException  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402
from selenium.webdriver.support.ui import WebDriverWait  # noqa: E402

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(
    CHROMIUM is None or DRIVER is None, reason="needs Debian's packages chromium and chromium-driver"
)
SCREENSHOTS = Path(os.environ.get("PACKTOK_SCREENSHOTS") or ROOT / "target" / "screenshots")
RIGHT_TO_LEFT = "\u0645\u0631\u062d\u0628\u0627 \u0628\u0627\u0644\u0639\u0627\u0644\u0645"
DIVIDED = "a\U0001f9a9b"
GPT2 = "text/stories/tokenized/gpt2/all/tokenized.pbin"
PAGES = {
    "search": "/?q=s&sort=name",
    "raw_dataset": "/dataset/text/stories",
    "dataset": "/dataset/text/stories/tokenized/gpt2/all",
    "file": f"/file/{GPT2}",
    "document": f"/documents/{GPT2}?document=0",
    "compare": f"/documents/{GPT2}?document=1&compare=cl100k_base&counts=1",
    "table": f"/table/{GPT2}?sort=longest&least=12",
    "kinds": f"/kinds/{GPT2}?compare=cl100k_base&compare=o200k_base",
    "parts": f"/documents/{GPT2}?document=24&from=20&window=20",
    "item": f"/items/{GPT2}?context_length=96&packing=best_fit&item=2",
    "dataset_item": "/items/text/stories/tokenized/cl100k_base/two?context_length=300&item=1&packing=chunks",
    "aligned_item": f"/items/{GPT2}?context_length=48&item=3&labels=aligned",
    "batch": "/batch?step=1",
    "batch_row": "/batch?step=1&row=1",
    "record": f"/record/{GPT2}?document=1",
    "record_columns": "/record/web/table/table.pbin?document=1",
    "rows": "/rows/web/table",
    "playground": "/playground?compare=cl100k_base",
    "profile": f"/profile/{GPT2}",
    "find": f"/find/{GPT2}?text=THE&ignore_case=1",
    "error": "/documents/none.pbin",
}
# What a user pastes into the playground.
PASTED = "The naïve café serves Grüße 🙂\n\tdef f(x): return x <|endoftext|>"
# Width, height, and whether it is a phone; dark mode.
SCREENS = {
    "desktop": (1280, 900, False, False),
    "phone": (360, 740, True, False),
    "dark": (1280, 900, False, True),
    "dark_phone": (360, 740, True, True),
}


class Browser:
    """Chromium with the settings and helpers of the tests."""

    def __init__(self, driver: Any, server: Served) -> None:
        self.driver = driver
        self.server = server

    def screen(self, name: str) -> None:
        width, height, is_phone, is_dark = SCREENS[name]
        metrics = {
            "width": width,
            "height": height,
            "deviceScaleFactor": 1,
            "mobile": is_phone,
        }
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"}
        motion = {"name": "prefers-reduced-motion", "value": "reduce"}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme, motion]})

    def open(self, path: str) -> None:
        """Opens a page; into the playground, it pastes a text."""
        self.driver.get(self.server.url + path)
        if path.startswith("/playground"):
            self.run("document.getElementById('text').value = arguments[0]", PASTED)
            self.element(".playground button").click()
            self.wait(lambda _: self.driver.find_elements(By.ID, "t0"))

    def run(self, script: str, *arguments: Any) -> Any:
        return self.driver.execute_script(script, *arguments)

    def element(self, selector: str) -> Any:
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def press(self, *keys: str) -> None:
        webdriver.ActionChains(self.driver).send_keys(*keys).perform()

    def focused(self) -> str:
        """Returns the id, or else the text, of the element with the focus."""
        script = "const a = document.activeElement; return a.id || a.textContent.trim();"
        return str(self.run(script))

    def wait(self, condition: Any) -> Any:
        # The page may replace the element while the condition reads it.
        ignored = [StaleElementReferenceException]
        return WebDriverWait(self.driver, 60, ignored_exceptions=ignored).until(condition)

    def screenshot(self, name: str) -> None:
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        image = self.driver.execute_cdp_cmd("Page.captureScreenshot", {})
        (SCREENSHOTS / f"{name}.png").write_bytes(base64.b64decode(image["data"]))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    base = make_base(tmp_path_factory.mktemp("garden") / "garden")
    for i, (name, text) in enumerate(
        [
            ("Starlight Web", "Filtered web pages in *English*, deduplicated by paragraph."),
            ("Sourcebook", "Source code with permissive licences, one file per document."),
            ("Statutes of Europe", "Laws and regulations, aligned by article."),
        ]
    ):
        write_metadata(base / "web" / f"set-{i}", name=name, description=text, date_downloaded="2025-03-01")
    folder = write_metadata(base / "web" / "table", name="A table").parent
    columns = {
        "text": ["A plain text", f"{RIGHT_TO_LEFT}\nSecond line", DIVIDED],
        "messages": [[{"role": "user", "content": "word " * 40}], None, []],
        "address": ["https://example.org/" + "x" * 300, None, "-"],
    }
    pq.write_table(pa.table(columns), folder / "table.parquet")
    packtok.pack(input=folder / "table.parquet", output=folder / "table.pbin", tokenizer="gpt2", origins=True)
    build_index(base)
    reject = {
        "source": "raw/first.jsonl",
        "line": 3,
        "offset_bytes": 29,
        "len_bytes": 17,
        "reason": "field .text is missing",
    }
    (base / f"{GPT2}.rejects.jsonl").write_text(json.dumps(reject) + "\n")
    sources = {str(base / GPT2): 2, str(base / "text/stories/tokenized/cl100k_base/two"): 1}
    dataset = {"type": "Mixture", "sources": sources, "context_length": 96, "packing": "best_fit"}
    config = base.parent / "run.yaml"
    loader = {"global_batch_size": 4}
    config.write_text(
        json.dumps({"dataset": {**dataset, "document_mask": "compact", "pad_token_id": 0}, "loader": loader})
    )
    run = open_run(str(config), scratch_dir=base.parent / "plans")
    with served(site_of_folder(base).with_run(run)) as running:
        yield running


@pytest.fixture(scope="module")
def browser(server: Served) -> Iterator[Browser]:
    options = webdriver.ChromeOptions()
    options.binary_location = str(CHROMIUM)
    # As root, Chromium has no sandbox of its own.
    for flag in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(str(DRIVER)))
    try:
        yield Browser(driver, server)
    finally:
        driver.quit()


@pytest.fixture(scope="module")
def axe() -> str:
    """Returns the script of axe-core, which this package contains; it is not imported."""
    spec = importlib.util.find_spec("axe_playwright_python")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("needs axe-playwright-python, which contains axe-core")
    (script,) = Path(next(iter(spec.submodule_search_locations))).rglob("axe.min.js")
    return script.read_text(encoding="utf-8")


@pytest.mark.parametrize("screen", extent([*SCREENS], ["desktop", "dark_phone"]))
def test_pages_have_no_serious_finding_and_fit_the_screen(browser: Browser, axe: str, screen: str) -> None:
    faults = []
    every = extent(1, 2)
    # In CI, each page is opened on one of two screens.
    for name, path in [*PAGES.items()][[*SCREENS].index(screen) % every :: every]:
        browser.screen(screen)
        browser.open(path)
        browser.screenshot(f"{name}_{screen}")
        width = browser.run("return document.documentElement.scrollWidth")
        if width > SCREENS[screen][0]:
            faults.append(f"{name}: {width} pixels wide")
        for details in browser.driver.find_elements(By.CSS_SELECTOR, "details:not([open])"):
            browser.run("arguments[0].open = true", details)
        # The driver runs the script, because the policy of the page does not allow scripts of others.
        browser.run(axe)
        result = browser.driver.execute_async_script(
            "const done = arguments[0]; axe.run(document, {resultTypes: ['violations']}).then(done);"
        )
        assert len(result["passes"]) > 15
        for finding in result["violations"]:
            if finding["impact"] in ("moderate", "serious", "critical"):
                places = [node["html"][:200] for node in finding["nodes"][:3]]
                faults.append(f"{name}: {finding['id']}: {finding['help']}: {places}")
    assert not faults, "\n".join(faults)


def test_nothing_is_loaded_from_elsewhere_and_no_policy_is_violated(browser: Browser) -> None:
    browser.screen("desktop")
    browser.driver.get_log("performance")
    browser.driver.get_log("browser")
    for path in PAGES.values():
        browser.open(path)
    requests = [
        json.loads(entry["message"])["message"]["params"]["request"]["url"]
        for entry in browser.driver.get_log("performance")
        if '"Network.requestWillBeSent"' in entry["message"]
    ]
    assert len(requests) >= len(PAGES)
    assert {url for url in requests if not url.startswith(browser.server.url)} == set()
    remarks = [entry["message"] for entry in browser.driver.get_log("browser")]
    # The page about an error logs one remark.
    assert [remark for remark in remarks if "none.pbin" not in remark] == []


def test_search_follows_what_is_typed_and_keeps_the_focus(browser: Browser) -> None:
    browser.screen("desktop")
    browser.open("/")
    browser.element("#q").send_keys("statut")
    browser.wait(lambda _: browser.element("#total").text == "1 dataset")
    assert browser.focused() == "q"
    assert browser.driver.current_url.endswith("/?q=statut")
    assert browser.element("#status").get_attribute("textContent") == "1 dataset"
    assert browser.element(".results h3").text == "Statutes of Europe"
    browser.element("#q").clear()
    browser.element("#q").send_keys("s")
    browser.wait(lambda _: browser.element("#status").get_attribute("textContent") == "6 datasets")
    box = browser.element('input[name="tokenizer"][value="gpt2"]')
    box.send_keys(Keys.SPACE)
    browser.wait(lambda _: browser.element("#total").text == "1 dataset")
    assert browser.focused().startswith("tokenizer-")
    browser.driver.refresh()
    assert browser.element("#total").text == "1 dataset"
    assert browser.element('input[name="tokenizer"][value="gpt2"]').is_selected()


def test_keyboard_reaches_content_and_moves_between_tokens(browser: Browser) -> None:
    browser.screen("desktop")
    browser.open(PAGES["document"])
    browser.press(Keys.TAB)
    assert browser.focused() == "Skip to the content"
    browser.press(Keys.ENTER)
    assert browser.focused() == "main"
    for _ in range(40):
        browser.press(Keys.TAB)
        if browser.focused() == "t0":
            break
    assert browser.focused() == "t0"
    content_of_focus = "return getComputedStyle(document.activeElement, '::after').content"
    assert browser.run(content_of_focus).startswith('"token 0 · id 464 · 3 bytes: 54 68 65')
    browser.screenshot("focus_desktop")
    browser.press(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    assert browser.focused() == "t2"
    browser.press(Keys.ARROW_LEFT)
    assert browser.focused() == "t1"
    outline = browser.run("return getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    browser.press(Keys.ARROW_DOWN)
    assert int(browser.focused()[1:]) > 1
    browser.press(Keys.ARROW_UP)
    browser.press(Keys.END)
    assert browser.run(content_of_focus).startswith('"token ')
    assert " · EOD · " in browser.run(content_of_focus)
    browser.press(Keys.HOME)
    assert browser.focused() == "t0"
    # All tokens are one stop of the tab key.
    browser.press(Keys.TAB)
    assert not browser.focused().startswith("t")


def test_pointing_at_a_token_shows_its_id_and_bytes(browser: Browser) -> None:
    browser.screen("desktop")
    browser.open(PAGES["document"])
    webdriver.ActionChains(browser.driver).move_to_element(browser.element("#t1")).perform()
    content = browser.run("return getComputedStyle(document.getElementById('t1'), '::after').content")
    assert content.startswith('"token 1 · id 2,068 · 6 bytes: 20 71 75 69 63 6B')


def test_selected_text_is_the_text_of_the_document(browser: Browser) -> None:
    browser.screen("desktop")
    browser.open(PAGES["document"])
    text = browser.run(
        "getSelection().selectAllChildren(document.querySelector('.tokens'));return getSelection().toString()"
    )
    assert text == "The quick brown fox\njumps over\tthe lazy dog.<|endoftext|>"


@pytest.fixture(scope="module")
def unusual(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Returns the address of documents from right to left, of divided characters, and of many lines."""
    folder = tmp_path_factory.mktemp("unusual")
    texts = ["<|endoftext|>" + RIGHT_TO_LEFT + "\nplain", DIVIDED, "many lines of words " * 200]
    corpus = write_corpus(folder / "c.jsonl", texts)
    packtok.pack(input=corpus, output=folder / "a.pbin", tokenizer="gpt2")
    with served(site_of_file(folder / "a.pbin")) as running:
        yield f"{running.url}/documents/a.pbin"


def test_continued_character_is_copied_without_its_mark(browser: Browser, unusual: str) -> None:
    browser.screen("desktop")
    browser.driver.get(f"{unusual}?document=1")
    mark = "return getComputedStyle(document.querySelector('div.tokens i.r'), '::before').content"
    assert browser.run(mark).startswith('"+"')
    text = browser.run(
        "getSelection().selectAllChildren(document.querySelector('.tokens'));return getSelection().toString()"
    )
    assert text == DIVIDED + "<|endoftext|>"


@pytest.mark.parametrize("screen", ["desktop", "phone"])
def test_focused_token_is_above_the_bar_of_details(browser: Browser, unusual: str, screen: str) -> None:
    browser.screen(screen)
    browser.driver.get(f"{unusual}?document=2")
    browser.run("document.getElementById('t0').focus()")
    covered = """
        const token = document.activeElement, bar = getComputedStyle(token, '::after');
        const height = [bar.height, bar.paddingTop, bar.paddingBottom].map(parseFloat);
        return token.getBoundingClientRect().bottom - (innerHeight - height[0] - height[1] - height[2]);
    """
    tops = []
    for _ in range(24):
        browser.press(Keys.ARROW_DOWN)
        assert browser.run(covered) <= 0
        tops.append(browser.run("return scrollY"))
    assert tops[-1] > tops[0]


def test_text_from_right_to_left_is_laid_out_so_after_a_special_token(browser: Browser, unusual: str) -> None:
    browser.screen("desktop")
    browser.driver.get(unusual)
    browser.screenshot("right_to_left_desktop")
    style = "return getComputedStyle(document.querySelector('div.tokens'))"
    assert browser.run(f"{style}.direction") == "rtl"
    assert browser.run(f"{style}.unicodeBidi") == "plaintext"
    special, first, second, *_ = browser.run(
        "return [...document.querySelectorAll('.t[id]')].map((token) => token.getBoundingClientRect().left)"
    )
    assert special > first > second


def test_pairs_are_laid_out_in_the_direction_of_their_text(browser: Browser, unusual: str) -> None:
    browser.screen("desktop")
    browser.driver.get(unusual.replace("/documents/", "/items/") + "?context_length=64&packing=document")
    browser.screenshot("right_to_left_item_desktop")
    places = "return [...document.querySelectorAll('.pair')].map((pair) => pair.getBoundingClientRect().left)"
    special, first, second, *_ = browser.run(places)
    assert special > first > second
    # The label of a token is below it, and is not copied with the text.
    below = """
        const [token, label] = document.querySelector('.pair').children;
        return label.getBoundingClientRect().top - token.getBoundingClientRect().bottom;
    """
    assert browser.run(below) > -8
    text = browser.run(
        "getSelection().selectAllChildren(document.querySelector('.tokens'));return getSelection().toString()"
    )
    assert "".join(text.split()) == "".join(("<|endoftext|>" + RIGHT_TO_LEFT + "plain<|endoftext|>").split())


def test_copy_button_copies_the_command(browser: Browser) -> None:
    browser.screen("desktop")
    browser.driver.execute_cdp_cmd(
        "Browser.grantPermissions", {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]}
    )
    browser.open(PAGES["dataset"])
    button = browser.element(".copy")
    assert button.is_displayed()
    button.send_keys(Keys.ENTER)
    browser.wait(lambda _: browser.element("#status").get_attribute("textContent") == "Copied")
    copied = browser.driver.execute_async_script(
        "navigator.clipboard.readText().then(arguments[0], (error) => arguments[0](String(error)))"
    )
    assert copied == browser.element("#text-1").get_attribute("textContent")


def test_motion_is_reduced_where_it_is_asked_for(browser: Browser) -> None:
    browser.screen("desktop")
    browser.open(PAGES["dataset"])
    durations = browser.run(
        "return [...document.querySelectorAll('*')].map((node) => getComputedStyle(node).transitionDuration)"
    )
    assert {*durations} == {"0s"}


def test_pages_work_without_javascript(browser: Browser) -> None:
    browser.screen("phone")
    browser.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.open("/")
        # Typing the enter key sends the form.
        browser.element("#q").send_keys("statutes", Keys.ENTER)
        browser.wait(lambda _: browser.driver.current_url.count("q=statutes"))
        assert browser.element("#total").text == "1 dataset"
        browser.open("/")
        assert browser.element('input[name="tokenizer"][value="gpt2"]').is_displayed()
        browser.element('input[name="tokenizer"][value="gpt2"]').click()
        browser.element("button.without-script").click()
        browser.wait(lambda _: browser.driver.current_url.count("tokenizer=gpt2"))
        browser.element(".results h3 a").click()
        browser.wait(lambda _: browser.driver.current_url.count("/dataset/"))
        assert not browser.element(".copy").is_displayed()
        browser.element(".actions a").click()
        browser.wait(lambda _: browser.driver.current_url.count("/documents/"))
        # Without the script, the tab key goes through the tokens.
        browser.element("#t0").send_keys(Keys.TAB)
        assert browser.driver.switch_to.active_element.get_attribute("id") == "t1"
        browser.element('a[rel="next"]').click()
        browser.wait(lambda _: browser.driver.current_url.count("document=1"))
        browser.driver.get(f"{browser.server.url}/playground")
        browser.element("#text").send_keys("one two\n")
        browser.element(".playground button").click()
        browser.wait(lambda _: browser.driver.find_elements(By.ID, "t0"))
        ids = [token.get_attribute("id") for token in browser.driver.find_elements(By.CSS_SELECTOR, ".t[id]")]
        assert ids == ["t0", "t1", "t2"]
        assert browser.element("#text").get_attribute("value") == "one two\n"
    finally:
        browser.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def test_access_token_is_given_in_a_form(browser: Browser, tmp_path: Path) -> None:
    packtok.pack(
        input=write_corpus(tmp_path / "c.jsonl", ["a"]), output=tmp_path / "a.pbin", tokenizer="gpt2"
    )
    token = "a-long-token-for-tests-0123456789"
    with served(site_of_file(tmp_path / "a.pbin"), host="0.0.0.0", token=token) as server:
        browser.screen("desktop")
        browser.driver.get(f"{server.url}/documents/a.pbin?document=0")
        browser.screenshot("token_desktop")
        browser.element("#token").send_keys(token, Keys.ENTER)
        browser.wait(lambda _: browser.driver.find_elements(By.ID, "t0"))
        assert browser.driver.current_url == f"{server.url}/documents/a.pbin?document=0"
        assert browser.run("return document.cookie") == ""
