"""`published-jtree`: pairs of columns that pass a noisy threshold, and a junction tree (Chen et al. 2015). No finite ε.

A part of ε tests every pair: mutual information with Laplace noise against a threshold with Laplace noise, each of
scale Δ/(ε/2). The pairs that pass are the edges of a graph; it is made chordal, its cliques are counted with Laplace
noise by the rest of ε, and rows are drawn from the tree of cliques. Why that is not private:

- the noise of the threshold is paid once, but that of a pair by every pair that is tested. Sparse vectors are private
  if the test ends after a fixed number of pairs that pass, and their noise grows with that number; here any number may
  pass. Where one row moves some pairs up and others down, the loss grows with the number of pairs (Lyu, Su & Li 2017
  call this test their algorithm 6, and show that no ε holds for it): `loss_of_test`;
- the sensitivity of mutual information, the threshold's noise and the number of synthetic rows all show how many rows
  there are.

Its aim has an honest form: `mst` and `aim` choose pairs by the exponential mechanism, and fit the same kind of model.

Left out of print: rows are not sampled before the test, and cliques are not merged into larger tables for less noise.
An edge that would make the tree too large is passed over, the last in the order of the columns first.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.schema.domain import ColumnSet, Domain
from understudy.boundary.schema.schema import Schema
from understudy.boundary.tables.rows import Rows
from understudy.boundary.tables.sources import open as open_table
from understudy.errors import InputError
from understudy.inference.graphical.estimation import GraphicalEstimator
from understudy.inference.graphical.graphical_model import GraphicalModel, JunctionTree
from understudy.inference.noisy_table import NoisyTable, project_to_simplex
from understudy.lab.specimens.published_select import count_pairs, decoded, known_schema, mutual_information
from understudy.lab.specimens.specimen_result import Specimen, SpecimenKind
from understudy.methods.params import Params, parameter

WEAK = 0.2
"""Cramér's φ from which a relation counts."""
MOST_CELLS = 2_000_000
SWEEPS = 30
GRID = 20_001
"""Places at which the threshold's noise is looked at, when a loss is worked out."""

Floats = NDArray[np.float64]


def specimen(
    rows: Any,
    schema: Schema | None = None,
    epsilon: float = 1.0,
    *,
    structure: float = 0.2,
    phi: float = WEAK,
    n: int | None = None,
    seed: int | None = None,
) -> Specimen:
    """Rows as the printed method makes them; `structure` is the part of ε that tests pairs."""
    if not 0 < epsilon < np.inf:
        raise InputError(f"epsilon ({epsilon}) must be a positive number", epsilon)
    known = known_schema(rows, schema)
    table, domain = Rows.of(rows, schema=known).everything(), Domain.of(known)
    rng = np.random.Generator(np.random.PCG64(seed))
    opened = open_table(table, domain.schema)
    pairs = list(itertools.combinations(domain.names, 2))
    information = {pair: mutual_information(found) for pair, found in count_pairs(opened, domain, pairs).items()}
    edges = passed(information, domain, table.num_rows, epsilon * structure, phi, rng)
    tree = JunctionTree.over(_affordable(edges, domain), domain_sizes(domain))
    cliques = list(tree.cliques)
    scale = len(cliques) / (epsilon * (1.0 - structure))
    counted = opened.count_by(domain, cliques)
    noisy = [found + rng.laplace(0.0, scale, found.shape) for found in counted]
    model = _model(domain, cliques, noisy, scale, table.num_rows)
    drawn = model.sample(table.num_rows if n is None else n, rng)
    facts = {"epsilon": epsilon, "structure": structure, "phi": phi, "pairs": [list(edge) for edge in edges]}
    return Specimen(SPECIMEN.name, decoded(drawn, domain, rng), facts)


def domain_sizes(domain: Domain) -> dict[str, int]:
    return {c: domain.size(c) for c in domain.names}


def sensitivity(rows: int) -> float:
    """That of mutual information in nats, for so many rows (Zhang et al. 2017, lemma 1, has it in bits)."""
    more, least = rows + 1, max(rows - 1, 1)
    return 2 / rows * np.log(more / 2) + (rows - 1) / rows * np.log(more / least)


def passed(
    information: dict[ColumnSet, float],
    domain: Domain,
    rows: int,
    epsilon: float,
    phi: float,
    rng: np.random.Generator,
) -> list[ColumnSet]:
    """The pairs that pass. The threshold of a pair is what a φ amounts to: ½ φ² × (the fewer values − 1)."""
    scale = sensitivity(rows) / (epsilon / 2)
    moved = rng.laplace(0.0, scale)
    found = []
    for pair, value in information.items():
        threshold = (min(domain.shape(pair)) - 1) * phi**2 / 2
        if value + rng.laplace(0.0, scale) >= threshold + moved:
            found.append(pair)
    return found


def loss_of_test(one: Sequence[float], other: Sequence[float], passes: Sequence[bool], epsilon: float) -> float:
    """By how much likelier an outcome of the test is (as a logarithm) in one world than in another.

    The worlds are given by what each pair has above its threshold, in units of the sensitivity.
    """
    moved = np.linspace(-60.0, 60.0, GRID) / epsilon
    # Over the noise of the threshold, which all pairs share; given that, each passes by itself.
    density = np.exp(-np.abs(moved) * epsilon / 2)

    def likelihood(above: Sequence[float]) -> float:
        chances = density.copy()
        for value, passing in zip(above, passes, strict=True):
            chances *= _above(value - moved if passing else moved - value, epsilon / 2)
        return float(chances.sum())

    return float(np.log(likelihood(one) / likelihood(other)))


def _above(gap: Floats, epsilon: float) -> Floats:
    """The chance that Laplace noise of scale 1/ε does not take away more than a gap."""
    tail = 0.5 * np.exp(-epsilon * np.abs(gap))
    return np.where(gap >= 0, 1.0 - tail, tail)


def _affordable(edges: Sequence[ColumnSet], domain: Domain) -> list[ColumnSet]:
    kept: list[ColumnSet] = []
    for edge in edges:
        tree = JunctionTree.over([*kept, edge], domain_sizes(domain))
        if tree.cells(domain_sizes(domain)) <= MOST_CELLS:
            kept.append(edge)
    return kept


def _model(
    domain: Domain, cliques: Sequence[ColumnSet], noisy: Sequence[Floats], scale: float, rows: int
) -> GraphicalModel:
    sizes = domain_sizes(domain)
    base = {c: np.full(size, rows / size) for c, size in sizes.items()}
    estimator = GraphicalEstimator(sizes, base, float(rows), fixed_total=True)
    variance = 2 * scale**2
    counts = [project_to_simplex(n, rows) for n in noisy]
    estimator.observe([NoisyTable(c, n, variance) for c, n in zip(cliques, counts, strict=True)])
    return estimator.fit(SWEEPS)


@dataclass(frozen=True)
class JTreeParams(Params):
    """The options of the printed method."""

    structure: float = parameter(
        0.2, "the part of epsilon that tests pairs", low=0.0, high=1.0, open_low=True, open_high=True
    )
    phi: float = parameter(WEAK, "Cramér's φ from which a relation counts", low=0.0, high=1.0)


SPECIMEN = SpecimenKind(
    name="published-jtree",
    good_for="studies: a junction tree of pairs that pass a noisy threshold, as it is printed",
    limits="no finite ε: any number of pairs may pass a test that is paid for once",
    make=lambda rows, schema, epsilon, stated: specimen(rows, schema, epsilon, **stated),
    params=JTreeParams,
)
