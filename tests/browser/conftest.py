"""A page as headless Chromium shows it: what is in it, what its scripts said, and pictures in the test's own folder."""

import html
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--enable-logging=stderr",  # what scripts print, lines with CONSOLE
    "--virtual-time-budget=3000",  # milliseconds of the page's clock, which waits for no machine
)
OWN_PAGES = "source: chrome://"  # of the browser: they complain of a slow network on a busy machine
PHONE_PX = 390
FRAMED = """<!doctype html><meta charset="utf-8"><body style="margin:0"><iframe style="border:0" width="{width}" height="{height}"
 onload="document.title = this.contentDocument.documentElement.scrollWidth" srcdoc="{page}"></iframe>"""


@dataclass(frozen=True)
class Seen:
    """A page.

    Args:
        text: of its document, when its scripts have run.
        said: by its scripts, on the console.
        picture: of it, a PNG.
    """

    text: str
    said: list[str]
    picture: Path

    def values(self, table: str) -> list[float]:
        """The numbers in a table."""
        (body,) = re.findall(rf'<table id="{table}">(.*?)</table>', self.text, re.S)
        return [float(value) for value in re.findall(r'data-value="([^"]*)"', body)]

    @property
    def drawn(self) -> int:
        """Plots that were drawn."""
        return len(re.findall(r'class="plot js-plotly-plot"', self.text))


@pytest.fixture
def browser(tmp_path):
    """Looks at a page."""
    if CHROMIUM is None:
        pytest.skip("no Chromium here (Debian: apt-get install chromium)")

    def look(page: Path, width: int = 1100, height: int = 2400) -> Seen:
        picture = tmp_path / f"{page.stem}_{width}.png"
        shown = [f"--window-size={width},{height}", f"--screenshot={picture}", "--dump-dom", page.as_uri()]
        done = chromium(tmp_path, *shown)
        said = [line for line in done.stderr.splitlines() if "CONSOLE" in line and OWN_PAGES not in line]
        return Seen(done.stdout, said, picture)

    return look


def chromium(folder: Path, *words: str) -> subprocess.CompletedProcess:
    """Run it with a profile of its own."""
    line = [str(CHROMIUM), *FLAGS, f"--user-data-dir={folder / 'profile'}", *words]
    return subprocess.run(line, capture_output=True, text=True, timeout=300, check=True)


@pytest.fixture
def phone(browser):
    """How wide a page is on a phone, pixels, and how it looks there: in a frame, for Chromium's windows are wider."""

    def look(page: Path) -> tuple[int, Seen]:
        framed = page.with_name(f"{page.stem}_phone.html")
        text = FRAMED.format(width=PHONE_PX, height=4000, page=html.escape(page.read_text()))
        framed.write_text(text)
        seen = browser(framed, width=500, height=4000)
        return int(re.findall(r"<title>(\d+)</title>", seen.text)[0]), seen

    return look


@pytest.fixture
def printed(tmp_path, browser):
    """A page as a PDF."""

    def look(page: Path) -> bytes:
        paper = tmp_path / f"{page.stem}.pdf"
        chromium(tmp_path, "--no-pdf-header-footer", f"--print-to-pdf={paper}", page.as_uri())
        return paper.read_bytes()

    return look
