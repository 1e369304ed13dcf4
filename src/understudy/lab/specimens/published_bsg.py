"""`published-bsg`: rows made from seeds, each with a test of plausible deniability (Bindschaedler et al. 2017).

A synthetic row begins as a copy of a private one, its *seed*. The last columns, in the order of a Bayesian network, are
drawn anew, each given its parents. The row is released if at least k private rows could as well have been its seed, to
within a factor γ, where k gets Laplace noise of scale 1/ε₀.

The theorem in print is right, and is about *one* released row: it is (ε, δ)-private with ε = ε₀ + ln(1 + γ/t) and
δ = exp(−ε₀(k − t)), for any t from 1 to k − 1. A table of m rows composes to m times as much, which no table that is
worth having survives. So what is printed beside a table as its ε is no claim about the table: `epsilon_of_table`. Two
more things are public here as in print: how many rows there are, and with how many seeds it was tried.

Its aim has an honest form: `privbayes` draws from a noisy network alone, without seeds.

Thinner than in print: the columns of a row that are drawn anew are always the same number, so that all rows that could
be its seed are as likely to be, and γ matters only for the ε that is named. The network is a tree by noisy mutual
information; its conditionals get Laplace noise; half of the rows learn it, the others are seeds.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.schema.derived import Derived
from understudy.boundary.schema.domain import Domain
from understudy.boundary.schema.encoding import codes_of_column, codes_of_derived
from understudy.boundary.schema.schema import Schema
from understudy.boundary.tables.rows import Rows
from understudy.errors import InputError
from understudy.inference.model import CodeColumns
from understudy.inference.network import Family
from understudy.inference.sampling import draw_given
from understudy.lab.specimens.published_jtree import sensitivity
from understudy.lab.specimens.published_select import decoded, known_schema, mutual_information
from understudy.lab.specimens.specimen_result import Specimen, SpecimenKind
from understudy.methods.params import Params, parameter

if TYPE_CHECKING:
    import pyarrow as pa

MOST_ALIKE = 50
"""k as in print; of a small table a tenth of the seeds, or nothing at all would pass."""
TRIES = 20
"""Seeds for each wanted row, at most."""

Codes = dict[str, NDArray[np.integer]]


def specimen(
    rows: Any,
    schema: Schema | None = None,
    epsilon: float = 1.0,
    *,
    k: int | None = None,
    gamma: float = 4.0,
    drawn: float = 0.75,
    n: int | None = None,
    seed: int | None = None,
) -> Specimen:
    """Rows that pass the test, at most as many as there are or `n`; fewer, where few seeds are like others.

    `epsilon` is that of one released row, half of it for the noise of its test. `drawn` is the part of the columns that
    are drawn anew.
    """
    if not 0 < epsilon < np.inf:
        raise InputError(f"epsilon ({epsilon}) must be a positive number", epsilon)
    known = known_schema(rows, schema)
    table, domain = Rows.of(rows, schema=known).everything(), Domain.of(known)
    rng = np.random.Generator(np.random.PCG64(seed))
    codes = codes_of(table, domain)
    order = rng.permutation(table.num_rows)
    learned, seeds = ({c: v[part] for c, v in codes.items()} for part in np.array_split(order, 2))
    if k is None:
        k = max(1, min(MOST_ALIKE, len(order) // 2 // 10))
    network = learn(learned, domain, epsilon, rng)
    kept = network[: len(network) - max(1, round(drawn * len(network)))]
    wanted = table.num_rows if n is None else n
    passing = passed(seeds, [f.column for f in kept], wanted, k, epsilon / 2, rng)
    made = {c: v[passing] for c, v in seeds.items()}
    for family in network[len(kept) :]:
        made[family.column] = draw_given(_parents(made, family, len(passing), domain), family.weights, rng)
    t = odds(epsilon, gamma)
    facts = {"epsilon": epsilon, "k": k, "gamma": gamma, "drawn": drawn}
    facts |= {"delta_of_row": math.exp(-epsilon / 2 * (k - t)) if t < k else 1.0}
    facts |= {"epsilon_of_table": epsilon * len(passing)}
    return Specimen(SPECIMEN.name, decoded({c: made[c] for c in domain.names}, domain, rng), facts)


def codes_of(table: pa.Table, domain: Domain) -> Codes:
    """All rows, code by code."""
    missing, found = domain.schema.missing_texts, {}
    for coding in domain:
        if isinstance(coding.column, Derived):
            found[coding.name] = codes_of_derived(coding, table, missing)
        else:
            found[coding.name] = codes_of_column(coding, table.column(coding.name), missing)
    return {c: np.asarray(v, dtype=np.intp) for c, v in found.items()}


def odds(epsilon: float, gamma: float) -> int:
    """The t of the theorem by which half of ε is left for the noise: ln(1 + γ/t) ≤ ε/2."""
    return math.ceil(gamma / math.expm1(epsilon / 2))


def passed(
    seeds: Codes, kept: list[str], wanted: int, k: int, epsilon: float, rng: np.random.Generator
) -> NDArray[np.intp]:
    """The seeds of the released rows: those that share what they keep with at least k others, under noise."""
    rows = len(next(iter(seeds.values())))
    if not rows:
        return np.zeros(0, dtype=np.intp)
    alike = np.full(rows, rows)
    if kept:
        table = np.column_stack([seeds[c] for c in kept])
        _, which, count = np.unique(table, axis=0, return_inverse=True, return_counts=True)
        alike = count[which.ravel()]
    tried = rng.integers(0, rows, TRIES * wanted)
    passing = tried[alike[tried] >= k + rng.laplace(0.0, 1 / epsilon, len(tried))]
    return passing[:wanted]


def learn(codes: Codes, domain: Domain, epsilon: float, rng: np.random.Generator) -> list[Family]:
    """A tree of columns, the parents first, with the noisy counts of each given its parent."""
    rows = len(next(iter(codes.values())))
    columns = domain.names
    pairs = list(itertools.combinations(columns, 2))
    noise = sensitivity(max(rows, 2)) * len(pairs) / epsilon
    score = {
        frozenset(p): mutual_information(_counts(codes, p, domain)) + rng.laplace(0.0, noise) if rows else 0.0
        for p in pairs
    }
    families = [_family(codes, columns[0], (), domain, epsilon, rng)]
    done, left = [columns[0]], list(columns[1:])
    # Prim's way: the column next that is most related to one that has its place.
    while left:
        parent, column = max(itertools.product(done, left), key=lambda p: score[frozenset(p)])
        families.append(_family(codes, column, (parent,), domain, epsilon, rng))
        done.append(column)
        left.remove(column)
    return families


def _family(
    codes: Codes, column: str, parents: tuple[str, ...], domain: Domain, epsilon: float, rng: np.random.Generator
) -> Family:
    counts = _counts(codes, (*parents, column), domain).reshape(-1, domain.size(column))
    noisy = counts + rng.laplace(0.0, len(domain.names) / epsilon, counts.shape)
    return Family(column, parents, np.maximum(noisy, 0.0))


def _counts(codes: Codes, columns: tuple[str, ...], domain: Domain) -> NDArray[np.int64]:
    cells = np.ravel_multi_index([codes[c] for c in columns], domain.shape(columns))
    return np.bincount(cells, minlength=domain.cells(columns)).reshape(domain.shape(columns))


def _parents(made: CodeColumns, family: Family, rows: int, domain: Domain) -> NDArray[np.integer]:
    if not family.parents:
        return np.zeros(rows, dtype=np.intp)
    return made[family.parents[0]]


@dataclass(frozen=True)
class BsgParams(Params):
    """The options of the printed method."""

    k: int | None = parameter(
        None, "private rows that could be the seed of a released one, at least", kind=int, low=1, high=1_000_000
    )
    gamma: float = parameter(4.0, "the factor within which they could", low=1.0, high=1_000.0, open_low=True)
    drawn: float = parameter(0.75, "the part of the columns that are drawn anew", low=0.0, high=1.0)


SPECIMEN = SpecimenKind(
    name="published-bsg",
    good_for="studies: rows made from seeds, with a test of plausible deniability, as they are printed",
    limits="its ε is that of one row: a table of m rows has m times as much",
    make=lambda rows, schema, epsilon, stated: specimen(rows, schema, epsilon, **stated),
    params=BsgParams,
    # Nothing about a table, that is; and the auditor's tables are far too small for anything to pass.
    claims=False,
)
