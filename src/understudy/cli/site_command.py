"""`understudy site`: one part of a federated table, answered for by whoever holds its rows."""

from __future__ import annotations

from pathlib import Path

from understudy.boundary.privacy.ledger.ledger import Ledger, is_server
from understudy.boundary.privacy.sites.federate import records_beside
from understudy.boundary.privacy.sites.site import Site, SiteSettings
from understudy.boundary.schema.federation import AGGREGATOR, NOBODY, TRUSTS
from understudy.boundary.tables.sites.flower import serve
from understudy.boundary.tables.sources import open as open_table
from understudy.cli.locations import ledger_of, schema_of
from understudy.cli.screen import tell
from understudy.errors import InputError
from understudy.parameters import one_of


def run_site(
    data: str,
    coordinator: str,
    *,
    schema: Path | None,
    name: str | None,
    trusts: tuple[str, ...],
    honest: int,
    ledger: Path | None,
    certificate: Path | None,
    quiet: bool,
) -> None:
    """Opens the table once, and answers for it until it is stopped."""
    for trust in trusts:
        one_of("trust", trust, TRUSTS, error=InputError)
    table = open_table(data, schema_of(data, schema))
    paying, trusts = ledger_of(data, ledger), trusts or (NOBODY,)
    _demand_limit(paying, trusts)
    settings = SiteSettings(name or table.name, trusts, paying, _records(data, ledger), honest)
    if not quiet:
        agreed = " or ".join(settings.trusts)
        tell(f"site {settings.name!r} answers {coordinator}, trusting {agreed}; stop it with Ctrl-C", error=True)
    serve(Site(table, settings).handle, coordinator, certificate)


def _demand_limit(ledger: Path, trusts: tuple[str, ...]) -> None:
    """Refuses to answer an aggregator that is not trusted, and asks what it likes, for as much as it likes."""
    if set(trusts) == {AGGREGATOR} or (ledger.exists() and Ledger.open(ledger, create=False).limit() is not None):
        return
    raise InputError(
        f"ledger ({ledger}) has no limit, so that an aggregator could ask without end; set one with `understudy budget "
        "set` before the site is started",
        ledger,
    )


def _records(data: str, ledger: Path | None) -> Path:
    """Beside the data, or, of a table on a server, beside its ledger."""
    return records_beside(str(ledger) if is_server(data) else data)
