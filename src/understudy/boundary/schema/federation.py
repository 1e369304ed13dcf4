"""The public facts about a federated table: how many sites hold its rows, and whom they trust with what."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from understudy.boundary.schema.schema import Schema
from understudy.errors import InputError
from understudy.parameters import one_of, whole_number

AGGREGATOR, SECURE_SUM, NOBODY = TRUSTS = ("aggregator", "secure-sum", "nobody")
"""Trust models: exact counts go to the aggregator, who adds the noise; each site adds a part of the noise, and masks
let the aggregator see sums alone; each site adds all the noise that its own claim needs."""
MOST_SITES = 1000
UNMASKED = "with masks the aggregator sees nothing but sums over all sites, unless it forges keys"


@dataclass(frozen=True)
class Federation:
    """How many sites there are, and the trust model between them and the aggregator.

    >>> Federation(SECURE_SUM, sites=4, honest=2).noises
    2.0
    """

    trust: str
    sites: int
    honest: int = 0
    """Of a secure sum: how many sites' parts of the noise the claim rests on; the others may leave theirs out."""
    places: int = 1
    """At how many sites one person's rows are, at most."""

    def __post_init__(self) -> None:
        one_of("trust", self.trust, TRUSTS, error=InputError)
        whole_number("sites", self.sites, 1, MOST_SITES)
        whole_number("places", self.places, 1, self.sites)
        if self.trust == SECURE_SUM:
            whole_number("honest", self.honest, 1, self.sites)
        elif self.honest:
            raise InputError(f"honest ({self.honest}) goes with trust secure-sum; leave it out", self.honest)

    def check(self, schema: Schema) -> Federation:
        """Refuses what can't go together with the schema's unit."""
        if self.places > 1 and schema.unit is None:
            raise InputError(
                f"places ({self.places}) must be 1 where the schema has no unit: a row is at one site", self.places
            )
        if self.places > 1 and schema.unit and schema.neighbours != "add-remove":
            raise InputError(f"places ({self.places}) must be 1 unless neighbours are add-remove", self.places)
        return self

    @property
    def sites_draw(self) -> bool:
        """Whether noise is drawn at the sites, so that nothing but noisy sums can be asked."""
        return self.trust != AGGREGATOR

    @property
    def noises(self) -> float:
        """How many times the variance that a claim names there is in a sum, if all sites draw what they should.

        Without trust each site draws all of it. In a secure sum each draws 1/t of it, whether or not it is counted on.
        """
        if self.trust == NOBODY:
            return float(self.sites)
        return self.sites / self.honest if self.trust == SECURE_SUM else 1.0

    @property
    def told(self) -> str:
        """Who is trusted with what, for certificates."""
        if self.trust == AGGREGATOR:
            return "the aggregator and its curator see the exact counts of each site, and add the noise once"
        if self.trust == SECURE_SUM:
            return (
                f"each of {self.sites} sites adds a part of the noise, of which {self.honest} are counted on; "
                f"{UNMASKED}; the claim holds against the aggregator and any {self.sites - self.honest} sites together"
            )
        return "nobody but the site itself: each site adds all the noise of the claim before an answer leaves it"

    @property
    def whose(self) -> str:
        """Where the rows of one person may be, for certificates."""
        if self.places == 1:
            return "all rows of one unit are at one site"
        return f"the rows of one person are at {self.places} sites at most, and each caps those that it has"

    def to_dict(self) -> dict[str, Any]:
        """For certificates: with the same in words."""
        return {**asdict(self), "trusted": self.told, "unit": self.whose}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Federation:
        return cls(data["trust"], data["sites"], honest=data["honest"], places=data["places"])


@dataclass(frozen=True)
class Bill:
    """What a site is told before a release, and debits: all that the cost follows from.

    `keys` are the columns whose private values will be asked for; None stands for all that the schema has.
    """

    federation: Federation
    schema: str
    """The schema's digest."""
    epsilon: float
    delta: float
    accounting: str
    keys: tuple[str, ...] | None = None
    purpose: str = ""
    analyst: str = ""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.epsilon) and math.isfinite(self.delta)):
            raise InputError("epsilon and delta of a bill must be finite", self)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Bill:
        federation = Federation(**data["federation"])
        keys = None if data["keys"] is None else tuple(data["keys"])
        return cls(**(data | {"federation": federation, "keys": keys}))
