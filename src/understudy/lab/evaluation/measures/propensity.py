"""Whether a model can tell which table a row is from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.lab.evaluation.comparison import Comparison, RowSample
from understudy.lab.evaluation.measure import INFINITY, LOWER, Measure, MeasureResult
from understudy.lab.evaluation.row_features import Features, Floats, SharedResult, draw, join, quietly

SECTION = "Telling apart"
MOST_ROWS = 20_000
"""Of each table; more are drawn from by the seed."""
PENALTY = 0.01
"""Of the logistic regression: next to none, as the law of pMSE under the null asks."""
ROUNDS, FOLDS = 100, 2
NEGLIGIBLE = 1e-9
"""A direction in which rows vary less than this, as a part of the most, is none."""


@dataclass(frozen=True)
class Mixture:
    """Rows of both tables in one."""

    rows: RowSample
    synthetic: NDArray[np.int64]
    """1 for a synthetic row, 0 for a real one."""
    features: Features

    @classmethod
    def of(cls, comparison: Comparison) -> Mixture:
        real, synthetic = (draw(t, MOST_ROWS, comparison.seed) for t in comparison.both)
        rows = join(real, synthetic)
        origin = np.repeat(np.array([0, 1]), [real.rows, synthetic.rows])
        return cls(rows, origin, Features.fit(comparison.variables, rows))

    @property
    def share(self) -> float:
        """Of synthetic rows."""
        return float(self.synthetic.mean())


@dataclass(frozen=True)
class Propensity:
    """The error of a logistic regression against knowing nothing, and what chance alone makes of it.

    Chance is that of rows drawn from a right model that was fitted to the real ones (Snoke et al., 2018). Other
    real rows vary by themselves too: as many of them as there are real ones have twice as much.
    """

    error: float
    by_chance: float


def _estimate(comparison: Comparison) -> Propensity:
    from sklearn.linear_model import LogisticRegression

    mixture = Mixture.of(comparison)
    matrix, share = mixture.features.one_hot(mixture.rows), mixture.share
    # Newton's method, to convergence: the law of pMSE below is that of the maximum, not of a model on its way there.
    model = LogisticRegression(C=1 / PENALTY, solver="newton-cholesky", tol=1e-8)
    with quietly():
        probability = model.fit(matrix, mixture.synthetic).predict_proba(matrix)[:, 1]
    # pMSE (Woo et al. 2009). A model that is always right has c(1 − c), so that no value is above a quarter.
    error = float(np.square(probability - share).mean())
    # The mean of pMSE under the null is (k − 1)(1 − c)² c / N for k parameters with the constant (Snoke et al. 2018).
    return Propensity(error, _rank(matrix) * (1 - share) ** 2 * share / len(matrix))


def _rank(matrix: Floats) -> int:
    """The number of parameters that the model is free to choose, without the constant."""
    # Indicators of one column add up to 1, so the matrix has fewer independent columns than columns.
    variances = np.linalg.eigvalsh(np.cov(matrix, rowvar=False, ddof=0).reshape(matrix.shape[1], -1))
    most = variances.max(initial=0.0)
    if not most > 0:
        return 0
    return int((variances > NEGLIGIBLE * most).sum())


propensity = SharedResult(_estimate)


def pmse(comparison: Comparison) -> MeasureResult:
    return MeasureResult(propensity(comparison).error)


def pmse_ratio(comparison: Comparison) -> MeasureResult:
    found = propensity(comparison)
    if not found.by_chance:
        return MeasureResult.undefined(
            "all columns are constant in both tables, so that there is nothing to tell them apart by"
        )
    return MeasureResult(found.error / found.by_chance)


def propensity_auc(comparison: Comparison) -> MeasureResult:
    """Each half of the rows is judged by a model that learnt from the other half."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.metrics import roc_auc_score

    if min(comparison.real.rows, comparison.synthetic.rows) < FOLDS:
        return MeasureResult.undefined("both tables need at least two rows, to learn from one and to test on the other")
    # A classifier two-sample test (Lopez-Paz & Oquab 2017), by the AUC in place of accuracy: the tables need not have
    # equally many rows.
    mixture, seed = Mixture.of(comparison), comparison.seed
    matrix, origin = mixture.features.ordinal(mixture.rows), mixture.synthetic
    first = _half(origin, seed)
    found = []
    # Each half is judged by a model that never saw it: on its own rows boosting would tell any two tables apart.
    for learnt in (first, ~first):
        model: Any = HistGradientBoostingClassifier(max_iter=ROUNDS, early_stopping=False, random_state=seed % 2**32)
        with quietly():
            likely = model.fit(matrix[learnt], origin[learnt]).predict_proba(matrix[~learnt])[:, 1]
        found.append(roc_auc_score(origin[~learnt], likely))
    # Less than one half is chance: rows that can't be told apart are judged worse than by guessing half of the time.
    return MeasureResult(max(0.5, float(np.mean(found))), note=f"{len(origin):,} rows")


def _half(origin: NDArray[np.int64], seed: int) -> NDArray[np.bool_]:
    """Half of the rows of each table."""
    rng = np.random.Generator(np.random.PCG64(seed))
    chosen = np.zeros(len(origin), dtype=bool)
    for table in (0, 1):
        rows = np.flatnonzero(origin == table)
        chosen[rng.permutation(rows)[: len(rows) // 2]] = True
    return chosen


_measure = partial(Measure, section=SECTION, direction=LOWER, low=0.0)

MEASURES: tuple[Measure, ...] = (
    _measure("pmse", "Propensity error (pMSE)", high=0.25, compute=pmse,
             explanation="How far a logistic regression moves from knowing nothing when it guesses which table a row "
             "is from."),
    _measure("pmse-ratio", "pMSE against chance", high=INFINITY, compute=pmse_ratio,
             explanation="The same error over that of rows from a right model fitted to the real ones; other real "
             "rows have about 2."),
    _measure("propensity-auc", "AUC of telling rows apart", low=0.5, high=1.0, compute=propensity_auc,
             explanation="How well gradient boosting tells synthetic rows from real ones that it has not seen; 0.5 "
             "is chance."),
)  # fmt: skip
