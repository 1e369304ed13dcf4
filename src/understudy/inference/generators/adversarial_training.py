"""The game between a critic, whose gradients are noisy, and a generator that sees the critic alone.

The critic is the Wasserstein critic of a GAN with a quadratic price on its weights: it maximises
E_real f − E_made f − ½|w|². Its wide part is linear in its weights, so that its best answer is known: the mean of all
noisy gradients so far, less that of the made rows. Its deep part follows the gradients step by step. The generator
lowers E_real f − E_made f. A made row's columns are independent given its random numbers; so the wide part can be
averaged over the row's laws instead of over drawn values, and the deep part meets drawn values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.privacy.mechanisms.training import Deep, Noisy, Training, symmetric
from understudy.inference.generators.generator import Floats, Generator, GeneratorLayout

THREADS = 1
LEAST_WEIGHT = 1e-6
CALIBRATION_ROWS, CALIBRATION_ROUNDS = 1 << 13, 30
REPORTS = 20


@dataclass(frozen=True)
class TrainingConfig:
    """The public rules of a training."""

    steps: int = 100
    lessons: int = 20
    """Steps of the generator after each step of the critic."""
    batch: int = 500
    pace: float = 6e-3
    start: float = 0.3
    """How large the generator's last weights are at first, of what is usual."""
    evenness: float = 0.5
    """How much more rare pairs of values weigh: their price is the inverse of this power of their expected share."""
    rarest: float = 0.01
    memory: float = 0.99
    """Of the generator whose weights are averaged, and released."""
    hidden: int = 16
    deep_share: float = 0.1
    deep_pace: float = 0.02
    deep_decay: float = 0.01
    deep_weight: float = 0.2

    def describe(self) -> dict[str, Any]:
        return asdict(self)


class GanTrainer:
    """One training of a generator: `learn` asks for noisy gradients, and returns weights and the curve."""

    def __init__(
        self,
        config: TrainingConfig,
        plan: GeneratorLayout,
        laws: Sequence[Floats],
        choices: Sequence[float],
        batch: float,
        seed: int,
        tell: Callable[[int], None],
    ) -> None:
        self.config, self.plan, self.laws, self.batch, self.tell = config, plan, laws, batch, tell
        self.choices = np.asarray(choices)
        self.rng = np.random.Generator(np.random.PCG64(seed))
        self.seed = seed % 2**63

    def learn(self, training: Training) -> list[NDArray[np.float32]]:
        """The generator's weights, and the curve of its training."""
        curve: list[tuple[float, float]] = []
        return [
            *self.taught(lambda generator: self._play(generator, training, curve)),
            np.array(curve, dtype=np.float32),
        ]

    def taught(self, teach: Callable[[Any], None]) -> list[NDArray[np.float32]]:
        """The weights of a generator after it was taught, by whatever may teach it."""
        import torch

        from understudy.inference.generators.torch_networks import GeneratorModule

        # torch's generator and its threads are global: both are put back as they were.
        before = torch.get_num_threads()
        torch.set_num_threads(THREADS)
        try:
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(self.seed)
                generator = GeneratorModule(self.config, self.plan, self.laws, self.choices, self.rng)
                teach(generator)
                return [self._settled(generator.vector())]
        finally:
            torch.set_num_threads(before)

    def _play(self, generator: Any, training: Training, curve: list[tuple[float, float]]) -> None:
        critic = WideAndDeep(self.config, training, self.batch, self.rng)
        steps = training.course.steps
        for step in range(steps):
            critic.meet(generator)
            # Full speed for the first half of the training, then linearly down to nothing: it ends settled.
            pace = self.config.pace * min(1.0, 2.0 * (1.0 - step / steps))
            for _ in range(self.config.lessons):
                generator.step(critic.wanted(), critic.deep, pace)
            if (step + 1) % max(1, steps // REPORTS) == 0:
                curve.append((step + 1.0, critic.gap(generator)))
                self.tell(step + 1)

    def _settled(self, vector: NDArray[np.float32]) -> NDArray[np.float32]:
        """The last biases moved until every column on its own follows its noisy one-way law."""
        plan, width = self.plan, self.plan.width
        generator = Generator(plan, vector)
        columns = self.rng.choice(len(plan.sizes), CALIBRATION_ROWS, p=self.choices)
        groups = drawn_conditions(self.laws, columns, self.rng)
        noise = self.rng.standard_normal((CALIBRATION_ROWS, plan.noise))
        scores = generator.scores(generator.inputs(noise, columns, groups))
        moved = [
            calibrated(scores[columns != place if plan.conditional else slice(None), column], law)
            for place, (column, law) in enumerate(zip(plan.columns(), self.laws, strict=True))
        ]
        settled = vector.copy()
        settled[-width:] += np.concatenate(moved).astype(np.float32)
        return settled


def drawn_conditions(
    laws: Sequence[Floats], columns: NDArray[np.integer[Any]], rng: np.random.Generator
) -> NDArray[np.intp]:
    """For each condition, which is of one column, a value by that column's law."""
    uniform, groups = rng.random(len(columns)), np.zeros(len(columns), dtype=np.intp)
    for place, law in enumerate(laws):
        rows, line = np.flatnonzero(columns == place), np.cumsum(law)
        groups[rows] = np.minimum(np.searchsorted(line, uniform[rows] * line[-1], side="right"), len(law) - 1)
    return groups


def calibrated(scores: Floats, law: Floats) -> Floats:
    """What to add to the scores of a column so that the mean of its laws is this one: proportional fitting."""
    # Iterative proportional fitting of one margin; the softmax of the others keeps changing, hence the rounds.
    added = np.zeros(len(law))
    for _ in range(CALIBRATION_ROUNDS):
        weights = np.exp(scores + added - (scores + added).max(axis=1, keepdims=True))
        mean = (weights / weights.sum(axis=1, keepdims=True)).mean(axis=0)
        added += np.log(np.maximum(law, LEAST_WEIGHT) / np.maximum(mean, LEAST_WEIGHT / 100))
    return added


class WideAndDeep:
    """The critic: all that is known of the rows is in the noisy sums that it met."""

    def __init__(self, config: TrainingConfig, training: Training, batch: float, rng: np.random.Generator) -> None:
        self.config, self.training, self.batch = config, training, batch
        groups = training.shape.groups
        self.groups, self.met = groups, 0
        self.pairs = np.zeros(len(groups.upper[0]))
        scale = 1.0 / np.sqrt(len(groups.sizes))
        # It changed nothing that could be measured, and stays because it sees what pairs do not (decision 11).
        self.deep: Deep | None = None
        if config.hidden:
            self.deep = Deep(
                rng.standard_normal((groups.width, config.hidden)) * scale,
                rng.standard_normal(config.hidden) * 0.5,
                rng.standard_normal(config.hidden) / np.sqrt(config.hidden),
            )

    def meet(self, generator: Any) -> None:
        """One step: the real side is noisy and private, the made side is the generator's own."""
        noisy = self.training.gradients(self.deep)
        self.met += 1
        # `batch` is the expected size, from public facts and noisy counts: the size of a batch itself is private. And
        # the mean of all gradients so far is the best wide critic, known in closed form (decision 11).
        self.pairs += (noisy.pairs / self.batch - self.pairs) / self.met
        if self.deep is not None:
            self.deep = self._moved(self.deep, noisy, generator)

    def _moved(self, deep: Deep, noisy: Noisy, generator: Any) -> Deep:
        made = generator.rows(self.config.batch)
        # Clipped as the real rows are, or the two means would differ by the clipping alone.
        slope = noisy.deep / self.batch - deep.clipped_sum(made, 1.0) / len(made)
        vector = deep.flat() * (1.0 - self.config.deep_decay) + self.config.deep_pace * slope
        return Deep.of(vector, self.groups.width, self.config.hidden)

    def wanted(self) -> Floats:
        """The estimated share of rows with each pair of groups, as a table."""
        return symmetric(self.groups, self.pairs)

    def gap(self, generator: Any) -> float:
        """How far made rows are from the noisy means: what the wide critic gains, noise included."""
        return float(generator.distance(self.wanted()))
