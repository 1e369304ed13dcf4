"""`understudy.federate`: open tables, each a site of its own, as one table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from understudy.boundary.privacy.ledger.ledger import Debited, ledger_for
from understudy.boundary.privacy.sites.site import Site, SiteSettings
from understudy.boundary.schema.federation import Federation
from understudy.boundary.tables.sites.federated import FederatedTable
from understudy.boundary.tables.table import Table, opened, source_of
from understudy.errors import InputError, SiteError

RECORDS = ".sessions"
"""What the folder of a site's sessions has behind the name of the data."""


def federate(
    tables: Sequence[Table],
    *,
    trust: Literal["aggregator", "secure-sum", "nobody"] = "aggregator",
    honest: int = 0,
    places: int = 1,
    ledgers: Sequence[Debited] | Literal[False] | None = None,
    name: str = "",
) -> FederatedTable:
    """Puts several open tables together as one, without putting their rows together.

    Each table is a site: it counts its own rows, and pays from its own ledger. Sites on other machines are opened with
    `understudy.open("flower://…")`.

    Args:
        tables: What `understudy.open` returned, all under the same schema.
        trust: Who sees what: "aggregator", "secure-sum" or "nobody".
        honest: Of a secure sum, how many sites add their part of the noise for certain.
        places: At how many sites one person's rows are, at most.
        ledgers: One for each table, as `ledger` of `synthesize`; by default the one beside each file. False debits
            none.
        name: What ledgers and reports call the whole.

    Returns:
        One table, which every method, query and predictor takes. What is asked of it is debited from a ledger of the
        whole, too, where `ledger` names one.

    Raises:
        InputError: The tables have different schemas, or the numbers can't be.

    >>> import pyarrow as pa, understudy as us
    >>> schema = us.Schema.loads('[columns.age]\\ntype = "integer"\\nmin = 0\\nmax = 99')
    >>> parts = [us.open(pa.table({"age": [31, 47, 52]}), schema), us.open(pa.table({"age": [28, 60]}), schema)]
    >>> us.federate(parts).sites
    ['site 1', 'site 2']
    """
    if not tables:
        raise InputError("a federated table needs at least one site; give the open tables", tables)
    tables = [opened(table) for table in tables]
    debited: Sequence[Debited] = ledgers if isinstance(ledgers, Sequence) else [ledgers] * len(tables)
    if len(debited) != len(tables):
        raise InputError(f"ledgers ({len(debited)}) must be one for each of the {len(tables)} tables", debited)
    federation = Federation(trust, len(tables), honest=honest, places=places)
    odd = next((t for t in tables if t.schema.digest != tables[0].schema.digest), None)
    if odd is not None:
        raise SiteError(f"{odd.name} has another schema than {tables[0].name}; open all with the same", odd.name)
    width = len(str(len(tables)))
    sites = [
        Site(table, SiteSettings(f"site {number:0{width}}", (trust,), ledger_for(table, paying), records_of(table)))
        for number, (table, paying) in enumerate(zip(tables, debited, strict=True), 1)
    ]
    return FederatedTable([site.link() for site in sites], tables[0].schema, federation, name=name)


def records_of(table: Table) -> Path | None:
    """The folder beside the data for what a site keeps of its sessions; None for rows that are in no file."""
    source = source_of(table)
    if source is None or "://" in source:
        return None
    return records_beside(source)


def records_beside(data: str) -> Path:
    """
    >>> records_beside("town/people.csv").as_posix()
    'town/people.csv.sessions'
    """
    where, _, inside = data.partition("::")
    path = Path(where)
    return path.with_name(".".join(filter(None, [path.name, inside])) + RECORDS)
