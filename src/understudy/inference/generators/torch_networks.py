"""A generator while it is trained; the only place that knows torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from understudy.boundary.privacy.mechanisms.training import Deep
from understudy.inference.generators.adversarial_training import TrainingConfig, drawn_conditions
from understudy.inference.generators.generator import Floats, GeneratorLayout

LEAST_SHARE = 1e-4
TEMPERATURE = 0.7
MADE = 2_000
DECAYS = (0.9, 0.99)


class Adam:
    """Kingma & Ba (2015), by hand: torch's own takes seconds to import, and these lines a moment."""

    def __init__(self, weights: list[Tensor]) -> None:
        self.weights = weights
        self._first = [torch.zeros_like(w) for w in weights]
        self._second = [torch.zeros_like(w) for w in weights]
        self._steps = 0

    def move(self, slopes: Sequence[Tensor], pace: float) -> None:
        self._steps += 1
        whole, spread = 1.0 - DECAYS[0] ** self._steps, 1.0 - DECAYS[1] ** self._steps
        for weight, slope, first, second in zip(self.weights, slopes, self._first, self._second, strict=True):
            first.lerp_(slope, 1.0 - DECAYS[0])
            second.lerp_(slope * slope, 1.0 - DECAYS[1])
            weight.data -= pace / whole * first / (torch.sqrt(second / spread) + 1e-8)


class GeneratorModule:
    """The generator's network with its optimiser, and the average of its weights so far."""

    def __init__(
        self,
        config: TrainingConfig,
        plan: GeneratorLayout,
        laws: Sequence[Floats],
        choices: Floats,
        rng: np.random.Generator,
    ) -> None:
        self.config, self.plan, self.rng, self.choices = config, plan, rng, choices
        self.laws = laws
        shares = torch.tensor(np.concatenate(laws), dtype=torch.float32)
        self.layers = nn.ModuleList([nn.Linear(i, o) for i, o in plan.layers])
        # It begins with the noisy law of every column, and has only their relations to learn.
        with torch.no_grad():
            self.layers[-1].weight.mul_(config.start)
            self.layers[-1].bias.copy_(torch.log(shares.clamp(min=LEAST_SHARE)))
        self.average = [p.detach().clone() for p in self.layers.parameters()]
        self.adam = Adam(list(self.layers.parameters()))
        self.price = self._price(shares)

    def _price(self, shares: Tensor) -> Tensor:
        """What a unit of error in each pair of groups costs; nothing within a column."""
        column = torch.repeat_interleave(torch.arange(len(self.plan.sizes)), torch.tensor(self.plan.sizes))
        expected = torch.outer(shares, shares).clamp(min=self.config.rarest)
        return (column[:, None] != column[None, :]) / expected**self.config.evenness

    def step(self, wanted: Floats, deep: Deep | None, pace: float) -> None:
        laws = self._laws(self.config.batch)
        error = laws.T @ laws / len(laws) - torch.tensor(wanted, dtype=torch.float32)
        loss = (self.price * error**2).sum()
        if deep is not None:
            loss = loss - self.config.deep_weight * _score(deep, self._drawn(laws)).mean()
        self.adam.move(torch.autograd.grad(loss, self.adam.weights), pace)
        self._remember()

    def please(self, wishes: Floats) -> None:
        """One step towards rows whose pairs of groups weigh more."""
        laws = self._laws(self.config.batch)
        gain = (torch.tensor(wishes, dtype=torch.float32) * (laws.T @ laws)).sum() / len(laws)
        self.adam.move(torch.autograd.grad(-gain, self.adam.weights), self.config.pace)
        self._remember()

    def shares(self) -> Floats:
        """How often made rows have each pair of groups, as a table."""
        laws = self._laws(MADE).detach()
        return np.asarray((laws.T @ laws / len(laws)).double().numpy(), dtype=np.float64)

    def _remember(self) -> None:
        # An exponential average of the weights (Polyak & Juditsky 1992): the last steps of a game go round in circles.
        for kept, now in zip(self.average, self.layers.parameters(), strict=True):
            kept.lerp_(now.detach(), 1.0 - self.config.memory)

    def rows(self, count: int) -> Floats:
        """Drawn rows of ones and zeros."""
        return np.asarray(self._drawn(self._laws(count).detach()).double().numpy(), dtype=np.float64)

    def distance(self, wanted: Floats) -> float:
        """What the price of all errors is."""
        laws = self._laws(MADE).detach()
        error = laws.T @ laws / len(laws) - torch.tensor(wanted, dtype=torch.float32)
        return float((self.price * error**2).sum())

    def vector(self) -> NDArray[np.float32]:
        """The averaged weights, each matrix by its inputs, in the order of `inference.generators.generator`."""
        flat = [p.T.ravel() if p.ndim == 2 else p for p in self.average]
        return torch.cat(flat).numpy().astype(np.float32)

    def _laws(self, count: int) -> Tensor:
        """The laws of all columns, side by side, for many inputs."""
        condition = self._condition(count) if self.plan.conditional else None
        values = torch.tensor(self.rng.standard_normal((count, self.plan.noise)), dtype=torch.float32)
        if condition is not None:
            values = torch.cat([values, condition], dim=1)
        for place, layer in enumerate(self.layers):
            values = layer(values)
            if place < len(self.layers) - 1:
                values = nn.functional.silu(values)
        parts = [torch.softmax(p, dim=1) for p in torch.split(values, list(self.plan.sizes), dim=1)]
        return self._held(torch.cat(parts, dim=1), condition)

    def _held(self, laws: Tensor, condition: Tensor | None) -> Tensor:
        """The condition's own column is its value for certain."""
        if condition is None:
            return laws
        sums = [
            p.sum(dim=1, keepdim=True).expand(p.shape) for p in torch.split(condition, list(self.plan.sizes), dim=1)
        ]
        return laws * (1.0 - torch.cat(sums, dim=1)) + condition

    def _condition(self, count: int) -> Tensor:
        found = np.zeros((count, self.plan.width), dtype=np.float32)
        columns = self.rng.choice(len(self.laws), count, p=self.choices)
        groups = drawn_conditions(self.laws, columns, self.rng)
        found[np.arange(count), self.plan.starts[columns] + groups] = 1.0
        return torch.tensor(found)

    def _drawn(self, laws: Tensor) -> Tensor:
        """Values drawn from the laws, with gradients straight through."""
        logs = torch.split(torch.log(laws.clamp(min=1e-9)), list(self.plan.sizes), dim=1)
        gumbel = torch.split(
            torch.tensor(self.rng.gumbel(size=laws.shape), dtype=torch.float32), list(self.plan.sizes), dim=1
        )
        return torch.cat([_straight((a + g) / TEMPERATURE) for a, g in zip(logs, gumbel, strict=True)], dim=1)


def _straight(scores: Tensor) -> Tensor:
    # The straight-through Gumbel-softmax (Jang, Gu & Poole 2017; Maddison, Mnih & Teh 2017): forwards a hard choice,
    # which has no gradient, and backwards the gradient of the soft one.
    soft = torch.softmax(scores, dim=1)
    hard = torch.zeros_like(soft).scatter_(1, soft.argmax(dim=1, keepdim=True), 1.0)
    return hard + soft - soft.detach()


def _score(deep: Deep, rows: Tensor) -> Any:
    first, bias, last = (torch.tensor(x, dtype=torch.float32) for x in (deep.first, deep.bias, deep.last))
    return nn.functional.silu(rows @ first + bias) @ last
