"""How near made rows are to real ones, both as codes: total variation, and what is learned from them."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.schema.domain import Domain
from understudy.inference.model import CodeColumns
from understudy.inference.particles.particles import cells_of

DEPTH = 10
"""Of the decision tree, as in the thesis on DP-Select."""
MOST_BOOSTED = 20_000
"""Rows that gradient boosting learns from, and is tested with; more are drawn from by the seed."""

Floats = NDArray[np.float64]


def total_variation(domain: Domain, real: CodeColumns, made: CodeColumns, width: int) -> float:
    """The mean over all sets of so many columns."""
    found = []
    for columns in itertools.combinations(domain.names, min(width, len(domain.names))):
        groups = [np.arange(n) for n in domain.shape(columns)]
        counts = [np.bincount(cells_of(t, columns, groups), minlength=domain.cells(columns)) for t in (real, made)]
        found.append(float(np.abs(counts[0] / counts[0].sum() - counts[1] / counts[1].sum()).sum() / 2))
    return float(np.mean(found))


def auc_and_accuracy(
    domain: Domain, target: str, made: CodeColumns, test: CodeColumns, seed: int
) -> tuple[float, float, float]:
    """The AUC of gradient boosting, and the accuracy, plain and balanced, of a tree of depth 10; all on real rows.

    With several classes the AUC is the mean of each against the rest. Rows of one class teach nothing: an AUC of ½.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.metrics import balanced_accuracy_score
    from sklearn.tree import DecisionTreeClassifier

    features = [c for c in domain.names if c != target]
    x, tested = (np.column_stack([t[c] for c in features]) for t in (made, test))
    y, truth = made[target], test[target]
    tree = DecisionTreeClassifier(max_depth=DEPTH, random_state=seed).fit(x, y)
    said = tree.predict(tested)
    accuracies = float((said == truth).mean()), float(balanced_accuracy_score(truth, said))
    learnt, asked = _some(len(y), seed), _some(len(truth), seed)
    if len(np.unique(y[learnt])) < 2:
        return (0.5, *accuracies)
    boosting = HistGradientBoostingClassifier(early_stopping=False, random_state=seed).fit(x[learnt], y[learnt])
    chances = np.zeros((len(asked), domain.size(target)))
    chances[:, boosting.classes_] = boosting.predict_proba(tested[asked])
    return (mean_auc(chances, truth[asked]), *accuracies)


def _some(rows: int, seed: int) -> NDArray[np.int64]:
    return np.random.default_rng(seed).permutation(rows)[:MOST_BOOSTED]


def mean_auc(chances: Floats, truth: NDArray[np.integer]) -> float:
    from sklearn.metrics import roc_auc_score

    if chances.shape[1] == 2:
        return float(roc_auc_score(truth, chances[:, 1]))
    known = [c for c in range(chances.shape[1]) if 0 < (truth == c).sum() < len(truth)]
    return float(np.mean([roc_auc_score(truth == c, chances[:, c]) for c in known]))
