"""The page in a real browser: headless Chromium, a real server, the keyboard alone."""

import shutil

import pytest
from playwright.sync_api import expect, sync_playwright

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="needs a Chromium on the path"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # playwright's own
]


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield made
        made.close()


def wrong(message) -> bool:
    """An answer of 400 is what one of the tests is after; the browser notes it as an error."""
    return message.type == "error" and "status of 400" not in message.text


@pytest.fixture
def page(browser, server):
    """The page, in which nothing may go wrong in silence."""
    opened = browser.new_page()
    complaints = []
    opened.on("console", lambda message: complaints.append(message.text) if wrong(message) else None)
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    opened.goto(server.url)
    expect(opened.locator("#state")).to_have_text("serving")
    yield opened
    opened.close()
    assert complaints == []


def test_a_text_shows_where_each_token_came_from_by_keyboard_alone(page):
    page.focus("#prompt")
    page.keyboard.press("Control+A")
    page.keyboard.type("the then there the then there the then")
    page.fill("#most", "150")
    page.focus("#go")
    page.keyboard.press("Enter")
    expect(page.locator("#summary")).to_contain_text("tokens a second", timeout=30000)
    kinds = page.eval_on_selector_all("#text .token", "all => all.map(one => one.className)")
    assert len(kinds) <= 150
    assert {"token plain", "token bonus"} <= set(kinds)
    page.focus("#text")
    page.keyboard.press("End")
    page.keyboard.press("ArrowLeft")
    label = page.get_attribute("#text [aria-selected=true]", "aria-label")
    assert label
    assert label in page.inner_text("#round")
    bonus = page.locator("#text .bonus").first
    bonus.hover()
    shown = page.inner_text("#round")
    assert "drafted nodes accepted; then the bonus token" in shown
    assert "not taken" in shown or "accepted:" in shown


def test_what_the_server_counts_is_shown_as_it_changes(page, server):
    server.post(
        "/v1/completions", {"prompt": "the then the then", "max_tokens": 100, "temperature": 0, "ignore_eos": True}
    )
    expect(page.locator("#positions tbody tr").first).to_be_visible()
    expect(page.locator("#length")).to_contain_text(".")
    assert page.inner_text("#slots") == "0 of 3"
    assert page.inner_text("#serving") == "tiny"


def test_a_fault_is_told_in_words(page):
    page.fill("#most", "5000")
    page.click("#go")
    expect(page.locator("#summary")).to_contain_text("the context of this server")


def test_everything_that_can_be_used_has_a_name_for_screen_readers(page):
    unnamed = page.evaluate(
        """() => [...document.querySelectorAll('input, textarea, button, [role=listbox], [role=img], table')]
        .filter(one => !(one.labels?.length || one.textContent.trim() || one.getAttribute('aria-label')
            || one.getAttribute('aria-labelledby'))).map(one => one.id)"""
    )
    assert unnamed == []
    assert page.get_attribute("html", "lang") == "en"
    assert page.locator("h1").count() == 1


def test_model_text_is_never_taken_for_html(page, server):
    page.route("**/v1/chat/completions", lambda route: route.fulfill(body=EVIL, content_type="text/event-stream"))
    page.click("#go")
    page.wait_for_selector("#text .token")
    assert page.locator("#text img").count() == 0
    assert page.inner_text("#text") == "<img src=x onerror=alert(1)>"


EVIL = (
    'data: {"choices": [], "outrider": {"tokens": [{"token": 1, "text": "<img src=x onerror=alert(1)>", '
    '"kind": "plain", "depth": 0}], "round": {"anchor": "a", "nodes": [], "path": [], "bonus": "b", '
    '"seconds": 0.1}}}\n\n'
)
