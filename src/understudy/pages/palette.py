"""The colours of pages and pictures: one name each, with a value on light and one on dark paper.

Real and synthetic are blue and orange, which people with any colour vision tell apart; besides, what is real is filled
and what is synthetic is outlined. The series are those of Okabe & Ito (2008), made darker or lighter to be read.
"""

from __future__ import annotations

COLOURS = {
    "paper": ("#f7f6f2", "#12161b"),
    "card": ("#ffffff", "#1a2027"),
    "ink": ("#1d2530", "#e4e8ec"),
    "quiet": ("#56616d", "#a3aeb9"),
    "rule": ("#dedcd4", "#303944"),
    "track": ("#e9e7e0", "#2a323c"),
    "accent": ("#14646b", "#74c5c9"),
    "hero": ("#123f46", "#0f3138"),
    "hero-ink": ("#f2f7f6", "#eef6f5"),
    "hero-quiet": ("#b9d3d3", "#a5c4c5"),
    "alarm": ("#a3161f", "#b3212b"),
    "alarm-ink": ("#ffffff", "#ffffff"),
    "warn": ("#fdf1d8", "#35290f"),
    "warn-ink": ("#5f4200", "#f3dca8"),
    "warn-rule": ("#e3b04b", "#8a6a21"),
    "real": ("#4f86b8", "#5f9bd1"),
    "synthetic": ("#c04f00", "#f5a054"),
    "positive": ("#b2182b", "#f0705f"),
    "negative": ("#2166ac", "#5aa5e6"),
    "series-1": ("#0072b2", "#56b4e9"),
    "series-2": ("#c75300", "#f08a3c"),
    "series-3": ("#00805e", "#2fc196"),
    "series-4": ("#a8487f", "#dd8ab8"),
    "series-5": ("#8a6d00", "#e0c04a"),
    "series-6": ("#2a7fa8", "#8fd0ee"),
    "series-7": ("#5b4a9e", "#a99be8"),
    "series-8": ("#4a4f55", "#b8bec5"),
}
LIGHT = {name: light for name, (light, _) in COLOURS.items()}
DARK = {name: dark for name, (_, dark) in COLOURS.items()}
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
