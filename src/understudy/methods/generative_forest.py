"""`generative-forest`: trees that all have a say in every row, and a density that can be read.

Most of the budget buys a proxy, as `rake` does. Trees are grown on its rows, one after the other: each tells them from
rows of the forest so far, so that it cuts where that is still wrong. All of it is post-processing. What is left of the
budget counts the real rows in the leaves of these trees; the proxy is raked to the counts, and the splits of the forest
get their probabilities from it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from understudy.boundary.privacy.asks import Partitions
from understudy.boundary.privacy.budget import Amount
from understudy.boundary.privacy.queryable import Queryable
from understudy.boundary.schema.domain import ColumnSet, Domain
from understudy.boundary.schema.partition import Tree
from understudy.inference.generative_forest import STRENGTH, GenerativeForest, Walk
from understudy.inference.model import CodeColumns, Model
from understudy.inference.particles.particles import Particles
from understudy.methods.dp_arf.dp_arf import CalibratedDpArf, DpArfState
from understudy.methods.dp_arf.proxy_trees import CandidateTree, TrainingSample
from understudy.methods.dp_arf.tuning import TUNING, DpArfTuning
from understudy.methods.method import CHOOSES_SEVERAL, Method, Variant
from understudy.methods.params import Params, parameter
from understudy.methods.parts.one_ways import measure_columns, public_rows
from understudy.methods.parts.workload import Workload
from understudy.methods.rake import rake
from understudy.methods.rake.schedule import Schedule

LEAF_SHARE = 0.2
"""Of what single columns leave, for counting leaves."""
ROWS_TO_GROW = 15_000
"""Of the proxy and of the forest so far, for each tree."""
FEWEST_IN_LEAF = 20.0
"""Of these rows. No noise is in them: a leaf may hold far fewer rows than are needed to count it."""


@dataclass(frozen=True)
class GenerativeForestParams(Params):
    """The options of `generative-forest`."""

    trees: int = parameter(12, "trees that every row passes", low=1, high=200)
    leaves: int = parameter(128, "leaves of a tree, at most", low=2, high=1_024)
    strength: float = parameter(
        STRENGTH, "rows that a tree alone counts for, beside those in the box", low=0.1, high=1e6
    )


@dataclass(frozen=True)
class GenerativeForestRecipe:
    """The recipe. With targets, every second tree begins with one of them."""

    targets: ColumnSet = ()
    params: GenerativeForestParams = GenerativeForestParams()
    tuning: DpArfTuning = TUNING

    def calibrate(self, domain: Domain, amount: Amount) -> CalibratedGenerativeForest:
        for target in self.targets:
            domain[target]
        return CalibratedGenerativeForest(
            domain,
            amount,
            targets=self.targets,
            workload=Workload.of(domain),
            tuning=self.tuning.rake,
            trees=self.tuning,
            forest=self.params,
        )


@dataclass(frozen=True)
class CalibratedGenerativeForest(CalibratedDpArf):
    """As `rake` measures, and the leaves of a forest at the end."""

    forest: GenerativeForestParams = GenerativeForestParams()

    def fit(self, curator: Queryable, rng: np.random.Generator) -> Model:
        rows = public_rows(curator)
        one_ways = measure_columns(self.domain, curator, self.amount, rows)
        state = GenerativeForestState.begin(self, curator, rows, one_ways, rng)
        if len(self.domain.names) > 1:
            columns = len(self.domain.names)
            state.spend(Schedule.of(state.total, curator, columns, tuning=self.tuning, moments=LEAF_SHARE))
        return state.finish()


class GenerativeForestState(DpArfState):
    """The state of the method: the proxy, and then the trees that were grown on it."""

    plan: CalibratedGenerativeForest
    grown: tuple[CandidateTree, ...] = ()

    def spend(self, schedule: Schedule) -> None:
        """The proxy by pairs, and the leaves of the trees that are grown on it."""
        self.start_from_forest(schedule)
        for number, amount in enumerate(schedule.rounds):
            self.run_round(schedule, amount, triples=number >= self.tuning.first_triple_round)
        assert schedule.moments is not None  # the part that was set aside, here for leaves
        self.grown = tuple(self._grow())
        if self.grown:
            self._measure_leaves(schedule.moments)
            self.particles.rake(self.tuning.passes, sampling=not self.whole)
            self.refresh(self.count, self.tuning.refresh_passes)

    def finish(self) -> Model:
        super().finish()
        support = self._drawn(self.particles.count)
        trees = tuple(self._whole(tree) for tree in self.grown)
        forest = GenerativeForest(trees, self.weights, support, self.total, self.plan.forest.strength)
        return forest.fitted_to(self.weights, self.rng)

    def _whole(self, candidate: CandidateTree) -> Tree:
        return candidate.tree.cut(self.plan.forest.leaves)[0]

    def _grow(self) -> list[CandidateTree]:
        """Trees one after the other, each on rows of the proxy and of the forest so far."""
        # Rows of its own for the counts of splits: the rows that a tree is grown on would find no fault with them.
        support = self._drawn(self.particles.count)
        forest = GenerativeForest((), self.weights, support, self.total, self.plan.forest.strength)
        walk, found = Walk.start(forest, ROWS_TO_GROW), list[CandidateTree]()
        for number in range(self.plan.forest.trees):
            tree = self._told_apart(self._drawn(ROWS_TO_GROW), walk.draw(self.rng), number)
            if tree.tree.splits:
                found.append(tree)
                walk.forest = walk.forest.with_tree(self._whole(tree))
                walk.descend(len(found) - 1, walk.drawing(self.rng))
        return found

    def _told_apart(self, proxy: CodeColumns, made: CodeColumns, number: int) -> CandidateTree:
        """A tree that tells rows of the proxy from those of the forest so far; without splits where nothing does."""
        sample = TrainingSample(self.plan.domain, proxy, FEWEST_IN_LEAF, self.trees)
        names, targets = self.plan.domain.names, self.plan.targets
        root = names[int(self.rng.integers(len(names)))]
        if targets and number % 2:
            root = targets[number // 2 % len(targets)]
        return CandidateTree(sample.against(made, root, self.rng))

    def _measure_leaves(self, amount: Amount) -> None:
        """The real rows in the leaves of all trees, and the proxy's factors that follow them."""
        # As many leaves as hold enough rows, on average, to be known in spite of the noise: what the trees tell beyond
        # that comes from the proxy.
        enough = self.total / (self.trees.least_signal * self._leaf_noise(amount))
        leaves = max(2, min(self.plan.forest.leaves, int(enough)))
        counted = [next(tree.cuts(leaves, (1,))) for tree in self.grown]
        # A row is in one leaf of each tree: T trees are T histograms.
        measured = self.curator.ask(Partitions(self.plan.domain, [c.partition for c in counted], amount))
        for pruned, m in zip(counted, measured, strict=True):
            factors, counts = self.particles.grow(pruned.partition), self._summing_up(m.counts)
            for groups in pruned.coarser(self.trees.coarser):
                factors.learn(groups, counts, m.variance, self.particles)

    def _leaf_noise(self, amount: Amount) -> float:
        """The standard deviation of the count of a leaf."""
        each = amount.split([1.0] * len(self.grown))[0]
        scale = each.noise_scale(self.curator.count_sensitivity(each))
        return scale * math.sqrt(2.0) if amount.pure else scale

    def _drawn(self, count: int) -> CodeColumns:
        rows = Particles.draw(self.particles, count, self.rng)
        return {name: codes[rows] for name, codes in self.particles.codes.items()}


METHOD = Method(
    name="generative-forest",
    guarantee="pure ε with delta = 0, else Gaussian differential privacy",
    good_for="a density that can be written down: log_density of rows, exact draws, and missing cells filled in",
    limits="pairs err more than those of rake, out of whose answers it is grown",
    build=lambda options, params: GenerativeForestRecipe(options.targets, params),
    params=GenerativeForestParams,
    spending=rake.spending,
    variants=(Variant(mutants=CHOOSES_SEVERAL),),
)
