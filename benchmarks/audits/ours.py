"""Our own methods by the same way as those of others: a control. From the folder benchmarks:

understudy audit --callable audits.ours:privbayes --epsilon 1 --setting full --time-limit 120 --jobs 1
"""

from __future__ import annotations

from typing import Any

from .coded import RECORDS


def privbayes(frame: Any, epsilon: float, delta: float, seed: int) -> Any:
    return _release("privbayes", frame, epsilon, delta, seed)


def mst(frame: Any, epsilon: float, delta: float, seed: int) -> Any:
    return _release("mst", frame, epsilon, delta, seed)


def _release(method: str, frame: Any, epsilon: float, delta: float, seed: int) -> Any:
    """The seed is that of what follows the noise, never that of the noise."""
    import understudy as us
    from understudy.lab.audits.pairs import COLUMNS, SWITCHES

    schema = us.Schema.loads('neighbours = "add-remove"\n' + (COLUMNS if "colour" in frame.columns else SWITCHES))
    table = us.open(frame, schema)
    return us.synthesize(table, method=method, epsilon=epsilon, delta=delta, rows=RECORDS, seed=seed).table
