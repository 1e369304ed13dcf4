"""A picture: SVG drawn by hand, with a title, a description and the numbers behind it.

In a page its colours are variables, so that it follows light and dark; by itself it has those of light paper. No
plotting library: a report has to open without a network, in ten years, and under 3 MB.
"""

from __future__ import annotations

import importlib
import math
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from understudy.errors import InputError, installing
from understudy.files import write_atomically
from understudy.pages.palette import FONT, LIGHT, var

TEXT, SMALL = 11.5, 10.5
MARGIN = 12
"""Around a picture that stands by itself."""
ELLIPSIS = "…"
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_VARIABLE = re.compile(r"var\(--([a-z0-9-]+)\)")
_NARROW, _WIDE = frozenset("ijl.,:;'|! \N{NO-BREAK SPACE}ftr()[]-/"), frozenset("mwMW@%…—<>=+~−")


@dataclass(frozen=True)
class Numbers:
    """The data of a picture as texts, for whoever reads tables rather than pictures."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Figure:
    """A picture for a page or a file."""

    svg: str
    title: str
    description: str
    width: float
    height: float
    numbers: Numbers = Numbers((), ())

    def standalone(self) -> str:
        """The SVG by itself: on light paper, with a margin."""
        wide, high = (coordinate(side + 2 * MARGIN) for side in (self.width, self.height))
        box = f'viewBox="-{MARGIN} -{MARGIN} {wide} {high}" width="{wide}" height="{high}"'
        paper = f'xmlns="http://www.w3.org/2000/svg" style="background:{LIGHT["card"]}"'
        # The first size is that of the root element: pictures within it keep theirs.
        svg = self.svg.replace(_size(self.width, self.height), f"{paper} {box}", 1)
        values = {**LIGHT, "font": FONT}  # a file by itself has no style sheet that could define the variables
        return _VARIABLE.sub(lambda found: values[found[1]], svg)

    def save(self, path: str | Path) -> None:
        """Writes an .svg or a .png, by the ending of the path.

        >>> figure([], 10, 10, "Nothing", "An empty picture.").save("nothing.gif")
        Traceback (most recent call last):
        understudy.errors.InputError: 'nothing.gif' must end in .svg or .png
        """
        path = Path(path)
        if path.suffix.lower() not in (".svg", ".png"):
            raise InputError(f"{path.name!r} must end in .svg or .png", path)
        svg = self.standalone()
        data = svg.encode() if path.suffix.lower() == ".svg" else _png(svg)
        write_atomically(path, data, private=True)

    def _repr_svg_(self) -> str:
        return self.standalone()


def _png(svg: str) -> bytes:
    """Drawn at twice the size, for print and fine screens."""
    # An extra: whoever saves SVG only needs no renderer. By name, since it has no types to check against.
    try:
        resvg = importlib.import_module("resvg_py")
    except ImportError:
        raise InputError(f"a .png needs resvg_py: {installing('figures')}; or save an .svg", ".png") from None
    return bytes(resvg.svg_to_bytes(svg_string=svg, zoom=2, background=LIGHT["card"]))


def file_name(title: str) -> str:
    """A title as the name of a file.

    >>> file_name("Mean rank at ε = 0.5")
    'mean-rank-at-0-5'
    """
    # Decomposed first, so that é is kept as e; what has no ASCII form, such as ε, is left out.
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9]+", "-", plain.lower()).strip("-")[:60] or "figure"


def figure(
    marks: Iterable[str], width: float, height: float, title: str, description: str, numbers: Numbers | None = None
) -> Figure:
    """Marks on a canvas of this size, with what a screen reader says of it."""
    said = element("title", words(title)) + element("desc", words(description))
    root = f'<svg role="img" {_size(width, height)} font-family="var(--font)" font-size="{TEXT}" color="{var("ink")}">'
    svg = f"{root}{said}{''.join(marks)}</svg>"
    return Figure(svg, title, description, width, height, numbers or Numbers((), ()))


def _size(width: float, height: float) -> str:
    wide, high = coordinate(width), coordinate(height)
    return f'viewBox="0 0 {wide} {high}" width="{wide}" height="{high}"'


def element(tag: str, content: str = "", /, **attributes: str | float | None) -> str:
    """An element whose content is markup already; attributes are escaped, and left out where None.

    >>> element("rect", x=1.50, stroke_width=2, fill="<")
    '<rect x="1.5" stroke-width="2" fill="&lt;"/>'
    """
    written = "".join(f' {k.replace("_", "-")}="{_attribute(v)}"' for k, v in attributes.items() if v is not None)
    if not content:
        return f"<{tag}{written}/>"
    return f"<{tag}{written}>{content}</{tag}>"


def _attribute(value: str | float | None) -> str:
    if isinstance(value, str):
        return words(value)
    return coordinate(float(value or 0.0))


def coordinate(value: float) -> str:
    """A finite number with two decimals at most.

    >>> coordinate(3.14159), coordinate(-0.001), coordinate(200)
    ('3.14', '0', '200')
    """
    # Browsers leave out an element with NaN in it and say nothing: the picture would be wrong unnoticed.
    assert math.isfinite(value), "a coordinate must be finite"
    return f"{round(value, 2) + 0.0:.2f}".rstrip("0").rstrip(".")  # adding zero takes the sign off a zero


def words(text: str) -> str:
    """The text as markup may hold it: escaped, and without characters that XML forbids.

    >>> words("<b>\\x00")
    '&lt;b&gt;�'
    """
    return escape(cleaned(text))


def cleaned(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)


def text(
    x: float,
    y: float,
    content: str,
    *,
    size: float = TEXT,
    anchor: str | None = None,
    quiet: bool = False,
    bold: bool = False,
    fill: str | None = None,
    **attributes: str | None,
) -> str:
    """A line of text, on its baseline at (x, y)."""
    if not fill:
        fill = var("quiet") if quiet else "currentColor"
    return element(
        "text",
        words(content) or " ",  # without any content it would be an element that closes itself
        x=x,
        y=y,
        font_size=None if size == TEXT else size,
        text_anchor=anchor,
        font_weight="600" if bold else None,
        fill=fill,
        **attributes,
    )


def heading(title: str, room: float) -> str:
    """The title of a picture, at its top."""
    return text(0, 14, shortened(title, room, 14), size=13.5, bold=True)


def rotation(degrees: float, x: float, y: float) -> str:
    """What turns a text about its own place, as its `transform`."""
    return f"rotate({coordinate(degrees)} {coordinate(x)} {coordinate(y)})"


def line(x1: float, y1: float, x2: float, y2: float, colour: str, width: float = 1.0, dash: str | None = None) -> str:
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, stroke=colour, stroke_width=width, stroke_dasharray=dash or None)


def path(points: Sequence[tuple[float, float]], *, closed: bool = False) -> str:
    """What an element `path` has as its `d`."""
    along = "M" + "L".join(f"{coordinate(x)} {coordinate(y)}" for x, y in points)
    return along + "Z" if closed else along


def tip(marks: str, content: str) -> str:
    """Marks that say something to whoever points at them."""
    return element("g", element("title", words(content)) + marks)


def width_of(content: str, size: float = TEXT) -> float:
    """How wide a text is at most, in any of the usual sans-serif fonts."""
    # An upper bound by classes of characters: which font a reader has isn't known when the picture is drawn.
    return size * sum(map(_width, content))


def _width(character: str) -> float:
    if unicodedata.combining(character):
        return 0.0
    if character in _NARROW:
        return 0.41
    if character in _WIDE or unicodedata.east_asian_width(character) in "WF":
        return 1.0
    return 0.72 if character.isupper() else 0.635


def shortened(content: str, room: float, size: float = TEXT) -> str:
    """The text on one line, no wider than there is room; of a long one the middle is left out, since ends tell apart.

    >>> shortened("a long name of a column", 70)
    'a long…mn'
    """
    content = " ".join(cleaned(content).split())
    if width_of(content, size) <= room:
        return content
    for kept in range(len(content) - 1, 0, -1):
        tail = kept // 3
        shown = content[: kept - tail].rstrip() + ELLIPSIS + content[len(content) - tail :].lstrip()
        if width_of(shown, size) <= room:
            return shown
    return ELLIPSIS
