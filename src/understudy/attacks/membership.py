"""Was this person in the table? By the distance to the nearest synthetic row, and by how much denser they lie there."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from understudy.attacks.attack import AREA, Attack, Finding
from understudy.attacks.interval import clopper_pearson, ranked_above, ranking
from understudy.attacks.neighbours import Floats, Index
from understudy.attacks.setting import NEAREST, Setting, matrix, some
from understudy.evaluation.features import quietly

FOLDS = 5
MOST_ROWS = 20_000
"""Of each kind, to learn a threshold from and to test it on."""
FALSE_ALARMS = (0.01, 0.10)
TOUCHING = 1e-3
"""Standard deviations: nearer than this, a copy is a copy."""
BY_DISTANCE, BY_DENSITY = 1, 2


def by_distance(setting: Setting) -> Finding:
    """Logistic regression on one number, tested on rows that it was not fitted to; half of them are members."""
    rng = setting.generator(BY_DISTANCE)
    most = min(setting.train.rows, setting.holdout.rows, MOST_ROWS)
    kinds = [n.distances[:, 0][rng.permutation(len(n.distances))[:most]] for n in setting.near]
    distances = np.concatenate(kinds)
    member = np.repeat([True, False], most)
    right = int((_predicted(distances, member) == member).sum())
    low, high = clopper_pearson(right, 2 * most)
    success = right / (2 * most)
    note = f"{most:,} rows of each kind, {FOLDS}-fold cross-validation; the distance alone is a weak test"
    return Finding(success, 0.5, success - 0.5, (low - 0.5, high - 0.5), note=note)


def _predicted(distances: Floats, member: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Of each row, by a model that saw the other folds; every fold has as many of both kinds as can be."""
    from sklearn.linear_model import LogisticRegression

    column = (distances / (distances.std() or 1.0))[:, np.newaxis]
    fold = np.tile(np.arange(len(distances) // 2) % FOLDS, 2)
    predicted = np.zeros(len(distances), dtype=np.bool_)
    with quietly():
        for i in range(FOLDS):
            model = LogisticRegression().fit(column[fold != i], member[fold != i])
            predicted[fold == i] = model.predict(column[fold == i])
    return predicted


def by_density(setting: Setting) -> Finding:
    """How much denser synthetic rows lie about a row than real ones that were not in training (after DOMIAS)."""
    rng = setting.generator(BY_DENSITY)
    order = rng.permutation(setting.holdout.rows)
    reference, others = np.sort(order[: len(order) // 2]), order[len(order) // 2 :]
    members = some(setting.train.rows, 2 * MOST_ROWS, rng)
    real = Index.of(matrix(setting.features, setting.holdout.take(reference)))
    near_train, near_holdout = setting.near
    asked = (
        (setting.train.take(members), near_train.distances[members]),
        (
            setting.holdout.take(others),
            near_holdout.distances[others],
        ),
    )
    inside, outside = (
        _nearness(synthetic) - _nearness(real.nearest(matrix(setting.features, rows), NEAREST).distances)
        for rows, synthetic in asked
    )
    area = ranked_above(inside, outside)
    low, high = ranking(area, len(inside), len(outside))
    note = f"{len(inside):,} members, {len(outside):,} others, {len(reference):,} real rows to compare with"
    found = Finding(area, 0.5, area - 0.5, (low - 0.5, high - 0.5), note=note)
    return found.with_parts({f"at {rate:.0%} false alarms": _at(rate, inside, outside) for rate in FALSE_ALARMS})


def _nearness(distances: Floats) -> Floats:
    """The logarithm of a density by nearest neighbours, but for its dimension and a constant."""
    return -np.log(distances + TOUCHING).mean(axis=1)


def _at(rate: float, inside: Floats, outside: Floats) -> Finding:
    """Members found by a threshold that one half of the others sets, beside the other half found by it."""
    half = len(outside) // 2
    threshold = np.quantile(outside[:half], 1 - rate, method="higher")
    hits, alarms = int((inside > threshold).sum()), int((outside[half:] > threshold).sum())
    found = Finding.shares(hits, len(inside), alarms, len(outside) - half)
    (low, high), (base_low, base_high) = (
        clopper_pearson(hits, len(inside)),
        clopper_pearson(alarms, len(outside) - half),
    )
    ends = f"members found {low:.2%} to {high:.2%}, false alarms {base_low:.2%} to {base_high:.2%}"
    return found.with_parts({}, note=f"exact intervals: {ends}")


ATTACKS: tuple[Attack, ...] = (
    Attack(
        "membership-distance",
        "Membership by distance",
        "Somebody who knows a person's whole row could tell from the nearest synthetic row whether they were in the "
        "table.",
        "Rows of which it is rightly said whether they were in the table, half of them being so; guessing is right "
        "half of the time.",
        by_distance,
    ),
    Attack(
        "membership-density",
        "Membership by density",
        "Somebody who knows a person's whole row and similar people elsewhere could tell whether they were in the "
        "table.",
        "How often a row of the table looks more like a member than a row that was not in it; guessing is right half "
        "of the time.",
        by_density,
        AREA,
    ),
)
