"""`published-dp-select`: DP-Select as Ebrahimianghazani's thesis prints it, over any private pool, without a finite ε.

What is printed (algorithms 1 to 3): ε is divided between a pool and the selection. The pairs of columns with the most
mutual information are taken, weighted by it. Row by row, T random rows of the pool are scored by minus the weighted
distance that the selected rows would have with each of them, and one is drawn by the exponential mechanism with
sensitivity 2/(|D| + 1). The ε of a draw comes from a bounded-range composition of |D| draws, by bisection; in parallel
sections, each of which has its own part of the rows and of the pool, of |D|/sections draws. Why that is not private:

- which pairs are taken, and their weights, are computed from the rows without any noise;
- the sensitivity is that of one pair with fixed weights; one row can move the weights, and a score by almost 2;
- as many rows are selected as there are: |D| is published, and it is in the sensitivity and in δ;
- sections are blocks of rows, and one row more moves the ends of all of them.

It also selects next to nothing: late in a run the log-odds of two candidates are some thousandths.

The document names triplets of columns as well, but prints no score for them; here it is pairs, as in algorithm 2.
Its listing has T = 20 and its text T = |pool|/|D|, which is the default here.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.privacy.budget import Budget
from understudy.boundary.privacy.curator import Curator
from understudy.boundary.privacy.mechanisms.randomness import ExactRandomness
from understudy.boundary.schema.domain import ColumnSet, Domain
from understudy.boundary.schema.schema import Schema
from understudy.boundary.tables.draft import draft_schema
from understudy.boundary.tables.rows import Rows
from understudy.boundary.tables.sources import open as open_table
from understudy.boundary.tables.table import Table
from understudy.errors import InputError
from understudy.inference.model import CodeColumns
from understudy.inference.particles.particles import cells_of
from understudy.inference.rebuilding import with_rebuilt
from understudy.inference.row_selection import DISTANCES, L1, Floats, Goal, Pick, Places, check_distance, choose
from understudy.inference.values import decode, made_up
from understudy.lab.specimens.specimen_result import Specimen, SpecimenKind
from understudy.methods.independent import Independent
from understudy.methods.method import Recipe
from understudy.methods.params import Params, parameter
from understudy.releases.synthetic_table import from_values

if TYPE_CHECKING:
    import pyarrow as pa

MARGINALS = 0.1
"""The share of all pairs that is taken."""
DELTA_POWER = 1.1
"""δ is |D| to minus this power."""
BISECTIONS = 100
"""More halvings than a double has bits."""


def specimen(
    rows: Any,
    schema: Schema | None = None,
    epsilon: float = 1.0,
    *,
    pool: Recipe | None = None,
    n: int | None = None,
    seed: int | None = None,
    **parameters: Any,
) -> Specimen:
    """Rows as the printed method selects them; the other parameters are those of `Printed`.

    The pool is a private method's, by default that of `independent`.
    """
    import pyarrow as pa

    printed, recipe = Printed(epsilon, **parameters), pool or Independent()
    # An Arrow table is taken as it is: by way of the database its types could change.
    known = known_schema(rows, schema)
    table = rows if isinstance(rows, pa.Table) else Rows.of(rows, schema=known).everything()
    domain = Domain.of(known)
    rng = np.random.Generator(np.random.PCG64(seed))
    size, delta = table.num_rows, table.num_rows**-DELTA_POWER
    wanted = size if n is None else n
    opened = open_table(table, domain.schema)
    drawn = printed.draw_pool(opened, domain, recipe, delta, wanted, rng)
    # From here on rows are read without noise; only the draw of each row is a mechanism.
    counts = count_pairs(opened, domain)
    found = important(counts, printed.marginals)
    counted = [counts]
    if printed.sections > 1:
        blocks = [open_table(block, domain.schema) for block in _blocks(table, printed.sections)]
        counted = [count_pairs(block, domain, list(found)) for block in blocks]
    chosen, partial = printed.select(goal_of(drawn, domain, found, counted), size, wanted, delta, rng)
    facts = {"delta": delta, "epsilon_partial": partial, "pairs": [list(pair) for pair in found]}
    picked = {c: v[chosen] for c, v in drawn.items()}
    return Specimen(SPECIMEN.name, decoded(picked, domain, rng), printed.described(recipe) | facts)


@dataclass(frozen=True)
class Printed:
    """The parameters of the document, by the names of §5.1.2.

    `epsilon_ratio` is the pool's part of ε, `pool_size` the rows of the pool for each selected one, `candidates` T,
    and `marginals` the share of pairs that is taken.
    """

    epsilon: float
    epsilon_ratio: float = 0.2
    pool_size: float = 10.0
    candidates: int | None = None
    distance: str = L1
    sections: int = 1
    marginals: float = MARGINALS

    def __post_init__(self) -> None:
        check_distance(self.distance)
        for name, low, high in (("epsilon", 0, math.inf), ("epsilon_ratio", 0, 1)):
            value = getattr(self, name)
            if not low < value < high:
                raise InputError(f"{name} ({value}) must be above {low} and below {high}", value)
        if not 0 < self.marginals <= 1:
            raise InputError(f"marginals ({self.marginals}) must be above 0 and at most 1", self.marginals)
        for name in ("pool_size", "candidates", "sections"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InputError(f"{name} ({value}) must be at least 1", value)

    def described(self, pool: Recipe) -> dict[str, Any]:
        return {
            "epsilon": self.epsilon,
            "epsilon_ratio": self.epsilon_ratio,
            "pool": type(pool).__name__,
            "pool_size": self.pool_size,
            "candidates": self.candidates,
            "distance": self.distance,
            "sections": self.sections,
            "marginals": self.marginals,
        }

    def draw_pool(
        self, table: Table, domain: Domain, pool: Recipe, delta: float, rows: int, rng: np.random.Generator
    ) -> CodeColumns:
        """Algorithm 1: a private model with its part of ε, and rows from it."""
        randomness = ExactRandomness.seeded(int(rng.integers(2**31)))
        budget = Budget(self.epsilon_ratio * self.epsilon, delta)
        curator = Curator.on(table, budget, randomness=randomness)
        model = pool.calibrate(domain, curator.remaining()).fit(curator, rng)
        return model.sample(math.ceil(self.pool_size * rows), rng)

    def select(self, goal: Goal, size: int, rows: int, delta: float, rng: np.random.Generator) -> tuple[Places, float]:
        """The selected rows of the pool, and the ε of one draw."""
        steps = -(-rows // self.sections)
        partial = partial_epsilon((1 - self.epsilon_ratio) * self.epsilon, steps, delta)
        # Sections select side by side, each for its own block of the rows. So ε is composed over the draws of one
        # section, and a block has the sensitivity of a smaller table.
        part, pool = max(1, size // self.sections), len(goal.cells)
        proposed = self._proposed(pool, steps, rows, rng)
        pick = exponential_mechanism(partial, 2.0 / (part + 1), rng)
        return choose(goal, proposed, self.distance, pick).ravel()[:rows], partial

    def _proposed(self, pool: int, steps: int, rows: int, rng: np.random.Generator) -> Places:
        """Step 1 of the selection: T random rows of each section's part of the pool."""
        candidates = self.candidates or max(1, pool // rows)
        part = pool // self.sections
        drawn = rng.integers(0, part, (steps, self.sections, candidates))
        return np.asarray(drawn + part * np.arange(self.sections)[:, None], dtype=np.intp)


def exponential_mechanism(epsilon: float, sensitivity: float, rng: np.random.Generator) -> Pick:
    """Draws by exp(−ε·distance/(2Δ)), section by section; with Gumbels, the largest of which is such a draw."""
    exponent = epsilon / (2.0 * sensitivity)

    def pick(distances: Floats) -> Places:
        return np.asarray((rng.gumbel(size=distances.shape) - exponent * distances).argmax(axis=1), dtype=np.intp)

    return pick


Counts = dict[ColumnSet, NDArray[np.int64]]


def count_pairs(table: Table, domain: Domain, pairs: Sequence[ColumnSet] | None = None) -> Counts:
    """The exact counts of pairs of columns, by default of all."""
    wanted = pairs
    if wanted is None:
        wanted = list(itertools.combinations(domain.names, 2))
    return dict(zip(wanted, table.count_by(domain, wanted), strict=True))


def mutual_information(counts: NDArray[np.int64]) -> float:
    """Σ p(x, y)·ln(p(x, y)/(p(x)·p(y))), of the rows as they are."""
    shares = counts / counts.sum()
    expected = shares.sum(axis=1, keepdims=True) * shares.sum(axis=0, keepdims=True)
    # 0·ln 0 is 0; and of independent columns rounding may leave a little less than nothing.
    held = shares > 0
    return max(0.0, float((shares[held] * np.log(shares[held] / expected[held])).sum()))


def important(counts: Counts, share: float) -> dict[ColumnSet, float]:
    """Algorithm 2: the pairs with the most mutual information, and their weights, which add up to 1."""
    if not counts:
        raise InputError("the printed method needs at least two columns, since it compares pairs of them", counts)
    information = {pair: mutual_information(n) for pair, n in counts.items()}
    best = sorted(information, key=lambda pair: -information[pair])[: max(1, round(share * len(information)))]
    whole = math.fsum(information[pair] for pair in best)
    if not whole:
        # Independent columns: no pair matters more than another.
        return dict.fromkeys(best, 1 / len(best))
    return {pair: information[pair] / whole for pair in best}


def goal_of(pool: CodeColumns, domain: Domain, weights: dict[ColumnSet, float], counts: Sequence[Counts]) -> Goal:
    """What each section wants: the exact marginals of its block of rows."""
    wanted = [np.stack([of[pair].ravel() for of in counts]).astype(np.float64) for pair in weights]
    cells = [cells_of(pool, pair, [np.arange(domain.size(c)) for c in pair]) for pair in weights]
    return Goal.of(cells, wanted, list(weights.values()))


def _blocks(table: pa.Table, sections: int) -> list[pa.Table]:
    """As many rows in each; all rows where a block would be empty."""
    cuts = np.linspace(0, table.num_rows, sections + 1).astype(int)
    return [table.slice(a, b - a) if b > a else table for a, b in itertools.pairwise(cuts)]


def composed_epsilon(epsilon: float, draws: int, delta: float) -> float:
    """Algorithm 3, by lemma 6: what so many ε-bounded-range mechanisms amount to at δ."""
    # For small ε what remains is of order ε², and would be lost in the rounding of 1 − e^(−ε) and of ln(1 + …).
    above = epsilon / -math.expm1(-epsilon) - 1.0
    advanced = draws * (above - math.log1p(above)) + math.sqrt(draws * epsilon**2 / 2 * math.log(1 / delta))
    return min(draws * epsilon, advanced)


def partial_epsilon(epsilon: float, draws: int, delta: float) -> float:
    """The ε of each draw, by bisection: the largest that composes to no more than ε."""
    # ε/draws is always allowed, by plain composition; more than ε never is.
    low, high = epsilon / draws, epsilon
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        if composed_epsilon(middle, draws, delta) <= epsilon:
            low = middle
        else:
            high = middle
    return low


def known_schema(rows: Any, schema: Schema | None) -> Schema:
    """The schema, drafted from the rows where there is none; what it keeps private is read off the rows, too."""
    if schema is not None and not schema.private:
        return schema
    drafted = draft_schema(rows)
    if schema is None:
        return drafted
    return schema.with_columns(drafted[c.name] for c in schema.private)


def decoded(codes: CodeColumns, domain: Domain, rng: np.random.Generator) -> pa.Table:
    values = with_rebuilt(decode(codes, domain, rng, uniform=True), domain.schema)
    rows = len(next(iter(codes.values())))
    # Identifiers are no part of the domain, but the released table has them.
    values |= {c.name: made_up(c, rows) for c in domain.schema.released if c.name not in values}  # type: ignore[arg-type]
    return from_values(values, domain.schema)


@dataclass(frozen=True)
class PublishedSelectParams(Params):
    """The options of the printed method, by the names of §5.1.2."""

    epsilon_ratio: float = parameter(
        0.2, "the pool's part of epsilon", low=0.0, high=1.0, open_low=True, open_high=True
    )
    pool_size: float = parameter(10.0, "rows of the pool for each selected one", low=1.0, high=1_000.0)
    candidates: int | None = parameter(None, "rows that each choice is made among", kind=int, low=1, high=10**9)
    distance: str = parameter(L1, "what the selected rows are near by", choices=DISTANCES)
    sections: int = parameter(1, "parts of the table that rows are selected for by turns", low=1, high=1_000)
    marginals: float = parameter(MARGINALS, "the share of all pairs that is taken", low=0.0, high=1.0, open_low=True)


SPECIMEN = SpecimenKind(
    name="published-dp-select",
    good_for="studies: rows selected from a pool as its document prints it",
    limits="no finite ε: marginals are chosen without privacy, and |D| is published",
    make=lambda rows, schema, epsilon, stated: specimen(rows, schema, epsilon, **stated),
    params=PublishedSelectParams,
)
