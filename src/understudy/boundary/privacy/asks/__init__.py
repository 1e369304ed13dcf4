"""What may be asked of rows: each module is one ask, with its price, its proof, its noise and its record."""

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

__all__ = [
    "ASKS",
    "Ask",
    "Consult",
    "Draws",
    "Keys",
    "Marginals",
    "Partitions",
    "Quantile",
    "Ranks",
    "Select",
    "Tally",
    "Total",
    "Train",
    "kind_of",
    "table_of_asks",
]

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


def kind_of(question: Mapping[str, Any]) -> type[Ask[Any]]:
    """Which ask a recorded question is of.

    >>> kind_of({"ask": "total", "scale": 2.0}).__name__
    'Total'
    """
    return _BY_NAME[question["ask"]]


_BY_NAME = {ask.name: ask for ask in ASKS}


def table_of_asks() -> str:
    """All asks as the Markdown table of docs/concepts/curator.md (`scripts/write-asks` puts it there)."""
    lines = ["| ask | answer | sensitivity | noise | proof note |", "|---|---|---|---|---|"]
    for ask in ASKS:
        told = ask.description
        lines.append(f"| `{ask.__name__}` | {told.gives} | {told.sensitivity} | {told.mechanism} | {told.proof} |")
    return "\n".join(lines) + "\n"
