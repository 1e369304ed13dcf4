"""What Polya trees learn, and what their draws cost: the figures of Mele et al., exactly and simulated.

("Synthetic Data Generation with Nonparametric Bayesian Methods", 2024.) All data are made up.

    write("nonparametric.html")

makes the whole page. Nothing here reads a private row.

The law of the privacy loss is exact, for the neighbours whose largest loss is the supremum: one table has its first row
at a, in a half of the line that holds no other row; the other table has it at b, in the half where all other rows are.
The counts of draws that matter are then those along the two paths. They form two chains of beta-binomial splits, which
can be enumerated for small trees and few draws.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.privacy.mechanisms.posterior import least_concentration
from understudy.files import write_atomically
from understudy.inference.polya.pitman_yor import least_delta, simulated_delta, simulated_ratios
from understudy.inference.polya.polya_prior import PolyaPosterior, PolyaPrior
from understudy.lab.studies.documents.nonparametric_page import (
    Failures,
    NonparametricStudy,
    PosteriorDraws,
    RatioCloud,
    Supremum,
    render,
)
from understudy.pages.curves import Band, Box

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Loss:
    """The values that a privacy loss can have, and their probabilities."""

    values: Floats
    probabilities: Floats

    def exceeds(self, epsilon: float) -> float:
        """P(loss > ε): the δ of probabilistic differential privacy."""
        return float(self.probabilities[self.values > epsilon].sum())

    def delta(self, epsilon: float) -> float:
        """The δ of (ε, δ)-differential privacy: E[(1 − e^(ε − loss))⁺]."""
        # Each term is at most that of `exceeds`: probabilistic (ε, δ)-privacy implies the usual one, not the reverse.
        gain = -np.expm1(np.minimum(epsilon - self.values, 0.0))
        return float(self.probabilities @ gain)


def worst_pair(tree: PolyaPrior, rows: int, draws: int) -> Loss:
    """The loss of `draws` draws from the table with a, against the one with b, of `rows` rows each."""
    a, others = tree.pseudo_counts, rows - 1
    first = _split_law(draws, a[0] + 1, a[0] + others)
    values, probabilities = [], []
    # Given how many draws fall into the half of a, the two halves are independent: their losses add up.
    for near in range(draws + 1):
        with_a = _chain(a, near, 0, 1)
        with_b = _chain(a, draws - near, others, 0)
        values.append(np.subtract.outer(with_a.values, with_b.values).ravel())
        probabilities.append(first[near] * np.outer(with_a.probabilities, with_b.probabilities).ravel())
    return Loss(np.concatenate(values), np.concatenate(probabilities))


def _chain(pseudo_counts: Floats, draws: int, others: int, here: int) -> Loss:
    """ln of how many times likelier the draws of one half are with one row more at the end of a path through it.

    `others` rows are at its end besides, and `here` says whether the one more is there when the draws are made.
    """
    a = pseudo_counts
    drawn = np.array([draws])
    found = Loss(np.log1p(drawn / (a[0] + others)), np.ones(1))
    # Every split of every count so far: the values multiply from level to level, so trees and draws must be few.
    for j in range(1, len(a)):
        below = np.concatenate([np.arange(m + 1) for m in drawn])
        from_above = np.repeat(np.arange(len(drawn)), drawn + 1)
        chance = np.concatenate([_split_law(int(m), a[j] + others + here, a[j]) for m in drawn])
        step = np.log1p(below / (a[j] + others)) - np.log1p(drawn[from_above] / (2 * a[j] + others))
        found = Loss(found.values[from_above] + step, found.probabilities[from_above] * chance)
        drawn = below
    return found


def _split_law(draws: int, left: float, right: float) -> Floats:
    """The probability that 0, 1, …, all of the draws go left: beta-binomial."""
    from scipy.special import betaln, gammaln

    # In logarithms: Γ leaves the doubles at 171 already.
    k = np.arange(draws + 1)
    ways = gammaln(draws + 1) - gammaln(k + 1) - gammaln(draws - k + 1)
    return np.asarray(np.exp(ways + betaln(left + k, right + draws - k) - betaln(left, right)))


Generator = np.random.Generator

# The paper's values of c, and 1,000.
CONCENTRATIONS = (0.5, 1.0, 5.0, 10.0, 50.0, 100.0, 500.0, 1000.0)
SHOWN = (0.5, 10.0, 1000.0)
SIZES = (10, 32, 100, 316, 1000, 3162, 10_000)
POINTS = 128


@dataclass(frozen=True)
class SampledDistribution:
    """A distribution on [0, 1] that rows are made from."""

    name: str
    sample: Callable[[int, Generator], Floats]
    density: Callable[[Floats], Floats]


LAWS = (
    SampledDistribution(
        "uniform(¼, ¾)",
        lambda n, rng: rng.uniform(0.25, 0.75, n),
        lambda x: np.where((x > 0.25) & (x < 0.75), 2.0, 0.0),
    ),
    SampledDistribution("Beta(2, 2)", lambda n, rng: rng.beta(2, 2, n), lambda x: 6 * x * (1 - x)),
)


@dataclass(frozen=True)
class NonparametricSize:
    """How much is computed: rows, depth of trees, posterior draws, repetitions and random neighbours."""

    rows: int = 10_000
    depth: int = 10
    measures: int = 100
    repeats: int = 15
    neighbours: int = 200
    runs: int = 2_000


def study(seed: int = 0, size: NonparametricSize | None = None) -> NonparametricStudy:
    """Everything that the page shows."""
    size = size or NonparametricSize()
    rng = np.random.Generator(np.random.PCG64(seed))
    suprema = list(_suprema(size, rng))
    # With a generator of its own: the other figures stay what they were.
    more = np.random.Generator(np.random.PCG64([seed, 1]))
    return NonparametricStudy(
        bands={law.name: [(c, learned(law, c, size, rng)) for c in SHOWN] for law in LAWS},
        distances=dict(_distances(size, rng)),
        suprema=suprema,
        failures=[_tree_failures(size, rng), _urn_failures(size, rng)],
        prices=[(e, d, least_concentration(e, 10_000, d) / 10_000) for e in (0.1, 1.0, 3.0) for d in (4, 12, 20)],
        missed=missed(suprema),
        draws={law.name: drawn(law, SHOWN_DRAWS, size, more) for law in LAWS},
        clouds=[_tree_cloud(size, more), *_urn_clouds(size, more)],
        exponents=[*_over_exponents(size, more)],
        exponent_price=_price_of_exponents(size, more),
        rows=size.rows,
        depth=size.depth,
    )


def write(path: str | Path, seed: int = 0, size: NonparametricSize | None = None) -> Path:
    """The page as a file."""
    write_atomically(Path(path), render(study(seed, size)).encode(), private=False)
    return Path(path)


# --- What is learned, and how far it is from the truth


def learned(law: SampledDistribution, c: float, size: NonparametricSize, rng: Generator) -> Band:
    """Predictive density and the band of nine of ten posterior draws, on a line of a few points."""
    posterior = PolyaPrior(c, size.depth).posterior(law.sample(size.rows, rng))
    points = min(POINTS, posterior.tree.leaves)
    draws = _coarse(posterior.measures(30, rng), points)
    low, high = np.quantile(draws, [0.05, 0.95], axis=0)
    middles = (np.arange(points) + 0.5) / points
    mean = _coarse(posterior.predictive()[None, :], points)[0]
    return Band(*(tuple(map(float, v)) for v in (middles, mean, low, high, law.density(middles))))


SHOWN_DRAWS = 10.0
"""The document's c, of its picture of posterior draws."""
COARSE = 64
"""Pieces of the line in that picture: a draw of a thousand leaves would be a thousand spikes."""


def drawn(law: SampledDistribution, c: float, size: NonparametricSize, rng: Generator) -> PosteriorDraws:
    """Thirty distributions from the posterior, their mean, the predictive one, and the rows themselves."""
    rows = law.sample(size.rows, rng)
    posterior = PolyaPrior(c, size.depth).posterior(rows)
    points = min(COARSE, posterior.tree.leaves)
    draws = _coarse(posterior.measures(30, rng), points)
    counts, _ = np.histogram(rows, points, (0.0, 1.0))
    return PosteriorDraws(
        c,
        tuple(map(float, (np.arange(points) + 0.5) / points)),
        draws=tuple(tuple(map(float, d)) for d in draws),
        mean=tuple(map(float, draws.mean(axis=0))),
        predictive=tuple(map(float, _coarse(posterior.predictive()[None, :], points)[0])),
        histogram=tuple(map(float, counts * points / len(rows))),
    )


EXPONENTS = (0.5, 1.0, 1.5, 2.0, 3.0)


def _over_exponents(size: NonparametricSize, rng: Generator) -> Iterator[tuple[str, list[Box]]]:
    """The other parameter of α = c·j^p: how far posterior draws are from the truth, at c = 10."""
    for law in LAWS:
        rows = law.sample(size.rows, rng)
        trees = {p: PolyaPrior(SHOWN_DRAWS, size.depth, p).posterior(rows) for p in EXPONENTS}
        found = {p: densities_apart(law, tree, size, rng) for p, tree in trees.items()}
        for i, quantity in enumerate(("L1 distance", "Hellinger distance")):
            yield f"{quantity} | {law.name} | p", [Box.of(p, list(pair[i])) for p, pair in found.items()]


def _price_of_exponents(size: NonparametricSize, rng: Generator) -> Supremum:
    rows, draws = 100, 50
    trees = [PolyaPrior(SHOWN_DRAWS, size.depth, p) for p in EXPONENTS]
    exact = tuple(tree.log_ratio_limit(draws) for tree in trees)
    seen = tuple(simulated_supremum(tree, rows, draws, size.neighbours, rng) for tree in trees)
    setting = f"c = {SHOWN_DRAWS:g}, n = {rows}, m = {draws}, depth = {size.depth}; {size.neighbours} random neighbours"
    return Supremum("p", EXPONENTS, exact, seen, setting)


CLOUD_EPSILON = 1.0


def _tree_cloud(size: NonparametricSize, rng: Generator) -> RatioCloud:
    """The same small tree as that of δ over ε."""
    tree, rows, draws = PolyaPrior(1.0, 4), 20, 20
    losses = tuple(_random_loss(tree, rows, draws, rng) for _ in range(size.runs))
    return RatioCloud("Polya tree, c = 1, depth 4", CLOUD_EPSILON, losses, f"n = {rows} random rows, m = {draws} draws")


def _urn_clouds(size: NonparametricSize, rng: Generator) -> Iterator[RatioCloud]:
    rows, theta, sigma = 50, 1.0, 0.25
    laws: dict[str, Callable[[int, Generator], Floats]] = {
        "8 shared values": lambda n, r: r.integers(0, 8, n) / 8,
        "all values apart": lambda n, r: r.random(n),
    }
    for name, law in laws.items():
        ratios = simulated_ratios(rows, rows, theta=theta, sigma=sigma, sample=law, runs=size.runs, rng=rng)
        yield RatioCloud(
            f"Pitman–Yor urn, {name}", CLOUD_EPSILON, tuple(map(float, ratios)), f"θ = 1, σ = 0.25, n = m = {rows}"
        )


def _coarse(masses: Floats, points: int) -> Floats:
    """Masses of leaves as densities of fewer, equal pieces."""
    return np.asarray(masses.reshape(len(masses), points, -1).sum(axis=2) * points)


def _distances(size: NonparametricSize, rng: Generator) -> Iterator[tuple[str, list[Box]]]:
    for law in LAWS:
        rows = law.sample(size.rows, rng)
        found = {c: densities_apart(law, PolyaPrior(c, size.depth).posterior(rows), size, rng) for c in CONCENTRATIONS}
        for i, quantity in enumerate(("L1 distance", "Hellinger distance")):
            yield f"{quantity} | {law.name} | c", [Box.of(c, list(pair[i])) for c, pair in found.items()]
    for law in LAWS:
        spreads = [(n, [rows_apart(law, n, 10.0, size.depth, rng) for _ in range(size.repeats)]) for n in SIZES]
        yield f"Wasserstein-2 distance | {law.name} | n", [Box.of(n, values) for n, values in spreads]
        some = [(c, [rows_apart(law, 1000, c, size.depth, rng) for _ in range(size.repeats)]) for c in CONCENTRATIONS]
        yield f"Wasserstein-2 distance | {law.name} | c", [Box.of(c, values) for c, values in some]


def densities_apart(
    law: SampledDistribution, posterior: PolyaPosterior, size: NonparametricSize, rng: Generator
) -> tuple[Floats, Floats]:
    """L1 and Hellinger distances of posterior draws from the truth, over the leaves."""
    leaves = posterior.tree.leaves
    # At the middles of the leaves: exact for the uniform law too, whose jumps at ¼ and ¾ are ends of leaves.
    truth = law.density((np.arange(leaves) + 0.5) / leaves)
    draws = posterior.measures(size.measures, rng) * leaves
    hellinger = np.sqrt(((np.sqrt(draws) - np.sqrt(truth)) ** 2).mean(axis=1) / 2)
    return np.abs(draws - truth).mean(axis=1), hellinger


def rows_apart(law: SampledDistribution, rows: int, c: float, depth: int, rng: Generator) -> float:
    """Wasserstein-2 between rows and half as many draws: on a line, between their quantiles."""
    values = law.sample(rows, rng)
    made = PolyaPrior(c, depth).posterior(values).draw(max(1, rows // 2), rng)
    # On a line the cheapest transport keeps the order, so the distance is that of the quantile functions in L2.
    shares = (np.arange(1000) + 0.5) / 1000
    return math.sqrt(float(((np.quantile(values, shares) - np.quantile(made, shares)) ** 2).mean()))


# --- The price


def _suprema(size: NonparametricSize, rng: Generator) -> Iterator[Supremum]:
    """Over c, n (with m = n/2), depth and m; the others as in n = 100, m = 50, c = 10, depth 10."""
    # m = n/2 is the paper's choice.
    base = {"c": 10.0, "n": 100, "depth": size.depth, "m": 50}
    grids: dict[str, Sequence[float]] = {
        "c": CONCENTRATIONS,
        "n": (10, 32, 100, 316, 1000),
        "depth": range(1, size.depth + 1),
        "m": (1, 3, 10, 30, 100, 300, 1000),
    }
    for name, grid in grids.items():
        points = [base | {name: x} for x in grid]
        fixed = {k: f"{k} = {v:g}" for k, v in base.items() if k != name}
        if name == "n":
            points = [p | {"m": max(1, int(p["n"]) // 2)} for p in points]
            fixed["m"] = "m = n/2"
        trees = [PolyaPrior(p["c"], int(p["depth"])) for p in points]
        exact = [t.log_ratio_limit(int(p["m"])) for t, p in zip(trees, points, strict=True)]
        seen = [
            simulated_supremum(t, int(p["n"]), int(p["m"]), size.neighbours, rng)
            for t, p in zip(trees, points, strict=True)
        ]
        setting = f"{', '.join(fixed.values())}; {size.neighbours} random neighbours"
        yield Supremum(name, tuple(map(float, grid)), tuple(exact), tuple(seen), setting)


def simulated_supremum(tree: PolyaPrior, rows: int, draws: int, neighbours: int, rng: Generator) -> float:
    """The largest log ratio met: random rows, one of them redrawn, and outputs of equal values in any leaf."""
    found = 0.0
    for _ in range(neighbours):
        x = LAWS[0].sample(rows, rng)
        y = x.copy()
        y[rng.integers(rows)] = LAWS[0].sample(1, rng)[0]
        # Outputs in one leaf are enough: the supremum over all neighbours and outputs is reached by such a one (the
        # theorem in docs/concepts/nonparametric.md).
        found = max(found, float(np.abs(equal_values_ratio(tree, x, y, draws)).max()))
    return found


def equal_values_ratio(tree: PolyaPrior, x: Floats, y: Floats, draws: int) -> Floats:
    """For each leaf, the log ratio under x and y of all draws in it."""
    first, second = (_equal_values(tree.posterior(v), draws) for v in (x, y))
    return first - second


def _equal_values(posterior: PolyaPosterior, draws: int) -> Floats:
    """ln of the probability of all draws in one leaf, for each leaf: rising factorials along its path."""
    from scipy.special import gammaln

    found = np.zeros(1)
    # The rising factorials (α + n)^(m) and (2α + n)^(m) of docs/concepts/nonparametric.md, as differences of ln Γ.
    for a, above, below in zip(posterior.tree.pseudo_counts, posterior.levels, posterior.levels[1:], strict=False):
        nodes = gammaln(a + below + draws) - gammaln(a + below)
        parents = gammaln(2 * a + above + draws) - gammaln(2 * a + above)
        found = np.repeat(found - parents, 2) + nodes
    return found


def missed(suprema: Sequence[Supremum]) -> str:
    """What random neighbours do not show, in figures of this study."""
    over_c = next(s for s in suprema if s.parameter == "c")
    place = over_c.at.index(10.0)
    return (
        f"At c = 10 the largest ratio met in random tables is e^{over_c.simulated[place]:.2f}; the exact supremum is "
        f"e^{over_c.exact[place]:.2f}, reached by a row whose half of the line holds no other, which rows drawn from "
        "one law hardly ever show. So a simulated ε is too small: it is that of typical rows, not of an outlier."
    )


# --- δ


def _tree_failures(size: NonparametricSize, rng: Generator) -> Failures:
    """A small tree, whose worst neighbours can be enumerated."""
    tree, rows, draws = PolyaPrior(1.0, 4), 20, 20
    limit = tree.log_ratio_limit(draws)
    epsilons = np.geomspace(limit / 40, limit, 24)
    losses = np.array([_random_loss(tree, rows, draws, rng) for _ in range(size.runs)])
    # With more rows in the other half, draws would fall beside the one row less often.
    worst = worst_pair(tree, 2, draws)
    return Failures(
        "δ of a Polya tree's draws",
        tuple(map(float, epsilons)),
        {
            "worst pair, P(loss > ε)": tuple(worst.exceeds(e) for e in epsilons),
            "worst pair, δ of (ε, δ)-DP": tuple(worst.delta(e) for e in epsilons),
            "simulated": tuple(float((losses > e).mean()) for e in epsilons),
        },
        f"c = 1, depth 4, m = {draws}; simulated with {rows} random rows, {size.runs} runs; the worst pair has 2 rows.",
    )


def _random_loss(tree: PolyaPrior, rows: int, draws: int, rng: Generator) -> float:
    x = LAWS[0].sample(rows, rng)
    y = x.copy()
    y[rng.integers(rows)] = LAWS[0].sample(1, rng)[0]
    posterior = tree.posterior(x)
    drawn = posterior.draw_counts(draws, rng)
    return posterior.log_probability(drawn) - tree.posterior(y).log_probability(drawn)


def _urn_failures(size: NonparametricSize, rng: Generator) -> Failures:
    """The printed Pitman–Yor urn: rows that share values hide each other in a simulation, a row of its own does not."""
    rows, theta, sigma = 50, 1.0, 0.25
    epsilons = tuple(map(float, np.geomspace(0.1, 8.0, 10)))
    laws: dict[str, Callable[[int, Generator], Floats]] = {
        "simulated, 8 shared values": lambda n, r: r.integers(0, 8, n) / 8,
        "simulated, all values apart": lambda n, r: r.random(n),
    }
    found = {
        name: tuple(
            simulated_delta(e, rows, draws=rows, theta=theta, sigma=sigma, sample=law, runs=size.runs // 10, rng=rng)
            for e in epsilons
        )
        for name, law in laws.items()
    }
    # The urn copies a row's value exactly, which no table without that row could: this holds at every ε.
    bound = least_delta(rows, rows, theta, sigma)
    return Failures(
        "δ of the printed Pitman–Yor urn",
        epsilons,
        {"exact, at any ε at least": (bound,) * len(epsilons), **found},
        f"θ = 1, σ = 0.25, n = m = {rows}; a row with a value of its own is copied with probability {bound:.3f}.",
    )
