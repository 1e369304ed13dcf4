"""What may be asked of rows: each class is one ask, with its price, its proof, its noise and its record.

Records and certificates hold plain values, so that old ones stay readable; `kind_of` and `kind_of_spend` are the one
place that reads from them what was asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from understudy.boundary.privacy.asks.ask import Ask
from understudy.boundary.privacy.asks.choices import Quantile, Ranks, Select
from understudy.boundary.privacy.asks.counts import Draws, Keys, Marginals, Moments, Partitions, Tally, Total
from understudy.boundary.privacy.asks.learning import Consult, Train
from understudy.boundary.privacy.budget import Spend

Kind = type[Ask[Any]]
ASKS: tuple[Kind, ...] = (Marginals, Partitions, Total, Select, Quantile, Ranks, Keys, Tally, Moments, Draws)
ASKS += (Train, Consult)
"""All of them: nothing else comes out of a curator."""

__all__ = ["ASKS", "Ask", "Consult", "Draws", "Keys", "Marginals", "Moments", "Partitions", "Quantile", "Ranks"]
__all__ += ["Select", "Tally", "Total", "Train", "kind_of", "kind_of_spend", "table_of_asks"]

_BY_NAME = {ask.name: ask for ask in ASKS}
# Certificates made before name the mechanism and say in words what was asked, and nothing else: so neither the names
# nor how the words begin may ever change. Those of a selection and of votes begin with a number.
_BY_MECHANISM: dict[str, Kind] = {
    "sampled-gaussian": Train,
    "thresholded-gaussian": Keys,
    "thresholded-rounded-gaussian": Keys,
    "posterior-draws": Draws,
}
_BY_WORDS: dict[str, Kind] = {
    "counts by ": Marginals,
    "counts of ": Partitions,
    "number of rows": Total,
    "sum of ": Tally,
    "moment of ": Moments,
    "quantile ": Quantile,
    "rank ": Ranks,
}


def kind_of(question: Mapping[str, Any]) -> Kind:
    """Which ask a recorded question is of.

    >>> kind_of({"ask": "total", "scale": 2.0}).__name__
    'Total'
    """
    return _BY_NAME[question["ask"]]


def kind_of_spend(spend: Spend) -> Kind | None:
    """Which ask a recorded spend paid for; None where no ask uses these words.

    >>> kind_of_spend(Spend("exponential", "2 of 10 sets of columns", sensitivity=1.0, scale=0.5)).__name__
    'Select'
    """
    if spend.mechanism in _BY_MECHANISM:
        return _BY_MECHANISM[spend.mechanism]
    for words, kind in _BY_WORDS.items():
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
