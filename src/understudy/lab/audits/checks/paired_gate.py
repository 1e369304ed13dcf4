"""A gate that holds both tables of a pair: it answers from one, and remembers what the other would have said.

`log_ratio` says how far such an exchange tells the two tables apart, by the answers that were given.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.privacy import asks
from understudy.boundary.privacy.asks import Ask, kind_of
from understudy.boundary.privacy.asks.ask import Arrays, Price, Question
from understudy.boundary.privacy.budget import Spend
from understudy.boundary.privacy.curator import Curator
from understudy.boundary.privacy.gates import Gate
from understudy.boundary.privacy.mechanisms.posterior import Prior
from understudy.boundary.privacy.mechanisms.randomness import Randomness
from understudy.boundary.tables.table import Table
from understudy.errors import InternalError


@dataclass(frozen=True)
class Noise:
    """Noise that was drawn."""

    mechanism: str
    scale: float
    values: NDArray[np.int64]


@dataclass(frozen=True)
class Selection:
    """A choice that was drawn."""

    scores: NDArray[np.float64]
    exponent: float
    order: list[int]


@dataclass(frozen=True)
class PosteriorSample:
    """Draws from a posterior."""

    prior: Prior
    number: int


Draw = Noise | Selection | PosteriorSample
Number = TypeVar("Number", int, float)


@dataclass(frozen=True)
class PairedExchange:
    """One exchange with the curator. `here` and `there` are exact: what the two tables of a pair say to it."""

    questions: list[dict[str, Any]]
    spends: tuple[Spend, ...]
    here: Any
    there: Any
    draws: tuple[Draw, ...]
    values: list[NDArray[Any]]
    other_draws: tuple[Draw, ...] = ()
    """What the other table would have had drawn, where scores are only known inside the draw."""
    late: tuple[int, ...] = ()
    """Candidates that a selection refused, and would admit after a later pick of its own."""

    @property
    def kind(self) -> type[Ask[Any]]:
        return kind_of(self.questions[0])


class RecordingRandomness:
    """Hands every draw on, and keeps it."""

    def __init__(self, randomness: Randomness) -> None:
        self.randomness = randomness
        self.draws: list[Draw] = []

    @property
    def secure(self) -> bool:
        return self.randomness.secure

    def noise(self, mechanism: str, scale: float, size: int) -> NDArray[np.int64]:
        values = self.randomness.noise(mechanism, scale, size)
        self.draws.append(Noise(mechanism, scale, values))
        return values

    def choose(self, scores: NDArray[np.float64], exponent: float, k: int) -> list[int]:
        order = self.randomness.choose(scores, exponent, k)
        self.draws.append(Selection(np.asarray(scores), exponent, order))
        return order

    def draw(self, counts: NDArray[np.int64], prior: Prior, draws: int) -> NDArray[np.int64]:
        self.draws.append(PosteriorSample(prior, draws))
        return self.randomness.draw(counts, prior, draws)


class RepeatedNoise:
    """Hands out the noise that another run drew, where the same law is asked for as often; draws everything else anew.

    That noise has the law that is asked for, and no answer of this run depends on it before: so whatever this run shows
    has the law that it has alone.
    """

    def __init__(self, randomness: Randomness, drawn: Sequence[Draw]) -> None:
        self._randomness = randomness
        self._drawn = iter([d for d in drawn if isinstance(d, Noise)])

    @property
    def secure(self) -> bool:
        return self._randomness.secure

    def noise(self, mechanism: str, scale: float, size: int) -> NDArray[np.int64]:
        other = next(self._drawn, None)
        if other is not None and (other.mechanism, other.scale, len(other.values)) == (mechanism, scale, size):
            return other.values
        return self._randomness.noise(mechanism, scale, size)

    def choose(self, scores: NDArray[np.float64], exponent: float, k: int) -> list[int]:
        return self._randomness.choose(scores, exponent, k)

    def draw(self, counts: NDArray[np.int64], prior: Prior, draws: int) -> NDArray[np.int64]:
        return self._randomness.draw(counts, prior, draws)


@dataclass(frozen=True)
class FixedOrder:
    """Draws no noise, and ranks candidates in this order; without one, in their own."""

    order: tuple[int, ...] | None = None
    secure: bool = True

    def noise(self, mechanism: str, scale: float, size: int) -> NDArray[np.int64]:
        return np.zeros(size, dtype=np.int64)

    def choose(self, scores: NDArray[np.float64], exponent: float, k: int) -> list[int]:
        return list(self.order or range(k))

    def draw(self, counts: NDArray[np.int64], prior: Prior, draws: int) -> NDArray[np.int64]:
        return np.zeros_like(counts)


class TrainingReached(Exception):  # noqa: N818 - it says where a run was left, and is no error
    """A training or a vote was asked for, which a gate that holds two tables doesn't run."""


# Of the rule of one selection: every probe walks the whole order once more.
MOST_PROBES = 400


@dataclass
class PairedGate(Gate):
    """Keeps every exchange, with the spends that the curator debited for it."""

    here: Table
    there: Table
    recorder: RecordingRandomness
    exchanges: list[PairedExchange] = field(default_factory=list)
    curator: Curator | None = None

    @property
    def secure(self) -> bool:
        return self.recorder.secure

    def answer(self, ask: Ask[Any], price: Price, questions: Sequence[Question], debit: Callable[[], None]) -> Arrays:
        assert self.curator is not None
        # In the order of the curator's own gate (`RowGate`): count, debit, draw.
        here, there = ask.exact(self.here), ask.exact(self.there)
        paid, drawn = len(self.curator.spends), len(self.recorder.draws)
        debit()
        if kind_of(questions[0]) in (asks.Train, asks.Consult):
            self.exchanges.append(PairedExchange(list(questions), self.curator.spends[paid:], here, there, (), []))
            # What the training reads has been compared; to run it, on both tables, would take minutes.
            raise TrainingReached
        values = ask.draw(here, price, self.recorder)
        spends, draws = self.curator.spends[paid:], tuple(self.recorder.draws[drawn:])
        others: tuple[Draw, ...] = ()
        if kind_of(questions[0]) is asks.Ranks:  # these are scored while they are drawn
            silent = RecordingRandomness(FixedOrder())
            ask.draw(there, price, silent)
            others = tuple(silent.draws)
        late = late_picks(questions[0], draws, values, lambda order: ask.draw(here, price, FixedOrder(order)))
        self.exchanges.append(
            PairedExchange(list(questions), spends, here, there, draws, values, other_draws=others, late=late)
        )
        return values


def late_picks(
    question: dict[str, Any],
    draws: Sequence[Draw],
    values: Sequence[NDArray[Any]],
    drawn: Callable[[tuple[int, ...]], list[NDArray[Any]]],
) -> tuple[int, ...]:
    """Candidates that a selection refused, and would admit after one of the picks that it went on to make.

    `drawn` walks an order of our own, which shows what the rule of the selection admits after which picks. One order,
    walked once, has the law of as many exponential mechanisms as it picks only if what is admissible shrinks: a
    candidate that comes back would have had to be in the race of every pick.
    """
    order = next((d.order for d in draws if isinstance(d, Selection)), [])
    if kind_of(question) is not asks.Select or question["k"] == 1 or len(order) <= question["k"]:
        return ()
    picks = [int(i) for i in np.ravel(values[0])]
    tried = evenly(order, max(1, MOST_PROBES // question["k"]))
    refused: set[int] = set()
    late: set[int] = set()
    for place in range(min(len(picks) + 1, question["k"])):
        before = tuple(picks[:place])
        for candidate in set(tried) - set(before):
            if _admitted(drawn, before, candidate):
                late |= {candidate} & refused
            else:
                refused.add(candidate)
    return tuple(sorted(late))


def _admitted(drawn: Callable[[tuple[int, ...]], list[NDArray[Any]]], before: tuple[int, ...], candidate: int) -> bool:
    """Whether it may be picked after these; a walk that finds its own rule wrong says that it may, and should not."""
    try:
        return [int(i) for i in np.ravel(drawn((*before, candidate))[0])] == [*before, candidate]
    except InternalError:
        return True


def evenly(values: Sequence[Number], most: int) -> list[Number]:
    """All, or so many of them, evenly spaced; the first and the last are among them."""
    places = np.unique(np.linspace(0, len(values) - 1, min(most, len(values))).round().astype(int))
    return [values[i] for i in places]


# The log-likelihood ratio of what one table can't have given: finite, so that several of them can be added up.
CERTAIN = 1e3
ALIKE = 100.0  # from this σ on, a rounded Gaussian has the law of a discrete one, up to 10⁻⁵ of its logarithm
COUNTS = (asks.Marginals, asks.Partitions, asks.Total, asks.Tally, asks.Moments)
CHOICES = (asks.Select, asks.Quantile)


@dataclass(frozen=True)
class NoisyHistogram:
    """One noisy histogram of an exchange: what both tables say, the answer, and the noise that was drawn for it."""

    here: NDArray[np.float64]
    there: NDArray[np.float64]
    value: NDArray[np.float64]
    noise: Noise | None
    """None where the answer is a public fact."""
    spend: Spend | None
    """None where nobody paid."""


def noisy_histograms(exchange: PairedExchange) -> Iterator[NoisyHistogram]:
    """The histograms of an exchange that asks for counts."""
    noises = iter([d for d in exchange.draws if isinstance(d, Noise)])
    spends: Sequence[Spend | None] = exchange.spends
    if len(spends) != len(exchange.questions):  # some were not paid for, and nobody knows which
        spends = [None] * len(exchange.questions)
    for question, here, there, value, spend in zip(
        exchange.questions, exchange.here, exchange.there, exchange.values, spends, strict=True
    ):
        noise = None
        if question["scale"]:  # a public fact has none, and draws nothing
            noise = next(noises, None)
        flat = [np.asarray(x, dtype=np.float64).ravel() for x in (here, there, value)]
        yield NoisyHistogram(flat[0], flat[1], flat[2], noise, spend)


def log_ratio(exchange: PairedExchange) -> float:
    """The logarithm of how much likelier its answers are from `here` than from `there`, by the laws in use."""
    if exchange.kind in COUNTS:
        return sum(map(_count_ratio, noisy_histograms(exchange)))
    if exchange.kind in CHOICES:
        return _choice_ratio(exchange)
    return _OTHERS[exchange.kind](exchange)


def _count_ratio(part: NoisyHistogram) -> float:
    if part.noise is None and np.array_equal(part.here, part.there):
        return 0.0
    if part.noise is None or part.here.shape != part.there.shape:
        return CERTAIN
    return _noise_ratio(part.noise, part.value - part.here, part.value - part.there)


def _noise_ratio(noise: Noise, here: NDArray[np.float64], there: NDArray[np.float64]) -> float:
    # On integers the normaliser does not depend on where the noise is centred, and cancels.
    if noise.mechanism == "discrete-laplace":
        return float(np.abs(there).sum() - np.abs(here).sum()) / noise.scale
    if noise.mechanism.endswith("rounded-gaussian") and noise.scale < ALIKE:
        return float(_rounded_log_law(here, noise.scale).sum() - _rounded_log_law(there, noise.scale).sum())
    return float((there**2).sum() - (here**2).sum()) / (2 * noise.scale**2)


def _rounded_log_law(noise: NDArray[np.float64], scale: float) -> NDArray[np.float64]:
    """ln(Φ((x + ½)/σ) − Φ((x − ½)/σ)), on the side where both are small and nothing cancels."""
    from scipy.special import log_ndtr  # when it is needed: it takes longer to load than all of the package

    above, below = (log_ndtr((half - np.abs(noise)) / scale) for half in (0.5, -0.5))
    return np.asarray(above + np.log(-np.expm1(below - above)), dtype=np.float64)


def _choice_ratio(exchange: PairedExchange) -> float:
    """Of a choice without replacement, as if none were passed over: any function of what is shown is a statistic."""
    drawn = [d for d in exchange.draws if isinstance(d, Selection)]
    if not drawn or np.shape(exchange.here) != np.shape(exchange.there):
        return CERTAIN
    chosen = [int(i) for i in np.ravel(exchange.values[0])]
    here, there = (_order_log_law(np.asarray(s) * drawn[0].exponent, chosen) for s in (exchange.here, exchange.there))
    return here - there


def _order_log_law(weights: NDArray[np.float64], chosen: list[int]) -> float:
    left, total = weights.astype(np.float64).copy(), 0.0
    for index in chosen:
        peak = left.max()
        total += left[index] - peak - math.log(np.exp(left - peak).sum())
        left[index] = -math.inf  # without replacement: who was chosen is out of the race
    return total


def _key_ratio(exchange: PairedExchange) -> float:
    """Of the values that are shown, with their noisy counts; those that stay hidden are left out."""
    noise = next(d for d in exchange.draws if isinstance(d, Noise))
    here, there = (dict(zip(values, counts, strict=True)) for values, counts in (exchange.here, exchange.there))
    total = 0.0
    for value, noisy in exchange.values[0]:
        if value not in there:  # only keys that a row holds are drawn for: the other table can't have shown it
            return CERTAIN
        a, b = (np.array([float(noisy) - counts.get(value, 0)]) for counts in (here, there))
        total += _noise_ratio(noise, a, b)
    return total


def _rank_ratio(exchange: PairedExchange) -> float:
    """Of many choices, one for each rank and group."""
    chosen = [int(i) for value in exchange.values for i in np.ravel(value)]
    drawn = [d for d in exchange.draws if isinstance(d, Selection)]
    others = [d for d in exchange.other_draws if isinstance(d, Selection)]
    if not len(chosen) == len(drawn) == len(others):
        return CERTAIN
    return sum(
        _order_log_law(a.scores * a.exponent, [i]) - _order_log_law(b.scores * a.exponent, [i])
        for i, a, b in zip(chosen, drawn, others, strict=True)
    )


def _sample_ratio(exchange: PairedExchange) -> float:
    """Of draws from the posteriors of two tables."""
    samples = [d for d in exchange.draws if isinstance(d, PosteriorSample)]
    if len(samples) != len(exchange.values):
        return CERTAIN
    return sum(
        _sample_log_law(value, here, s.prior) - _sample_log_law(value, there, s.prior)
        for s, value, here, there in zip(samples, exchange.values, exchange.here, exchange.there, strict=True)
    )


def _sample_log_law(drawn: NDArray[Any], counts: NDArray[Any], prior: Sequence[float]) -> float:
    """Up to what does not depend on the counts: at each node a Dirichlet-multinomial law of its branches."""
    from scipy.special import gammaln

    # A prior of several levels is a Polya tree's, whose nodes have two branches; one of a single level a Dirichlet's.
    total, branches = 0.0, drawn.size
    if len(prior) > 1:
        branches = 2
    for level, alpha in enumerate(prior, 1):
        shape = (branches ** (level - 1), branches, -1)
        n, m = (np.asarray(x, dtype=np.float64).reshape(shape).sum(axis=2) for x in (counts, drawn))
        total += float((gammaln(n + m + alpha) - gammaln(n + alpha)).sum())
        whole = n.sum(axis=1) + branches * alpha
        total -= float((gammaln(whole + m.sum(axis=1)) - gammaln(whole)).sum())
    return total


_OTHERS: dict[type[Ask[Any]], Callable[[PairedExchange], float]] = {
    asks.Keys: _key_ratio,
    asks.Ranks: _rank_ratio,
    asks.Draws: _sample_ratio,
}
