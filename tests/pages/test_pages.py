"""Tests of the server's pages, used as a person does in a browser."""

import json
import re
import sqlite3
import time
from contextlib import closing

import pytest
from conftest import EXAMPLES, RUN_MS, SLUGS, Daemon, Trouble
from playwright.sync_api import Page, expect

ISSUE = (EXAMPLES / "issue.md").read_text()
TITLE = ISSUE.splitlines()[0].removeprefix("# ")
REPORT = "<!doctype html><html lang=en><title>Report</title><body>\n<main><h1>Comparison of approaches</h1></main></body></html>"
HOSTILE = "<script>alert('title')</script><img src=x onerror=alert(2)> is cut"


def ask(page: Page, url: str, issue: str, repository: str = SLUGS):
    page.goto(f"{url}/new")
    page.get_by_label("Issue:").fill(issue)
    page.get_by_label("Repository:").fill(repository)
    page.get_by_role("button", name="Start run").click()


def ask_by_program(page: Page, daemon: Daemon, request: dict, what: str = "runs") -> str:
    made = page.request.post(f"{daemon.url}/v1/{what}", data=request)
    assert made.status == 201, made.text()
    return made.json()["id"]


def status(page: Page):
    return page.get_by_role("status")


def tab_to(page: Page, wanted):
    """Press Tab until this element is focused."""
    for _ in range(20):
        page.keyboard.press("Tab")
        if wanted.evaluate("element => element === document.activeElement"):
            return
    raise AssertionError(f"Tab does not reach {wanted}")


@pytest.fixture(scope="session")
def accepted(daemon: Daemon, browser) -> str:
    """The address of a run that was started with the keyboard alone and watched until its end."""
    context = browser.new_context()
    page = context.new_page()
    trouble = Trouble([])
    trouble.watch(page)
    # An earlier run delays this one, so that its page is open before its first step.
    ask_by_program(page, daemon, {"issue": ISSUE, "repository": SLUGS})
    page.goto(daemon.url)
    tab_to(page, page.get_by_role("link", name="New run"))
    page.keyboard.press("Enter")
    tab_to(page, page.get_by_label("Issue:"))
    page.keyboard.insert_text(ISSUE)
    tab_to(page, page.get_by_label("Repository:"))
    page.keyboard.type(SLUGS)
    tab_to(page, page.get_by_role("button", name="Start run"))
    page.keyboard.press("Enter")
    page.wait_for_url("**/runs/*")

    # This mark would disappear if the page were reloaded.
    page.evaluate("document.documentElement.dataset.seen = 'yes'")
    steps = page.locator("#steps ~ details")
    counts = {steps.count()}
    until = time.monotonic() + RUN_MS / 1000
    while status(page).inner_text() in ("queued", "running") and time.monotonic() < until:
        counts.add(steps.count())
        time.sleep(0.05)
    expect(status(page)).to_have_text("accepted")
    counts.add(steps.count())
    assert min(counts) == 0 and len(counts) > 2, f"the steps did not appear one by one: {counts}"
    assert page.evaluate("document.documentElement.dataset.seen") == "yes"
    assert trouble.found == []
    url = page.url
    context.close()
    return url


def test_run_shows_test_and_evidence(page: Page, daemon: Daemon, accepted: str, inspect):
    page.goto(accepted)
    expect(page.get_by_role("heading", level=1)).to_have_text(TITLE)
    expect(page.locator("pre.diff .added", has_text="def test_")).to_have_count(1)
    evidence = page.get_by_role("region", name="Evidence")
    expect(evidence).to_contain_text("how-to")
    expect(page.get_by_role("region", name="Issue")).to_contain_text("I expected")
    step = page.locator("#steps ~ details").last
    was_open = step.get_attribute("open") is not None
    step.locator("summary").press("Enter")
    assert (step.get_attribute("open") is not None) != was_open
    inspect("run", page)
    patch = page.get_by_role("link", name="Patch", exact=True).get_attribute("href")
    assert "+++ b/tests/" in page.request.get(f"{daemon.url}{patch}").text()


def test_runs_are_filtered_by_status(page: Page, daemon: Daemon, accepted: str, inspect):
    page.goto(daemon.url)
    link = page.get_by_role("link", name=TITLE).first
    expect(link).to_be_visible()
    inspect("runs", page)
    page.get_by_label("Status").select_option("nothing")
    page.get_by_role("button", name="Show").click()
    expect(page.get_by_text("There are no runs of this status.")).to_be_visible()
    inspect("runs-none", page)
    page.get_by_label("Status").select_option("accepted")
    page.get_by_role("button", name="Show").click()
    expect(page).to_have_url(re.compile(r"status=accepted"))
    link.click()
    expect(status(page)).to_have_text("accepted")


def test_refresh_keeps_focus_and_scrolling(page: Page, daemon: Daemon, accepted: str):
    page.set_viewport_size({"width": 375, "height": 800})
    page.goto(daemon.url)
    link = page.get_by_role("link", name=TITLE).first
    link.focus()
    table = page.get_by_role("region", name="Runs")
    table.evaluate("element => { element.scrollLeft = 60; element.dataset.first = 'yes'; }")
    ask_by_program(page, daemon, {"issue": "A second one", "repository": SLUGS})
    expect(page.get_by_role("link", name="A second one")).to_be_visible()
    assert table.get_attribute("data-first") is None, "the page was not refreshed"
    expect(link).to_be_focused()
    assert table.evaluate("element => element.scrollLeft") == 60


def test_forbidden_repository_keeps_form_content(page: Page, daemon: Daemon, trouble, inspect):
    page.goto(f"{daemon.url}/new")
    inspect("new", page)
    ask(page, daemon.url, ISSUE, "/etc")
    expect(page.get_by_role("alert")).to_contain_text("this server does not allow it")
    trouble.expect_answer(422)
    expect(page.get_by_label("Issue:")).to_have_value(ISSUE)
    expect(page.get_by_label("Repository:")).to_have_value("/etc")
    expect(page.get_by_role("button", name="Log out")).to_have_count(0)
    page.get_by_label("Repository:").fill(SLUGS)
    page.get_by_role("button", name="Start run").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(TITLE)


def test_run_is_cancelled_and_resumed(page: Page, start, inspect):
    idle = start("--workers", "0")
    ask(page, idle.url, ISSUE)
    expect(status(page)).to_have_text("queued")
    inspect("run-queued", page)
    page.get_by_role("button", name="Cancel run").click()
    expect(status(page)).to_have_text("cancelled")
    inspect("run-cancelled", page)
    page.get_by_role("button", name="Resume run").click()
    expect(status(page)).to_have_text("queued")
    path = page.url.removeprefix(idle.url)
    page.goto(f"{idle.url}/workers")
    expect(page.get_by_text("No workers")).to_be_visible()
    inspect("workers-none", page)
    page.goto("about:blank")
    idle.stop()

    working = start("--workers", "1", data=idle.data)
    page.goto(f"{working.url}{path}")
    expect(status(page)).to_have_text("accepted", timeout=RUN_MS)


def test_hidden_page_updates_when_shown(page: Page, start):
    ask(page, start("--workers", "0").url, ISSUE)
    expect(status(page)).to_have_text("queued")
    hide = "hidden => Object.defineProperty(document, 'hidden', { value: hidden, configurable: true })"
    page.evaluate(hide, True)
    api = page.url.replace("/runs/", "/v1/runs/")
    assert page.request.post(f"{api}/cancel").ok
    page.wait_for_timeout(1_500)
    expect(status(page)).to_have_text("queued")
    page.evaluate(hide, False)
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    expect(status(page)).to_have_text("cancelled")


def test_workers_are_listed(page: Page, daemon: Daemon, inspect):
    page.goto(daemon.url)
    page.get_by_role("link", name="Workers and queue").click()
    expect(page.get_by_role("region", name="Workers").locator("tbody tr")).to_have_count(1)
    inspect("workers", page)


def slug_patch(more: str) -> str:
    """Return a patch that changes the result of `truncate` in the example."""
    return f"""\
--- a/src/slugs/slug.py
+++ b/src/slugs/slug.py
@@ -30,4 +30,4 @@
 
 def truncate(slug, max_length):
     \"\"\"Cut a slug to its first ``max_length`` characters.\"\"\"
-    return slug[:max_length]
+    return slug[:max_length]{more}
"""


def test_matrix_shows_kept_patch(page: Page, daemon: Daemon, accepted: str, inspect):
    page.goto(f"{daemon.url}/matrices")
    expect(page.get_by_text("No matrices yet.")).to_be_visible()
    inspect("matrices-none", page)
    request = {
        "tests": [{"run": accepted.rsplit("/", 1)[1]}],
        "patches": [
            {"name": "lower", "patch": slug_patch(".lower()")},
            {"name": "strip", "patch": slug_patch('.rstrip("-")')},
        ],
    }
    made = ask_by_program(page, daemon, request, "matrices")
    page.reload()
    link = page.get_by_role("link", name=TITLE, exact=True)
    assert link.get_attribute("href") == f"/matrices/{made}"
    link.click()
    expect(status(page)).to_have_text("done", timeout=RUN_MS)
    row = page.get_by_role("region", name="Patches").get_by_role("row")
    expect(row.filter(has_text="lower")).to_contain_text("dropped")
    expect(row.filter(has_text="strip")).to_contain_text("kept")
    inspect("matrix", page)
    page.get_by_role("link", name="Matrices").click()
    inspect("matrices", page)


def test_empty_pages_are_accessible(page: Page, daemon: Daemon, inspect):
    page.goto(daemon.url)
    page.get_by_role("link", name="Comparisons").click()
    expect(page.get_by_text("No comparisons yet.")).to_be_visible()
    inspect("comparisons", page)
    page.get_by_role("link", name="Settings").click()
    expect(page.get_by_role("region", name="Settings").get_by_role("row").nth(1)).to_be_visible()
    inspect("settings", page)


def test_pages_require_token(page: Page, start, trouble, inspect):
    daemon = start("--workers", "0", "--require-tokens")
    page.goto(f"{daemon.url}/workers")
    expect(page).to_have_url(f"{daemon.url}/login?next=/workers")
    inspect("login", page)
    token = page.get_by_label("Token")
    expect(token).to_be_focused()
    token.fill("testwright_wrong")
    token.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("unknown, revoked or expired")
    trouble.expect_answer(401)
    token.fill(daemon.new_token("alice"))
    token.press("Enter")
    expect(page).to_have_url(f"{daemon.url}/workers")
    page.get_by_role("link", name="Runs", exact=True).click()
    expect(page.get_by_text("There are no runs.")).to_be_visible()
    ask(page, daemon.url, ISSUE)
    expect(status(page)).to_have_text("queued")
    page.goto(daemon.url)
    expect(page.get_by_role("link", name=TITLE)).to_be_visible()
    inspect("runs-logged-in", page)
    page.get_by_role("button", name="Log out").click()
    expect(page).to_have_url(f"{daemon.url}/login")
    page.goto(daemon.url)
    expect(page).to_have_url(f"{daemon.url}/login")


def test_comparison_form_accepts_dataset(page: Page, start, trouble, inspect):
    daemon = start("--workers", "0")
    page.goto(f"{daemon.url}/comparisons")
    page.get_by_role("link", name="New comparison").click()
    inspect("comparison-new", page)
    approach = page.get_by_role("checkbox", name=re.compile("^testwright:"))
    expect(approach).to_be_checked()
    approach.uncheck()
    page.get_by_role("checkbox", name=re.compile("^snippet:")).check()
    page.get_by_label("Address of the repositories").fill(f"{EXAMPLES}/{{name}}")

    def choose(content: str):
        file = {"name": "two.jsonl", "mimeType": "application/x-ndjson", "buffer": content.encode()}
        page.get_by_label("Instances: a dataset").set_input_files(file)
        page.get_by_role("button", name="Compare").click()

    choose(HOSTILE)
    expect(page.get_by_role("alert")).to_contain_text("invalid JSON")
    trouble.expect_answer(422)
    expect(page.get_by_label("Instances, if you choose no file")).to_have_value(HOSTILE)
    expect(approach).not_to_be_checked()
    instance = {"repo": "examples/slugs", "base_commit": "abcdef01", "problem_statement": ISSUE}
    lines = [json.dumps({"instance_id": f"slugs-{n}"} | instance) for n in (1, 2)]
    choose("\n".join(lines))
    expect(page).to_have_url(re.compile(r"/comparisons/[0-9a-z]{19}$"))
    expect(page.get_by_role("heading", level=1)).to_have_text("two.jsonl")
    page.get_by_role("link", name="Comparisons").click()
    row = page.get_by_role("row", name="two.jsonl")
    expect(row).to_contain_text("snippet")
    inspect("comparisons-asked", page)
    # On a phone every cell is visible.
    page.set_viewport_size({"width": 375, "height": 800})
    for cell in row.get_by_role("cell").all():
        box = cell.bounding_box()
        assert box and box["x"] >= 0 and box["x"] + box["width"] <= 375, box


def test_missing_fields_are_named_by_label(page: Page, daemon: Daemon, trouble):
    page.goto(f"{daemon.url}/comparisons/new")
    page.get_by_role("button", name="Compare").click()
    expect(page.get_by_role("alert")).to_contain_text("Instances: no instances were given")
    trouble.expect_answer(422)
    page.goto(f"{daemon.url}/new")
    page.get_by_label("Issue:").fill(ISSUE)
    page.get_by_label("Steps").fill("a few")
    page.get_by_role("button", name="Start run").click()
    expect(page.get_by_role("alert")).to_contain_text("Steps: “a few” is not a whole number above zero")
    trouble.expect_answer(422)


def test_comparison_is_followed_and_cancelled(page: Page, start, inspect):
    daemon = start("--workers", "0")
    instance = {"repo": "examples/slugs", "base_commit": "abcdef01", "problem_statement": ISSUE}
    request = {
        "name": "two.jsonl",
        "instances": [{"instance_id": f"slugs-{n}"} | instance for n in (1, 2)],
        "approaches": ["snippet"],
        "repositories": f"{EXAMPLES}/{{name}}",
    }
    made = ask_by_program(page, daemon, request, "comparisons")
    page.goto(f"{daemon.url}/comparisons")
    page.get_by_role("link", name="two.jsonl").click()
    runs = page.get_by_role("region", name="Table of runs")
    expect(runs.get_by_role("link", name=f"slugs-1: {TITLE}")).to_be_visible(timeout=RUN_MS)
    expect(page.get_by_role("link", name="queued: 2")).to_be_visible()
    inspect("comparison", page)
    runs.get_by_role("link", name=f"slugs-1: {TITLE}").click()
    expect(page.get_by_role("region", name="Issue")).to_contain_text("I expected")
    page.get_by_role("link", name="a comparison").click()
    page.get_by_role("button", name="Cancel comparison").click()
    expect(status(page)).to_have_text("cancelled")
    expect(page.get_by_role("link", name="cancelled: 2")).to_be_visible()
    inspect("comparison-cancelled", page)
    page.get_by_role("button", name="Resume comparison").click()
    expect(status(page)).to_have_text(re.compile("queued|running"))



def test_report_links_back_when_logged_in(page: Page, start):
    daemon = start("--workers", "0", "--require-tokens")
    token = daemon.new_token("alice")
    instance = {"instance_id": "slugs-1", "repo": "examples/slugs", "base_commit": "abcdef01", "problem_statement": ISSUE}
    request = {
        "name": "one.jsonl",
        "instances": [instance],
        "approaches": ["snippet"],
        "repositories": f"{EXAMPLES}/{{name}}",
    }
    headers = {"Authorization": f"Bearer {token}"}
    made = page.request.post(f"{daemon.url}/v1/comparisons", data=request, headers=headers).json()["id"]
    with closing(sqlite3.connect(daemon.data / "testwright.db")) as database, database:
        database.execute("UPDATE comparisons SET report = '{}', page = ? WHERE id = ?", (REPORT, made))
    page.goto(f"{daemon.url}/comparisons/{made}")
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Log in").click()
    page.get_by_role("link", name="Report", exact=True).click()
    expect(page.get_by_role("heading", name="Comparison of approaches")).to_be_visible()
    page.get_by_role("link", name="This comparison").click()
    expect(page.get_by_role("heading", name="one.jsonl")).to_be_visible()
    expect(page).to_have_url(f"{daemon.url}/comparisons/{made}")


def test_unknown_address_shows_error_page(page: Page, daemon: Daemon, trouble, inspect):
    page.goto(f"{daemon.url}/runs/nothing")
    expect(page.get_by_role("heading", name="Not Found")).to_be_visible()
    expect(page.get_by_role("alert")).to_have_text("No run has this id.")
    trouble.expect_answer(404)
    inspect("not-found", page)
    trouble.found.clear()
    page.get_by_role("link", name="All runs").click()
    expect(page.get_by_role("heading", name="Runs", level=1)).to_be_visible()


def test_untrusted_text_is_escaped(page: Page, start, inspect):
    daemon = start("--workers", "0")
    ask(page, daemon.url, f"# {HOSTILE}\n\n{HOSTILE}\n")
    expect(page.get_by_role("heading", level=1)).to_contain_text("<script>alert('title')</script>")
    inspect("run-hostile", page)
    page.goto(daemon.url)
    expect(page.get_by_role("link", name="<script>")).to_be_visible()
    inspect("runs-hostile", page)
    for path in ("workers", "matrices", "comparisons", "settings", "new"):
        page.goto(f"{daemon.url}/{path}")
