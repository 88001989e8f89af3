"""What is looked at on every page: each look returns what is wrong, one line each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final
from urllib.parse import urlsplit

from playwright.sync_api import Dialog, Page, Request

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
_SHOW_DIALOGS: Final = """(shown) => document.querySelectorAll("dialog").forEach((one) => {
  one.open = shown;
})"""
_SMALL: Final = """(least) => [...document.querySelectorAll("button, .btn, input[type=submit]")]
  .filter((one) => one.checkVisibility({visibilityProperty: true}))
  .filter((one) => one.getBoundingClientRect().height < least - 0.01)
  .map((one) => `${one.outerHTML.slice(0, 120)} is ${one.getBoundingClientRect().height} px high`)"""
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


LOOKS: Final[tuple[Look, ...]] = (foreign, unreachable, barriers, misfits)


def findings(page: Page) -> list[str]:
    """Everything that is wrong with the page that is open."""
    return [f"{look.__name__}: {one}" for look in LOOKS for one in look(page)]


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
