"""How `rake` divides what single columns left: how many sets are picked, when, and with what."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from understudy.boundary.privacy.budget import Amount
from understudy.boundary.privacy.queryable import BudgetView
from understudy.methods.rake.tuning import TUNING, Tuning


@dataclass(frozen=True)
class Schedule:
    """How many sets are picked, when, and with what: settled by the noisy rows, the columns and the budget."""

    edges: int
    per_round: int
    forest: Amount
    rounds: list[Amount]
    noise: float
    """The standard deviation that each cell will be measured with."""
    selection: float
    """The share of each amount that is spent on selecting."""
    moments: Amount | None = None

    @classmethod
    def of(
        cls,
        total: float,
        curator: BudgetView,
        columns: int,
        keen: bool = False,
        tuning: Tuning = TUNING,
        *,
        moments: float = 0.0,
    ) -> Schedule:
        """`keen`: where few sets are picked, more is spent on choosing them. `moments`: the share that those get."""
        left = curator.remaining()
        signal = total / left.noise_scale(curator.count_sensitivity(left))
        pairs = columns * (columns - 1) // 2
        wanted = max(worthwhile_sets(signal, columns, left.pure, tuning), tuning.fewest_picks)
        picks = min(wanted, tuning.most_picks, tuning.picks_per_pair * pairs)
        few = picks < tuning.few_picks
        many = max(tuning.many_in_round, columns // tuning.columns_per_pick)
        per_round = min(tuning.few_in_round if few else many, pairs)
        edges = min(columns - 1, round(tuning.edges_per_pick * picks))
        later = tuning.round_picks_per_pick * picks - max(0.0, edges - tuning.free_edges_per_pick * picks)
        rounds = max(1, round(later / per_round))
        # How many steps there are follows from noisy rows; what they cost together does not, since all that is left is
        # split here, and what the forest leaves once more (docs/mechanisms/rake.md, Composition).
        aside = [moments / (1.0 - moments) * (edges + per_round * rounds)] if moments else []
        forest, *each = left.split([float(edges), *[float(per_round)] * rounds, *aside])
        of_moments = each.pop() if moments else None
        share = tuning.selection_share
        if keen and few:
            share = tuning.keen_selection_share
        noise = _noise(measuring(forest, share), edges, curator)
        return cls(edges, per_round, forest, rounds=each, noise=noise, selection=share, moments=of_moments)

    def after(self, cells: Sequence[int], curator: BudgetView, tuning: Tuning = TUNING) -> Schedule:
        """The rounds anew, now that the cells of each pair in the forest say how fine a grid this table can carry.

        Coarse grids are known well with little: then more of them are worth measuring, and fewer where they are fine.
        """
        if not cells:
            return self
        planned = self.edges + self.per_round * len(self.rounds)
        worthwhile = planned * (tuning.usual_cells * len(cells) / sum(cells)) ** tuning.power_of_cells
        most = max(tuning.round_picks_per_pick * tuning.most_picks, planned - self.edges)
        later = min(worthwhile - self.edges, most)
        rounds = curator.remaining().split([1.0] * max(1, round(later / self.per_round)))
        return replace(self, rounds=rounds, noise=_noise(self.measuring(rounds[0]), self.per_round, curator))

    def selecting(self, amount: Amount) -> Amount:
        """The part of a step's amount that its selection takes."""
        return amount.split([self.selection, 1.0 - self.selection])[0]

    def measuring(self, amount: Amount) -> Amount:
        """The part that its measurements take: split, not multiplied, so that both add up to what there is."""
        return measuring(amount, self.selection)


def measuring(amount: Amount, selection: float) -> Amount:
    return amount.split([selection, 1.0 - selection])[1]


def _noise(amount: Amount, sets: int, curator: BudgetView) -> float:
    """The standard deviation in each cell where an amount is spent on so many sets."""
    scale = amount.split([1.0] * sets)[0].noise_scale(curator.count_sensitivity(amount))
    # Laplace noise of scale b has a standard deviation of √2·b.
    return scale * math.sqrt(2.0) if amount.pure else scale


def worthwhile_sets(signal: float, columns: int, pure: bool, tuning: Tuning = TUNING) -> float:
    """How many sets to measure where all of the budget, spent on one count of all rows, errs by 1/signal of them.

    With Gaussian noise, k sets err by a·√k/signal each, and what is not measured by b·columns/k^1.5: in sum least at a
    multiple of √(signal·columns), and tables of all sizes were best at 0.7·√signal for 14 columns. Laplace noise of k
    sets is a·√2·k/signal; with the same a and b that is least at 0.5·signal^0.4 for 14 columns, and ten sets are as
    noisy as elsewhere where the signal is √20 times as large.
    """
    wide = signal * columns / tuning.usual_columns
    if pure:
        enough = tuning.signal_of_a_pick * math.sqrt(2.0 * tuning.usual_picks)
        return max(tuning.pure_picks_per_signal * wide**tuning.pure_power, min(tuning.usual_picks, signal / enough))
    return max(tuning.picks_per_signal * math.sqrt(wide), min(tuning.usual_picks, signal / tuning.signal_of_a_pick))
