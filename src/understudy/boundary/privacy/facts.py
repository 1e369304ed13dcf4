"""The public facts that prices follow from: whom a claim protects, a row or a person, and how the budget is divided."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

from understudy.boundary.privacy.accountant import lower_float, round_down, round_up
from understudy.boundary.privacy.budget import SHARED, ZCDP, Amount, Budget, Cost, Spend, capacity, pure_cost
from understudy.boundary.privacy.mechanisms.score import rank_exponent, rank_sensitivity
from understudy.boundary.schema.column import Categorical
from understudy.boundary.schema.federation import SECURE_SUM, Federation
from understudy.boundary.schema.schema import REPLACE_ONE, Schema
from understudy.errors import MethodError

ROW_KIND, PERSON_KIND = "row", "person"
SUMMED = ("public", "rounded-gaussian", "discrete-gaussian", "discrete-laplace")
"""The mechanisms that sites can do each for itself, and whose answers add up."""
CLOSENESS_SHARE = Fraction(1, 1 << 10)
"""Of ε and of δ, what is set aside for the distance of shared noise from a Gaussian: thousands of asks need less."""


@dataclass(frozen=True)
class PrivacyUnit:
    """A row where `column` is None, else a person: all rows with one value in `column`, of whom `max_rows` count.

    >>> print(PrivacyUnit(), "/", PrivacyUnit("patient", 3))
    a row / a person by column 'patient' with at most 3 rows
    """

    column: str | None = None
    max_rows: int = 1

    @classmethod
    def of(cls, schema: Schema) -> PrivacyUnit:
        """What a release under this schema protects."""
        return cls() if schema.unit is None else cls(schema.unit.column, schema.unit.max_rows)

    @property
    def identity(self) -> str | None:
        """What two claims must share to add up: the column alone, whatever the caps.

        Neighbours of a person's claim differ in *all* rows of that person, however many there are. A release that
        counts k of them first bounds what the person moves in that release by its own k, and its price covers that.
        So releases with the caps k₁ and k₂ are claims about the very same neighbours, and compose by adding up. Rows of
        another column's people, or single rows, are other neighbours: a person of n rows is n steps away by rows, and
        where no cap holds n is unbounded, so that no number of the one says anything about the other.
        """
        return self.column

    @property
    def who(self) -> str:
        """The unit without its cap, which one release may choose otherwise than the next."""
        return "a row" if self.column is None else f"a person by column {self.column!r}"

    def __str__(self) -> str:
        if self.column is None:
            return self.who
        return f"{self.who} with at most {self.max_rows} row{'' if self.max_rows == 1 else 's'}"

    @property
    def protects(self) -> str:
        """Whom a claim protects, as a person would say it.

        >>> PrivacyUnit().protects, PrivacyUnit("client_id", 20).protects
        ('each row', 'one client with at most 20 rows')
        """
        if self.column is None:
            return "each row"
        one = re.sub(r"(^|[_\s.-])id$", "", self.column, flags=re.IGNORECASE) or "person"
        return f"one {one} with at most {self.max_rows} row{'' if self.max_rows == 1 else 's'}"

    def to_dict(self) -> dict[str, Any]:
        """For certificates and exports."""
        if self.column is None:
            return {"what": ROW_KIND}
        return {"what": PERSON_KIND, "column": self.column, "max_rows": self.max_rows}

    def to_text(self) -> str:
        """As a ledger stores it."""
        return json.dumps(self.to_dict(), ensure_ascii=False)

    @classmethod
    def from_text(cls, text: str) -> PrivacyUnit:
        """The inverse of `to_text`."""
        stored = json.loads(text)
        return cls() if stored["what"] == ROW_KIND else cls(stored["column"], stored["max_rows"])


@dataclass(frozen=True)
class PublicFacts:
    """Everything that the price of an ask may depend on; none of it is read off the rows.

    `keys` are the columns whose private values will be asked for, which costs a part of δ; None stands for all that the
    schema has. A part of the budget may be set aside for one training; `counting` is the rest.

    >>> from understudy.boundary.schema.column import Integer
    >>> PublicFacts(Schema((Integer("age", minimum=0, maximum=99),)), Budget(1.0, 0.0)).whole.epsilon
    Fraction(1, 1)
    """

    schema: Schema
    counting: Budget
    training: Budget | None = None
    keys: tuple[str, ...] | None = None
    federation: Federation | None = None
    """Of a table whose rows several sites hold."""

    @property
    def rows(self) -> int:
        """How many rows of one person count, at most; each site of a federated table caps those that it has."""
        return self.schema.rows_per_unit * (self.federation.places if self.federation else 1)

    @property
    def noises(self) -> float:
        """How many times the noise of its scale a count has; see `Federation.noises`."""
        return self.federation.noises if self.federation else 1.0

    def settled(self, spends: Sequence[Spend]) -> tuple[Spend, ...]:
        """The spends as this table's trust model makes them; refuses what its sites can't answer by noisy sums."""
        federation = self.federation
        if federation is None or not federation.sites_draw:
            return tuple(spends)
        odd = next((s for s in spends if s.mechanism not in SUMMED), None)
        if odd is not None:
            raise MethodError(
                f"'{odd.asked}' ({odd.mechanism}) can't be made of noisy sums, which are all that sites give under "
                f"trust {federation.trust}; ask for counts and sums alone, or trust the aggregator",
                odd,
            )
        if federation.trust != SECURE_SUM:
            return tuple(spends)
        return tuple(self._shared(spend, federation.honest) for spend in spends)

    @staticmethod
    def _shared(spend: Spend, honest: int) -> Spend:
        if spend.mechanism == "public":
            return spend
        if spend.mechanism != "rounded-gaussian":
            raise MethodError(
                f"'{spend.asked}' ({spend.mechanism}) can't be shared out: parts of the noise are Gaussian; ask with a "
                "delta above 0, or without a secure sum",
                spend,
            )
        return replace(spend, mechanism=SHARED, parts=honest)

    @property
    def public_rows(self) -> bool:
        """Whether the row count is public: no neighbour changes it."""
        return self.schema.public_rows

    @property
    def replaced(self) -> bool:
        """Whether neighbours differ by one unit put in place of another, and not by one more or less."""
        return self.schema.neighbours == REPLACE_ONE

    @property
    def l1(self) -> int:
        """L1 sensitivity of any histogram: the rows of one person, moved in or out; both when one is replaced."""
        return 2 * self.rows if self.replaced else self.rows

    @property
    def l2(self) -> float:
        """L2 sensitivity of any histogram: all rows of a person in one cell, or in two cells when one is replaced."""
        if self.replaced:
            # √(k² + k²): one person's k rows leave a cell, another's join a second one. Up, since √2 is rounded.
            return math.nextafter(self.rows * math.sqrt(2.0), math.inf)
        return float(self.rows)

    def count_sensitivity(self, amount: Amount) -> float:
        """The sensitivity of any histogram in the norm of the noise that this amount buys: L1 if pure, else L2."""
        return float(self.l1) if amount.pure else self.l2

    def rank_sensitivity(self, probability: float, *, grouped: bool = False) -> float:
        """How far one person moves the scores of a rank, in all groups together."""
        return rank_sensitivity(probability, self.rows, replaced=self.replaced, grouped=grouped)

    def rank_exponent(self, amount: Amount, probability: float = 1.0, *, grouped: bool = False) -> float:
        """How sharply `Ranks` would choose for this amount, per row by which a bin misses the rank.

        Without a probability it is that of an extreme, than which no rank is chosen less sharply.
        """
        return rank_exponent(amount.selection_epsilon(), self.rank_sensitivity(probability, grouped=grouped))

    @cached_property
    def key_delta(self) -> float:
        """The δ that the keys of one private column may cost: half of counting's, shared by all such columns."""
        if not self._key_columns:
            return 0.0
        # The other half is for the conversion to ε, where δ counts by its logarithm alone.
        return self.counting.delta / 2 / self._key_columns

    @property
    def _key_columns(self) -> int:
        """How many columns have keys to ask for: those that are named, or all with private values."""
        if self.keys is None:
            return sum(isinstance(c, Categorical) for c in self.schema.private)
        return len(self.keys)

    @cached_property
    def whole(self) -> Cost:
        """What a ledger is debited for everything: all ε if pure, else all g or ρ and the keys' δ; and a training.

        δ is spent for good only on keys that are asked for; what isn't spent is there for the conversion, which
        all releases of a ledger share.
        """
        if self.training is None:
            return self._counted
        zero, training = Fraction(0), self.training
        return self._counted + Cost(zero, None, round_up(training.delta), round_up(training.epsilon), gdp=zero)

    @property
    def _counted(self) -> Cost:
        budget = self.counting
        if budget.pure:
            return pure_cost(budget.capacity.value)
        # δ that keys may use up isn't there for the conversion: g is what fits into the rest.
        failure = round_up(Fraction(self.key_delta)) * self._key_columns
        direct = Fraction(0)
        if self.federation is not None and self.federation.trust == SECURE_SUM:
            # Ceilings of what shared noise may be away from a Gaussian, fixed before the first answer.
            direct = round_down(Fraction(budget.epsilon) * CLOSENESS_SHARE)
            failure += round_down(Fraction(budget.delta) * CLOSENESS_SHARE)
        value = capacity(budget, failure, direct)
        if budget.accounting == ZCDP:
            return Cost(value, None, failure, direct)
        # μ-GDP is μ²/2-zCDP: whatever N(0, 1) and N(μ, 1) can be processed into has no larger Rényi divergence.
        return Cost(value, None, failure, direct, gdp=value)

    def divided(self, epsilon_share: float, delta_share: float) -> PublicFacts:
        """The same with these shares of ε and δ set aside for a training; both parts are rounded down.

        The claim is that of both together: (ε_t + ε_c, δ_t + δ_c).
        """
        if not (0 < epsilon_share < 1 and 0 < delta_share < 1):
            raise MethodError(
                f"shares ({epsilon_share}, {delta_share}) of a training must be between 0 and 1", self.counting
            )
        # `budget.Cost` proves that the two parts add up. The δ of the training goes up to the grid, the rest down.
        whole = self.counting
        trained = Budget(whole.epsilon * epsilon_share, whole.delta * delta_share, whole.accounting)
        epsilon = lower_float(Fraction(whole.epsilon) - Fraction(trained.epsilon))
        delta = lower_float(Fraction(whole.delta) - round_up(trained.delta))
        return replace(self, counting=Budget(epsilon, delta, whole.accounting), training=trained)
