"""A page in a real browser: what it asks for, what it complains of, and what can be seen."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, sync_playwright

WATCHDOG = 600_000
"""Milliseconds. It ends what hangs; on a busy machine a browser may need minutes to start."""
PROGRAMS = ("chromium", "chromium-browser", "google-chrome")

UNDRAWN = """() => [...document.querySelectorAll('svg[role=img]')].filter(svg => {
  const shown = mark => {
    const style = getComputedStyle(mark), box = mark.getBoundingClientRect();
    const painted = p => style[p] !== 'none' && style[p] !== 'rgba(0, 0, 0, 0)' && style[p + 'Opacity'] !== '0';
    return (painted('fill') || painted('stroke')) && box.width + box.height > 0;
  };
  const box = svg.getBoundingClientRect(), marks = [...svg.querySelectorAll('path, rect, circle, line, text')];
  return !(box.width > 50 && box.height > 10 && marks.filter(shown).length > 2);
}).map(svg => svg.querySelector('title')?.textContent ?? svg.getAttribute('aria-label'))"""

UNSEEN_TEXT = """() => [...document.querySelectorAll('svg[role=img] text')].filter(text => {
  const box = text.getBoundingClientRect(), svg = text.closest('svg[role=img]').getBoundingClientRect();
  return box.width && (box.left < svg.left - 1 || box.right > svg.right + 1 || box.bottom > svg.bottom + 1);
}).map(text => text.textContent)"""

SMALL_TEXT = """() => [...document.querySelectorAll('svg[role=img]')].flatMap(svg => {
  const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
  return [...svg.querySelectorAll('text')].map(text => scale * parseFloat(getComputedStyle(text).fontSize));
}).filter(size => size && size < 9.5)"""

CONTRASTS = """() => {
  const parse = text => (text.match(/[\\d.]+/g) ?? []).map(Number);
  const over = (top, alpha, under) => under.map((u, i) => alpha * top[i] + (1 - alpha) * u);
  const light = rgb => rgb.map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const ratio = (a, b) => (Math.max(light(a), light(b)) + 0.05) / (Math.min(light(a), light(b)) + 0.05);
  const ground = element => {
    for (let e = element; e; e = e.parentElement) {
      const [r, g, b, alpha = 1] = parse(getComputedStyle(e).backgroundColor);
      if (alpha === 1) return [r, g, b];
    }
    return [255, 255, 255];
  };
  const inside = (box, x, y) => box.left <= x && x <= box.right && box.top <= y && y <= box.bottom;
  const beneath = text => {
    const box = text.getBoundingClientRect(), x = (box.left + box.right) / 2, y = (box.top + box.bottom) / 2;
    let colour = ground(text);
    for (const mark of text.parentElement.querySelectorAll(':scope > rect, :scope > path')) {
      const style = getComputedStyle(mark);
      const before = mark.compareDocumentPosition(text) & Node.DOCUMENT_POSITION_FOLLOWING;
      if (before && style.fill !== 'none' && inside(mark.getBoundingClientRect(), x, y))
        colour = over(parse(style.fill), Number(style.fillOpacity), colour);
    }
    return colour;
  };
  const own = e => [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
  const seen = e => e.checkVisibility() && e.getBoundingClientRect().width > 1 && own(e);
  const skipped = 'script, style, title, desc';
  const said = [...document.body.querySelectorAll('*')].filter(e => !e.closest(skipped) && seen(e));
  return said.map(e => {
    const drawn = e.tagName === 'text', style = getComputedStyle(e);
    const number = drawn && e.parentElement.tagName === 'g' && e.parentElement.querySelector(':scope > rect') !== null;
    const under = drawn ? beneath(e) : ground(e);
    const ink = parse(drawn ? style.fill : style.color), opacity = ink[3] ?? 1;
    return [ratio(over(ink.slice(0, 3), opacity, under), under), number, e.textContent.trim().slice(0, 40)];
  });
}"""


def program() -> str | None:
    """A browser that is installed."""
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


@contextmanager
def opened_browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program(), args=["--no-sandbox"], timeout=WATCHDOG)
        try:
            yield browser
        finally:
            browser.close()


@dataclass
class Visit:
    """A page that was opened, with all that it said and asked for on the way."""

    page: Any
    address: str
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, browser: Browser, path: Path, width: int = 1280, scheme: str = "light") -> Visit:
        page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        page.set_default_timeout(WATCHDOG)
        visit = cls(page, path.resolve().as_uri())
        page.on("console", lambda message: visit.complaints.append(message.text))
        page.on("pageerror", lambda error: visit.complaints.append(str(error)))
        page.on("request", lambda request: visit.requests.append(request.url))
        page.goto(visit.address)
        page.evaluate("document.querySelectorAll('details.more').forEach(d => { d.open = true; })")
        return visit

    @property
    def overflow(self) -> int:
        """By how many pixels the page is wider than the window."""
        return self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")

    @property
    def contrasts(self) -> list[tuple[float, bool, str]]:
        """Of every text that is seen: its contrast, whether it is a number on a coloured cell, and how it begins."""
        return [(ratio, number, words) for ratio, number, words in self.page.evaluate(CONTRASTS)]

    @property
    def background(self) -> str:
        return self.page.evaluate("getComputedStyle(document.body).backgroundColor")
