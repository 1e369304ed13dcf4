"""A federated table: one more table back end. Each site counts its own rows, and the counts are added up here."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.schema.domain import ColumnSet, Domain
from understudy.boundary.schema.federation import SECURE_SUM, Bill, Federation
from understudy.boundary.schema.grouped_sums import GroupedSums
from understudy.boundary.schema.partition import Partition
from understudy.boundary.schema.schema import Schema
from understudy.boundary.tables.sites.link import (
    ANSWER,
    BEGIN,
    COUNT,
    FINISH,
    MEET,
    PREPARE,
    LocalLink,
    SiteLink,
    greeted,
    of_all,
    request,
)
from understudy.boundary.tables.sites.messages import Message
from understudy.boundary.tables.table import TableCard
from understudy.errors import InputError, InternalError, MethodError, SiteError

Counts = NDArray[np.int64]
FEWEST_ROWS = 2
"""A site with fewer rows refuses to take part, so that this is a public fact about each."""
MOST_COUNTED = 1 << 52
"""Of one site's count, in either direction: the sums over a thousand sites stay within 64 bits."""


class FederatedTable(TableCard):
    """Sites that were greeted; each release of the table is a session of its own (`FederatedRelease`)."""

    kind = "federated"

    def __init__(
        self,
        links: Sequence[SiteLink],
        schema: Schema,
        federation: Federation,
        *,
        name: str = "",
        source: str | None = None,
    ) -> None:
        self.links = sorted(links, key=lambda link: link.name)
        self.schema, self.federation = schema, federation.check(schema)
        self.name = name or f"a federated table of {len(self.links)} sites"
        self.source = source
        self.identity = source and f"{source} {json.dumps(self.sites)}"
        if len(self.links) != federation.sites:
            raise InputError(f"sites ({len(self.links)}) must be the {federation.sites} that were announced", self.name)
        self.close: Callable[[], None] = lambda: None
        """Lets go of the sites; those in this process are held by nothing."""
        twice = next((a for a, b in zip(self.sites, self.sites[1:], strict=False) if a == b), None)
        if twice is not None:
            raise SiteError(f"two sites have the name {twice!r}; give each another (--name)", twice)
        of_all(self.links, lambda link: greeted(link, schema))

    @property
    def sites(self) -> list[str]:
        """Their names, in the order in which they are asked."""
        return [link.name for link in self.links]

    def release(self) -> FederatedRelease:
        """A view for one curator, which opens a session at each site before it asks anything."""
        return FederatedRelease(self)

    def _unasked(self) -> NoReturn:
        raise InternalError("the sites of a federated table are asked through a release of it alone.", self.name)

    def count_by(self, domain: Domain, sets: Sequence[ColumnSet]) -> list[Counts]:
        self._unasked()

    def count_cells(self, domain: Domain, partitions: Sequence[Partition]) -> list[Counts]:
        self._unasked()

    def count_tally(self, domain: Domain, tally: GroupedSums) -> list[Counts]:
        self._unasked()

    def count_values(self, column: str) -> tuple[list[str], Counts]:
        self._unasked()

    def count_rows(self) -> int:
        self._unasked()

    def check_readable(self) -> None:
        self._unasked()

    def has_rows(self, at_least: int) -> bool:
        self._unasked()


class FederatedRelease(TableCard):
    """A federated table as one release sees it; implements `tables.table.Table`."""

    kind = FederatedTable.kind

    def __init__(self, table: FederatedTable) -> None:
        self.table = table
        self.schema, self.name = table.schema, table.name
        self.source, self.identity = table.source, table.identity
        self.federation = table.federation
        self.secure = True
        """Whether all sites that draw noise draw it from a source on which a claim may rest."""
        self._session, self._place = "", 0

    # --- the session

    def lend(self, randomness: Any) -> None:
        """Noise of a test or an audit, for sites in this process; one elsewhere draws its own."""
        for link in self.table.links:
            lend = link.lend if isinstance(link, LocalLink) else None
            if lend is not None:
                lend(randomness)
            elif not randomness.secure:
                raise MethodError(
                    f"noise that is repeatable for tests can't be drawn at site {link.name!r}; leave the seed out, or "
                    "trust the aggregator to draw it",
                    link.name,
                )

    def prepare(self, bill: Bill, session: str = "") -> None:
        """Whether every site could and would answer a release at this bill; spends nothing anywhere."""
        header = {"op": PREPARE, "bill": bill.to_dict(), "session": session}
        of_all(self.table.links, lambda link: request(link, header))

    def begin(self, bill: Bill, session: str) -> None:
        """Each site debits its own ledger, once for a session, however often it is begun."""
        header = {"op": BEGIN, "bill": bill.to_dict(), "session": session}
        begun = of_all(self.table.links, lambda link: request(link, header))
        self.secure = all(message.header.get("secure") is True for message in begun)
        self._session = session
        if self.federation.trust == SECURE_SUM:
            keys = {n: str(m.header.get("key")) for n, m in zip(self.table.sites, begun, strict=True)}
            meet = {"op": MEET, "session": session, "keys": keys}
            of_all(self.table.links, lambda link: request(link, meet))

    def finish(self) -> None:
        """The release is made: the sites may forget their answers, and give no more."""
        if self._session:
            of_all(self.table.links, self._finish)

    def _finish(self, link: SiteLink) -> None:
        # One that is gone by now keeps its record, which its owner may delete: the release is as good without it.
        with suppress(SiteError):
            request(link, {"op": FINISH, "session": self._session})

    # --- noisy answers, where sites draw

    def answers(self, ask: Any, place: int, shapes: Sequence[tuple[int, ...]]) -> list[list[NDArray[Any]]]:
        """What each site answers to the ask at this place of the release; the same again, if it is asked again."""
        header = {"op": ANSWER, "session": self._session, "place": place}
        kind = "u" if self.federation.trust == SECURE_SUM else "i"
        replies = of_all(self.table.links, lambda link: request(link, header, ask))
        return [
            _arrays(message, self.schema, name, shapes, kind)
            for name, message in zip(self.table.sites, replies, strict=True)
        ]

    # --- exact counts, where the aggregator is trusted

    def count_by(self, domain: Domain, sets: Sequence[ColumnSet]) -> list[Counts]:
        if not sets:
            return []
        return self._summed("count_by", [domain.shape(s) for s in sets], domain, list(sets))

    def count_cells(self, domain: Domain, partitions: Sequence[Partition]) -> list[Counts]:
        if not partitions:
            return []
        return self._summed("count_cells", [(p.cells,) for p in partitions], domain, list(partitions))

    def count_tally(self, domain: Domain, tally: GroupedSums) -> list[Counts]:
        shapes = [domain.shape(tally.by)] * len(tally.summands)
        return self._summed("count_tally", shapes, domain, tally, least=-MOST_COUNTED)

    def count_rows(self) -> int:
        return int(self._summed("count_rows", [()])[0])

    def count_values(self, column: str) -> tuple[list[str], Counts]:
        found: dict[str, int] = {}
        for name, message in zip(self.table.sites, self._asked("count_values", column), strict=True):
            for value, rows in _values(message, self.schema, name).items():
                found[value] = found.get(value, 0) + rows
        values = sorted(found)
        return values, np.array([found[v] for v in values], dtype=np.int64)

    def check_readable(self) -> None:
        """Done by each site when a release is prepared."""

    def has_rows(self, at_least: int) -> bool:
        # Before a session begins nothing can be counted, and nothing need be: each site promises so many.
        if not self._session:
            return at_least <= FEWEST_ROWS * len(self.table.links)
        return self.count_rows() >= at_least

    def _asked(self, question: str, *content: Any) -> list[Message]:
        self._place += 1
        header = {"op": COUNT, "session": self._session, "place": self._place, "question": question}
        return of_all(self.table.links, lambda link: request(link, header, *content))

    def _summed(self, question: str, shapes: Sequence[tuple[int, ...]], *content: Any, least: int = 0) -> list[Counts]:
        totals = [np.zeros(shape, dtype=np.int64) for shape in shapes]
        for name, message in zip(self.table.sites, self._asked(question, *content), strict=True):
            for total, counts in zip(totals, _arrays(message, self.schema, name, shapes, "iu"), strict=True):
                _check_range(counts, least, name)
                total += counts.astype(np.int64)
        return totals


def _arrays(
    message: Message, schema: Schema, name: str, shapes: Sequence[tuple[int, ...]], kinds: str
) -> list[NDArray[Any]]:
    """The arrays of a reply, refused unless they are what was asked for: what a site says may be anything."""
    content = message.content(schema)
    arrays = [a for a in content if isinstance(a, np.ndarray)]
    if len(arrays) != len(content) or [a.shape for a in arrays] != [tuple(s) for s in shapes]:
        raise SiteError(f"site {name!r} answered with counts of another shape than was asked", name)
    # Small numbers travel unsigned, whatever they count.
    if any(a.dtype.kind not in "iu" for a in arrays) or (kinds == "u" and any(a.dtype.kind != "u" for a in arrays)):
        raise SiteError(f"site {name!r} answered with numbers that are no counts", name)
    return arrays


def _check_range(counts: NDArray[Any], least: int, name: str) -> None:
    if counts.size and not least <= int(counts.min()) <= int(counts.max()) <= MOST_COUNTED:
        raise SiteError(f"site {name!r} answered with counts below {least} or above {MOST_COUNTED:,}", name)


def _values(message: Message, schema: Schema, name: str) -> Mapping[str, int]:
    values, counts = message.content(schema)
    whole = isinstance(counts, np.ndarray) and isinstance(values, list) and counts.shape == (len(values),)
    if not whole or len(set(values)) != len(values) or not all(isinstance(v, str) for v in values):
        raise SiteError(f"site {name!r} answered with values that are no texts, or that stand twice", name)
    _check_range(counts, 0, name)
    return dict(zip(values, map(int, counts), strict=True))


def release_of(table: object) -> FederatedRelease | None:
    """The view of a federated table that a curator asks, through whatever remembers its counts."""
    inner = getattr(table, "uncached", table)
    return inner if isinstance(inner, FederatedRelease) else None


def federation_of(table: object) -> Federation | None:
    """The public facts of a federated table; None for any other."""
    found = getattr(getattr(table, "uncached", table), "federation", None)
    return found if isinstance(found, Federation) else None
