"""What is looked at on every page: each look returns what is wrong, one line each."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final
from urllib.parse import urlsplit

from playwright.sync_api import Dialog, Page, Request, expect

from tests.helpers.axe import grave_violations

Look = Callable[[Page], list[str]]

WIDE: Final = 1360
PHONES: Final = (390, 320)
BUTTON_SIZE: Final = 44

# What a person can press or fill in, and sees. A skip link is beside the page until it has the focus.
_CONTROLS: Final = """[...document.querySelectorAll(
  "a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex]:not(main)"
)].filter((one) => one.checkVisibility({visibilityProperty: true}) && !one.disabled)"""
_OPEN: Final = """() => document.querySelectorAll("details").forEach((one) => { one.open = true; })"""
# The dialog that asks is empty until a button is pressed: it is shown with the longest question of the page.
_SHOW_DIALOGS: Final = """(shown) => {
  document.querySelectorAll("dialog").forEach((one) => { one.open = shown; });
  const asked = [...document.querySelectorAll("button[data-confirm]")];
  for (const [id, name] of [["confirm-text", "confirm"], ["confirm-yes", "yes"]]) {
    const place = document.getElementById(id);
    const longest = asked.map((one) => one.dataset[name]).sort((a, b) => b.length - a.length)[0];
    if (shown && place && longest) place.textContent = longest;
  }
}"""
# A box that scrolls by itself hides what does not fit from the width of the page.
_CUT: Final = """() => [...document.querySelectorAll("*")]
  .filter((one) => ["auto", "scroll"].includes(getComputedStyle(one).overflowX))
  .filter((one) => one.checkVisibility() && one.scrollWidth > one.clientWidth + 1)
  .map((one) => `${one.outerHTML.slice(0, 120)} scrolls sideways: ${one.scrollWidth} px in ${one.clientWidth} px`)"""
_SMALL: Final = """(least) => [...document.querySelectorAll("button, .btn, input[type=submit]")]
  .filter((one) => one.checkVisibility({visibilityProperty: true}))
  .map((one) => [one, one.getBoundingClientRect()])
  .filter(([, box]) => Math.min(box.width, box.height) < least - 0.01)
  .map(([one, box]) => `${one.outerHTML.slice(0, 120)} is ${box.width} px wide and ${box.height} px high`)"""
_UNFOCUSED: Final = (
    "() => { const controls = "
    + _CONTROLS
    + """;
  const before = document.activeElement, wrong = [];
  for (const one of controls) {
    const told = one.outerHTML.slice(0, 120);
    if (one.tabIndex !== 0) { wrong.push(`${told} has the tabindex ${one.tabIndex}`); continue; }
    one.focus({focusVisible: true, preventScroll: true});
    const style = getComputedStyle(one);
    if (document.activeElement !== one) wrong.push(`${told} takes no focus`);
    else if (style.outlineStyle === "none" || parseFloat(style.outlineWidth) < 1) wrong.push(`${told} shows no focus`);
  }
  before.focus?.();
  document.activeElement.blur?.();
  return controls.length ? wrong : ["the page has nothing that takes the focus"];
}"""
)
_FOREIGN: Final = """() => [
  ...document.querySelectorAll("img, iframe, object, embed, base, style, script:not([src^='/static/'])"),
  ...[...document.querySelectorAll("[href], [src], [action], [formaction]")].filter((one) =>
    ["href", "src", "action", "formaction"].some((name) => /^\\s*(javascript|data|vbscript):/i.test(one.getAttribute(name) || ""))),
  ...[...document.querySelectorAll("*")].filter((one) =>
    one.getAttributeNames().some((name) => name.startsWith("on") || name === "style" || name === "srcdoc")),
].map((one) => one.outerHTML.slice(0, 160))"""
# What a browser asks another host for, or is ready to: also where no page of the tests shows the state that a rule is for.
_ABROAD: Final = """() => [
  ...[...document.querySelectorAll("link, [src], [action], [formaction]")].filter((one) =>
    [one.href, one.src, one.action, one.formAction].some((url) => typeof url === "string" && url &&
      new URL(url, location).host !== location.host)).map((one) => one.outerHTML.slice(0, 160)),
  ...[...document.styleSheets].flatMap((sheet) => [...sheet.cssRules].flatMap((rule) =>
    [...rule.cssText.matchAll(/(?:url\\(|@import )\\s*["']?([^"')]+)/g)].filter(([, url]) =>
      new URL(url, sheet.href || location).host !== location.host).map(([found]) => `${sheet.href}: ${found}`))),
]"""
# Each button that asks is pressed, and its question put away again: it is text, word for word, whatever name is in it.
_ASK: Final = """() => {
  const dialog = document.getElementById("confirm"), text = document.getElementById("confirm-text");
  const wrong = [];
  for (const one of dialog ? document.querySelectorAll("button[data-confirm]") : []) {
    const said = one.dataset.confirm;
    one.dataset.confirm = `<b>${said}</b>`;
    one.click();
    if (!dialog.open || text.textContent !== one.dataset.confirm)
      wrong.push(`${one.outerHTML.slice(0, 120)} asks ${dialog.open ? text.innerHTML : "nothing"}`);
    dialog.close("no");
    one.dataset.confirm = said;
  }
  return wrong;
}"""


def barriers(page: Page) -> list[str]:
    """Serious and critical violations by axe-core, in the light theme and in the dark one."""
    page.emulate_media(color_scheme="light")
    found = [f"light: {one}" for one in grave_violations(page)]
    page.emulate_media(color_scheme="dark")
    # Of all rules only this one sees a difference.
    return found + [f"dark: {one}" for one in grave_violations(page, "color-contrast")]


def misfits(page: Page) -> list[str]:
    """What scrolls sideways or has small buttons on a phone, closed and opened up."""
    found = []
    for width in PHONES:
        page.set_viewport_size({"width": width, "height": 900})
        for opened in (False, True):
            if opened:
                page.evaluate(_OPEN)
                page.evaluate(_SHOW_DIALOGS, True)
            needed = page.evaluate("document.documentElement.scrollWidth")
            if needed > width:
                found.append(f"{width} px: {needed} px wide{' when opened up' if opened else ''}")
            found += [f"{width} px: {one}" for one in page.evaluate(_CUT)]
        found += [f"{width} px: {one}" for one in page.evaluate(_SMALL, BUTTON_SIZE)]
        page.evaluate(_SHOW_DIALOGS, False)
    page.set_viewport_size({"width": WIDE, "height": 900})
    return found


def unreachable(page: Page) -> list[str]:
    """What a keyboard does not reach, or where one does not see it."""
    found: list[str] = page.evaluate(_UNFOCUSED)
    return found


def foreign(page: Page) -> list[str]:
    """What could run, or ask somebody else: there is none of it in the templates."""
    found: list[str] = page.evaluate(_FOREIGN)
    return found


def abroad(page: Page) -> list[str]:
    """What leads to another host, links aside: also style sheets' rules for what is not shown now."""
    found: list[str] = page.evaluate(_ABROAD)
    return found


def questions(page: Page) -> list[str]:
    """Buttons that ask first, and do not say what they should."""
    found: list[str] = page.evaluate(_ASK)
    return found


LOOKS: Final[tuple[Look, ...]] = (foreign, abroad, questions, unreachable, barriers, misfits)


def findings(page: Page) -> list[str]:
    """Everything that is wrong with the page that is open."""
    return [f"{look.__name__}: {one}" for look in LOOKS for one in look(page)]


def stop_clock(page: Page) -> None:
    """Let no timer of a page that polls run any more; what it asked until then is answered.

    The clock goes 10 s ahead, by which each page polls once more, and no longer waits for what it asked before.
    """
    at = math.ceil(page.evaluate("Date.now()") / 1000) + 10
    page.clock.pause_at(at)
    expect(page.locator("#updated")).to_contain_text(f"{datetime.fromtimestamp(at, UTC):%H:%M:%S}")


def watch_requests(page: Page) -> set[str]:
    """The hosts that a page asks."""
    asked: set[str] = set()

    def note(request: Request) -> None:
        asked.add(urlsplit(request.url).netloc)

    page.on("request", note)
    return asked


def watch_dialogs(page: Page) -> list[str]:
    """What ran as `alert`."""
    ran: list[str] = []

    def note(dialog: Dialog) -> None:
        ran.append(f"{page.url}: {dialog.message}")
        dialog.dismiss()

    page.on("dialog", note)
    return ran
