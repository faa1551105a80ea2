"""A walk through the dashboard in a real browser, as somebody who breaks a cluster would take it."""

import os
import re
import shutil
from pathlib import Path

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@pytest.fixture(scope="module")
def browser():
    """The system's Chromium, without a window."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip(f"no browser is installed: none of {', '.join(BROWSERS)} is on the PATH")
    as_root = ["--no-sandbox"] if os.geteuid() == 0 else []
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=found, args=as_root)
        yield started
        started.close()


@pytest.fixture
def open_page(browser):
    """Opens pages; whatever they complain about fails the test."""
    complaints, contexts = [], []

    def opened(url, width=1280, height=800, scheme="light"):
        context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(60_000)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda answer: complaints.append(answer.text) if answer.type == "error" else None)
        page.on(
            "request",
            lambda requested: (
                None if requested.url.startswith("http://127.0.0.1:") else complaints.append(requested.url)
            ),
        )
        page.goto(url)
        page.complaints = complaints
        return page

    yield opened
    for context in contexts:
        context.close()
    assert complaints == []


@pytest.fixture
def picture(tmp_path):
    """Takes a picture, into the folder that RMQEMU_SCREENSHOTS names if it names one."""
    folder = Path(os.environ.get("RMQEMU_SCREENSHOTS") or tmp_path)
    folder.mkdir(parents=True, exist_ok=True)
    return lambda page, name: page.screenshot(path=folder / f"{name}.png")


def text(page, selector, expected):
    """Wait until an element says what is expected."""
    page.locator(selector).filter(has_text=re.compile(expected)).first.wait_for()


def gone(page, selector):
    page.locator(selector).first.wait_for(state="detached")


def select(page, *names):
    for name in names:
        page.locator(f'[data-node="{name}"]').click()


def do(page, verb):
    page.locator(f'#actions [data-verb="{verb}"]').click()


def test_somebody_breaks_a_cluster_watches_it_and_heals_it(fresh, open_page, picture):
    page = open_page(f"{fresh.address}#{fresh.token}")
    text(page, "#connection", "^live$")
    assert "#" not in page.url  # the token does not stay where others see it
    for name in ("ns-1", "broker-a", "broker-b", "consumer-1", "consumer-2"):
        assert page.locator(f'[data-node="{name}"]').get_attribute("data-state") == "running"
    text(page, "#fault-count", "^0 faults active$")
    text(page, "#queue-trouble", "^every queue has one owner$")
    picture(page, "1-healthy-1280-light")

    select(page, "ns-1")
    text(page, "#node-detail", "It knows 2 brokers, .* topics; 2 nodes ask it: consumer-1, consumer-2")
    text(page, "#node-detail td", "s ago$")
    picture(page, "1-nameserver-1280-light")
    select(page, "ns-1")

    select(page, "consumer-2", "broker-a")
    do(page, "cut")
    text(page, "#fault-count", "^1 fault active$")
    page.locator('[data-link="broker-a consumer-2"]').wait_for(state="attached")
    text(page, ".wire-label", "^cut$")
    assert "broker-a and consumer-2: cut" in page.locator("#wires-in-words").text_content()

    text(page, "#actions .offer", "^Heal cut-1$")  # in place of the verb
    assert page.locator('#actions [data-verb="cut"]').count() == 0
    select(page, "consumer-2", "broker-a")  # let go of both
    select(page, "consumer-1")
    do(page, "suspend")
    page.locator('[data-node="consumer-1"][data-state="suspended"]').wait_for()
    picture(page, "2-broken-1280-light")
    do(page, "resume")
    page.locator('[data-node="consumer-1"][data-state="running"]').wait_for()

    # broker-b learns at once that it has died; what would notify broker-a is cut.
    select(page, "consumer-1", "consumer-2")
    do(page, "kill")
    text(page, "#answers .offer", "^Start consumer-2$")
    page.locator('[data-node="consumer-2"][data-state="down"]').wait_for()
    page.locator('[data-view="consumer_ids buyers"].differs').wait_for()
    text(page, "#differ-count", "differ")
    assert page.locator('[data-view="consumer_ids buyers"] .mark[data-holders="1"]').count() == 1
    page.locator('[data-view="consumer_ids buyers"] .subject').click()
    text(page, "#view-detail", "broker-b")
    picture(page, "3-views-differ-1280-light")

    page.locator("#heal-all").click()
    text(page, "#fault-count", "^0 faults active$")
    gone(page, ".wire.faulted")
    text(page, "#answers", "healed kill-1")
    gone(page, "#answers .offer")

    page.locator(".span-fault", has_text="kill consumer-2").click()
    text(page, "#looking-words", r"^looking at \d+\.\d s, live is \d+\.\d s$")
    page.locator('[data-node="consumer-2"][data-state="down"]').wait_for()
    text(page, "#fault-count", "^2 faults active$")
    text(page, "#actions", "Go back to live to act")
    picture(page, "3-looking-back-1280-light")
    page.locator("#instant").press("ArrowLeft")
    page.locator("#instant").press("ArrowLeft")
    page.locator('[data-node="consumer-2"][data-state="running"]').wait_for()
    page.locator("#back-to-live").click()
    text(page, "#fault-count", "^0 faults active$")
    assert page.locator("#looking").is_hidden()


def test_agreement_of_views_and_ownership_of_queues_are_counted_apart(fresh, open_page, picture):
    page = open_page(f"{fresh.address}#{fresh.token}")
    text(page, "#differ-count", "^all views agree$")
    text(page, "#owner-count", "^one owner per queue$")
    text(page, '[data-view="consumer_ids buyers"] .value', "^consumer-1, consumer-2$")
    text(page, '[data-view="view buyers/orders"] .value', "^4 queues for consumer-1, consumer-2$")

    assert fresh.say("kill consumer-1")[0]
    assert fresh.say("kill consumer-2")[0]
    text(page, "#owner-count", "^[0-9]+ queues without an owner$")
    text(page, "#differ-count", "^all views agree$")
    picture(page, "6-no-owner-1280-light")


def test_the_legend_explains_the_marks(shown, open_page, picture):
    page = open_page(f"{shown.address}#{shown.token}")
    text(page, "#connection", "^live$")
    assert page.locator("#legend").is_hidden()
    page.locator("button", has_text="Legend").click()
    text(page, "#legend dd", "equal letters are equal values")
    picture(page, "7-legend-1280-light")
    page.keyboard.press("Escape")
    assert page.locator("#legend").is_hidden()


def test_the_answer_to_why_is_wrapped(shown, open_page, picture):
    page = open_page(f"{shown.address}#{shown.token}")
    text(page, "#connection", "^live$")
    page.locator("#command").fill("why queue orders/broker-a/0")
    page.locator("#command").press("Enter")
    answer = page.locator("#answers .prose")
    answer.wait_for()
    picture(page, "8-why-1280-light")
    assert answer.evaluate("(it) => it.scrollWidth <= it.clientWidth + 1")
    assert answer.locator(".line-of-answer").count() > 1


def test_views_that_differ_can_be_seen_alone(fresh, open_page):
    page = open_page(f"{fresh.address}#{fresh.token}")
    page.locator("[data-view]").first.wait_for()
    assert page.locator("tr.differs").count() == 0
    page.locator("#only-differing").check()
    text(page, "#views", "Nodes of one role agree about all")


def test_a_wrong_token_is_refused_and_the_right_one_opens_the_page(shown, open_page, picture):
    page = open_page(shown.address)
    page.locator("#token").fill("wrong")
    page.locator("#token").press("Enter")
    text(page, "#token-problem", "^That is not the token of this run.$")
    assert page.locator("#board").is_hidden()
    picture(page, "4-wrong-token")
    page.locator("#token").fill(shown.token)
    page.locator("#token").press("Enter")
    text(page, "#connection", "^live$")
    page.reload()
    text(page, "#connection", "^live$")
    assert [complaint for complaint in page.complaints if "401" not in complaint] == []
    page.complaints.clear()  # a browser complains about every 401


def test_the_command_line_completes_remembers_and_answers(shown, open_page):
    page = open_page(f"{shown.address}#{shown.token}")
    text(page, "#connection", "^live$")
    command = page.locator("#command")
    command.press_sequentially("susp")
    command.press("Tab")
    assert command.input_value() == "suspend "
    command.press_sequentially("broker-")
    text(page, "#command-hint", "suspend NODES.*broker-a.*broker-b")
    command.press_sequentially("b")
    command.press("Tab")
    command.press("Enter")
    text(page, "#answers", "suspend-1: suspend broker-b")
    command.press_sequentially("suspend brokr-b")
    command.press("Enter")
    text(page, "#answers .refused", "did you mean")
    command.press("ArrowUp")
    command.press("ArrowUp")
    assert command.input_value() == "suspend broker-b"
    page.locator('[data-fault="suspend-1"] button').click()
    text(page, "#fault-count", "^0 faults active$")


def test_events_can_be_filtered_and_paused(shown, open_page):
    page = open_page(f"{shown.address}#{shown.token}")
    page.locator("#events li").first.wait_for()
    page.locator("#event-filter").fill("no event says this")
    assert page.locator("#events li:visible").count() == 0
    page.locator("#event-filter").fill("")
    assert page.locator("#events li:visible").count() > 0
    page.locator("#pause").click()
    count = page.locator("#events li").count()
    assert shown.say("suspend broker-b")[0]
    text(page, "#pause", r"Resume \(\d+ new\)")
    assert page.locator("#events li").count() == count
    page.locator("#pause").click()
    text(page, "#events li", "suspend broker-b")


def test_nodes_can_be_worked_with_the_keyboard(shown, open_page):
    page = open_page(f"{shown.address}#{shown.token}")
    page.locator("#events li").first.wait_for()  # everything is drawn
    page.locator('[data-node="broker-a"]').focus()
    page.keyboard.press("Enter")
    page.locator('[data-node="broker-a"][aria-pressed="true"]').wait_for()
    page.locator('#actions [data-verb="suspend"]').focus()
    page.keyboard.press("Space")
    text(page, '[data-node="broker-a"]', "suspended")
    assert page.locator('[data-node="broker-a"]').get_attribute("aria-label") == "broker-a, broker, suspended"


@pytest.mark.parametrize(
    ("width", "height", "scheme"),
    [(1280, 800, "dark"), (1920, 1080, "light"), (1920, 1080, "dark"), (400, 800, "light")],
)
def test_nothing_sticks_out_at_any_size(shown, open_page, picture, width, height, scheme):
    shown.say("cut consumer-1 broker-a")
    shown.say("suspend broker-b")
    page = open_page(f"{shown.address}#{shown.token}", width, height, scheme)
    page.locator(".wire-label").wait_for()
    picture(page, f"5-{width}-{scheme}")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for card in page.locator(".card").all():
        box = card.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
        assert box["height"] > 30


def test_a_page_says_when_its_run_is_over(fresh, open_page):
    page = open_page(f"{fresh.address}#{fresh.token}")
    text(page, "#connection", "^live$")
    page.locator("#command").fill("quit")
    page.locator("#command").press("Enter")
    text(page, "#connection", "^the run is over$")
