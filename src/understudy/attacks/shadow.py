"""Membership by shadow models: a method is run many times with and without one person, and its outputs told apart.

Unlike the other attacks it attacks a method, not a table, so it costs as many runs. Whoever calls brings the method.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.attacks.attack import Finding
from understudy.attacks.interval import ranked_above, ranking
from understudy.errors import InputError
from understudy.evaluation.comparison import Comparison
from understudy.evaluation.features import quietly
from understudy.evaluation.sample import Sample
from understudy.schema.schema import Schema
from understudy.tables.reading import Rows

FEWEST_SHADOWS = 8
Make = Callable[[Any, int], Any]
"""From a table and a seed to a synthetic table."""
Floats = NDArray[np.float64]


def shadow_membership(
    make: Make, table: Any, row: int, *, schema: Schema | None = None, shadows: int = 40, seed: int = 0
) -> Finding:
    """How well outputs with the row are told from those without it; half of the runs learn how, the others test it."""
    rows = Rows.of(table, "the table").everything()
    if not 0 <= row < rows.num_rows or rows.num_rows < 2:
        raise InputError(f"row ({row}) must be from 0 to {rows.num_rows - 1}, of 2 rows or more", row)
    if shadows < FEWEST_SHADOWS:
        raise InputError(f"shadows ({shadows}) must be {FEWEST_SHADOWS} or more", shadows)
    without = rows.take(np.delete(np.arange(rows.num_rows), row))
    half = -(-shadows // 2)
    inside, outside = (
        np.array([_around(rows, row, make(t, seed + 2 * i + kind), schema) for i in range(half)])
        for kind, t in enumerate((rows, without))
    )
    return _told_apart(inside, outside)


def _around(rows: Any, row: int, synthetic: Any, schema: Schema | None) -> Floats:
    """The number of synthetic rows that agree with the row in at least one column, two, …, all; logarithmic."""
    compared = Comparison.of(rows, synthetic, schema=schema)
    return np.log1p(agreeing(compared.real, row, compared.synthetic))


def agreeing(real: Sample, row: int, synthetic: Sample) -> Floats:
    agreed = np.zeros(synthetic.rows, dtype=np.int64)
    for name, codes in synthetic.codes.items():
        agreed += codes == real.codes[name][row]
    counts = np.bincount(agreed, minlength=len(synthetic.codes) + 1)
    return np.cumsum(counts[::-1])[::-1].astype(np.float64)


def _told_apart(inside: Floats, outside: Floats) -> Finding:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    learnt = len(inside) // 2
    model = make_pipeline(StandardScaler(), LogisticRegression())
    with quietly():
        model.fit(np.concatenate([inside[:learnt], outside[:learnt]]), np.repeat([1, 0], learnt))
        scores = [model.decision_function(runs[learnt:]) for runs in (inside, outside)]
    area, tested = ranked_above(*scores), len(scores[0])
    note = f"{2 * learnt} runs to learn from, {2 * tested} to test"
    return Finding.beside_guessing(area, ranking(area, tested, tested), note)
