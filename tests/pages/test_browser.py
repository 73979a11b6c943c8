"""The HTML page in a real browser: headless Chromium, run as a program; skipped where there is none."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from eaglehub.pages.build import build_page
from eaglehub.pages.write import html as page_html
from tests.pages.samples import verification

if TYPE_CHECKING:
    from pathlib import Path

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
# Alone, without a sandbox (which containers lack) and without talking to its maker.
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--enable-logging=stderr",
    "--virtual-time-budget=3000",
    "--dump-dom",
]

# Windows are 500 pixels wide at least, so the page is looked at in a frame.
FRAME = """<!doctype html><title>frame</title><body style="margin:0"><pre id="probe"></pre>
<script>addEventListener("message", event => document.getElementById("probe").textContent = event.data)</script>
<iframe src="page.html" style="border:0;width:{width}px;height:800px"></iframe>"""
# Added to a copy of the page, as the page itself has no script.
PROBE = """
<script>
const channels = color => (color.match(/[\\d.]+/g) || []).map(Number);
const luminance = color => channels(color).slice(0, 3).map(c => c / 255)
  .map(c => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
  .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
const contrast = (one, other) => {
  const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
};
const ground = element => {
  for (let each = element; each; each = each.parentElement) {
    const color = getComputedStyle(each).backgroundColor;
    if (channels(color)[3] !== 0) return color;
  }
  return "rgb(255, 255, 255)";
};
const speaks = element => [...element.childNodes].some(node => node.nodeType === 3 && node.textContent.trim());
const seen = [...document.querySelectorAll("header *, main *, footer")].filter(each => each.offsetParent);
const verdict = document.querySelector(".verdict").getBoundingClientRect();
parent.postMessage(JSON.stringify({
  width: innerWidth,
  scroll: document.documentElement.scrollWidth,
  verdict: [verdict.top, verdict.bottom, innerHeight],
  requests: performance.getEntriesByType("resource").map(entry => entry.name),
  faint: seen.filter(speaks).filter(each => contrast(getComputedStyle(each).color, ground(each)) < 4.5)
    .map(each => each.outerHTML),
  pale: [...document.querySelectorAll(".bar")]
    .filter(bar => contrast(getComputedStyle(bar).backgroundColor, ground(document.body)) < 3).length,
  dark: luminance(ground(document.body)) < 0.5,
  spilt: [...document.querySelectorAll("section")].filter(each => each.scrollWidth > each.clientWidth)
    .map(each => each.querySelector("h2").textContent),
  clipped: seen.filter(each => each.getBoundingClientRect().right > innerWidth && !each.closest(".scroll, pre"))
    .map(each => each.outerHTML),
}), "*");
</script>
"""


@pytest.fixture(scope="module")
def browser() -> str:
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip(f"no browser to look at pages with ({', '.join(BROWSERS)})")
    return found


def look(browser: str, folder: Path, width: int, *flags: str) -> tuple[dict[str, Any], str]:
    """What the probe saw, and what the page wrote to the console."""
    page = page_html(build_page(verification()))
    (folder / "page.html").write_text(page.replace("</body>", f"{PROBE}</body>"))
    frame = folder / "frame.html"
    frame.write_text(FRAME.format(width=width))
    profile = f"--user-data-dir={folder / 'profile'}"
    command = [browser, *FLAGS, profile, "--window-size=1400,900", *flags, frame.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    probe = re.search(r'<pre id="probe">(.*?)</pre>', done.stdout, re.DOTALL)
    assert probe, done.stderr
    return json.loads(html.unescape(probe[1])), "\n".join(re.findall(r".*CONSOLE.*", done.stderr))


@pytest.mark.parametrize(
    ("width", "dark", "flags"),
    [(360, False, []), (1280, True, ["--force-dark-mode", "--blink-settings=preferredColorScheme=0"])],
)
def test_the_page_as_a_person_sees_it(browser: str, tmp_path: Path, width: int, dark: bool, flags: list[str]) -> None:
    seen, console = look(browser, tmp_path, width, *flags)
    assert (seen["width"], seen["dark"]) == (width, dark)
    assert seen["scroll"] <= width, "the page is wider than the window"
    assert (seen["clipped"], seen["spilt"]) == ([], [])
    top, bottom, height = seen["verdict"]
    assert 0 <= top < bottom < height, "the verdict is not on the first screen"
    assert seen["requests"] == []
    assert console == ""
    assert seen["faint"] == []
    assert seen["pale"] == 0
