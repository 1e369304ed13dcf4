"""Membership by shadow models: a method is run many times with and without one person, and its outputs told apart.

Unlike the other attacks it attacks a method, not a table, so it costs as many runs.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.privacy.budget import DEFAULT_DELTA, Budget
from understudy.boundary.schema.schema import REPLACE_ONE, Schema
from understudy.boundary.tables.cache import CachedTable
from understudy.boundary.tables.draft import draft_schema
from understudy.boundary.tables.frame import to_arrow
from understudy.boundary.tables.rows import Rows
from understudy.boundary.tables.sources import open as open_table
from understudy.boundary.tables.table import Table, is_table
from understudy.errors import InputError
from understudy.lab.attacks.confidence import ranked_above, ranking
from understudy.lab.attacks.nearest_rows import Index, Matrix, Places
from understudy.lab.attacks.threat import AREA, FEWEST, NEAREST, Attack, Finding, Threat, matrix, some
from understudy.lab.evaluation.comparison import Comparison, RowSample
from understudy.lab.evaluation.holdout import people
from understudy.lab.evaluation.row_features import quietly
from understudy.methods.method import Options
from understudy.parameters import whole_number
from understudy.progress import Advance, Listener, Progress, listening
from understudy.releases.synthesis import Plan, synthesize

if TYPE_CHECKING:
    import pyarrow as pa

# Stadler et al. (2022) tell outputs apart by shadow models too, of an attacker who has other rows of the population.
# Here the attacker has all rows but the person's, which is whom differential privacy defends against.
SHADOWS, FEWEST_SHADOWS = 40, 16
"""A quarter of the runs tests each world; of three, a perfect ranking would be luck once in twenty times."""
AT_ONCE = 2_000
"""Rows that are compared with all others together, in search of the one that is farthest."""
MOST_ROWS = 1_000
"""Of a shadow's training table: a person hides worse among few, and many runs must not take long."""
PURPOSE = 8
Make = Callable[[Any, int], Any]
"""From a table and a seed to a synthetic table, as a frame."""
Floats = NDArray[np.float64]


def shadow_membership(
    make: Make,
    table: Any,
    row: int,
    *,
    without: Any = None,
    schema: Schema | None = None,
    shadows: int = SHADOWS,
    seed: int = 0,
    progress: Listener | None = None,
) -> Finding:
    """How well outputs with the row are told from those without it; half of the runs learn how, the others test it.

    `without` is the table without the person, where that is not just the table without the row.
    """
    rows = Rows.of(table, "the table", schema).everything()
    if not 0 <= row < rows.num_rows or rows.num_rows < 2:
        raise InputError(f"row ({row}) must be from 0 to {rows.num_rows - 1}, of 2 rows or more", row)
    check_shadows(shadows, seed)
    if without is None:
        without = rows.take(np.delete(np.arange(rows.num_rows), row))
    made = _made(make, (table, without), shadows, seed, listening(progress))
    return _told_apart(*_around(rows, row, made, schema))


def check_shadows(shadows: int, seed: int = 0) -> None:
    whole_number("shadows", shadows, FEWEST_SHADOWS)
    if seed < 0:
        raise InputError(f"seed ({seed}) must be 0 or more", seed)


def runs_of(shadows: int) -> int:
    """As many with the person as without."""
    return shadows + shadows % 2


def _made(make: Make, worlds: Sequence[Any], shadows: int, seed: int, progress: Progress) -> list[pa.Table]:
    """The outputs of both worlds in turns, each with a seed of its own."""
    runs = runs_of(shadows)
    seeds = np.random.Generator(np.random.PCG64([seed, PURPOSE])).integers(2**62, size=runs)
    made = []
    for i in range(runs):
        progress.advance(Advance("run", i + 1, runs))
        made.append(to_arrow(make(worlds[i % 2], int(seeds[i])), "the shadow"))
    return made


def _around(rows: pa.Table, row: int, made: Sequence[pa.Table], schema: Schema | None) -> tuple[Floats, Floats]:
    """For each output the number of rows that agree with the row in no column or more, one, …, all; logarithmic.

    All are read together, so that every output has the same codes.
    """
    import pyarrow as pa

    compared = Comparison.of(rows, pa.concat_tables(made, promote_options="permissive"), schema=schema)
    ends = np.cumsum([0, *(t.num_rows for t in made)])
    spans = (np.arange(low, high) for low, high in itertools.pairwise(ends))
    counts = np.log1p([agreeing(compared.real, row, compared.synthetic.take(span)) for span in spans])
    return counts[::2], counts[1::2]


def agreeing(real: RowSample, row: int, synthetic: RowSample) -> Floats:
    agreed = np.zeros(synthetic.rows, dtype=np.int64)
    for name, codes in synthetic.codes.items():
        agreed += codes == real.codes[name][row]
    # Near the queries of Meeus et al. (2023), who count the rows that agree on random sets of columns. Here it counts
    # in how many columns a row agrees, and not in which.
    counts = np.bincount(agreed, minlength=len(synthetic.codes) + 1)
    return np.cumsum(counts[::-1])[::-1].astype(np.float64)


def _told_apart(inside: Floats, outside: Floats) -> Finding:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    # Runs that taught the model are not tested: with few runs and many counts it could tell those apart by heart.
    # With 16 shadows four of each world are tested, whose perfect ranking is luck once in C(8, 4) = 70 times.
    learnt = len(inside) // 2
    model = make_pipeline(StandardScaler(), LogisticRegression())
    with quietly():
        model.fit(np.concatenate([inside[:learnt], outside[:learnt]]), np.repeat([1, 0], learnt))
        scores = [model.decision_function(runs[learnt:]) for runs in (inside, outside)]
    area, tested = ranked_above(*scores), len(scores[0])
    note = f"{2 * learnt} runs to learn from, {2 * tested} to test"
    return Finding.beside_guessing(area, ranking(area, tested, tested), note)


def most_exposed(threat: Threat) -> int:
    """The training row that is farthest from its neighbours in the training table: a method can hide it least.

    Neighbours among a few rows are no nearer than those among all, so few rows need be compared with all others.
    """
    # The score of Meeus et al. (2023) for vulnerable rows, who take five neighbours and a cosine distance.
    rows = matrix(threat.features, threat.train)
    index, bounds = Index.of(rows), _bounds(rows, some(len(rows), AT_ONCE, threat.generator(PURPOSE)))
    order = np.argsort(-bounds, kind="stable")
    best, farthest = 0, -np.inf
    for start in range(0, len(rows), AT_ONCE):
        asked = order[start : start + AT_ONCE]
        if bounds[asked[0]] <= farthest:
            break  # rows come by falling bounds, so that no later one can be farther
        distances = index.nearest(rows[asked], NEAREST, own=asked).distances.mean(axis=1)
        if distances.max() > farthest:
            best, farthest = int(asked[distances.argmax()]), float(distances.max())
    return best


def _bounds(rows: Matrix, few: Places) -> Floats:
    """How far each row can be from its neighbours at most; nothing is said of the few, which would find themselves."""
    bounds = Index.of(rows[few]).nearest(rows, NEAREST).distances.mean(axis=1)
    bounds[few] = np.inf
    return bounds


SHADOW = Attack(
    "shadow",
    "Membership by shadow models",
    "Somebody who knows the method, a person's whole row and everybody else's could tell from what it makes whether "
    "that person was in the table; this attacks the method, not the table.",
    "How often what the method makes with the person looks more like it than what it makes without them, for the "
    "person most at risk; guessing is right half of the time.",
    lambda threat: Finding.undefined("no method was named"),
    AREA,
)
"""Its computation comes from whoever can run the method."""


@dataclass(frozen=True)
class Shadows:
    """Releases of a method, made to be told apart: their noise is seeded, none is kept, and no budget is spent."""

    train: Any
    schema: Schema
    method: str
    budget: Budget
    count: int
    progress: Listener | None = None

    @classmethod
    def of(
        cls,
        train: Any,
        schema: Schema | str | Path | None,
        method: str,
        epsilon: float | None,
        delta: float | None,
        shadows: int | None,
        progress: Listener | None = None,
    ) -> Shadows:
        """Refuses whatever can be refused before anything is run."""
        if epsilon is None:
            raise InputError(f"shadow models of {method} need an epsilon to be made with, such as 1", method)
        budget = Budget(epsilon, DEFAULT_DELTA if delta is None else delta)
        count = SHADOWS if shadows is None else shadows
        check_shadows(count)
        if schema is None:
            schema = train.schema if is_table(train) else draft_schema(train)
        known = schema if isinstance(schema, Schema) else Schema.load(schema)
        plan = Plan.of(known, budget, method, Options(), None, 0, accept_draft=True)
        plan.check()
        if not is_table(train):
            # For its refusals alone: the tables of the shadows are opened in `found`.
            open_table(train, known)
        return cls(train, known, plan.choice.method.name, budget, count, progress)

    def found(self, threat: Threat) -> Finding:
        """How well it is told whether the person who is farthest from all others was in the method's table."""
        rows = Rows.of(self.train, "the training table", self.schema).everything()
        seed = threat.comparison.seed
        places = worlds(people(rows, self.schema), most_exposed(threat), self.schema, threat.generator(PURPOSE))
        others = len(places[1])
        if others < FEWEST:
            return Finding.undefined(f"of the others there are {others} rows, and fewer than {FEWEST} say nothing")
        tables = [open_table(rows.take(p), self.schema, name="a shadow's table") for p in places]
        # What a method counts without noise is the same in every run of a world; only the noise is drawn anew.
        counted = {table: CachedTable(table) for table in tables}
        finding = shadow_membership(
            lambda table, run: shadow_of(counted[table], self.method, self.budget, run),
            tables[0],
            0,
            without=tables[1],
            schema=self.schema,
            shadows=self.count,
            seed=seed,
            progress=self.progress,
        )
        return dataclasses.replace(finding, note=f"{self._note(len(places[0]))}; {finding.note}")

    def _note(self, rows: int) -> str:
        person = "the person who is farthest from all others"
        both = f"{person} or without"
        if self.schema.neighbours == REPLACE_ONE:
            both = f"{person} or somebody else in their place"
        return f"{self.method} with {self.budget}, on {rows:,} training rows with {both}"


def shadow_of(table: Table, method: str, budget: Budget, seed: int) -> pa.Table:
    """The rows of one release that nobody keeps; so a draft of a schema will do."""
    return synthesize(
        table,
        method=method,
        epsilon=budget.epsilon,
        delta=budget.delta,
        seed=seed,
        test_only_noise_seed=seed,
        accept_draft_as_public=True,
        ledger=False,
        progress=False,
    ).arrow


def worlds(people: Places, row: int, schema: Schema, rng: np.random.Generator) -> tuple[Places, Places]:
    """Rows of two neighbouring tables: with the person, whose row comes first, and without.

    Of a person only as many rows as count are taken. Where the number of rows is public, somebody else stands in.
    """
    own = np.flatnonzero(people == people[row])
    own = np.concatenate([[row], own[own != row]])[: schema.rows_per_unit]
    others = np.flatnonzero(people != people[row])
    replaced = int(schema.neighbours == REPLACE_ONE)
    if replaced:
        # One row of each of the others, so that the first of them can stand in by its row alone.
        others = others[np.unique(people[others], return_index=True)[1]]
    # Both worlds are the same draw of others, so that they differ in this person (and who stands in) alone.
    drawn = others[some(len(others), max(FEWEST, MOST_ROWS - len(own) + replaced), rng)]
    return np.concatenate([own, drawn[replaced:]]), drawn
