"""A method over three sites of made-up rows: is what leaves each site as noisy, masked and paid for as is claimed?

The auditor sits where the claim places the attacker. Where nobody is trusted, it reads the replies of each site. In a
secure sum it is the aggregator together with the sites that are not counted on: their parts of the noise are known to
it, and so left out. Where the aggregator is trusted, it sees what the aggregator hands out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from understudy.boundary.privacy.asks.ask import Ask, Result
from understudy.boundary.privacy.asks.counts import NoisyCounts
from understudy.boundary.privacy.budget import SHARED, Budget, Spend
from understudy.boundary.privacy.curator import Curator
from understudy.boundary.privacy.ledger.ledger import Ledger
from understudy.boundary.privacy.mechanisms.randomness import Randomness
from understudy.boundary.privacy.queryable import Wrapper
from understudy.boundary.privacy.sites.site import Reply, Site, SiteSettings
from understudy.boundary.schema.federation import AGGREGATOR, NOBODY, SECURE_SUM, Federation
from understudy.boundary.schema.schema import ADD_REMOVE
from understudy.boundary.tables.sites.federated import FederatedTable
from understudy.boundary.tables.sites.link import ANSWER, COUNT, LocalLink
from understudy.boundary.tables.sites.messages import Message
from understudy.boundary.tables.table import Table
from understudy.errors import InternalError
from understudy.lab.audits.checks.conformance import LAWS, SIDE, hoeffding, tail_bound
from understudy.lab.audits.harness import Harness, RunContext, Subject, opened
from understudy.lab.audits.pairs import COLUMNS, OTHER, Pair, schema_of, spread
from understudy.lab.audits.result import AuditCheck

if TYPE_CHECKING:
    import pyarrow as pa

SITES = ("sites", "Sites", "Is what leaves a site as noisy, as masked and as paid for as its trust model says?")
NAMES, HONEST, ROWS, HEIGHTS = ("north", "south", "west"), 2, 60, 400
HEARD = 2_500
"""Noisy counts: of two parts where three are due, χ² is too small with 640 in all but one of 10¹⁰ audits."""
MOST_RUNS = 400
SPREAD, MASKED, PAID = "noise seen by the attacker", "replies under masks", "debits before answers"


class KnownNoise:
    """Of a site that is not counted on: its part is known to the attacker, and so as good as none."""

    secure = True

    def noise(self, mechanism: str, scale: float, size: int) -> Any:
        return np.zeros(size, dtype=np.int64)

    def choose(self, *what: Any) -> Any:
        raise InternalError("sites choose nothing.", what)

    draw = choose


@dataclass(frozen=True)
class SiteMaking:
    """How sites are made; a mutant makes one of them otherwise."""

    randomness: Randomness
    kind: type[Site] = Site
    first: Randomness | None = None
    """Of the first site, where it is another."""
    pays: bool = True

    def site(self, table: Table, place: int, federation: Federation) -> Site:
        ledger = Ledger.memory() if self.pays else None
        randomness = self.randomness
        if federation.trust == SECURE_SUM and place >= federation.honest:
            randomness = KnownNoise()
        elif place == 0 and self.first is not None:
            randomness = self.first
        return self.kind(table, SiteSettings(NAMES[place], (federation.trust,), ledger), randomness=randomness)


@dataclass
class SiteListener:
    """What the attacker hears: the residuals of noisy counts in units of nothing, replies, and debits."""

    subject: Subject
    budget: Budget
    federation: Federation
    making: SiteMaking
    residuals: dict[tuple[str, float], list[Any]] = field(default_factory=dict)
    replies: list[Any] = field(default_factory=list)
    unpaid: int = 0

    def run(self, context: RunContext, tables: Sequence[Table], pooled: Table, seed: int) -> None:
        """One release; what it shows is not looked at, but what it was made of."""
        sites = [self.making.site(table, place, self.federation) for place, table in enumerate(tables)]
        links = [LocalLink(site.name, partial(self._heard, site, pooled)) for site in sites]
        table = FederatedTable(links, pooled.schema, self.federation)
        curator = Curator.on(table, self.budget, randomness=self.making.randomness)
        self.subject.learn(context, Overheard(curator, self, tables, pooled), seed)  # type: ignore[arg-type]

    def _heard(self, site: Site, pooled: Table, request: bytes) -> bytes:
        asked, reply = Message.read(request, "the aggregator"), site.handle(request)
        operation = asked.header["op"]
        if operation in (COUNT, ANSWER):
            ledger = site._settings.ledger
            self.unpaid += not (isinstance(ledger, Ledger) and ledger.entries())
        if operation == ANSWER and self.federation.trust == SECURE_SUM:
            self.replies += [a.ravel() for a in Message.read(reply, site.name).content(pooled.schema)]
        if operation == ANSWER:
            self.last.append(Message.read(reply, site.name).content(pooled.schema))
        return reply

    last: list[Any] = field(default_factory=list)
    """The replies of all sites to the ask that is being answered."""

    def add(self, spend: Spend, residual: Any) -> None:
        self.residuals.setdefault((spend.mechanism, spend.scale), []).append(np.asarray(residual).ravel())


class Overheard(Wrapper):
    """A curator whose noise is told from its answers: the auditor made the rows up, and knows the exact ones."""

    def __init__(self, curator: Curator, listener: SiteListener, tables: Sequence[Table], pooled: Table) -> None:
        super().__init__(curator)
        self._curator, self._listener, self._tables, self._pooled = curator, listener, tables, pooled

    def ask(self, ask: Ask[Result]) -> Result:
        self._listener.last.clear()
        before, answer = len(self._curator.record), super().ask(ask)
        if isinstance(ask, NoisyCounts):
            spends = self._curator.price(ask).spends
            if self._listener.federation.trust == NOBODY:
                for table, seen in zip(self._tables, self._listener.last, strict=True):
                    self._compare(spends, seen, ask.exact(table))
            else:
                values = [a.value for a in self._curator.record[before:]]
                self._compare(spends, values, ask.exact(self._pooled))
        return answer

    def _compare(self, spends: Sequence[Spend], values: Sequence[Any], exact: Sequence[Any]) -> None:
        for spend, noisy, true in zip(spends, values, exact, strict=True):
            if spend.mechanism != "public":
                self._listener.add(spend, noisy.astype(np.int64) - true)


def check(subject: Subject, budget: Budget, trust: str, making: SiteMaking) -> Iterator[AuditCheck]:
    """All looks at a method under one trust model."""
    honest = HONEST if trust == SECURE_SUM else 0
    listener = SiteListener(subject, budget, Federation(trust, len(NAMES), honest=honest), making)
    pair = _pair()
    context = Harness().context(pair, False)
    tables = [opened(part, pair.schema) for part in _parts(pair.tables[0])]
    for seed in range(MOST_RUNS):
        listener.run(context, tables, context.here, seed)
        if sum(r.size for found in listener.residuals.values() for r in found) >= HEARD:
            break
    yield from _spread(listener)
    if trust == SECURE_SUM:
        seen = np.concatenate(listener.replies)
        signs = np.where(seen >> np.uint64(63), 1.0, -1.0)
        rare = tail_bound(signs, hoeffding)
        yield AuditCheck.of(
            MASKED,
            rare >= SIDE,
            f"{np.mean(signs > 0):.3f} of {signs.size:,} masked counts have the first bit, half are due.",
        )
    told = "every answer of a site came after its debit"
    if listener.unpaid:
        told = f"{listener.unpaid} answers of sites came before a debit"
    yield AuditCheck.of(PAID, not listener.unpaid, f"{told}.")


def _spread(listener: SiteListener) -> Iterator[AuditCheck]:
    for (mechanism, scale), found in sorted(listener.residuals.items()):
        law = LAWS["rounded-gaussian" if mechanism == SHARED else mechanism](scale)
        noise = np.concatenate(found)
        wrong = [
            name
            for name, values, moments in (
                ("scale", law.size(noise), law.size_moments),
                ("mean", law.value(noise), law.value_moments),
            )
            if tail_bound(values, moments) < SIDE
        ]
        deviation = float(np.sqrt(np.mean(noise.astype(np.float64) ** 2)))
        told = f"{noise.size:,} counts have a deviation of {deviation:.4g} where {scale:.4g} is claimed"
        if wrong:
            told += f": not that law's {' and '.join(wrong)}"
        yield AuditCheck.of(f"{SPREAD}, {mechanism} of scale {scale:.4g}", not wrong, f"{told}.")


def _pair() -> Pair:
    # Many cells, so that few releases give enough noise to judge.
    schema = schema_of(
        f'{COLUMNS}height = {{type = "integer", min = 0, max = {HEIGHTS - 1}, bins = {HEIGHTS}}}\n', ADD_REMOVE
    )
    rows = [row | {"height": place} for place, row in enumerate(spread(ROWS))]
    return Pair.of("sites", "one row more", schema, rows=rows, extra=OTHER | {"height": 0})


def _parts(rows: pa.Table) -> list[pa.Table]:
    """As many as there are sites, of which the first has few."""
    return [rows.slice(0, 4), rows.slice(4, ROWS // 3), rows.slice(4 + ROWS // 3)]


# --- sites that are broken on purpose


class Unmasked(Site):
    """Sends its part of the sum as it is."""

    def _answer(self, message: Message) -> Reply:
        session = self._open(message)
        (ask,) = message.content(self._table.schema)
        return {}, session._ask(message.header["place"], ask)


class OneMaskMore(Site):
    """Adds a mask that no other site takes off."""

    def _answer(self, message: Message) -> Reply:
        header, arrays = super()._answer(message)
        if self.name == NAMES[0]:
            arrays = [array + np.uint64(0x9E3779B97F4A7C15) for array in arrays]
        return header, arrays


@dataclass(frozen=True)
class ScaledParts:
    """Noise of a fraction of its scale."""

    honest: Randomness
    factor: float
    secure: bool = True

    def noise(self, mechanism: str, scale: float, size: int) -> Any:
        return self.honest.noise(mechanism, scale * self.factor, size)

    def choose(self, *what: Any) -> Any:
        return self.honest.choose(*what)

    def draw(self, *what: Any) -> Any:
        return self.honest.draw(*what)


def mutants(honest: Randomness) -> dict[str, tuple[tuple[str, ...], SiteMaking]]:
    """By name, the trust models in which a mistake can be made, and sites that make it."""
    draws = (SECURE_SUM, NOBODY)
    fewer = ScaledParts(honest, (HONEST / len(NAMES)) ** 0.5)
    return {
        "part-missing": (draws, SiteMaking(honest, first=KnownNoise())),
        "all-counted-on": ((SECURE_SUM,), SiteMaking(fewer)),
        "half-noise": ((AGGREGATOR, *draws), SiteMaking(ScaledParts(honest, 0.5))),
        "no-masks": ((SECURE_SUM,), SiteMaking(honest, kind=Unmasked)),
        "masks-remain": ((SECURE_SUM,), SiteMaking(honest, kind=OneMaskMore)),
        "skipped-site-debit": ((AGGREGATOR, *draws), SiteMaking(honest, pays=False)),
    }
