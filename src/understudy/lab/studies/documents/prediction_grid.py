"""Trees and forests of every size on public tables (`understudy study prediction`).

It is the evaluation of S. Hanisch, "Differential Privacy for Decision Trees".

Private and not, of depth 1 to 7, with 1 to 100 trees, at ε from 0.001 to 10. Adult is made as the document made it:
seven columns in few bins, and as many rich as poor. Private predictors take the document's form (random structure,
votes, leaves at their word); the greedy tree is ours.

The billionaire example (Bambauer, Muralidhar & Sarathy 2014, in Hanisch) shows why a mean can't be private and useful
at once where a median can: a town of a hundred people with small incomes, made up here; then a billionaire moves in.
Noise that hides a billionaire drowns the town's mean. One person moves a median by one place.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from understudy.boundary.privacy.asks import Quantile
from understudy.boundary.privacy.budget import Budget
from understudy.boundary.privacy.curator import Curator
from understudy.boundary.privacy.mechanisms.noise import SeededEntropy, discrete_laplace
from understudy.boundary.privacy.mechanisms.randomness import ExactRandomness
from understudy.boundary.schema.column import Categorical, Integer
from understudy.boundary.schema.domain import Domain
from understudy.boundary.schema.schema import Schema
from understudy.boundary.tables.cache import EncodedTable
from understudy.boundary.tables.rows import Rows
from understudy.boundary.tables.sources import open as open_table
from understudy.files import write_atomically
from understudy.lab.studies.documents.prediction_page import (
    FOREST,
    GREEDY,
    PRIVATE_FOREST,
    PRIVATE_TREE,
    TREE,
    Id3Result,
    IncomeExample,
    PredictionGrid,
    PredictionOutcome,
    RepeatedCounts,
    render,
)
from understudy.parameters import one_of
from understudy.predictors.classifiers import PrivateDecisionTree, PrivateForest, PrivateGreedyTree
from understudy.predictors.input_data import codes_of
from understudy.predictors.predictor import PrivateClassifier
from understudy.predictors.tree_induction import MOST_LEAVES
from understudy.progress import Listener, listening

TARGETS = {"adult": "income", "mushroom": "class", "nursery": "classification", "votes": "Class"}
FILES = {"adult": "adult.train.csv"}
DEPTHS, TREES = (1, 2, 3, 4, 5, 6, 7), (1, 2, 3, 5, 7, 10, 20, 50, 100)
EPSILONS = (0.001, 0.01, 0.1, 1.0, 10.0)
HELD_OUT = 1 / 3


@dataclass(frozen=True)
class PredictionData:
    """A table with classes, as codes."""

    name: str
    domain: Domain
    target: str
    codes: dict[str, NDArray[np.int32]]

    @classmethod
    def read(cls, name: str, folder: Path, schema: Schema, seed: int = 0) -> PredictionData:
        """As Hanisch has it: Adult binned and balanced, the others as they are."""
        rows, binned = Rows.of(folder / FILES.get(name, f"{name}.csv")).everything(), name == "adult"
        if binned:
            rows, schema = grouped_education(rows), ADULT_BINNED
        domain = Domain.of(schema)
        codes = codes_of(rows.select(list(domain.names)), domain, domain.names)
        whole = cls(name, domain, TARGETS[name], codes)
        if binned:
            return whole.balanced(np.random.default_rng(seed))
        return whole

    @property
    def rows(self) -> int:
        return len(self.codes[self.target])

    @property
    def baseline(self) -> float:
        return float(np.bincount(self.codes[self.target]).max() / self.rows)

    def take(self, places: NDArray[np.int64]) -> PredictionData:
        return PredictionData(self.name, self.domain, self.target, {c: v[places] for c, v in self.codes.items()})

    def balanced(self, rng: np.random.Generator) -> PredictionData:
        """As many rows of each class as the rarest has."""
        classes = self.codes[self.target]
        fewest = int(np.bincount(classes).min())
        # Balanced rows make one half the accuracy of a guess: the printed 83.48 % is to be read beside that.
        kept = [rng.permutation(np.flatnonzero(classes == c))[:fewest] for c in range(self.domain.size(self.target))]
        return self.take(np.sort(np.concatenate(kept)))

    def split(self, seed: int) -> tuple[PredictionData, PredictionData]:
        order = np.random.default_rng(seed).permutation(self.rows)
        cut = round(HELD_OUT * self.rows)
        return self.take(order[cut:]), self.take(order[:cut])

    def matrix(self) -> NDArray[np.float64]:
        """A column of 0 and 1 for each value, as trees of scikit-learn need categories."""
        blocks = [np.eye(self.domain.size(c))[v] for c, v in self.codes.items() if c != self.target]
        return np.hstack(blocks)


def prediction_grid(
    folder: str | Path,
    schemas: Mapping[str, Schema],
    *,
    depths: Sequence[int] = DEPTHS,
    trees: Sequence[int] = TREES,
    epsilons: Sequence[float] = EPSILONS,
    repeats: int = 5,
    progress: Listener | None = None,
) -> PredictionGrid:
    """Every predictor of every size on every table that has a schema, `repeats` splits each."""
    told, outcomes = listening(progress), list[PredictionOutcome]()
    baselines, rows, trees_of_noise, counts = {}, {}, list[Id3Result](), list[RepeatedCounts]()
    for name, schema in schemas.items():
        one_of("table", name, TARGETS)
        data = PredictionData.read(name, Path(folder), schema)
        baselines[name], rows[name] = data.baseline, data.rows
        splits = [data.split(seed) for seed in range(repeats)]
        for outcome in _outcomes(name, splits, depths, trees, epsilons):
            outcomes.append(outcome)
            told(f"{name}: {outcome.method}, depth {outcome.depth}, {outcome.trees} trees: {outcome.mean:.4f}")
        trees_of_noise.append(_id3(name, splits))
        counts.append(repeated_counts(data))
    return PredictionGrid(
        tuple(outcomes), baselines, rows, repeats, town(), id3=tuple(trees_of_noise), counts=tuple(counts)
    )


def sizes(depths: Sequence[int], trees: Sequence[int], epsilons: Sequence[float]) -> int:
    """How many outcomes a table has."""
    return len(depths) * (1 + len(trees)) + len(depths) * len(epsilons) * (2 + len(trees))


def _outcomes(
    name: str,
    splits: Sequence[tuple[PredictionData, PredictionData]],
    depths: Sequence[int],
    trees: Sequence[int],
    epsilons: Sequence[float],
) -> Iterator[PredictionOutcome]:
    for depth in depths:
        yield PredictionOutcome(name, TREE, depth, 1, None, _plain(splits, depth, None))
        yield from (
            PredictionOutcome(name, FOREST, depth, count, None, _plain(splits, depth, count)) for count in trees
        )
    for depth, epsilon in itertools.product(depths, epsilons):
        # As printed: as many leaves as there are, and a leaf is what its own noisy counts say.
        printed = partial(PrivateDecisionTree, epsilon, depth=depth, leaves=MOST_LEAVES, shrink=False)
        one = _private(splits, printed)
        yield PredictionOutcome(name, PRIVATE_TREE, depth, 1, epsilon, one)
        greedy = _private(splits, partial(PrivateGreedyTree, epsilon, depth=depth))
        yield PredictionOutcome(name, GREEDY, depth, 1, epsilon, greedy)
        for count in trees:
            many = _private(splits, partial(_printed_forest, epsilon, depth, count))
            yield PredictionOutcome(name, PRIVATE_FOREST, depth, count, epsilon, many)


ID3_EPSILONS = (0.01, 0.05, 0.1, 0.5, 1.0, 2.0)
"""1/ε from ½ to 100; with that of figure 5."""


def _id3(name: str, splits: Sequence[tuple[PredictionData, PredictionData]]) -> Id3Result:
    """Figures 5 and 6: ID3 with noisy counts, as deep as there are columns if the budget lets it."""
    from sklearn.tree import DecisionTreeClassifier

    found = {e: _private(splits, partial(PrivateGreedyTree, e, splits="noisy")) for e in ID3_EPSILONS}
    # Entropy is ID3's; scikit-learn's splits have two sides each, on one value against the others.
    plain = [
        float(DecisionTreeClassifier(criterion="entropy", random_state=seed).fit(a.matrix(), a.codes[a.target]).score(
            b.matrix(), b.codes[b.target]))
        for seed, (a, b) in enumerate(splits)
    ]  # fmt: skip
    return Id3Result(name, tuple(plain), found)


COUNTED_EPSILON, COUNTED = 0.001, 1_000


def repeated_counts(data: PredictionData, epsilon: float = COUNTED_EPSILON, repeats: int = COUNTED) -> RepeatedCounts:
    """Figure 9: the share of the last class out of two noisy counts, each asked anew with the whole ε."""
    column = data.domain.schema[data.target]
    assert isinstance(column, Categorical)
    value = str(column.labels[-1])
    # Codes are places in the list of declared values.
    of_class = int((data.codes[data.target] == len(column.labels) - 1).sum())
    others = data.rows - of_class
    # The classes have no row in common, so both counts cost one ε together; one row moves one of them by one.
    noise = [discrete_laplace(1 / epsilon, repeats, SeededEntropy(seed)) for seed in (0, 1)]
    noisy, rest = of_class + noise[0], others + noise[1]
    # Noise may carry a small table's counts below 0, where no share lies.
    shares = tuple(float(s) for s in np.clip(noisy / np.maximum(noisy + rest, 1), 0.0, 1.0))
    return RepeatedCounts(data.name, value, epsilon, of_class / data.rows, shares)


def _printed_forest(epsilon: float, depth: int, trees: int) -> PrivateForest:
    return PrivateForest(
        epsilon, structure="random", depth=depth, trees=trees, leaves=MOST_LEAVES, voting="vote", shrink=False
    )


def _private(
    splits: Sequence[tuple[PredictionData, PredictionData]], make: Callable[[], PrivateClassifier]
) -> tuple[float, ...]:
    """Accuracies of private predictors. Declared rows spare the twentieth of the budget that they would cost."""
    found = []
    for train, test in splits:
        # Without a seed: structure and noise are drawn anew, so that two grids differ in their private figures.
        predictor = make().set_params(rows=train.rows)
        assert isinstance(predictor, PrivateClassifier)
        predictor.fit(EncodedTable.of(train.domain, train.codes), target=train.target)
        found.append(float(np.mean(predictor.predict_codes(test.codes) == test.codes[test.target])))
    return tuple(found)


def _plain(splits: Sequence[tuple[PredictionData, PredictionData]], depth: int, trees: int | None) -> tuple[float, ...]:
    """Accuracies of scikit-learn's, which protect nobody."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.tree import DecisionTreeClassifier

    found = []
    for seed, (train, test) in enumerate(splits):
        model: Any = DecisionTreeClassifier(max_depth=depth, random_state=seed)
        if trees is not None:
            model = RandomForestClassifier(trees, max_depth=depth, random_state=seed)
        model.fit(train.matrix(), train.codes[train.target])
        found.append(float(model.score(test.matrix(), test.codes[test.target])))
    return tuple(found)


def save(grid: PredictionGrid, folder: Path) -> None:
    """The page, and the numbers behind it."""
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / "prediction-grid.html", render(grid).encode(), private=True)
    numbers = [asdict(o) | {"mean": o.mean, "variance": o.variance} for o in grid.outcomes]
    body = {"baselines": grid.baselines, "rows": grid.rows, "outcomes": numbers, "town": asdict(grid.town)}
    body |= {"id3": [asdict(r) for r in grid.id3], "counts": [asdict(c) for c in grid.counts]}
    write_atomically(folder / "prediction-grid.json", (json.dumps(body, indent=1) + "\n").encode(), private=True)


# The names of the levels are those of the document; which schooling is in which is not printed, and ours.
EDUCATION = {
    "HS_or_below": (
        "Preschool", "1st-4th", "5th-6th", "7th-8th", "9th", "10th", "11th", "12th", "HS-grad",
    ),
    "College": ("Some-college", "Assoc-voc", "Assoc-acdm"),
    "Bachelors": ("Bachelors",),
    "Masters": ("Masters",),
    "Doctorate": ("Prof-school", "Doctorate"),
}  # fmt: skip
LEVEL = "education_level"

# Hanisch has "nearly same sized" bins, which rows in figure 8 show: ages up to 37 and from 38, hours up to 36, 37 to 50
# and from 51.
ADULT_BINNED = Schema.loads("""
missing_values = ["?"]
[columns.age]
type = "integer"
min = 17
max = 90
cuts = [38]
[columns.workclass]
type = "categorical"
values = [
  "Private", "Self-emp-not-inc", "Self-emp-inc", "Federal-gov", "Local-gov", "State-gov", "Without-pay", "Never-worked",
]
missing = true
[columns.education_level]
type = "categorical"
values = ["HS_or_below", "College", "Bachelors", "Masters", "Doctorate"]
[columns.relationship]
type = "categorical"
values = ["Wife", "Own-child", "Husband", "Not-in-family", "Other-relative", "Unmarried"]
[columns.race]
type = "categorical"
values = ["White", "Asian-Pac-Islander", "Amer-Indian-Eskimo", "Other", "Black"]
[columns.sex]
type = "categorical"
values = ["Female", "Male"]
[columns.hours-per-week]
type = "integer"
min = 1
max = 99
cuts = [37, 51]
[columns.income]
type = "categorical"
values = ["<=50K", ">50K"]
""")


def grouped_education(rows: pa.Table) -> pa.Table:
    """The table with its sixteen levels of education put into five."""
    group = {level: name for name, levels in EDUCATION.items() for level in levels}
    levels = [group[str(v)] for v in rows.column("education").to_pylist()]
    return rows.append_column(LEVEL, pa.array(levels))


RESIDENTS, TYPICAL, SPREAD = 100, 20_000.0, 0.6
LARGEST = 1_000_000_000
EPSILON, REPEATS = 0.5, 200
CUTS = (*range(1_000, 100_000, 1_000), *(d * 10**e for e in range(5, 9) for d in (1, 2, 5)))
"""Public: a thousand apart up to a hundred thousand, then ever wider."""
SCHEMA = Schema((Integer("income", minimum=0, maximum=LARGEST, cuts=tuple(float(c) for c in CUTS)),))


def town(epsilon: float = EPSILON, repeats: int = REPEATS, seed: int = 0) -> IncomeExample:
    """Both towns, asked `repeats` times for their mean and their median; the noise is seeded, for a study."""
    incomes = np.round(np.random.default_rng(seed).lognormal(math.log(TYPICAL), SPREAD, RESIDENTS)).astype(np.int64)
    with_one = np.append(incomes, LARGEST)
    means = tuple(_noisy_means(people, epsilon, repeats, seed) for people in (incomes, with_one))
    medians = tuple(_medians(people, epsilon, repeats, seed) for people in (incomes, with_one))
    return IncomeExample(
        epsilon,
        RESIDENTS,
        mean=(float(incomes.mean()), float(with_one.mean())),
        median=(float(np.median(incomes)), float(np.median(with_one))),
        # A Laplace law of scale b has the standard deviation √2·b.
        noise_of_mean=math.sqrt(2.0) * LARGEST / epsilon / RESIDENTS,
        noisy_means=(means[0], means[1]),
        private_medians=(medians[0], medians[1]),
    )


def _noisy_means(incomes: NDArray[np.int64], epsilon: float, repeats: int, seed: int) -> tuple[float, ...]:
    """The sum with Laplace noise for a sensitivity of the largest income, over a number of people taken as public."""
    # One person more moves the sum by the largest income that the schema admits, whoever lives there.
    noise = discrete_laplace(LARGEST / epsilon, repeats, SeededEntropy(seed))
    return tuple(((int(incomes.sum()) + noise) / len(incomes)).tolist())


def _medians(incomes: NDArray[np.int64], epsilon: float, repeats: int, seed: int) -> tuple[float, ...]:
    """By the exponential mechanism over public cuts; one curator has the budget of all repeats, and each gets ε."""
    table, domain = open_table(pa.table({"income": incomes}), SCHEMA), Domain.of(SCHEMA)
    budget = Budget(epsilon * repeats, 0.0)
    curator = Curator.on(table, budget, randomness=ExactRandomness.seeded(seed))
    each = budget.capacity.split([1.0] * repeats)
    return tuple(curator.ask(Quantile(domain, "income", 0.5, amount)) for amount in each)
