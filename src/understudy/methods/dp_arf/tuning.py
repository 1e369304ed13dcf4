"""The constants of `dp-arf`: what each does, and where its value comes from.

*Variants* are those of `benchmarks/forests/dp_arf.py`, whose figures are in docs/concepts/forests.md. A value without a
source was set by hand, and not studied since.
"""

from __future__ import annotations

from dataclasses import dataclass

from understudy.methods.rake.tuning import FEW_COLUMNS, Tuning


@dataclass(frozen=True)
class FirstTreeTuning:
    """Of the tree that the rows choose where columns are very many."""

    selection_share: float = 0.2
    """Of the first model's budget, for picking splits; the rest counts columns by leaf."""
    most_levels: int = 7
    """Splits, at most: 128 leaves, in each of which every column is counted."""
    most_candidates: int = 3_000
    """Pairs of a split and a column it may tell of, for one pick; of more, a random choice. A limit of time."""
    scored_groups: int = 4
    """Groups of the column that a split is scored by."""
    counted_groups: int = 16
    """Groups by which a column is counted in each leaf."""
    rows_per_noise: float = 8.0
    """How many times the rows of a leaf should exceed the noise of one of its counts."""


@dataclass(frozen=True)
class DpArfTuning:
    """How trees are grown, offered and counted."""

    rake: Tuning = FEW_COLUMNS
    first_tree: FirstTreeTuning = FirstTreeTuning()

    most_paired_columns: int = 400
    """With more columns their pairs, 80,000 by then, are not looked at: the first model is a tree."""
    first_leaf_round: float = 0.0
    """When leaves come in, as a share of the rounds after the forest of pairs: from the first on. Variants."""
    most_leaf_rounds: int = 10
    """After so many rounds of growing trees what is left is for pairs alone: with a large budget rounds are many."""
    grids_too: bool = True
    """Whether pairs go on competing with leaves. Variants."""
    predicting: float = 0.5
    """The share of the trees that predict a target, where there is one. Variants."""
    fewest_columns: int = 2
    """Of an adversarial tree."""
    most_columns: int = 6
    """Of an adversarial tree: with more, a tree of so few leaves looks at each only once."""
    predictor_columns: int = 8
    """Of a predicting tree, at most."""
    rows_to_grow: int = 6_000
    """Drawn from the model for each round. A limit of time."""
    target_groups: int = 8
    """Classes of a target's values in a predicting tree, at most."""
    least_signal: float = 2.0
    """The fewest rows that a leaf of the proxy may hold, in standard deviations of its noise."""

    deepest: int = 10
    """Levels of a tree. Variants."""
    most_splits: int = 256
    """No level is begun that could bring a tree beyond these."""
    cuts: tuple[int, ...] = (1, 4, 16)
    """A tree is offered whole, and with a quarter and a sixteenth of its leaves. Variants."""
    coarser: tuple[int, ...] = (16, 4)
    """Counted leaves are evidence also at a sixteenth and at a quarter of them: sums are known better than cells."""


TUNING = DpArfTuning()
