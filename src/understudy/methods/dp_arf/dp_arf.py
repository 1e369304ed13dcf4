"""`dp-arf`: an adversarial forest whose structure costs nothing, and whose leaves are counted with noise.

Part of the budget buys a proxy: the columns, a forest of the strongest pairs, and some rounds of pairs, as `rake` does.
Trees are grown on rows drawn from the proxy, as many and as deep as one likes: they are post-processing. From then on
the exponential mechanism picks, among these trees and the pairs, whatever proxy and rows differ in most; the real
counts of its leaves are measured, and the proxy is raked to them, as far as they are more than noise. The next trees
are grown on the corrected proxy. With very many columns the proxy is a tree that the rows choose (`direct`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.privacy.asks import Partitions, Select
from understudy.boundary.privacy.budget import Amount
from understudy.boundary.privacy.mechanisms.exponential import OneOfEach
from understudy.boundary.privacy.mechanisms.score import Candidate
from understudy.boundary.privacy.queryable import Queryable
from understudy.boundary.schema.domain import ColumnSet, Domain
from understudy.inference.grouping import Floats
from understudy.inference.model import CodeColumns, Model
from understudy.inference.particles.leaf_particles import LeafyModel, LeafyParticles
from understudy.inference.structural_zeros import structural_zeros
from understudy.methods.dp_arf.first_tree import ColumnEstimates, grow_directly
from understudy.methods.dp_arf.proxy_trees import CandidateTree, PrunedTree, TrainingSample
from understudy.methods.dp_arf.tuning import TUNING, DpArfTuning
from understudy.methods.method import CHOOSES_SEVERAL, Method, Traits, Variant
from understudy.methods.params import Params, parameter
from understudy.methods.parts.one_ways import measure_columns, public_rows
from understudy.methods.parts.workload import Workload
from understudy.methods.rake import rake
from understudy.methods.rake.rake import CalibratedRake, RakeState
from understudy.methods.rake.schedule import Schedule


@dataclass(frozen=True)
class DpArfParams(Params):
    """The options of `dp-arf`."""

    trees: int = parameter(20, "trees grown for each round, of which some are counted", low=1, high=1_000)
    leaves: int = parameter(256, "leaves of a tree that are counted, at most", low=2, high=256)


@dataclass(frozen=True)
class DpArf:
    """The recipe. With targets, half of the trees predict them, and their leaves are counted by target."""

    targets: ColumnSet = ()
    params: DpArfParams = DpArfParams()
    tuning: DpArfTuning = TUNING

    def calibrate(self, domain: Domain, amount: Amount) -> CalibratedDpArf:
        for target in self.targets:
            domain[target]
        return CalibratedDpArf(
            domain,
            amount,
            targets=self.targets,
            workload=Workload.of(domain),
            tuning=self.tuning.rake,
            trees=self.tuning,
            params=self.params,
        )


@dataclass(frozen=True)
class CalibratedDpArf(CalibratedRake):
    """As `rake` measures, and trees besides."""

    trees: DpArfTuning = TUNING
    params: DpArfParams = DpArfParams()

    def fit(self, curator: Queryable, rng: np.random.Generator) -> Model:
        rows = public_rows(curator)
        one_ways = measure_columns(self.domain, curator, self.amount, rows)
        state = DpArfState.begin(self, curator, rows, one_ways, rng)
        if len(self.domain.names) > 1:
            state.spend(Schedule.of(state.total, curator, len(self.domain.names), tuning=self.tuning))
        return state.finish()


class DpArfState(RakeState):
    """The state of the method: that of `rake`, with leaves."""

    plan: CalibratedDpArf
    particles: LeafyParticles
    params = DpArfParams()

    @property
    def trees(self) -> DpArfTuning:
        return self.plan.trees

    @property
    def direct(self) -> bool:
        return len(self.plan.domain.names) > self.trees.most_paired_columns

    def spend(self, schedule: Schedule) -> None:
        """The first model, rounds of pairs, and rounds in which leaves compete with them."""
        if self.direct:
            self.start_from_tree(schedule)
        else:
            self.start_from_forest(schedule)
        # Leaves come early, while much is still wrong; later the pairs have captured most of it (concepts/forests.md).
        first = round(self.trees.first_leaf_round * len(schedule.rounds))
        for number, amount in enumerate(schedule.rounds):
            triples = number >= self.tuning.first_triple_round
            if self.direct or first <= number < first + self.trees.most_leaf_rounds:
                self.run_tree_round(schedule, amount, triples)
            else:
                self.run_round(schedule, amount, triples)

    def start_from_tree(self, schedule: Schedule) -> None:
        """The first model without pairs: a tree that the rows choose, and all columns by leaf."""
        self.start()
        known = ColumnEstimates(self.plan.domain, self.weights, self.resolutions, self.total, self.trees.first_tree)
        if not known.divisible:
            return
        mixture = grow_directly(known, self.curator, schedule.forest, self.rng)
        if not self.whole:
            self._replace(mixture.draw(self.count, self.rng))
        self.readings += mixture.margins()
        self.agree()
        fixed = [self.particles.fix(partition, theta) for partition, theta in mixture.factors(known)]
        for leaves, m in zip(fixed[1:], mixture.measured, strict=True):  # the first are those of the tree alone
            leaves.learn(np.arange(m.counts.size), self._summing_up(m.counts), m.variance, self.particles)
        self.particles.rake(self.tuning.passes, sampling=not self.whole)

    def _replace(self, codes: CodeColumns) -> None:
        """Other particles, all of the same weight, but for those that break a rule of the schema."""
        self.particles.move(codes)
        kept = np.ones(self.particles.count, dtype=np.bool_)
        for columns, forbidden in structural_zeros(self.plan.domain).items():
            kept &= ~forbidden[tuple(codes[c] for c in columns)]
        # Where no particle keeps the rules, all stay: Gibbs sampling has to find the way out.
        weights = np.ones(kept.size)
        if kept.any():
            weights = kept.astype(np.float64)
        self.particles.weights = weights * (self.total / weights.sum())

    def run_tree_round(self, schedule: Schedule, amount: Amount, triples: bool) -> None:
        """One round: grow trees, pick what the model gets most wrong, leaves or grids, count it, and rake."""
        options, candidates = self._leafy(schedule.noise)
        # To let pairs compete costs nothing, and keeps the method level with `rake` where leaves have nothing to add.
        if self.trees.grids_too and not self.direct:
            grids, more = self.options_of(self.sets(triples), self.particles.histogram, schedule)
            options, candidates = [*options, *grids], [*candidates, *more]
        if not candidates:
            return
        chosen = self.curator.ask(
            Select(
                self.plan.domain,
                candidates,
                schedule.selecting(amount),
                k=min(schedule.per_round, len(candidates)),
                rule=TreesAndGrids.of(options),
            )
        )
        self._count([options[i] for i in chosen], schedule.measuring(amount))
        self.particles.rake(self.tuning.passes, sampling=not self.whole)
        self.refresh(self.count, self.tuning.refresh_passes)

    def _leafy(self, noise: float) -> tuple[list[PrunedTree | rake.Option], list[Candidate]]:
        """Every tree at every number of leaves, scored as `rake` scores its grids."""
        options: list[PrunedTree | rake.Option] = []
        candidates = []
        for candidate in self._pool(noise):
            table = candidate.table(self.particles)
            for cut in candidate.cuts(self.plan.params.leaves, self.trees.cuts):
                options.append(cut)
                candidates.append(self.scored(cut.partition, cut.expected(table), noise))
        return options, candidates

    def _pool(self, noise: float) -> Iterator[CandidateTree]:
        """Trees over some columns each, grown on rows that the model draws."""
        # Trees grow on rows that the noisy model drew: however many there are, no split looks at a private row.
        drawn = self.particles.draw(self.trees.rows_to_grow, self.rng)
        codes = {c: v[drawn] for c, v in self.particles.codes.items()}
        # The noise of a count of all rows, in the smaller number of rows that trees are grown on.
        least = self.trees.least_signal * noise * self.trees.rows_to_grow / self.total
        sample = TrainingSample(self.plan.domain, codes, least, self.trees)
        predicting = 0
        if self.plan.targets:
            predicting = round(self.trees.predicting * self.plan.params.trees)
        for i in range(self.plan.params.trees):
            if i < predicting:
                candidate = self._predictor(sample, self.plan.targets[i % len(self.plan.targets)])
            else:
                candidate = self._adversary(sample)
            if candidate.tree.splits:
                yield candidate

    def _adversary(self, sample: TrainingSample) -> CandidateTree:
        size = int(self.rng.integers(self.trees.fewest_columns, self.trees.most_columns + 1))
        return CandidateTree(sample.adversary(self._some(self.plan.domain.names, size), self.rng))

    def _predictor(self, sample: TrainingSample, target: str) -> CandidateTree:
        level = max(self.trees.target_groups, min(self.resolutions.groupings[target]))
        classes = self.resolutions.groups((target,), level)[0]
        columns = self._some([c for c in self.plan.domain.names if c != target], self.trees.predictor_columns)
        tree = sample.predictor(columns, classes[sample.codes[target]], self.rng)
        return CandidateTree(tree, target, tuple(classes.tolist()))

    def _some(self, columns: Sequence[str], most: int) -> ColumnSet:
        chosen = self.rng.choice(len(columns), min(most, len(columns)), replace=False)
        return tuple(columns[i] for i in np.sort(chosen))

    def _count(self, picked: Sequence[PrunedTree | rake.Option], amount: Amount) -> None:
        cuts = [o for o in picked if isinstance(o, PrunedTree)]
        grids = [o for o in picked if isinstance(o, rake.Option)]
        # Each picked set gets the same part, whatever it is: a histogram of leaves costs as much as one of cells.
        parts = iter(amount.split([float(len(x)) for x in (grids, cuts) if x]))
        if grids:
            first = len(self.readings)
            self.measure(grids, next(parts))
            self.agree()
            for option, reading in zip(grids, self.readings[first:], strict=True):
                self.learn(option, reading)
        if cuts:
            # A row is in one leaf of a tree, so that its leaves are a histogram like any other; T trees cost T of them.
            measured = self.curator.ask(Partitions(self.plan.domain, [c.partition for c in cuts], next(parts)))
            for cut, m in zip(cuts, measured, strict=True):
                leaves, counts = self.particles.grow(cut.partition), self._summing_up(m.counts)
                for groups in cut.coarser(self.trees.coarser):
                    leaves.learn(groups, counts, m.variance, self.particles)

    def _summing_up(self, counts: NDArray[np.int64]) -> Floats:
        """Counts moved evenly to the total, which all measurements together know better than one."""
        flat = counts.ravel().astype(np.float64)
        return np.asarray(flat + (self.total - flat.sum()) / flat.size)

    def start(self) -> None:
        super().start()
        self.particles = LeafyParticles.of(self.particles)

    def sweep_particles(self) -> None:
        self.particles.sweep(self.rng)

    def snapshot(self) -> Callable[[], None]:
        return partial(self.particles.restore_all, self.particles.snapshot_all())

    def finish(self) -> Model:
        super().finish()
        return LeafyModel(self.particles, self.tuning.exchange_rounds, self.tuning.conditioning)


@dataclass(frozen=True)
class TreesAndGrids:
    """The rule of one round: a tree is picked once, and grids that don't share two columns.

    What is admissible only shrinks, since it does so for either rule, and what both admit is admissible.
    """

    trees: OneOfEach
    grids: rake.SmallOverlap

    @classmethod
    def of(cls, options: Sequence[PrunedTree | rake.Option]) -> TreesAndGrids:
        """A grid has no tree, so that it is its own; a cut is no grid, so that it shares no columns with any."""
        trees = [id(o.candidate) if isinstance(o, PrunedTree) else id(o) for o in options]
        grids = [o.columns if isinstance(o, rake.Option) else () for o in options]
        return cls(OneOfEach(trees), rake.SmallOverlap(grids))

    def admits(self, candidate: int) -> bool:
        return self.trees.admits(candidate) and self.grids.admits(candidate)

    def after(self, picked: int) -> TreesAndGrids:
        return TreesAndGrids(self.trees.after(picked), self.grids.after(picked))


METHOD = Method(
    name="dp-arf",
    guarantee="pure ε with delta = 0, else Gaussian differential privacy",
    good_for="relations of many columns at once, and a target that follows from several: leaves of trees beside pairs",
    limits="about twice the time of rake",
    build=lambda options, params: DpArf(options.targets, params),
    params=DpArfParams,
    traits=Traits(buys_bins=True),
    spending=rake.spending,
    variants=(Variant(mutants=CHOOSES_SEVERAL),),
)
