"""What the curator draws from: noise for counts, a choice among scores, and draws from a posterior.

It is an argument of the curator, so that tests can force the noise to zero or break it on purpose.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.privacy.mechanisms.exponential import exponential
from understudy.boundary.privacy.mechanisms.noise import (
    Entropy,
    SeededEntropy,
    SystemEntropy,
    discrete_gaussian,
    discrete_laplace,
    rounded_gaussian,
)
from understudy.boundary.privacy.mechanisms.posterior import Prior, posterior_draws
from understudy.errors import InternalError
from understudy.parameters import whole_number


class Randomness(Protocol):
    """Noise, choices and draws; `secure` says whether a claim may rest on them."""

    @property
    def secure(self) -> bool: ...

    def noise(self, mechanism: str, scale: float, size: int) -> NDArray[np.int64]:
        """Independent integer noise of the mechanism's law."""
        ...

    def choose(self, scores: NDArray[np.float64], exponent: float, k: int) -> list[int]:
        """k distinct indices by the exponential mechanism, in the order in which they were drawn."""
        ...

    def draw(self, counts: NDArray[np.int64], prior: Prior, draws: int) -> NDArray[np.int64]:
        """How many of the draws from the posterior of a tree fall into each of its leaves."""
        ...


class ExactRandomness:
    """The exact samplers of `noise`, `exponential` and `posterior` on a source of random bits."""

    _LAWS: ClassVar[dict[str, Callable[[float, int, Entropy], NDArray[np.int64]]]] = {
        "discrete-gaussian": discrete_gaussian,
        "thresholded-gaussian": discrete_gaussian,
        "rounded-gaussian": rounded_gaussian,
        "thresholded-rounded-gaussian": rounded_gaussian,
        "discrete-laplace": discrete_laplace,
        # As good as what sites make of their parts together; the sites themselves draw `shared_noise.drawn_parts`.
        "shared-gaussian": rounded_gaussian,
    }

    def __init__(self, entropy: Entropy) -> None:
        self._entropy = entropy

    @classmethod
    def system(cls) -> ExactRandomness:
        """On the operating system's CSPRNG: the only one that a release may rest on."""
        return cls(SystemEntropy())

    @classmethod
    def seeded(cls, seed: int) -> ExactRandomness:
        """Repeatable, for tests; a release made with it is stamped TEST-ONLY."""
        return cls(SeededEntropy(seed))

    @property
    def secure(self) -> bool:
        return self._entropy.secure

    def noise(self, mechanism: str, scale: float, size: int) -> NDArray[np.int64]:
        try:
            law = self._LAWS[mechanism]
        except KeyError:
            raise InternalError(f"mechanism {mechanism!r} has no noise", mechanism) from None
        return law(scale, size, self._entropy)

    def choose(self, scores: NDArray[np.float64], exponent: float, k: int) -> list[int]:
        return exponential(scores, exponent, self._entropy, k)

    def draw(self, counts: NDArray[np.int64], prior: Prior, draws: int) -> NDArray[np.int64]:
        return posterior_draws(counts, prior, draws, self._entropy)


def randomness_of(noise_seed: int | None) -> ExactRandomness:
    """The operating system's, or for tests a repeatable one."""
    if noise_seed is None:
        return ExactRandomness.system()
    return ExactRandomness.seeded(whole_number("the noise seed", noise_seed, 0))
