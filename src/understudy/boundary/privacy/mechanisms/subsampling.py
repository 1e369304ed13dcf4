"""What a training by noisy gradients costs, and the random batches that it may use.

The batches are Poisson samples: every row joins each of them by a coin of its own. The cost of all steps together is
read off their privacy loss distribution (Koskela, Jälkö & Honkela 2020; Doroshenko et al. 2022) as computed by Google's
`dp_accounting`, which rounds pessimistically. Each step's dominating pair is the same whatever the earlier answers
were, so that the composition holds for adaptively chosen critics (Zhu, Dong & Wang 2022, theorem 10).
"""

from __future__ import annotations

import importlib.util
import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from understudy.errors import InternalError, MethodError, installing

if TYPE_CHECKING:
    from understudy.boundary.privacy.mechanisms.randomness import Randomness
    from understudy.boundary.schema.schema import Schema

EXTRA = "gan"
GRID_SCALE = 2.0**30
"""The standard deviation of the noise, in steps of the grid on which gradients are rounded and noise is drawn."""
LEAST_NOISE, MOST_NOISE = 0.05, 1e6
# A coin is whether Laplace noise is above zero, which has a probability below ½ at every scale (`coin_scale`).
HIGHEST_RATE = 0.5
MOST_STEPS = 1_000_000
CAUTION = 1 + 1e-6
"""Of every ε: for rounding within the accountant, which bounds its own discretisation but not the last digits."""
INTERVAL = 1e-3
"""Of the accountant's grid of losses, finer for more noise: within 0.05 % of a ten times finer one, and never below."""
TRIES = 60
PRECISION = 2e-3
"""How close a calibrated noise is to the least one that does; always above it."""


@dataclass(frozen=True)
class Course:
    """The public plan of a training: noise is in units of the longest gradient that a row may have."""

    rate: float
    noise: float
    steps: int
    replace_one: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.rate <= HIGHEST_RATE:
            raise InternalError(f"rate ({self.rate}) of a training must be in (0, {HIGHEST_RATE}].", self)
        if not LEAST_NOISE <= self.noise <= MOST_NOISE:
            raise InternalError(f"noise ({self.noise}) of a training must be in [{LEAST_NOISE}, {MOST_NOISE:g}].", self)
        if not 1 <= self.steps <= MOST_STEPS:
            raise InternalError(f"steps ({self.steps}) of a training must be from 1 to {MOST_STEPS:,}.", self)


def check_installed(*modules: str) -> None:
    """Refuses with what to install where an optional package is missing."""
    absent = [m for m in modules if importlib.util.find_spec(m) is None]
    if absent:
        raise MethodError(f"{', '.join(absent)} must be installed to train networks: {installing(EXTRA)}", absent)


def check_trainable(pure: bool, schema: Schema) -> None:
    """Refuses, with the reason, what no training can promise."""
    if pure:
        raise MethodError("training by noisy gradients has no pure form; ask with a delta greater than 0", schema)
    if schema.rows_per_unit > 1:
        raise MethodError(
            f"a person may have {schema.rows_per_unit} rows, and a training accounts for one; set max_rows = 1 in the "
            "schema, or use a method that counts",
            schema.unit,
        )
    check_installed("dp_accounting", "torch")


def epsilon_of_course(course: Course, delta: float, cells: int = 0) -> float:
    """The ε of all steps together at this δ, rounded up; `cells` is the number of noisy numbers of one step."""
    # What discrete noise adds to δ depends on ε, and ε on what is left of δ. The ε at half of δ is an upper bound as
    # long as the addition takes no more than the other half, and an addition for a larger ε is one for the true ε, too.
    accountant = loss_accountant(course)
    excess = discreteness(course.steps * cells, float(accountant.get_epsilon(delta / 2)))
    if excess > delta / 2:
        return math.inf
    return float(accountant.get_epsilon(delta - excess)) * CAUTION


def discreteness(draws: int, epsilon: float) -> float:
    """What drawing so many times from the discrete law instead of the continuous one may add to δ.

    The accountant speaks of the normal law. Rounded to the grid it gives k the mass ∫ φ over (k − ½, k + ½), which is
    φ(k) + φ″(x)/24 for some x inside: the two laws differ in total variation by about E|Z² − 1|/(48·s²) < 1/(24·s²)
    for the deviation s in steps of the grid. Rounding the sum of a whole number and normal noise is post-processing.
    An event's chance changes by the distance of all draws in both worlds, one of which counts e^ε-fold.
    """
    # exp(700) is still a float, and far beyond any δ.
    return (1 + math.exp(min(epsilon, 700.0))) * draws / (24.0 * GRID_SCALE**2)


def noise_for(rate: float, steps: int, epsilon: float, delta: float, replace_one: bool, cells: int = 0) -> float:
    """The least noise, up to PRECISION, with which a training stays within (ε, δ)."""

    def reach(noise: float) -> float:
        return epsilon_of_course(Course(rate, noise, steps, replace_one), delta, cells)

    low, high, guess = LEAST_NOISE, MOST_NOISE, 1.0
    for _ in range(TRIES):
        reached = reach(guess)
        if reached <= epsilon:
            high = guess
        else:
            low = guess
        if high <= low * (1 + PRECISION):
            return high
        # ε falls about as 1/noise does. Aim a little above, so that most tries end the search from the side that fits.
        if math.isfinite(reached):
            aimed = guess * reached / epsilon * (1 + PRECISION / 2)
        else:
            aimed = 2 * guess
        guess = aimed if low < aimed < high else math.sqrt(low * high)
    if high == MOST_NOISE:
        raise MethodError(f"epsilon ({epsilon:g}) at delta {delta:g} is too small to train; ask for more", epsilon)
    return high


@lru_cache(maxsize=64)
def loss_accountant(course: Course) -> Any:
    """The accountant of all steps, of `dp_accounting`; it knows the whole curve of ε and δ."""
    check_installed("dp_accounting")
    import dp_accounting as dp
    from dp_accounting.pld import PLDAccountant

    # The dominating pair is that of the schema's own relation (Zhu, Dong & Wang 2022; docs/mechanisms/gradients.md): a
    # replaced row may be in the batch on either side.
    relation = dp.NeighboringRelation.ADD_OR_REMOVE_ONE
    if course.replace_one:
        relation = dp.NeighboringRelation.REPLACE_ONE
    step: Any = dp.PoissonSampledDpEvent(course.rate, dp.GaussianDpEvent(course.noise))
    accountant = PLDAccountant(relation, value_discretization_interval=INTERVAL / max(1.0, course.noise))
    return accountant.compose(dp.SelfComposedDpEvent(step, course.steps))


def coin_scale(rate: float) -> float:
    """The scale of discrete Laplace noise that is above zero with at most this probability.

    P[k ≥ 1] = r/(1 + r) with r = exp(−1/scale): scale = 1/ln((1 − rate)/rate), rounded down, and with it the rate.
    """
    if not 0 < rate <= HIGHEST_RATE:
        raise InternalError(f"rate ({rate}) of a random batch must be in (0, {HIGHEST_RATE}].", rate)
    # 2^-40 covers the rounding of log and quotient many times over. At a rate of ½ the odds are 0 and the scale would
    # be infinite; a smaller one only lessens the rate, and with it the loss.
    odds = math.log((1 - rate) / rate)
    return (1 - 2.0**-40) / max(odds, 1e-6)


def poisson_rows(rate: float, rows: int, randomness: Randomness) -> NDArray[np.intp]:
    """Which rows join a batch, each by its own coin; none at all is a batch, too."""
    return np.flatnonzero(randomness.noise("discrete-laplace", coin_scale(rate), rows) >= 1)
