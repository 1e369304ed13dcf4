"""How pages are filled in: escaped, loading nothing, in the colours of the palette; and how results show themselves."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from understudy.errors import InputError
from understudy.files import make_private, write_atomically
from understudy.pages.figure import Figure, cleaned, file_name
from understudy.pages.formatting import counted, percent, valued
from understudy.pages.palette import DARK, LIGHT
from understudy.parameters import one_of

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


# Spaces in these places show nowhere (HTML drops them between the parts of a table, SVG between shapes), and nothing
# but our markup can match, since every text is escaped.
_NEEDLESS_BREAKS = re.compile(r"\n+(?=<(?:td|/td|/tr|tr|/tbody|rect|line|text|g|title|path|svg x|/svg)[ />])")


def fill(template: str, **context: Any) -> str:
    """A page from one of the templates; same input, same bytes."""
    return rendered(_environment().get_template(template), **context)


def rendered(template: jinja2.Template, **context: Any) -> str:
    """The page with each table and each drawing on one line: most of a long report would be line breaks otherwise."""
    return _NEEDLESS_BREAKS.sub("", template.render(**context))


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
        undefined=jinja2.StrictUndefined,  # a misspelt name is an error, and no empty place on the page
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_printable,
    )


def _printable(value: Any) -> Any:
    """Texts without the characters that no page may hold; markup of ours is clean already."""
    # By type and not by isinstance: jinja's Markup, which was escaped already, is a subclass of str.
    return cleaned(value) if type(value) is str else value


def _hash(script: str) -> str:
    """By which the page's policy lets this script run, and no other."""
    # Of the text between the tags to the byte: a template that indents the script would keep it from running.
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


FIGURE_FORMATS = ("svg", "png")


class Report(Protocol):
    """The module beside a result that knows how to show it."""

    def render(self, result: Any, /) -> str: ...

    def render_brief(self, result: Any, /) -> str: ...

    def pictures(self, result: Any, /) -> Sequence[Figure]: ...


class Rendered:
    """A result that shows itself, by the report of its own room: as a page, in a notebook, as files."""

    def _report(self) -> Report:
        # Imported when it is asked for: a report knows the result that it shows, and the result its report.
        raise NotImplementedError

    def to_html(self) -> str:
        """The report as one page that needs nothing else."""
        return self._report().render(self)

    def to_json(self) -> str:
        """For programs."""
        raise NotImplementedError

    def save(self, path: str | Path) -> None:
        """Writes the report (.html) or the result for programs (.json), by the ending of the path."""
        path = Path(path)
        content = report_writer(path, {".html": self.to_html, ".json": self.to_json})()
        # It was made by looking at rows, without a guarantee.
        write_atomically(path, content.encode(), private=True)

    def save_figures(self, folder: str | Path, format: str = "svg") -> list[Path]:
        """Writes every picture of the report as a file of its own, for papers and slides.

        They are numbered in the order of the report, so that two of one title have files of their own.
        """
        check_figure_format(format)
        folder, figures = Path(folder), self._report().pictures(self)
        make_private(folder)
        paths = [folder / f"{i:02d}-{file_name(figure.title)}.{format}" for i, figure in enumerate(figures, 1)]
        for figure, path in zip(figures, paths, strict=True):
            figure.save(path)
        return paths

    def _repr_html_(self) -> str:
        return self._report().render_brief(self)


def report_writer(path: Path, writers: dict[str, Callable[[], str]]) -> Callable[[], str]:
    """What writes a file of this ending."""
    if path.suffix.lower() not in writers:
        raise InputError(f"{path.name!r} must end in {' or '.join(writers)}", path)
    return writers[path.suffix.lower()]


def check_figure_format(format: str) -> None:
    one_of("the format of figures", format, FIGURE_FORMATS)
