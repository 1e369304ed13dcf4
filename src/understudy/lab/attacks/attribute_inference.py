"""Can a secret of a person be learnt from the synthetic rows that are most like them in everything else?"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from understudy.lab.attacks.attack import Attack, Finding
from understudy.lab.attacks.confidence import LEVEL, welch
from understudy.lab.attacks.nearest_rows import Floats, Index, Places
from understudy.lab.attacks.threat import Threat, matrix, some
from understudy.lab.evaluation.sample import RowSample

NEAREST = 5
MOST_ROWS = 2_000
"""Of each kind."""
TOUCHING = 1e-6
PURPOSE = 4


def inference(threat: Threat) -> Finding:
    """The mean over the secrets, and each by itself; intervals of the parts hold all together at the stated level."""
    if not threat.secrets:
        return Finding.undefined("no column was named as a secret")
    if len(threat.variables) == 1:
        return Finding.undefined(f"there is no column beside {threat.variables[0].name!r} to know a person by")
    rng = threat.generator(PURPOSE)
    train, holdout = (s.take(some(s.rows, MOST_ROWS, rng)) for s in (threat.train, threat.holdout))
    right = {name: [guessed_right(threat, name, rows) for rows in (train, holdout)] for name in threat.secrets}
    level = 1 - (1 - LEVEL) / len(right)
    parts = {name: _part(inside, outside, level) for name, (inside, outside) in right.items()}
    inside, outside = (np.mean([r[kind] for r in right.values()], axis=0) for kind in (0, 1))
    success, baseline = float(inside.mean()), float(outside.mean())
    note = f"{train.rows:,} rows of the table, {holdout.rows:,} of the hold-out, {len(right)} secrets"
    return Finding(success, baseline, success - baseline, welch(inside, outside), note=note).with_parts(parts)


def _part(inside: NDArray[np.bool_], outside: NDArray[np.bool_], level: float) -> Finding:
    return Finding.shares(int(inside.sum()), len(inside), int(outside.sum()), len(outside), level=level)


def guessed_right(threat: Threat, secret: str, rows: RowSample) -> NDArray[np.bool_]:
    """Whether the cell of the secret is guessed: the commonest among the nearest rows, nearer ones counting more."""
    others = threat.features_of([v.name for v in threat.variables if v.name != secret])
    near = Index.of(matrix(others, threat.synthetic)).nearest(matrix(others, rows), NEAREST)
    guessed = elected(threat.synthetic.codes[secret][near.places], 1 / (near.distances + TOUCHING))
    return guessed == rows.codes[secret]


def elected(codes: Places, weights: Floats) -> Places:
    """The code of each line that has the most weight; of equals, that of the nearest row."""
    same = codes[:, :, np.newaxis] == codes[:, np.newaxis, :]
    votes = (same * weights[:, np.newaxis, :]).sum(axis=2)
    return codes[np.arange(len(codes)), votes.argmax(axis=1)]


ATTACKS: tuple[Attack, ...] = (
    Attack(
        "inference",
        "Attribute inference",
        "Somebody who knows all about a person but one thing could learn that thing better because they were in the "
        "table.",
        "Secrets that are guessed rightly from the five synthetic rows most like the person in all other columns; "
        "what holds for everybody is guessed in the hold-out too.",
        inference,
    ),
)
