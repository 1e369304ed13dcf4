"""How a boosted model is learned: a tree that is counted first, then rounds of trees for what is still wrong.

A round asks two kinds of question. One split after the other is chosen for all nodes of a level by the exponential
mechanism, by how far the rows of each branch agree on where to pull the model (`gradients.Pull`); at the first level,
the class that the tree corrects is chosen with it. Then the sums of gradients and of their second derivatives in the
leaves are bought, and each leaf takes a Newton step, drawn to that of the nodes above it where noise is all there is.

How many rounds there are, and how deep their trees, follows from public facts and paid answers. On a curator of rows
`boost` learns; on a curator of recorded answers the same code rebuilds the same model.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.privacy.asks import Moments, Select
from understudy.boundary.privacy.budget import Amount
from understudy.boundary.privacy.queryable import Queryable
from understudy.boundary.schema.domain import Domain
from understudy.boundary.schema.grouped_sums import SumNeighbours
from understudy.parameters import whole_number
from understudy.predictors.additive_model import STEPS, AdditiveModel, BoostedTree, single_output
from understudy.predictors.decision_tree import DecisionTree, Floats, LeafCounts, sums_of_children
from understudy.predictors.gradients import (
    GRAIN,
    GradientCells,
    GradientTable,
    HuberLoss,
    LeafSums,
    LogisticLoss,
    Loss,
    Pull,
    offsets_of,
)
from understudy.predictors.splits import ColumnSplit, options
from understudy.predictors.tasks import ClassificationTask, RegressionTask
from understudy.predictors.tree_induction import check_selecting, counted_tree, row_number

SIGNAL_OF_ROUNDS = 1000.0
"""Rows over noise, for each class, from which on rounds gain more than they take from the first tree."""
SIGNAL_OF_TWO_LEVELS = 750.0
"""With less, the first tree is cut once: a second level would halve what the first one is chosen by."""
FIRST_SHARE = 0.5
"""Of the budget, for the tree that is counted, where rounds come after it."""
LEAST_FIRST_SHARE = 1e-3
"""Of a class in a leaf of the first tree: rounds can still make up for odds of a thousand to one."""
SELECTION_SHARE = 0.4
"""Of a round's budget, for choosing its splits; the rest buys the sums in its leaves."""
ROWS_OF_A_LEVEL = 20.0
"""What a level must be able to gain, in rows that are wrong, at an exponential mechanism of ε = 1. A choice among a
hundred splits errs by some ten rows, and seldom gains more than a third of the rows that are wrong."""
MOST_ROUNDS, MOST_DEPTH = 30, 6
COST_OF_A_LEAF = 0.1
"""What one more leaf must gain, as a share of the noise in the sum of its gradients."""
MOST_LEAVES = 1024
LARGEST_STEP = 3.0
"""Of a leaf, in log-odds: a factor of twenty in the odds."""
LARGEST_SPREAD, LEAST_SPREAD = 4.0, 1e-6
"""Of steps around those of the nodes above."""
MOST_OUTPUTS = 8
"""Classes that a round chooses among: the likeliest, by the counts of the first tree."""
LIMITS = {"rounds": 1000, "depth": 10, "leaves": 1 << 16, "rows": 2**52}
"""The most that a user may ask for; rows as in `tree_induction`."""


@dataclass(frozen=True)
class BoostingSize:
    """How many rounds there are, and how large their trees may be; None leaves it to the rule."""

    rounds: int | None = None
    depth: int | None = None
    leaves: int | None = None
    rows: int | None = None

    def __post_init__(self) -> None:
        for name, most in LIMITS.items():
            value = getattr(self, name)
            if value is not None:
                whole_number(name, value, 0 if name == "rounds" else 1, most, advice=", or None")

    @property
    def trees(self) -> int | None:
        """Of which files are asked: a tree for each round."""
        return self.rounds

    def settled(self, levels: float) -> BoostingSize:
        """With what is left to the rule, from the number of levels that there is budget for.

        >>> BoostingSize().settled(50.0)
        BoostingSize(rounds=3, depth=3, leaves=1024, rows=None)
        """
        # Both grow slowly: a choice can be had for less where more rows are wrong, and need not be.
        rounds = min(max(round(levels**0.3), 1), MOST_ROUNDS)
        depth = min(max(round(0.5 + 0.75 * math.log(max(levels, 1.0))), 1), MOST_DEPTH)
        return BoostingSize(
            rounds if self.rounds is None else self.rounds, self.depth or depth, self.leaves or MOST_LEAVES, self.rows
        )


@dataclass(frozen=True)
class Booster:
    """What is fitted: a target, from these columns, by one loss for each output."""

    domain: Domain
    target: str
    columns: tuple[str, ...]
    losses: tuple[Loss, ...]
    size: BoostingSize

    def boost(self, curator: Queryable, model: AdditiveModel) -> AdditiveModel:
        """Spends all that is left: what a round leaves of its part, as its tree stopped early, is for later ones."""
        for ahead in range(self.size.rounds or 0, 0, -1):
            part = curator.remaining().split([1.0] * ahead)[0]
            grown = self._round(curator, model, part)
            if grown is not None:
                model = model.plus(grown)
        return model

    def _round(self, curator: Queryable, model: AdditiveModel, amount: Amount) -> BoostedTree | None:
        noise = self._noise(curator, amount.part(1.0 - SELECTION_SHARE))
        loss, levels = self._grow(curator, model, amount.part(SELECTION_SHARE), noise)
        if not levels:
            return None
        cells = GradientCells(model, loss, self.target, DecisionTree.of_levels(levels))
        (sums,) = curator.ask(Moments(self.domain, [LeafSums(cells)], amount.part(1.0 - SELECTION_SHARE)))
        gradients, curvatures = sums.counts.reshape(-1, 2).T / GRAIN
        noise = sums.variance / GRAIN**2
        steps = newton_steps(
            cells.tree,
            gradients,
            curvatures / loss.weight,
            variances=(noise, noise / loss.weight**2),
            sampling=loss.sampling,
        )
        return BoostedTree.of(cells.tree, single_output(steps, loss.output, model.outputs))

    def _noise(self, curator: Queryable, amount: Amount) -> float:
        """The standard deviation of the sum of a leaf's gradients, in rows."""
        facts = curator.facts
        l1, l2 = self.losses[0].levels.sensitivity(SumNeighbours(facts.rows, facts.replaced, 2, True))
        if amount.pure:
            # Laplace noise of scale b, which pure budgets have, has a variance of 2b².
            return math.sqrt(2.0) * amount.noise_scale(l1) / GRAIN
        return amount.noise_scale(l2) / GRAIN

    def _grow(
        self, curator: Queryable, model: AdditiveModel, amount: Amount, noise: float
    ) -> tuple[Loss, list[ColumnSplit]]:
        """The split of each level, and the loss that the first one was chosen for."""
        losses: Sequence[Loss] = self.losses
        levels: list[ColumnSplit] = []
        for part in amount.split([1.0] * (self.size.depth or 1)):
            tree = DecisionTree.of_levels(levels)
            offers = [self._offers(model, loss, tree, levels, noise) for loss in losses]
            candidates = [each for offer in offers for each in offer]
            choices = [(each.grid.base.loss, split) for each in candidates for split in each.splits]
            (chosen,) = curator.ask(Select(self.domain, candidates, part))
            loss, split = choices[chosen]
            losses = [loss]
            if split.branches == 1:
                break
            levels.append(split)
        return losses[0], levels

    def _offers(
        self, model: AdditiveModel, loss: Loss, tree: DecisionTree, used: Sequence[ColumnSplit], noise: float
    ) -> list[Pull]:
        """Of each column, the splits that leave the tree small enough; none is used twice."""
        base, offers = GradientCells(model, loss, self.target, tree), []
        for column in self.columns:
            size = self.domain.size(column)
            most = (self.size.leaves or MOST_LEAVES) // tree.leaves
            splits = [s for s in options(self.domain[column]) if s.branches <= most and s not in used]
            if column == self.columns[0]:
                # No split at all is on offer once: a tree without a good one keeps its budget for those after it.
                splits.insert(0, ColumnSplit(column, (0,) * size))
            if splits:
                offsets = offsets_of(splits, tree.leaves, COST_OF_A_LEAF * noise)
                offers.append(Pull(GradientTable(base, column, size), tuple(splits), offsets))
        return offers


def boost_classes(curator: Queryable, task: ClassificationTask, chosen: BoostingSize) -> AdditiveModel:
    """One greedy tree, whose leaves are counted by class, and rounds for what it gets wrong."""
    check_selecting(curator, "boosting", "use a forest of structure random or noisy")
    outputs, whole = len(task.classes), curator.remaining()
    rows = row_number(curator, chosen.rows)
    signal = rows / whole.noise_scale(curator.count_sensitivity(whole))
    alone = chosen.rounds == 0 or (chosen.rounds is None and signal < SIGNAL_OF_ROUNDS * outputs)
    depth = 1 if signal < SIGNAL_OF_TWO_LEVELS else None
    share = 1.0 if alone else FIRST_SHARE
    counted = counted_tree(curator, task, rows=rows, signal=signal * share, share=share, depth=depth)
    values = np.log(np.maximum(counted.shares(outputs), LEAST_FIRST_SHARE))
    model = AdditiveModel(outputs).plus(BoostedTree.of(counted.tree, values))
    if alone:
        return model
    size = chosen.settled(_levels(curator, counted.wrong(outputs)))
    return Booster(task.domain, task.target, task.columns, _losses(counted, outputs), size).boost(curator, model)


def _losses(leaves: LeafCounts, outputs: int) -> tuple[Loss, ...]:
    """Those that a round chooses among."""
    if outputs == 2:
        # The log-odds of one class are minus those of the other: one output is enough.
        return (LogisticLoss(outputs, 1),)
    likeliest = np.argsort(-leaves.counts[:, :outputs].sum(axis=0), kind="stable")[:MOST_OUTPUTS]
    return tuple(LogisticLoss(outputs, output) for output in sorted(likeliest.tolist()))


def boost_numbers(curator: Queryable, task: RegressionTask, chosen: BoostingSize) -> AdditiveModel:
    """Rounds alone, from the middle of the target's bounds on; an output of ±1 stands for the bounds."""
    check_selecting(curator, "boosting", "use queries for means by group")
    rows = row_number(curator, chosen.rows)
    loss = HuberLoss(tuple(round(v * STEPS) for v in task.scaled))
    # Before anything is learned, residuals are as large as the bounds allow; a quarter is what a middling table has.
    size = chosen.settled(_levels(curator, rows / 4))
    return Booster(task.domain, task.target, task.columns, (loss,), size).boost(curator, AdditiveModel(1))


def _levels(curator: Queryable, wrong: float) -> float:
    """The number of levels that all that is left can choose, where so many rows are wrong."""
    left = curator.remaining().part(SELECTION_SHARE)
    one = left.selection_epsilon() * wrong / ROWS_OF_A_LEVEL
    # n parts of ε each choose at ε / n; of a Gaussian budget, at ε / √n.
    return one if left.pure else one**2


def newton_steps(
    tree: DecisionTree, gradients: Floats, curvatures: Floats, *, variances: tuple[float, float], sampling: float = 1.0
) -> Floats:
    """The step of each leaf: from the root down, each node's own between that of its parent and its Newton step.

    With gradient g and curvature h of a node, its Newton step is g / h. Given the step s of its parent, g − h·s has the
    variance of sampling (`sampling` times h, with h itself for a log-likelihood) and of the noise of both, in
    `variances`. How far the children of a level differ from their parents is estimated from all of them (empirical
    Bayes), so that steps are nought where there is only noise.
    """
    g, h = (sums_of_children(tree, each[:, None])[:, 0] for each in (gradients, curvatures))
    size = sums_of_children(tree, np.ones((tree.leaves, 1)))[:, 0]
    h = np.maximum(h, 1e-6)
    steps = np.zeros(len(tree.nodes))
    for depth in range(tree.depth + 1):
        here = np.flatnonzero(tree.level == depth)
        above = steps[tree.parent[here]]
        left = g[here] - h[here] * above
        uncertain = sampling * h[here] + size[here] * (variances[0] + variances[1] * above**2)
        spread = 1.0
        if depth:
            spread = _spread(left, h[here], uncertain, h[here] > np.sqrt(variances[1] * size[here]))
        move = spread * h[here] * left / (spread * h[here] ** 2 + uncertain)
        steps[here] = above + np.clip(move, -LARGEST_STEP, LARGEST_STEP)
    return steps[tree.leaf_nodes]


def _spread(left: Floats, curvatures: Floats, uncertain: Floats, sure: NDArray[np.bool_]) -> float:
    """The mean squared difference between the step of a child and that of its parent."""
    # A node with less curvature than noise says nothing about it.
    excess = float((sure * (left**2 - uncertain)).sum())
    weight = float((sure * curvatures**2).sum())
    return min(max(excess / max(weight, 1e-9), LEAST_SPREAD), LARGEST_SPREAD)
