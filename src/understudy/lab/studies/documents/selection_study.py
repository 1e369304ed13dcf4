"""The experiments of the thesis on DP-Select (§5): selection against its pool, honest and as printed; five sweeps.

    write("selection.html", folder, schemas)

makes the whole page. Every trial is kept in a file beside the page as soon as it is made; the same call goes on where
it was stopped. It reads real rows and spends no budget: its noise is seeded, and nothing of it is a release.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.privacy.budget import Budget
from understudy.boundary.privacy.curator import Curator
from understudy.boundary.privacy.mechanisms.randomness import ExactRandomness
from understudy.boundary.schema.domain import Domain
from understudy.boundary.schema.schema import Schema
from understudy.boundary.tables.rows import Rows
from understudy.boundary.tables.sources import open as open_table
from understudy.files import write_atomically
from understudy.inference.model import CodeColumns
from understudy.inference.particles.particles import cells_of
from understudy.lab.jobs.job_record import JobRecord
from understudy.lab.specimens import published_select
from understudy.lab.studies.documents.selection_page import (
    POOL,
    PUBLISHED,
    SELECT,
    SelectionCase,
    SelectionTrial,
    Sweep,
    render,
)
from understudy.methods import independent, mst, privbayes
from understudy.methods.dp_select import ENTROPY, POOL_SHARE, TUNING, DpSelect, SelectTuning
from understudy.methods.method import Options, Recipe
from understudy.methods.registry import METHODS
from understudy.parameters import one_of
from understudy.predictors.input_data import codes_of
from understudy.progress import Listener, Progress, listening

if TYPE_CHECKING:
    import pyarrow as pa

TARGETS = {"adult": "income", "covertype": "cover_type"}
FILES = {"adult": ("adult.train.csv", "adult.test.csv")}
# Its 4 : 1 : 1 also has validation rows, which choose among snapshots of its network; here they are training rows.
HELD_OUT = 1 / 6
"""Of a table that has no test rows of its own: a sixth, as in the document."""
RATIOS, FACTORS, SECTIONS = (0.1, 0.2, 0.3, 0.5, 0.8), (5.0, 10.0, 15.0, 20.0), (1, 2, 5, 10)
DISTANCES = {SELECT: (ENTROPY, "L1", "L2", "Kolmogorov"), PUBLISHED: ("L1", "L2", "Kolmogorov")}
PRINTED_RATIO, PRINTED_FACTOR, PRINTED_SECTIONS = 0.2, 20.0, 5
"""Where the document found its method to be best."""


@dataclass(frozen=True)
class SelectionSize:
    """How much is tried: tables, pools and ε, seeds of the comparison and of the sweeps, and their ε."""

    pools: tuple[str, ...] = (independent.METHOD.name, privbayes.METHOD.name, mst.METHOD.name)
    epsilons: tuple[float, ...] = (1.0, 2.0, 4.0, 8.0)
    seeds: int = 5
    swept: str = mst.METHOD.name
    swept_epsilons: tuple[float, ...] = (2.0,)
    swept_seeds: int = 2
    rows: int | None = None
    """At most so many training rows."""
    steps: int | None = None
    """Of networks that learn by gradients, where they are a pool."""

    def sized(self, case: SelectionCase) -> SelectionCase:
        """The case with what holds for all of them, so that a record tells small studies from large ones."""
        return replace(case, rows=self.rows or 0, steps=self.steps or 0)


@dataclass(frozen=True)
class SelectionData:
    """A public table, split: rows to learn from, as they are and as codes, and rows to test with."""

    name: str
    schema: Schema
    domain: Domain
    target: str
    rows: pa.Table
    train: CodeColumns
    test: CodeColumns

    @classmethod
    def read(cls, name: str, folder: Path, schema: Schema, most: int | None = None) -> SelectionData:
        one_of("table", name, TARGETS)
        tables = [Rows.of(folder / file).everything() for file in FILES.get(name, (f"{name}.csv",))]
        if len(tables) == 1:
            tables = _split(tables[0])
        train, test = tables
        domain, train = Domain.of(schema), train.slice(0, most or train.num_rows)
        codes = [codes_of(t.select(list(domain.names)), domain, domain.names) for t in (train, test)]
        return cls(
            name, schema, domain=domain, target=TARGETS[name], rows=train, train=dict(codes[0]), test=dict(codes[1])
        )

    @property
    def delta(self) -> float:
        """That of the document."""
        # A function of the number of rows, which add-remove keeps private: no release could claim by it.
        return float(self.rows.num_rows**-published_select.DELTA_POWER)


def _split(table: pa.Table) -> list[pa.Table]:
    # By a seed of its own: whatever the trials are seeded with, all of them see the same two parts.
    order = np.random.default_rng(0).permutation(table.num_rows)
    cut = round(HELD_OUT * table.num_rows)
    return [table.take(order[cut:]), table.take(order[:cut])]


def write(
    path: str | Path,
    folder: str | Path,
    schemas: Mapping[str, Schema],
    seed: int = 0,
    size: SelectionSize | None = None,
    progress: Listener | None = None,
) -> Path:
    """The page as a file; what was found so far is read from, and added to, the file of the same name in .jsonl."""
    size, path = size or SelectionSize(), Path(path)
    trials = list(study(path.with_suffix(".jsonl"), Path(folder), schemas, seed, size, listening(progress)))
    write_atomically(path, render(trials, sweeps(size, list(schemas)), size.swept).encode(), private=True)
    return path


def study(
    record: Path, folder: Path, schemas: Mapping[str, Schema], seed: int, size: SelectionSize, progress: Progress
) -> Iterator[SelectionTrial]:
    """Every trial of the page, recorded or made now."""
    wanted = list(dict.fromkeys(replace(c, seed=c.seed + seed) for c in cases(size, list(schemas))))
    data: dict[str, SelectionData] = {}
    with JobRecord.open(record) as lines:
        known = {t.case: t for t in map(SelectionTrial.from_dict, lines.values)}
        for number, case in enumerate(wanted, 1):
            if case not in known:
                if case.table not in data:  # one table at a time is held in memory
                    data = {case.table: SelectionData.read(case.table, folder, schemas[case.table], size.rows)}
                known[case] = attempt(data[case.table], case)
                lines.append(asdict(known[case]))
            progress(f"{number} of {len(wanted)}: {known[case].summary_line}")
            yield known[case]


# --- What is tried


def cases(size: SelectionSize, tables: Sequence[str]) -> Iterator[SelectionCase]:
    """The comparison at every ε, and each sweep; by seed, so that a study that is stopped has the first of them all."""
    for seed in range(size.seeds):
        for table in tables:
            yield from (replace(c, seed=seed) for c in compared(size, table))
            if seed < size.swept_seeds:
                # What sweeps are measured against, before them: their pool alone, and both selections as they are.
                base = replace(size, pools=(size.swept,), epsilons=size.swept_epsilons)
                yield from (replace(c, seed=seed) for c in compared(base, table))
                yield from (replace(c, seed=seed) for s in sweeps(size, [table]) for c in s.cases.values())


def compared(size: SelectionSize, table: str) -> Iterator[SelectionCase]:
    """Each pool with all of the budget, and both selections out of a pool with a part of it."""
    for epsilon, pool in itertools.product(size.epsilons, size.pools):
        yield size.sized(SelectionCase(table, POOL, pool, epsilon))
        yield size.sized(honest(table, pool, epsilon))
        yield size.sized(printed(table, pool, epsilon))


def honest(table: str, pool: str, epsilon: float) -> SelectionCase:
    # Ten candidates for each row, and weights by entropy: what the sweeps settled (docs/concepts/selection.md).
    return SelectionCase(table, SELECT, pool=pool, epsilon=epsilon, ratio=POOL_SHARE, factor=10.0, distance=ENTROPY)


def printed(table: str, pool: str, epsilon: float) -> SelectionCase:
    return SelectionCase(
        table,
        PUBLISHED,
        pool=pool,
        epsilon=epsilon,
        ratio=PRINTED_RATIO,
        factor=PRINTED_FACTOR,
        distance="L1",
        sections=PRINTED_SECTIONS,
    )


def sweeps(size: SelectionSize, tables: Sequence[str]) -> list[Sweep]:
    """§5.2.2 to §5.2.5: one parameter is varied, the others stay; sections are for rows that are chosen one by one."""
    found = []
    for table, make, epsilon in itertools.product(tables, (honest, printed), size.swept_epsilons):
        base = size.sized(make(table, size.swept, epsilon))
        one_by_one = replace(base, distance="L1")
        grids: dict[str, dict[str, SelectionCase]] = {
            "ε-ratio": {f"{r:g}": replace(base, ratio=r) for r in RATIOS},
            "pool size": {f"{f:g}": replace(base, factor=f) for f in FACTORS},
            "distance": {d: replace(base, distance=d) for d in DISTANCES[base.method]},
            "sections": {str(s): replace(one_by_one, sections=s) for s in SECTIONS},
        }
        found += [Sweep(table, base.method, name, grid) for name, grid in grids.items()]
    return found


# --- One trial


def attempt(data: SelectionData, case: SelectionCase, tuning: SelectTuning = TUNING) -> SelectionTrial:
    """Time is that of one core, and of making the rows: that of the pool's model is in it."""
    begun = time.process_time()
    if case.method == PUBLISHED:
        made = published(data, case)
    else:
        made = learned(data, case, tuning)
    seconds = time.process_time() - begun
    auc, accuracy, balanced = auc_and_accuracy(data.domain, data.target, made, data.test, case.seed)
    single, pairs = (total_variation(data.domain, data.train, made, k) for k in (1, 2))
    return SelectionTrial(case, seconds, tv1=single, tv2=pairs, auc=auc, accuracy=accuracy, balanced=balanced)


def pool_of(case: SelectionCase, target: str) -> Recipe:
    """The recipe of the pool; it is told the target, where it can be."""
    one_of("pool", case.pool, METHODS)
    method, own = METHODS[case.pool], dict[str, object]()
    if case.steps and "steps" in method.params.declared():
        own["steps"] = case.steps
    return method.recipe(Options((target,), own=own))


def learned(data: SelectionData, case: SelectionCase, tuning: SelectTuning = TUNING) -> CodeColumns:
    """The pool itself, or what honest selection makes of it."""
    recipe = pool_of(case, data.target)
    if case.method == SELECT:
        recipe = DpSelect(
            recipe, case.ratio, case.factor, case.distance, case.sections, targets=(data.target,), tuning=tuning
        )
    table, budget = open_table(data.rows, data.schema), Budget(case.epsilon, data.delta)
    curator = Curator.on(table, budget, randomness=ExactRandomness.seeded(case.seed))
    rng = np.random.default_rng(case.seed)
    model = recipe.calibrate(data.domain, curator.remaining()).fit(curator, rng)
    # As many rows as the model takes there to be: how many there are is not public.
    return model.sample(max(1, round(model.total)), rng)


def published(data: SelectionData, case: SelectionCase) -> CodeColumns:
    made = published_select.specimen(
        data.rows,
        data.schema,
        case.epsilon,
        pool=pool_of(case, data.target),
        epsilon_ratio=case.ratio,
        pool_size=case.factor,
        distance=case.distance,
        sections=case.sections,
        seed=case.seed,
    )
    return dict(codes_of(made.table, data.domain, data.domain.names))


DEPTH = 10
"""Of the decision tree, as in the thesis on DP-Select."""
MOST_BOOSTED = 20_000
"""Rows that gradient boosting learns from, and is tested with; more are drawn from by the seed."""

Floats = NDArray[np.float64]


def total_variation(domain: Domain, real: CodeColumns, made: CodeColumns, width: int) -> float:
    """The mean over all sets of so many columns."""
    found = []
    for columns in itertools.combinations(domain.names, min(width, len(domain.names))):
        groups = [np.arange(n) for n in domain.shape(columns)]
        counts = [np.bincount(cells_of(t, columns, groups), minlength=domain.cells(columns)) for t in (real, made)]
        found.append(float(np.abs(counts[0] / counts[0].sum() - counts[1] / counts[1].sum()).sum() / 2))
    return float(np.mean(found))


def auc_and_accuracy(
    domain: Domain, target: str, made: CodeColumns, test: CodeColumns, seed: int
) -> tuple[float, float, float]:
    """The AUC of gradient boosting, and the accuracy, plain and balanced, of a tree of depth 10; all on real rows.

    With several classes the AUC is the mean of each against the rest. Rows of one class teach nothing: an AUC of ½.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.metrics import balanced_accuracy_score
    from sklearn.tree import DecisionTreeClassifier

    features = [c for c in domain.names if c != target]
    x, tested = (np.column_stack([t[c] for c in features]) for t in (made, test))
    y, truth = made[target], test[target]
    tree = DecisionTreeClassifier(max_depth=DEPTH, random_state=seed).fit(x, y)
    said = tree.predict(tested)
    # Balanced too: rows with the right margins let a tree name the commoner class more often, and plain accuracy
    # rewards that (docs/concepts/selection.md).
    accuracies = float((said == truth).mean()), float(balanced_accuracy_score(truth, said))
    learnt, asked = _some(len(y), seed), _some(len(truth), seed)
    if len(np.unique(y[learnt])) < 2:
        return (0.5, *accuracies)
    # By default it stops early above 10,000 rows: tables of other sizes would be judged by another kind of model.
    boosting = HistGradientBoostingClassifier(early_stopping=False, random_state=seed).fit(x[learnt], y[learnt])
    # A class that no synthetic row has is unknown to the model: its chance is 0, not left out.
    chances = np.zeros((len(asked), domain.size(target)))
    chances[:, boosting.classes_] = boosting.predict_proba(tested[asked])
    return (mean_auc(chances, truth[asked]), *accuracies)


def _some(rows: int, seed: int) -> NDArray[np.int64]:
    return np.random.default_rng(seed).permutation(rows)[:MOST_BOOSTED]


def mean_auc(chances: Floats, truth: NDArray[np.integer]) -> float:
    from sklearn.metrics import roc_auc_score

    if chances.shape[1] == 2:
        return float(roc_auc_score(truth, chances[:, 1]))
    # An area needs rows of the class and others: a class that the test rows lack has none.
    known = [c for c in range(chances.shape[1]) if 0 < (truth == c).sum() < len(truth)]
    return float(np.mean([roc_auc_score(truth == c, chances[:, c]) for c in known]))
