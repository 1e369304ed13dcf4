"""Can it be told who was in the training table: by nearness to synthetic rows, by their density, or by copies of rows?

Only the difference between people of the table and others speaks about privacy.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from understudy.lab.attacks.confidence import clopper_pearson, ranked_above, ranking, welch
from understudy.lab.attacks.nearest_rows import Floats, Index
from understudy.lab.attacks.threat import AREA, DISTANCE, NEAREST, Attack, Finding, Threat, matrix, some
from understudy.lab.evaluation.comparison import RowSample
from understudy.lab.evaluation.row_features import quietly

MOST_ROWS = 20_000
"""Of each kind, to learn a threshold from and to test it on."""
# A mean over all rows hides an attack that is sure of a few people: hence true positives at few false alarms, as
# Carlini et al. (2022) ask for. Theirs are 0.1 % and less.
FALSE_ALARMS = (0.01, 0.10)
TOUCHING = 1e-3
"""Standard deviations: nearer than this, a copy is a copy."""
BY_DISTANCE, BY_DENSITY = 1, 2


def by_distance(threat: Threat) -> Finding:
    """Logistic regression on one number: half of the rows teach it, the others test it; half of both are members.

    Not cross-validated: errors of the folds go together, so that an interval from all of them would be too narrow.
    """
    rng = threat.generator(BY_DISTANCE)
    most = min(threat.train.rows, threat.holdout.rows, MOST_ROWS)
    kinds = [n.distances[:, 0][rng.permutation(len(n.distances))[:most]] for n in threat.near]
    learnt = most // 2
    predicted = _predicted([k[:learnt] for k in kinds], np.concatenate([k[learnt:] for k in kinds]))
    tested = len(predicted)
    right = int((predicted == np.repeat([True, False], tested // 2)).sum())
    note = f"learnt from {2 * learnt:,} rows, tested on {tested:,}; the distance alone is a weak test"
    return Finding.beside_guessing(right / tested, clopper_pearson(right, tested), note)


def _predicted(kinds: Sequence[Floats], asked: Floats) -> NDArray[np.bool_]:
    """Whether each is a member, by a model that saw as many members as others."""
    from sklearn.linear_model import LogisticRegression

    distances = np.concatenate(kinds)
    # In units of their own spread: the regression is penalised, and would else depend on how wide the table is.
    scale = float(distances.std()) or 1.0
    with quietly():
        model = LogisticRegression().fit(
            distances[:, np.newaxis] / scale, np.repeat([True, False], [len(k) for k in kinds])
        )
        return model.predict(asked[:, np.newaxis] / scale)


def by_density(threat: Threat) -> Finding:
    """How much denser synthetic rows lie about a row than real ones that were not in training (after DOMIAS)."""
    rng = threat.generator(BY_DENSITY)
    # One half of the hold-out is the reference and the other is tested: a row of the reference would find itself there.
    order = rng.permutation(threat.holdout.rows)
    reference, others = np.sort(order[: len(order) // 2]), order[len(order) // 2 :]
    members = some(threat.train.rows, 2 * MOST_ROWS, rng)
    real = Index.of(matrix(threat.features, threat.holdout.take(reference)))
    near_train, near_holdout = threat.near
    asked = (
        (threat.train.take(members), near_train.distances[members]),
        (threat.holdout.take(others), near_holdout.distances[others]),
    )
    inside, outside = (
        _nearness(synthetic) - _nearness(real.nearest(matrix(threat.features, rows), NEAREST).distances)
        for rows, synthetic in asked
    )
    area = ranked_above(inside, outside)
    note = f"{len(inside):,} members, {len(outside):,} others, {len(reference):,} real rows to compare with"
    found = Finding.beside_guessing(area, ranking(area, len(inside), len(outside)), note)
    return found.with_parts({f"at {rate:.0%} false alarms": _at(rate, inside, outside) for rate in FALSE_ALARMS})


def _nearness(distances: Floats) -> Floats:
    """The logarithm of a density by nearest neighbours, but for its dimension and a constant."""
    # DOMIAS (van Breugel et al. 2023) divides densities by kernels or flows. By neighbours, the dimension is a factor
    # and the constant a shift of every score: neither changes a ranking, so both are left out.
    return -np.log(distances + TOUCHING).mean(axis=1)


def _at(rate: float, inside: Floats, outside: Floats) -> Finding:
    """Members found by a threshold that one half of the others sets, beside the other half found by it."""
    half = len(outside) // 2
    # "higher" keeps the rate of alarms at or below the one that is named, however few rows set it.
    threshold = np.quantile(outside[:half], 1 - rate, method="higher")
    hits, alarms = int((inside > threshold).sum()), int((outside[half:] > threshold).sum())
    found = Finding.shares(hits, len(inside), alarms, len(outside) - half)
    low, high = clopper_pearson(hits, len(inside))
    base_low, base_high = clopper_pearson(alarms, len(outside) - half)
    ends = f"members found {low:.2%} to {high:.2%}, false alarms {base_low:.2%} to {base_high:.2%}"
    return found.with_parts({}, note=f"exact intervals: {ends}")


MEMBERSHIP: tuple[Attack, ...] = (
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


def reconstruction(threat: Threat) -> Finding:
    """The mean distance to the nearest synthetic rows, in standard deviations, of both kinds of rows."""
    train, holdout = (n.distances.mean(axis=1) for n in threat.near)
    success, baseline = float(train.mean()), float(holdout.mean())
    note = f"mean distance to {min(NEAREST, threat.synthetic.rows)} synthetic rows; smaller is nearer"
    return Finding(success, baseline, baseline - success, welch(holdout, train), note=note)


RECONSTRUCTION: tuple[Attack, ...] = (
    Attack(
        "reconstruction",
        "Reconstruction",
        "Synthetic rows would lie nearer to a person because they were in the table, so that the person's row could "
        "be rebuilt from them.",
        "Mean distance to the three nearest synthetic rows; the advantage is how much nearer rows of the table are.",
        reconstruction,
        DISTANCE,
    ),
)


NEAR = 0.01
"""A near copy is nearer than all but this share of the training rows are to one another."""
MOST_COMPARED = 4_000
COPIES_STREAM = 3


def copies(threat: Threat) -> Finding:
    """The share of rows that have a copy, in both kinds; equal rows are counted apart too."""
    equal = equal_rows([threat.train, threat.holdout], threat.synthetic)
    radius = near_radius(threat)
    either = [e | (n.distances[:, 0] < radius) for e, n in zip(equal, threat.near, strict=True)]
    parts = {"equal rows": Finding.hits(*equal), "equal or near rows": Finding.hits(*either)}
    note = f"near means within {radius:.3g}, as the nearest {NEAR:.0%} of training rows are to each other"
    return parts["equal or near rows"].with_parts(parts, note)


def near_radius(threat: Threat) -> float:
    """The first percentile of the distances from training rows to the nearest other one."""
    rows = matrix(threat.features, threat.train)
    chosen = some(len(rows), MOST_COMPARED, threat.generator(COPIES_STREAM))
    distances = Index.of(rows).nearest(rows[chosen], 1, own=chosen).distances[:, 0]
    return float(np.quantile(distances, NEAR))


def equal_rows(asked: Sequence[RowSample], among: RowSample) -> list[NDArray[np.bool_]]:
    """Which rows of each table are equal to one of these, in all columns and in full precision."""
    tables = [*asked, among]
    numbered = np.zeros(sum(t.rows for t in tables), dtype=np.int64)
    for name in among.codes:
        column = np.concatenate([t.values.get(name, t.codes[name]) for t in tables])
        # Renumbered after each column: numbers stay below the number of rows, and the product within 64 bits. To
        # `np.unique` one missing value is like another.
        value, place = np.unique(column, return_inverse=True)
        numbered = np.unique(numbered * len(value) + place, return_inverse=True)[1]
    *parts, theirs = np.split(numbered, np.cumsum([t.rows for t in tables])[:-1])
    return [np.isin(part, theirs) for part in parts]


COPIES: tuple[Attack, ...] = (
    Attack(
        "copies",
        "Copies",
        "A person's row would stand in the synthetic table, as it is or nearly so, because they were in the table.",
        "Rows that have an equal or nearly equal synthetic row; common rows have one by chance, in the hold-out too.",
        copies,
    ),
)
