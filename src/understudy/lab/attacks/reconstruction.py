"""Are people of the table nearer to synthetic rows than others are? Only that difference speaks about privacy."""

from __future__ import annotations

from understudy.lab.attacks.attack import DISTANCE, Attack, Finding
from understudy.lab.attacks.confidence import welch
from understudy.lab.attacks.threat import NEAREST, Threat


def reconstruction(threat: Threat) -> Finding:
    """The mean distance to the nearest synthetic rows, in standard deviations, of both kinds of rows."""
    train, holdout = (n.distances.mean(axis=1) for n in threat.near)
    success, baseline = float(train.mean()), float(holdout.mean())
    note = f"mean distance to {min(NEAREST, threat.synthetic.rows)} synthetic rows; smaller is nearer"
    return Finding(success, baseline, baseline - success, welch(holdout, train), note=note)


ATTACKS: tuple[Attack, ...] = (
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
