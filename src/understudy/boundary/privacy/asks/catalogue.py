"""All asks, and which of them a recorded question or spend is of.

Records and certificates hold plain values, so that old ones stay readable; this is the one place that reads from them
what was asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from understudy.boundary.privacy.asks.ask import Ask
from understudy.boundary.privacy.asks.consult import Consult
from understudy.boundary.privacy.asks.draws import Draws
from understudy.boundary.privacy.asks.keys import Keys
from understudy.boundary.privacy.asks.marginals import Marginals
from understudy.boundary.privacy.asks.partitions import Partitions
from understudy.boundary.privacy.asks.quantile import Quantile
from understudy.boundary.privacy.asks.ranks import Ranks
from understudy.boundary.privacy.asks.select import Select
from understudy.boundary.privacy.asks.tally import Tally
from understudy.boundary.privacy.asks.total import Total
from understudy.boundary.privacy.asks.train import Train
from understudy.boundary.privacy.budget import Spend

ASKS: tuple[type[Ask[Any]], ...] = (
    Marginals,
    Partitions,
    Total,
    Select,
    Quantile,
    Ranks,
    Keys,
    Tally,
    Draws,
    Train,
    Consult,
)
"""All of them: nothing else comes out of a curator."""


_BY_NAME = {ask.name: ask for ask in ASKS}
_BY_MECHANISM: dict[str, type[Ask[Any]]] = {
    "sampled-gaussian": Train,
    "thresholded-gaussian": Keys,
    "posterior-draws": Draws,
}
_BY_WORDS: tuple[tuple[str, type[Ask[Any]]], ...] = (
    ("counts by ", Marginals),
    ("counts of ", Partitions),
    ("number of rows", Total),
    ("sum of ", Tally),
    ("quantile ", Quantile),
    ("rank ", Ranks),
)
"""How the words of a spend begin; those of a selection and of votes begin with a number."""


def kind_of(question: Mapping[str, Any]) -> type[Ask[Any]]:
    """Which ask a recorded question is of.

    >>> kind_of({"ask": "total", "scale": 2.0}).__name__
    'Total'
    """
    return _BY_NAME[question["ask"]]


def kind_of_spend(spend: Spend) -> type[Ask[Any]] | None:
    """Which ask a recorded spend paid for; None where no ask uses these words.

    >>> kind_of_spend(Spend("exponential", "2 of 10 sets of columns", sensitivity=1.0, scale=0.5)).__name__
    'Select'
    """
    if spend.mechanism in _BY_MECHANISM:
        return _BY_MECHANISM[spend.mechanism]
    for words, kind in _BY_WORDS:
        if spend.asked.startswith(words):
            return kind
    if spend.mechanism == "exponential":
        return Select
    return Consult if " votes of " in spend.asked else None


def table_of_asks() -> str:
    """All asks as the Markdown table of docs/concepts/curator.md (`scripts/write-asks` puts it there)."""
    lines = ["| ask | answer | sensitivity | noise | proof note |", "|---|---|---|---|---|"]
    for ask in ASKS:
        told = ask.description
        lines.append(f"| `{ask.__name__}` | {told.gives} | {told.sensitivity} | {told.mechanism} | {told.proof} |")
    return "\n".join(lines) + "\n"
