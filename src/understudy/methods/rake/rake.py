"""`rake`: adaptive marginals at several resolutions, fitted by particles.

AIM's loop with two changes. Candidates have *resolutions*: each pair, each triple with a target, and in the first
rounds some random larger set, is offered with its columns merged into 2, 3, 4, … groups, so that noise is spent on
cells that can carry it. And the model is a set of weighted rows, raked softly to every measurement, so that a set of
columns is never too large to be measured. It starts from a forest of the strongest pairs, whose rows are drawn exactly.

Every question goes through the curator: histograms over public grids, and exponential mechanisms whose scores compare
counts with what the model (earlier answers) expects. Groups, shrinkage, raking, Gibbs sampling and the choice of rows
are post-processing.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Self

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.privacy.asks import Partitions, Select
from understudy.boundary.privacy.budget import Amount
from understudy.boundary.privacy.measurement import Measurement
from understudy.boundary.privacy.mechanisms.score import Candidate
from understudy.boundary.privacy.queryable import Queryable
from understudy.boundary.schema.domain import Coding, ColumnSet, Domain
from understudy.boundary.schema.partition import Partition
from understudy.inference.graphical.estimation import LOG_OF_ZERO
from understudy.inference.grouping import Groups, coarser, merged, sum_by_group, summed
from understudy.inference.model import Model
from understudy.inference.noisy_table import NoisyTable, agree, keep_every_value
from understudy.inference.particles.gibbs import sweep
from understudy.inference.particles.pair_forest import LEAST_MASS, Edge, draw_forest
from understudy.inference.particles.particles import LogFactor, Particles, cells_of
from understudy.inference.particles.rounding import ParticleModel
from understudy.inference.sampling import CODE
from understudy.inference.shrinkage import dependence
from understudy.inference.structural_zeros import structural_zeros
from understudy.methods.forecast.spending import PlannedBudget, Public, Spending
from understudy.methods.method import CHOOSES_SEVERAL, Method, Traits, Variant
from understudy.methods.parts.networks import Report, Watch
from understudy.methods.parts.one_ways import denoised, public_rows
from understudy.methods.parts.prior import Prior
from understudy.methods.parts.resolution import Resolutions
from understudy.methods.parts.select_measure import Acyclic
from understudy.methods.parts.workload import PAIRS, Stated, Workload, check_target_triples, triples_with
from understudy.methods.rake import moments, priors
from understudy.methods.rake.offer import offered
from understudy.methods.rake.schedule import Schedule
from understudy.methods.rake.single_columns import POWER_OF_CELLS, measure_columns, plan_columns
from understudy.methods.rake.tuning import TUNING, Tuning


@dataclass(frozen=True)
class Rake:
    """The recipe. Triples with a target are candidates as well."""

    targets: ColumnSet = ()
    weights: Stated = ()
    workload: str = PAIRS
    tuning: Tuning = TUNING
    prior: Prior | None = None
    report: Report | None = field(default=None, compare=False)

    def reporting(self, watch: Watch) -> Rake:
        """The same recipe, which tells how many of its rounds are done."""
        return replace(self, report=partial(watch, "round"))

    def calibrate(self, domain: Domain, amount: Amount) -> CalibratedRake:
        for target in self.targets:
            domain[target]
        check_target_triples(len(domain.names), len(self.targets), self.tuning.most_triple_candidates)
        workload = Workload.of(domain, stated=self.weights, kind=self.workload)
        if self.prior is not None:
            self.prior.check(domain)
        return CalibratedRake(
            domain,
            amount,
            targets=self.targets,
            workload=workload,
            tuning=self.tuning,
            prior=self.prior,
            report=self.report,
        )


@dataclass(frozen=True)
class CalibratedRake:
    domain: Domain
    amount: Amount
    targets: ColumnSet
    workload: Workload
    tuning: Tuning = TUNING
    prior: Prior | None = None
    report: Report | None = field(default=None, compare=False)

    @cached_property
    def triples(self) -> tuple[ColumnSet, ...]:
        """Every set of three columns that is ever a candidate: the wanted ones, and those with a target."""
        return tuple(dict.fromkeys((*self.workload.triples(), *triples_with(self.domain.names, self.targets))))

    @cached_property
    def stated(self) -> frozenset[frozenset[str]]:
        """The sets that the user gave a weight."""
        return frozenset(s for s, weight in self.workload.weights.items() if weight != self.workload.unnamed)

    def fit(self, curator: Queryable, rng: np.random.Generator) -> Model:
        rows = public_rows(curator)
        one_ways = measure_columns(self.domain, curator, self.amount, rows)
        state = RakeState.begin(self, curator, rows, one_ways, rng)
        if len(self.domain.names) > 1:
            # With a target, most of few picks are out of its pairs: among so few it is easier to choose.
            columns, keen = len(self.domain.names), not self.targets
            share = moments.share_of(self.domain, state.total, curator, self.tuning)
            schedule = Schedule.of(state.total, curator, columns, keen, self.tuning, moments=share)
            state.start_from_forest(schedule)
            if self.prior is not None:
                priors.join(state, self.prior)
            if schedule.moments is not None:
                moments.learn(state, schedule.moments)
            schedule = schedule.after([reading.counts.size for reading in state.readings], curator, self.tuning)
            for number, amount in enumerate(schedule.rounds):
                state.run_round(schedule, amount, triples=number >= self.tuning.first_triple_round)
                # All rounds take about as long, while most of ε is gone early on: rounds tell what is left to wait for.
                if self.report is not None:
                    self.report(number + 1, len(schedule.rounds), curator.guarantee[0])
        return state.finish()


@dataclass(frozen=True)
class Option:
    """A set of columns at one level."""

    columns: ColumnSet
    level: int


@dataclass
class RakeState:
    """The state of the method: what was read, how columns are merged, and the particles.

    `dp-arf` and `dp-select` build on it. They call the steps below that have names without an underscore, and replace
    four: `whole`, `start`, `sweep_particles` with `snapshot`, and `refresh`.
    """

    plan: CalibratedRake
    curator: Queryable
    rng: np.random.Generator
    known_total: float | None
    read: dict[str, NoisyTable]
    columns: dict[str, NoisyTable]
    weights: dict[str, NDArray[np.float64]]
    resolutions: Resolutions
    particles: Particles
    readings: list[NoisyTable] = field(default_factory=list)
    links: list[tuple[LogFactor, Callable[[], NoisyTable]]] = field(default_factory=list)
    rounds: int = 0
    """How many were run."""
    doublings: int = 0
    """How often there were too few particles to follow what was learned."""
    guesses: priors.Guesses = field(default_factory=dict)
    """What a prior says of pairs that were not measured."""

    @classmethod
    def begin(
        cls,
        plan: CalibratedRake,
        curator: Queryable,
        rows: list[Measurement],
        one_ways: list[Measurement],
        rng: np.random.Generator,
    ) -> Self:
        known_total = float(rows[0].counts.sum()) if rows else None
        read = {
            m.columns[0]: NoisyTable(m.columns, m.counts.astype(np.float64), np.full(m.counts.size, m.variance))
            for m in one_ways
        }
        if plan.prior is not None:
            read = plan.prior.with_columns(read)
        columns = agree(read, [], known_total)
        weights = {c.name: _clean(columns[c.name], c) for c in plan.domain}
        sizes = {c.name: c.size for c in plan.domain}
        total = float(next(iter(weights.values())).sum())
        particles = Particles(sizes, total, {}, np.zeros(0))
        return cls(
            plan,
            curator,
            rng=rng,
            known_total=known_total,
            read=read,
            columns=columns,
            weights=weights,
            resolutions=Resolutions.of(plan.domain, weights, dict.fromkeys(plan.targets, plan.tuning.target_groups)),
            particles=particles,
        )

    @property
    def tuning(self) -> Tuning:
        return self.plan.tuning

    @property
    def total(self) -> float:
        return self.particles.total

    @property
    def count(self) -> int:
        """How many particles there are between rounds: as many as rows, within bounds; more where they were too few.

        With fewer than rows, chance moves a cell of m rows by more than √m, and a good measurement is lost in it.
        """
        usual = min(max(self.total, self.tuning.particles), self.tuning.most_particles)
        return round(min(usual * 2**self.doublings, max(usual, min(self.tuning.most_doubled, self._affordable))))

    @property
    def _affordable(self) -> float:
        """How many particles memory has room for."""
        return self.tuning.most_values / len(self.plan.domain.names)

    @property
    def whole(self) -> bool:
        """Whether the particles are the whole domain."""
        return self.plan.domain.cells(self.plan.domain.names) <= self.tuning.whole_domain

    def start_from_forest(self, schedule: Schedule) -> None:
        """Picks a forest of pairs against independent columns, measures it, and draws the particles from it."""
        pairs = itertools.combinations(self.plan.domain.names, 2)
        options, candidates = self.options_of(pairs, self._independent, schedule)
        # As many picks are paid as are asked for, also where the rule leaves fewer (docs/mechanisms/exponential.md).
        chosen = self.curator.ask(
            Select(
                self.plan.domain,
                candidates,
                schedule.selecting(schedule.forest),
                k=schedule.edges,
                rule=Acyclic([o.columns for o in options]),
            )
        )
        self.measure([options[i] for i in chosen], schedule.measuring(schedule.forest))
        self.agree()
        self.start()
        self.particles.rake(self.tuning.passes, sampling=not self.whole)

    def run_round(self, schedule: Schedule, amount: Amount, triples: bool) -> None:
        """One round: pick the options that the model gets most wrong, measure them, and rake."""
        picked = self._pick(schedule, schedule.selecting(amount), triples)
        first = len(self.readings)
        self.measure(picked, schedule.measuring(amount))
        # Before the fit: tables that overlap would else pull the margin that they share apart in every pass (decision
        # 6).
        self.agree()
        priors.settle(self, [o.columns for o in picked])
        for option, reading in zip(picked, self.readings[first:], strict=True):
            self.learn(option, reading)
        # Many new sets at once can leave next to no particle any weight. They are taken in part by part then, and
        # particles are drawn anew in between.
        fewest = 0.0 if self.whole else self.tuning.fewest_raked
        self.particles.rake(self.tuning.passes, sampling=not self.whole, fewest=fewest)
        self.refresh(self.count, self.tuning.refresh_passes)
        self.rounds += 1

    def _pick(self, schedule: Schedule, amount: Amount, triples: bool) -> list[Option]:
        """The sets to measure in this round; where they are few, first of all pairs with a target."""
        sets, picked = self.sets(triples), list[Option]()
        if self.rounds < self.tuning.most_larger_rounds:
            sets += self.larger_sets()
        asked = [(sets, schedule.per_round)]
        wanted = [s for s in sets if self._is_aimed(s)]
        measured = sum(self._is_aimed(r.columns) for r in self.readings)
        # A selection of their own, not a larger weight: that would raise the sensitivity for all candidates (decision
        # 13).
        if schedule.per_round == self.tuning.few_in_round and measured < len(wanted):
            aimed = min(self.tuning.targeted, len(wanted))
            asked = [(wanted, aimed), (sets, schedule.per_round - aimed)]
        for part, (among, count) in zip(amount.split([float(k) for _, k in asked]), asked, strict=True):
            options, candidates = self.options_of(among, self.particles.histogram, schedule)
            chosen = self.curator.ask(
                Select(
                    self.plan.domain,
                    candidates,
                    part,
                    k=min(count, len(options)),
                    # The second selection knows what the first one picked.
                    rule=SmallOverlap([o.columns for o in options], tuple(frozenset(o.columns) for o in picked)),
                )
            )
            picked += [options[i] for i in chosen]
        return picked

    def _is_aimed(self, columns: ColumnSet) -> bool:
        """Whether this is a pair with a target; not where the user gave other sets a greater weight."""
        wanted = len(columns) == 2 and not set(columns).isdisjoint(self.plan.targets)
        return wanted and self.plan.workload.weight(columns) == 1.0  # weights are relative to the greatest

    def finish(self) -> Model:
        if not self.particles.count:
            self.start()
        tuning = self.tuning
        most = max(min(max(tuning.final_particles, 2.0 * self.count), self._affordable), self.count)
        count = round(min(max(tuning.final_per_row * self.total, self.count), most))
        for _ in range(tuning.final_refreshes):
            self.refresh(count, tuning.refresh_passes)
        self.particles.rake(tuning.final_passes, sampling=False)
        # Whatever happened before, a release errs in single columns by their own noise, and by no more.
        self.particles.populate(self.weights, self.rng)
        self.particles.fit_columns(self.weights)
        return ParticleModel(self.particles, self.tuning.exchange_rounds, self.tuning.conditioning)

    def _independent(self, columns: ColumnSet, groups: Sequence[Groups]) -> NDArray[np.float64]:
        """What two columns that have nothing to do with each other would give."""
        margins = [merged(self.weights[c], (g,)) for c, g in zip(columns, groups, strict=True)]
        return np.outer(margins[0], margins[1]) / self.total

    def sets(self, triples: bool) -> list[ColumnSet]:
        """Every set of columns that a round offers, each in the order of the domain."""
        pairs = list(itertools.combinations(self.plan.domain.names, 2))
        return [*self._offered(pairs), *self._offered(self.plan.triples if triples else self.plan.workload.triples())]

    def _offered(self, sets: Sequence[ColumnSet]) -> list[ColumnSet]:
        """Of very many sets a part, another one each time; those that the user asked for always."""
        always = [self._is_aimed(s) or frozenset(s) in self.plan.stated for s in sets]
        return offered(sets, [r.columns for r in self.readings], always, self.tuning.most_offered, self.rng)

    def larger_sets(self) -> list[ColumnSet]:
        """Some sets of four columns and more, for relations that no three of them show; where targets are named, each
        has one.

        There are far too many to offer all. They are drawn by a generator that knows nothing of the rows, other ones in
        each round (decision 18).
        """
        names, targets = self.plan.domain.names, self.plan.targets
        found = dict[ColumnSet, None]()
        for i in range(round(self.tuning.larger_sets * min(1.0, self.tuning.rows_of_larger_sets / self.total))):
            others, kept = list(names), set[str]()
            if targets:
                kept = {targets[i % len(targets)]}
                others = [c for c in names if c not in kept]
            size = int(self.rng.integers(self.tuning.fewest_others, self.tuning.most_others + 1))
            drawn = self.rng.choice(len(others), min(size, len(others)), replace=False)
            kept |= {others[j] for j in drawn}
            if len(kept) > 3:
                found[tuple(c for c in names if c in kept)] = None
        return list(found)

    def _levels(self, columns: ColumnSet, schedule: Schedule) -> list[int]:
        # Thinned from the fine end, so that the finest level always stays.
        if len(columns) == 2:
            levels = self.resolutions.levels(columns, self.tuning.most_pair_cells)
            return levels[:: -self._thinning][::-1]
        # An average cell of a triple, or of a larger set, holds two standard deviations of its noise, or more.
        levels = self.resolutions.levels(columns, self.total / (2.0 * schedule.noise), self.tuning.most_triple_groups)
        return levels[:: -self._triple_thinning][::-1]

    @property
    def _thinning(self) -> int:
        """With very many columns only every second, third, … level of a pair is a candidate."""
        pairs = math.comb(len(self.plan.domain.names), 2)
        return math.ceil(pairs * self.tuning.levels_per_pair / self.tuning.most_candidates)

    @property
    def _triple_thinning(self) -> int:
        """The same for triples, by their number, which is public: beyond 6,000 only every second, third, … level, and
        beyond 30,000 only the finest that the noise allows. More than 36,000 of several targets are refused before."""
        levels = len(self.plan.triples) * self.tuning.levels_per_triple
        return max(1, math.ceil(levels / self.tuning.most_triple_candidates))

    def options_of(
        self,
        sets: Iterable[ColumnSet],
        expected: Callable[[ColumnSet, Sequence[Groups]], NDArray[np.float64]],
        schedule: Schedule,
    ) -> tuple[list[Option], list[Candidate]]:
        """Every set at every level. What is expected is counted at the finest one, and summed up for the others."""
        options, candidates = [], []
        for columns in sets:
            levels, weight = self._levels(columns, schedule), self.plan.workload.weight(columns)
            if not levels:
                continue
            table = expected(columns, self.resolutions.groups(columns, levels[-1]))
            for level, (grid, matrices) in zip(levels, self.resolutions.ladder(columns, tuple(levels)), strict=True):
                options.append(Option(columns, level))
                candidates.append(self.scored(grid, summed(table, matrices), schedule.noise, weight))
        return options, candidates

    def scored(self, grid: Partition, estimate: NDArray[np.float64], noise: float, weight: float = 1.0) -> Candidate:
        """Scored by the error of what is expected, net of what noise would cost.

        Some of the cost is taken off where an error is found, and no more than there is; some where rows are expected.
        The latter alone makes a fine grid of linked columns look too dear, which before it was measured is expected to
        be spread over more cells than it is; the former alone favours grids with many cells to be a little wrong in.
        """
        # One row moves a score by no more than its weight only because all else in it comes from earlier answers, the
        # number of rows among them (docs/mechanisms/selection-scores.md). √(2/π)·σ is the mean absolute value of
        # Gaussian noise.
        error = math.sqrt(2 / math.pi) * noise
        # Noise in a cell that is nearly empty is shrunk away: it costs no more than what is expected there.
        harm = min(float(np.minimum(self.tuning.penalty * error, estimate).sum()), self.tuning.most_harm * self.total)
        return Candidate(grid.columns, estimate, weight, -weight * harm, grid, self.tuning.threshold * error)

    def measure(self, options: list[Option], amount: Amount) -> None:
        grids = [self.resolutions.grid(o.columns, o.level) for o in options]
        measured = self.curator.ask(Partitions(self.plan.domain, grids, amount))
        self.readings += [NoisyTable.of(m) for m in measured]

    def agree(self) -> None:
        """All readings together say more of each column; and each is moved to what they say."""
        self.columns = agree(self.read, self.readings, self.known_total)
        for coding in self.plan.domain:
            self.weights[coding.name] = _clean(self.columns[coding.name], coding)
        self.particles.total = float(next(iter(self.weights.values())).sum())
        for factor, seen in self.links:
            factor.seen = seen()

    def start(self) -> None:
        """The first particles, with the factors that they were drawn by; or the whole domain."""
        names = self.plan.domain.names
        edges = [self._edge(r) for r in self.readings]
        if self.whole:
            # From the forest too, not from independent columns: it matters where counts are nearly exact (decision 8).
            shape = self.plan.domain.shape(names)
            cells = np.unravel_index(np.arange(math.prod(shape)), shape)
            self.particles.codes = {c: codes.astype(CODE) for c, codes in zip(names, cells, strict=True)}
            logs = sum(np.log(np.maximum(self.weights[c], LEAST_MASS))[self.particles.codes[c]] for c in names)
            for edge in edges:
                logs += np.log(edge.factor).ravel()[cells_of(self.particles.codes, edge.columns, edge.groups)]
            weights = np.exp(logs - np.max(logs))
        else:
            self.particles.codes = draw_forest(self.weights, edges, self.count, self.rng)
            weights = np.ones(self.count)
        self.particles.weights = weights * (self.total / weights.sum())
        for name in names:
            every = (np.arange(self.plan.domain.size(name)),)
            log = np.log(np.maximum(self.weights[name], LEAST_MASS) / self.total)
            self.particles.add(LogFactor((name,), every, log))
            self.learn_column(name, self.tuning.one_way_spread)
        self.forbid()
        for edge in edges:
            self.particles.add(LogFactor(edge.columns, edge.groups, np.log(edge.factor)))
        for reading in self.readings:
            self.link(partial(self.shifted, reading), self.tuning.edge_spread)

    def forbid(self) -> None:
        """Cells that a constraint of the schema rules out: particles there have no weight, and none is drawn there."""
        for columns, forbidden in structural_zeros(self.plan.domain).items():
            every = tuple(np.arange(n) for n in forbidden.shape)
            self.particles.add(LogFactor(columns, every, np.where(forbidden, LOG_OF_ZERO, 0.0)))
            left = self.particles.weights * ~forbidden[tuple(self.particles.codes[c] for c in columns)]
            if left.any():  # else Gibbs sampling has to find the way out
                self.particles.weights = left * (self.total / left.sum())

    def _edge(self, reading: NoisyTable) -> Edge:
        margins = [sum_by_group(g, self.weights[c]) for c, g in zip(reading.columns, reading.groups, strict=True)]
        assert isinstance(reading.variance, float)
        factor = dependence(self.shifted(reading).counts, (margins[0], margins[1]), reading.variance)
        return Edge(reading.columns, reading.groups, factor)

    def learn(self, option: Option, reading: NoisyTable) -> None:
        """A reading, and before it what it says at coarser levels: sums of many cells are known better than each."""
        levels = self.resolutions.levels(option.columns, math.inf)
        for divisor in self.tuning.coarser:
            level = max((x for x in levels if x <= option.level // divisor), default=0)
            if level:
                self.learn_at(reading, self.resolutions.groups(option.columns, level))
        self.learn_at(reading, reading.groups)

    def learn_at(self, reading: NoisyTable, groups: tuple[Groups, ...]) -> None:
        """What a reading says by these groups, which merge its own."""
        coarse = tuple(coarser(fine, g) for fine, g in zip(reading.groups, groups, strict=True))
        variance = merged(np.full(reading.counts.shape, reading.variance), coarse)
        self.link(lambda: NoisyTable(reading.columns, merged(self.shifted(reading).counts, coarse), variance, groups))

    def learn_column(self, name: str, spread: float = 0.0) -> None:
        """What all tables together say of one column."""
        every = (np.arange(self.plan.domain.size(name)),)
        self.link(lambda: NoisyTable((name,), self.weights[name], self.columns[name].variance, every), spread)

    def shifted(self, reading: NoisyTable) -> NoisyTable:
        """Moved to what all tables together say of its columns."""
        return reading.shifted_to(self.columns)

    def link(self, seen: Callable[[], NoisyTable], spread: float = 0.0) -> LogFactor:
        """Evidence that is looked up again whenever more is known of the columns."""
        factor = LogFactor.evidence(seen(), spread)
        self.particles.add(factor)
        self.links.append((factor, seen))
        return factor

    def refresh(self, count: int, passes: int) -> None:
        """New particles under the same factors; the old ones, where the new are worse by far.

        Factors are fitted to particles. Where columns all but determine each other they may allow rows that no particle
        was near, and a sweep runs there. To rake what it found, and sweep again, takes these rows away.
        """
        if self.whole:
            return
        restore = self.snapshot()
        # CoverType at ε = 10: with one sweep, refreshes were taken back, and pairs erred by .041 and .026 in two runs;
        # with several, by .0178 (decision 8).
        for redraws in range(self.tuning.most_redraws):
            self.particles.resample(count, self.rng)
            self.sweep_particles()
            drift = self.particles.loss()
            self.particles.rake(passes, fewest=self.tuning.fewest_raked)
            bearable = self.tuning.calm
            if redraws + 1 >= self.tuning.usual_redraws:
                bearable = self.tuning.stormy
            if drift <= bearable:
                break
        healthy = self.particles.effective >= self.tuning.fewest_effective * count
        # A loss below 1 is less than the noise: nothing is lost by a larger one, as long as it is about that small.
        loss, most = self.particles.loss(), self.tuning.most_loss
        if healthy and loss <= most:
            return
        keep = self.snapshot()
        restore()
        if healthy and loss <= most * self.particles.loss():
            keep()
        else:
            self.doublings += 1

    def sweep_particles(self) -> None:
        sweep(self.particles, self.rng)

    def snapshot(self) -> Callable[[], None]:
        """What brings the particles back to where they are now."""
        return partial(self.particles.restore, self.particles.snapshot())


@dataclass(frozen=True)
class SmallOverlap:
    """The rule that two sets of one round share less than two columns, or less than all but one where both are large:
    else the second would be chosen on stale grounds.

    What is admissible only shrinks, since `taken` only grows.

    >>> SmallOverlap([("a", "b"), ("a", "b", "c"), ("b", "c")]).after(0).admits(1)
    False
    """

    sets: Sequence[ColumnSet]
    taken: tuple[frozenset[str], ...] = ()
    """The sets picked before, in this selection or in an earlier one of the round."""

    def admits(self, candidate: int) -> bool:
        columns = self.sets[candidate]
        return all(len(taken.intersection(columns)) < max(2, min(len(taken), len(columns)) - 1) for taken in self.taken)

    def after(self, picked: int) -> SmallOverlap:
        return replace(self, taken=(*self.taken, frozenset(self.sets[picked])))


def _clean(column: NoisyTable, coding: Coding) -> NDArray[np.float64]:
    """Non-negative counts with the same total, none of them 0 where noise may have hidden a few rows."""
    counts = denoised(column.counts, column.variance, coding)
    return keep_every_value(counts, max(1.0, float(column.counts.sum())), column.variance)


def spending(public: Public) -> Spending:
    first, left = plan_columns(public)
    share = moments.share_of(public.domain, public.rows, PlannedBudget(left, public.change), TUNING)
    bought = spend_by_schedule(public, first, left.part(1.0 - share), keen=True)
    return replace(bought, columns=public.noise_of_columns(first, POWER_OF_CELLS))


def spend_by_schedule(public: Public, first: Amount, left: Amount, keen: bool) -> Spending:
    """What is left after single columns, by the schedule of a public number of rows."""
    schedule = Schedule.of(public.rows, PlannedBudget(left, public.change), len(public.domain.names), keen)
    picks = schedule.edges + schedule.per_round * len(schedule.rounds)
    return Spending(public.noise_of_columns(first), picks, schedule.noise)


METHOD = Method(
    name="rake",
    guarantee="pure ε with delta = 0, else Gaussian differential privacy",
    good_for="the best table: pairs at the resolution that their noise allows, and prediction of a target",
    limits="takes some ten seconds; half a minute with 120 columns, minutes with 500",
    build=lambda options, params: Rake(options.targets, options.weights, options.workload, prior=options.prior),
    # A forecast is that of a typical table, and two of them differ by chance. This method erred least in nearly all
    # measured releases (`scripts/bench marginals`), so another one must be expected to err less by a quarter.
    traits=Traits(general=True, weighs=True, takes_prior=True, doubt=0.75),
    spending=spending,
    variants=(Variant(mutants=CHOOSES_SEVERAL),),
)
