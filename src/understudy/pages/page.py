"""How every page is filled in: escaped, loading nothing, in the colours of the palette."""

from __future__ import annotations

import base64
import hashlib
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from understudy.pages.axis import percent, valued
from understudy.pages.figure import cleaned
from understudy.pages.palette import DARK, LIGHT

if TYPE_CHECKING:
    import jinja2

TOGGLE = """
(function () {
  var root = document.documentElement, button = document.getElementById("theme");
  var system = window.matchMedia("(prefers-color-scheme: dark)");
  function dark() { return root.dataset.theme ? root.dataset.theme === "dark" : system.matches; }
  function show() { button.setAttribute("aria-pressed", String(dark())); }
  button.addEventListener("click", function () { root.dataset.theme = dark() ? "light" : "dark"; show(); });
  system.addEventListener("change", show);
  button.hidden = false;
  show();
})();
"""
"""The only script of a page: it changes between light and dark."""


def fill(template: str, **context: Any) -> str:
    """A page from one of the templates; same input, same bytes."""
    return _environment().get_template(template).render(**context)


@lru_cache(maxsize=1)
def _environment() -> jinja2.Environment:
    environment = plain_environment()
    environment.filters |= {"valued": valued, "percent": percent, "counted": counted}
    environment.globals |= {"light": LIGHT, "dark": DARK, "toggle": TOGGLE, "toggle_hash": _hash(TOGGLE)}
    return environment


def plain_environment() -> jinja2.Environment:
    """The templates with everything escaped, and without filters of any page."""
    import jinja2

    return jinja2.Environment(
        loader=jinja2.PackageLoader("understudy.pages"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_printable,
    )


def _printable(value: Any) -> Any:
    """Texts without the characters that no page may hold; markup of ours is clean already."""
    return cleaned(value) if type(value) is str else value


def _hash(script: str) -> str:
    """By which the page's policy lets this script run, and no other."""
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def counted(number: int, thing: str, things: str = "") -> str:
    """A number with its noun.

    >>> counted(1, "row"), counted(32561, "row"), counted(2, "category", "categories")
    ('1 row', '32,561 rows', '2 categories')
    """
    return f"{number:,} {thing if number == 1 else things or thing + 's'}"
