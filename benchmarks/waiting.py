"""What a person at a browser waits for: a job after Run now, and the word that a server has stopped."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Final

from playwright.sync_api import Page

# Promises the moment at which a text is first there, by the clock of the page, and notes when a button is pressed. The pages'
# policy lets no script evaluate a text, so that nothing in the page can wait for more than a promise.
_WATCH: Final = """([selector, text, patience]) => {
  const shown = () => document.querySelector(selector)?.textContent.includes(text);
  if (shown()) throw new Error(`${selector} says ${text} already, so there is nothing to wait for`);
  window.appeared = new Promise((seen, never) => {
    const look = () => {
      if (shown()) { watcher.disconnect(); seen(performance.now()); }
    };
    const watcher = new MutationObserver(look);
    watcher.observe(document, {subtree: true, childList: true, characterData: true});
    setTimeout(() => never(new Error(`no ${text} in ${selector}`)), patience);
  });
  window.appeared.catch(() => {});
  document.addEventListener("click", () => { window.pressed = performance.now(); }, {capture: true, once: true});
}"""
PATIENCE_MS: Final = 60_000


def until_visible(page: Page, targets: list[str]) -> list[float]:
    """Seconds from each press of Run now until the target's row says that its job is queued."""
    seconds = []
    for target in targets:
        page.evaluate(_WATCH, [f"#target-{target}", "Queued", PATIENCE_MS])
        page.get_by_role("button", name=f"Run now: {target}", exact=True).click()
        seconds.append(page.evaluate("window.appeared.then(seen => (seen - window.pressed) / 1000)"))
    return seconds


def until_previewed(page: Page, crons: list[str]) -> list[float]:
    """Seconds from the last key of a schedule until its times are there."""
    seconds = []
    for cron in crons:
        minute, hour, *_ = cron.split()
        page.evaluate(_WATCH, ["#preview", f"At {hour.zfill(2)}:{minute.zfill(2)}", PATIENCE_MS])
        page.locator("#f-schedule").fill(cron)
        began = page.evaluate("performance.now()")
        seconds.append((page.evaluate("window.appeared") - began) / 1000)
    return seconds


def until_told(page: Page, word: str, act: Callable[[], None]) -> float:
    """Seconds from something that happens to the server until the page says the word."""
    began = time.monotonic()
    act()
    page.locator("#updated", has_text=word).wait_for(timeout=PATIENCE_MS)
    return time.monotonic() - began


def words(seconds: list[float]) -> str:
    """`median 43 ms, longest 61 ms of 15`."""
    middle, longest = statistics.median(seconds) * 1e3, max(seconds) * 1e3
    return f"median {middle:.0f} ms, longest {longest:.0f} ms of {len(seconds)}"
