"""The colours of pages and pictures: one name each, with a value on light and one on dark paper.

Real and synthetic are blue and orange, which people with any colour vision tell apart; besides, what is real is filled
and what is synthetic is outlined. The series are those of Okabe & Ito (2008), made darker or lighter to be read.
"""

from __future__ import annotations

LIGHT = {
    "paper": "#f7f6f2",
    "card": "#ffffff",
    "ink": "#1d2530",
    "quiet": "#56616d",
    "rule": "#dedcd4",
    "track": "#e9e7e0",
    "accent": "#14646b",
    "hero": "#123f46",
    "hero-ink": "#f2f7f6",
    "hero-quiet": "#b9d3d3",
    "alarm": "#a3161f",
    "alarm-ink": "#ffffff",
    "warn": "#fdf1d8",
    "warn-ink": "#5f4200",
    "warn-rule": "#e3b04b",
    "real": "#4f86b8",
    "synthetic": "#c04f00",
    "positive": "#b2182b",
    "negative": "#2166ac",
    "series-1": "#0072b2",
    "series-2": "#c75300",
    "series-3": "#00805e",
    "series-4": "#a8487f",
    "series-5": "#8a6d00",
    "series-6": "#2a7fa8",
    "series-7": "#5b4a9e",
    "series-8": "#4a4f55",
}
DARK = {
    "paper": "#12161b",
    "card": "#1a2027",
    "ink": "#e4e8ec",
    "quiet": "#a3aeb9",
    "rule": "#303944",
    "track": "#2a323c",
    "accent": "#74c5c9",
    "hero": "#0f3138",
    "hero-ink": "#eef6f5",
    "hero-quiet": "#a5c4c5",
    "alarm": "#b3212b",
    "alarm-ink": "#ffffff",
    "warn": "#35290f",
    "warn-ink": "#f3dca8",
    "warn-rule": "#8a6a21",
    "real": "#5f9bd1",
    "synthetic": "#f5a054",
    "positive": "#f0705f",
    "negative": "#5aa5e6",
    "series-1": "#56b4e9",
    "series-2": "#f08a3c",
    "series-3": "#2fc196",
    "series-4": "#dd8ab8",
    "series-5": "#e0c04a",
    "series-6": "#8fd0ee",
    "series-7": "#a99be8",
    "series-8": "#b8bec5",
}
FONT = "'Liberation Sans', Arial, Helvetica, 'DejaVu Sans', 'Noto Sans', sans-serif"

# A series has a dash of its own beside its colour, so that a page can be read without colours, and printed in grey.
SERIES = tuple(f"series-{i}" for i in range(1, 9))
DASHES = ("", "7 3", "2 3", "9 3 2 3", "12 4", "4 2 1 2", "1 2", "6 2 2 2 2 2")


def var(name: str) -> str:
    """The colour as a page refers to it.

    >>> var("ink")
    'var(--ink)'
    """
    assert name in LIGHT, name
    return f"var(--{name})"


def series_style(index: int) -> tuple[str, str]:
    """Colour and dash of the series of this number; after eight, colours come again with another dash."""
    turn, place = divmod(index, len(SERIES))
    return var(SERIES[place]), DASHES[(place + turn) % len(DASHES)]
