"""Attacks as measures, so that a study has them beside utility: of each, how much better it does on rows of the table.

One `Threat` serves all attacks on a table: they share its nearest neighbours, which take longest to find.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

from understudy.lab.attacks.attacks import ATTACKS
from understudy.lab.attacks.threat import DISTANCE, Attack, Finding, Threat
from understudy.lab.evaluation.comparison import Comparison
from understudy.lab.evaluation.measure import HOLDOUT, LOWER, Measure, MeasurePart, MeasureResult

PREFIX = "attack-"
SUCCESS, BASELINE, LOW, HIGH = "success", "baseline", "advantage at least", "advantage at most"


def measured(finding: Finding) -> MeasureResult:
    """The advantage; its parts are what it is the difference of, and the ends of its interval."""
    if finding.advantage is None:
        return MeasureResult.undefined(finding.reason)
    low, high = finding.interval or (None, None)
    known = {SUCCESS: finding.success, BASELINE: finding.baseline, LOW: low, HIGH: high}
    parts = tuple(MeasurePart(name, value) for name, value in known.items())
    return MeasureResult(finding.advantage, parts=parts, note=finding.note)


def measure_attacks(comparison: Comparison, names: Sequence[str]) -> dict[str, MeasureResult]:
    """The measures of these names, in their own order."""
    wanted = [attack for attack in ATTACKS if PREFIX + attack.name in names]
    if not wanted:
        return {}
    threat = _threat(comparison)
    return {PREFIX + attack.name: measured(attack.of(threat)) for attack in wanted}


def _threat(comparison: Comparison) -> Threat:
    # What classifiers learn to predict is what somebody would like to know; without a target every column is a secret.
    secrets = None if comparison.target is None else (comparison.target,)
    return Threat.of(comparison, secrets)


def _alone(attack: Attack, comparison: Comparison) -> MeasureResult:
    return measured(attack.of(_threat(comparison)))


def _measure(attack: Attack) -> Measure:
    # Differences of shares; a distance is in standard deviations, and has no bounds.
    low, high = (-math.inf, math.inf) if attack.unit == DISTANCE else (-1.0, 1.0)
    return Measure(
        name=PREFIX + attack.name,
        title=f"Attack: {attack.title.lower()}, advantage",
        section="attacks",
        direction=LOWER,
        low=low,
        high=high,
        explanation=f"{attack.meaning} How much better it works on rows of the table than on others. {attack.counted}",
        compute=partial(_alone, attack),
        needs=(HOLDOUT,),
    )


ATTACK_MEASURES: tuple[Measure, ...] = tuple(_measure(attack) for attack in ATTACKS)
