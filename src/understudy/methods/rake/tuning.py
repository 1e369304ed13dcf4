"""The constants of `rake`, also for the methods that build on it: what each does, and where its value comes from.

They are no user's options: a replay would not know of other ones. Tests and benchmarks hand them in. Those marked
*study* are halved and doubled by `scripts/bench rake constants` on six public tables; *ablation* is `scripts/bench rake
ablation`; decisions are those of docs/decisions. A value without a source was set by hand, and not studied since.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from understudy.inference.conditional import LIMITS, ConditioningLimits


@dataclass(frozen=True)
class Tuning:
    """How `rake` divides its budget, what it offers for selection, and how it fits particles."""

    selection_share: float = 0.14
    """The share of each step's budget that is spent on selecting. Study: half and twice as much err 3 to 4 % more."""
    keen_selection_share: float = 0.2
    """The same where few sets can be picked and no target is named, so that each is a good one. Decision 13."""

    picks_per_signal: float = 0.7
    """Sets to measure per square root of the signal: rows over the noise of one count. Decision 14, study."""
    pure_picks_per_signal: float = 0.5
    """The same with Laplace noise, whose error grows with the sets and not with their root: see `Schedule`."""
    pure_power: float = 0.4
    """The power of the signal that takes the place of the square root there."""
    usual_columns: float = 14.0
    """The columns of Adult without its weights, for which the factors above hold as they are. Decision 14."""
    usual_picks: float = 10.0
    """Ten sets are worth measuring on all but the smallest tables, of which fewer are known better."""
    signal_of_a_pick: float = 8.0
    """The signal that each of those ten needs."""
    fewest_picks: float = 3.0
    """One small round at least."""
    most_picks: float = 120.0
    """A limit of time; with 14 columns it is reached at a signal of 29,000."""
    picks_per_pair: float = 3.0
    """A table of few columns has few pairs: to measure one of them ever again would only split its budget."""
    usual_cells: float = 40.0
    """The cells of a pair of the first forest, on average, for which the factors above hold as they are."""
    power_of_cells: float = 0.25
    """How many sets are worth measuring goes down by this power of these cells, once they are known. Decision 21."""
    few_picks: float = 20.0
    """Below so many picks rounds are small and selections keen. Decision 13."""
    few_in_round: int = 3
    """Sets per round where they are few: each should be chosen with all that was learned before. Decision 13."""
    many_in_round: int = 5
    """Sets per round else: fewer rounds take less time."""
    columns_per_pick: int = 12
    """More of them where there are more columns than this for each: sets far from each other don't get in each other's
    way, and a round of 120 columns takes as long as eight rounds of Adult."""
    targeted: int = 2
    """Where sets are few, so many of a round are pairs with a target, until they are as many as there are such pairs:
    else too little would be known of it to predict it. Decision 13."""

    edges_per_pick: float = 1.6
    """Pairs of the first forest per pick, at most. Decision 14."""
    free_edges_per_pick: float = 1.2
    """Of these, so many come on top; each further one takes the place of a pick in a round. Decision 14."""
    round_picks_per_pick: float = 1.2
    """Sets in rounds per pick. Study: half as many err 12 % more, twice as many the same."""

    moment_error: float = 0.03
    """What a correlation of two numbers may err by from the noise of its moment. Decision 19."""
    most_moments_share: float = 0.25
    """Of what single columns leave, at most so much is spent on moments; and nothing where that would let correlations
    err by more than twice as much. Decision 19."""
    most_moments: int = 400
    """With more pairs of numbers than that there are none: each takes as long in every pass as a set that was measured,
    and 100 numbers have 4,950."""
    least_moments_share: float = 0.02
    """Where they would get less there are so many rows that grids know as much. Decision 19."""

    threshold: float = 0.3
    """The share of its noise that a measurement costs in cells where an error is found: estimation shrinks the rest.
    Decision 8, at its end."""
    penalty: float = 0.2
    """The same in cells where rows are expected. Ablation: without any cost the error is 27 % larger at ε = 1."""
    most_harm: float = 0.8
    """The most error, as a share of the rows, that the noise of a grid is held to do: a fitted table is never pure
    noise."""

    most_pair_cells: int = 5_000
    """Finer grids of a pair are not offered. A limit of time: all that is offered is counted in every round."""
    most_triple_groups: int = 12
    """Groups per column in a grid of three columns, for the same reason."""
    first_triple_round: int = 2
    """Triples are offered from the third round on: the first rounds are for pairs."""
    most_offered: int = 2_000
    """Pairs that a round offers, and triples as well; of more (64 columns have that many) a part each time. A limit of
    time."""
    larger_sets: int = 40
    """Sets of four columns and more that each of the first rounds offers, drawn at random. Decision 18."""
    rows_of_larger_sets: float = 5e5
    """Rows up to which so many are offered; of more rows fewer, since a set is counted row by row. A limit of time."""
    most_larger_rounds: int = 6
    """After so many rounds what is left is for pairs and triples: with a large budget rounds are many, and larger sets
    would take most of them. Decision 18."""
    fewest_others: int = 3
    """Columns of such a set, besides a target."""
    most_others: int = 6
    """The same, at most: with more, a grid of two groups each has more cells than a round can know."""
    target_groups: int = 12
    """Such sets merge the values of a target into no fewer groups than this: one wants to tell its classes apart."""
    most_candidates: int = 20_000
    """Pairs at all their levels; where there are more, levels are thinned out. A limit of time."""
    levels_per_pair: int = 10
    """How many levels a pair has, about: to know when to thin them out."""
    most_triple_candidates: int = 36_000
    """The same for triples; several targets with more triples than this are refused."""
    levels_per_triple: int = 6
    """How many levels a triple has, about."""

    particles: int = 50_000
    """The fewest weighted rows that the model is held by between rounds."""
    most_particles: int = 150_000
    """The most of them, where they suffice: a limit of time."""
    most_doubled: int = 300_000
    """The most of them where they did not."""
    most_values: int = 200_000_000
    """The most values that particles hold in all columns, where that leaves as many of them as rows: a limit of memory.
    With 500 columns it is reached by 400,000; with half as many of these, all refreshes of a generated table were taken
    back."""
    final_particles: int = 150_000
    """The most of them at the end. Ablation: with 50,000 the error on Adult is 4 % larger at ε = 1."""
    final_per_row: float = 8.0
    """Rows are chosen among so many particles each, within these bounds: a small table hardly gains by more of them."""
    whole_domain: int = 200_000
    """A domain of at most so many cells is held whole: every cell is a particle, and inference is exact. Decision 8."""
    passes: int = 6
    """Raking passes after each measurement."""
    refresh_passes: int = 3
    """Raking passes after particles were drawn anew, under factors that are fitted already."""
    final_passes: int = 12
    """Raking passes at the end."""
    final_refreshes: int = 2
    """How often particles are drawn anew before the end."""

    one_way_spread: float = 0.3
    """The prior variance of a column's log-factors about the counts that it was drawn by. Study: flat."""
    edge_spread: float = 0.04
    """The same for a pair of the forest. Study: half and twice as much err 1 and 4 % more."""
    coarser: tuple[int, ...] = (4, 2)
    """A measured grid is evidence also at a quarter and at half of its level: sums are known better than cells."""

    fewest_raked: float = 0.2
    """Raking pauses, and particles are drawn anew, where fewer of them are effective. A round of 500 columns measures
    41 sets; raked at once they left 6 % of the particles effective, and no refresh recovered from that. Decision 24."""
    fewest_effective: float = 0.05
    """Drawn particles are taken back when their effective number is below this share of them."""
    most_loss: float = 2.0
    """They are taken back, too, when the loss has grown by more than this factor."""
    calm: float = 3.0
    """A sweep that leaves no larger loss than this is good enough: particles are not drawn again."""
    usual_redraws: int = 3
    """How often they are drawn at most where the loss is above that."""
    stormy: float = 15.0
    """After these only a loss larger than this is worth further draws."""
    most_redraws: int = 6
    """How often they are drawn at most in any case."""
    exchange_rounds: int = 2_500
    """Rounds in which chosen rows are exchanged for better ones. Ablation: without them the error is 7 % larger at
    ε = 1."""
    conditioning: ConditioningLimits = LIMITS
    """What is drawn to choose from, and held in memory, where rows are given in part."""


TUNING = Tuning()
"""As every release is made."""
FEW_COLUMNS = replace(TUNING, larger_sets=0)
"""For `dp-arf`, whose leaves know of many columns, and `dp-select`, whose rows are another method's."""
