"""Which declared value a text probably stands for: the same but for case and spaces, or else nearly spelled like it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from understudy.parameters import close_names

NEARLY = 0.75
_DECIMAL_COMMA = re.compile(r"[+-]?\d{1,3}(\.?\d{3})*,\d+")


def meant(text: str, labels: Sequence[str]) -> str | None:
    """The label that was probably meant, if any.

    >>> meant("male ", ["Female", "Male"]), meant("Diabetis", ["Asthma", "Diabetes"]), meant("7", ["x", "y"])
    ('Male', 'Diabetes', None)
    """
    folded: dict[str, str] = {}
    for label in labels:
        folded.setdefault(_folded(label), label)
    same = folded.get(_folded(text))
    if same is not None:
        return same
    near = close_names(text.strip(), labels, most=1, cutoff=NEARLY)
    return near[0] if near else None


def has_decimal_comma(text: str) -> bool:
    """Whether it looks like a number of a country that writes a comma.

    >>> has_decimal_comma("-1.234,50"), has_decimal_comma("12.5")
    (True, False)
    """
    return _DECIMAL_COMMA.fullmatch(text.strip()) is not None


def _folded(text: str) -> str:
    """Without case, accents of typing such as hyphens, and spaces."""
    return re.sub(r"[\s_\-.]+", "", text.casefold())
