"""Fixtures: a server of the built program, and a browser."""

import os
import re
import shutil
import subprocess
import threading
from dataclasses import dataclass
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect, sync_playwright

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
SLUGS = str(EXAMPLES / "slugs")
PROGRAM = os.environ.get("TESTWRIGHT_PROGRAM", "testwright")
# Folder for screenshots of each page.
SHOTS = os.environ.get("TESTWRIGHT_SHOTS")
# Names of the distribution's browser. If none is installed, Playwright's own is used.
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
WIDTHS = {"wide": (1280, 900), "narrow": (375, 800)}
SERIOUS = ("serious", "critical")
# Rules that are enforced although they are less than serious.
RULES = ("landmark-unique",)
# Maximum time for a run.
RUN_MS = 60_000

expect.set_options(timeout=10_000)


class Daemon:
    """`testwright serve` on its own port."""

    def __init__(self, data: Path, *words: str):
        self.data = data
        command = [PROGRAM, "serve", "--listen", "127.0.0.1:0", "--data", str(data)]
        command += ["--allow-repository", f"{EXAMPLES}/*", *words]
        self.child = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        said = []
        for line in self.child.stderr:
            said.append(line)
            if found := re.search(r"listening on (http://\S+)", line):
                self.url = found.group(1)
                break
        else:
            raise RuntimeError(f"the server exited: {''.join(said)}")
        # Read on, so that the server does not block on a full pipe.
        threading.Thread(target=lambda: [None for _ in self.child.stderr], daemon=True).start()

    def new_token(self, name: str) -> str:
        command = [PROGRAM, "tokens", "create", name, "--data", str(self.data)]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    def stop(self):
        self.child.terminate()
        self.child.wait(timeout=30)


@pytest.fixture(scope="session")
def start(tmp_path_factory):
    daemons = []

    def start(*words: str, data: Path | None = None) -> Daemon:
        daemons.append(Daemon(data or tmp_path_factory.mktemp("data"), *words))
        return daemons[-1]

    yield start
    for daemon in daemons:
        daemon.stop()


@pytest.fixture(scope="session")
def daemon(start) -> Daemon:
    return start("--workers", "1")


@pytest.fixture(scope="session")
def browser():
    with sync_playwright() as playwright:
        path = next(filter(None, map(shutil.which, BROWSERS)), None)
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@dataclass
class Trouble:
    """Errors of a page: console errors, exceptions, dialogs."""

    found: list[str]

    def watch(self, page: Page):
        def console(message):
            if message.type in ("error", "warning"):
                self.found.append(f"{page.url}: {message.text}")

        def dialog(dialog):
            self.found.append(f"{page.url}: a dialog: {dialog.message}")
            dialog.dismiss()

        page.on("console", console)
        page.on("pageerror", lambda error: self.found.append(f"{page.url}: {error}"))
        page.on("dialog", dialog)

    def expect_answer(self, status: int):
        """Expect the one console error with which Chromium reports the status of a rejected form."""
        assert len(self.found) == 1 and f"status of {status}" in self.found[0], self.found
        self.found.clear()


@pytest.fixture
def trouble():
    trouble = Trouble([])
    yield trouble
    assert trouble.found == []


@pytest.fixture
def page(browser: Browser, trouble: Trouble):
    """A page in a normal browser context, with the content security policy of the pages."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    trouble.watch(page)
    yield page
    context.close()


@pytest.fixture
def inspect(browser: Browser, trouble: Trouble):
    """Check a page in light and dark, wide and narrow: axe finds nothing serious, and nothing scrolls sideways."""
    # The content security policy of the pages would block axe.
    context = browser.new_context(bypass_csp=True)
    other = context.new_page()
    trouble.watch(other)
    axe = Axe()

    def look(where: str) -> list[str]:
        faults = []
        for found in axe.run(other).response["violations"]:
            if found["impact"] in SERIOUS or found["id"] in RULES:
                faults.append(f"{where}: {found['id']}: {[node['html'][:200] for node in found['nodes']]}")
        overflow = other.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        if overflow > 0:
            faults.append(f"{where}: scrolls sideways by {overflow} px")
        return faults

    def inspect(name: str, page: Page):
        context.clear_cookies()
        context.add_cookies(page.context.cookies())
        other.goto(page.url)
        faults = []
        for is_open in (False, True):
            # Check the page with folded and with open details. Screenshots show it folded.
            other.evaluate("open => open && document.querySelectorAll('details').forEach(d => d.open = true)", is_open)
            for width, (x, y) in WIDTHS.items():
                other.set_viewport_size({"width": x, "height": y})
                for scheme in ("light", "dark"):
                    other.emulate_media(color_scheme=scheme)
                    if is_open:
                        faults += look(f"{name}, {scheme}, {width}")
                    elif SHOTS:
                        other.screenshot(path=f"{SHOTS}/{name}-{scheme}-{width}.png", full_page=True)
        # The server may stop before the page is closed.
        other.goto("about:blank")
        assert faults == []

    yield inspect
    context.close()
