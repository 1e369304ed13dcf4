"""The public facts that prices follow from: who is protected by the schema, and how the budget is divided."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

from understudy.boundary.privacy.accountant import lower_float, rho_from_epsilon, rho_from_pure, round_up
from understudy.boundary.privacy.budget import Amount, Budget, Cost
from understudy.boundary.privacy.mechanisms.rank import rank_exponent, rank_sensitivity
from understudy.boundary.schema.column import Categorical
from understudy.boundary.schema.schema import REPLACE_ONE, Schema
from understudy.errors import MethodError


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

    @property
    def rows(self) -> int:
        """How many rows of one person count, at most."""
        return self.schema.rows_per_unit

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
        return self.counting.delta / 2 / self._key_columns if self._key_columns else 0.0

    @property
    def _key_columns(self) -> int:
        """How many columns have keys to ask for: those that are named, or all with private values."""
        if self.keys is None:
            return sum(isinstance(c, Categorical) for c in self.schema.private)
        return len(self.keys)

    @cached_property
    def whole(self) -> Cost:
        """What a ledger is debited for everything: all ε if pure, else all ρ and the keys' δ, and a training beside it.

        δ is spent for good only on keys that are asked for; what isn't spent is there for the conversion of ρ, which
        all releases of a ledger share.
        """
        if self.training is None:
            return self._counted
        trained = Cost(Fraction(0), None, round_up(self.training.delta), round_up(self.training.epsilon))
        return self._counted + trained

    @property
    def _counted(self) -> Cost:
        budget = self.counting
        if budget.pure:
            epsilon = budget.capacity.value
            return Cost(rho_from_pure(epsilon), epsilon, Fraction(0))
        if not self._key_columns:
            return Cost(budget.capacity.value, None, Fraction(0))
        failure = round_up(Fraction(self.key_delta)) * self._key_columns
        return Cost(rho_from_epsilon(budget.epsilon, lower_float(Fraction(budget.delta) - failure)), None, failure)

    def divided(self, epsilon_share: float, delta_share: float) -> PublicFacts:
        """The same with these shares of ε and δ set aside for a training; both parts are rounded down.

        The claim is that of both together: (ε_t + ε_c, δ_t + δ_c).
        """
        if not (0 < epsilon_share < 1 and 0 < delta_share < 1):
            raise MethodError(
                f"shares ({epsilon_share}, {delta_share}) of a training must be between 0 and 1", self.counting
            )
        whole = self.counting
        trained = Budget(whole.epsilon * epsilon_share, whole.delta * delta_share)
        epsilon = lower_float(Fraction(whole.epsilon) - Fraction(trained.epsilon))
        delta = lower_float(Fraction(whole.delta) - round_up(trained.delta))
        return replace(self, counting=Budget(epsilon, delta), training=trained)
