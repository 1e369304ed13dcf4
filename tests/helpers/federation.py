"""Sites for tests: the demo table in three uneven parts, as sites of this process or as processes of their own."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pytest

import understudy as us
from understudy import datasets
from understudy.boundary.privacy.budget import Budget
from understudy.boundary.privacy.sites.federate import records_beside
from understudy.boundary.privacy.sites.site import Site, SiteSettings
from understudy.boundary.schema.federation import TRUSTS, Federation
from understudy.boundary.schema.schema import Schema
from understudy.boundary.tables.sites.federated import FederatedTable

REQUIRED = "UNDERSTUDY_FEDERATED_REQUIRED"
COLUMNS = ("age", "workclass", "education", "sex", "hours-per-week", "income")
ROWS, FEW, MANY = 400, 20, 150
"""One of three sites has 5 % of the rows."""


def skip_without_flower():
    try:
        import cryptography  # noqa: F401
        import flwr  # noqa: F401
    except ImportError:
        reason = "Flower is not installed (pip install '.[federated]')"
        if os.environ.get(REQUIRED):
            pytest.fail(reason)
        pytest.skip(reason)


def skip_without_masks():
    try:
        import cryptography  # noqa: F401
    except ImportError:
        pytest.skip("cryptography is not installed (pip install '.[federated]')")


def adult_schema():
    whole = datasets.schema("adult")
    return Schema(tuple(whole[name] for name in COLUMNS))


def adult_rows():
    """Rows of the demo release: made up, and like Adult."""
    options = pa.csv.ConvertOptions(column_types={name: pa.string() for name in COLUMNS}, include_columns=COLUMNS)
    return pa.csv.read_csv(datasets.demo() / "synthetic.csv", convert_options=options).slice(0, ROWS)


def uneven(rows):
    return [rows.slice(0, FEW), rows.slice(FEW, MANY), rows.slice(FEW + MANY)]


def files(folder: Path):
    """The three parts as files with the schema beside them."""
    paths = []
    for name, part in zip("abc", uneven(adult_rows()), strict=True):
        path = folder / name / "rows.csv"
        path.parent.mkdir(parents=True)
        pa.csv.write_csv(part, path)
        adult_schema().save(path.with_suffix(".toml"))
        paths.append(path)
    return paths


def site_of(source, schema, name="a", *, trusts=TRUSTS, ledger=None, records=None):
    return Site(us.open(source, schema, name=name), SiteSettings(name, tuple(trusts), ledger, records))


def local(sites, schema, federation: Federation):
    """A federated table over sites of this process."""
    return FederatedTable([site.link() for site in sites], schema, federation)


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@dataclass
class SiteProcess:
    """`understudy site` as a process of its own, with its ledger beside its file."""

    data: Path
    port: int
    name: str
    trusts: tuple[str, ...] = TRUSTS
    process: subprocess.Popen | None = field(default=None, repr=False)

    @property
    def ledger(self):
        return Path(f"{self.data}.ledger.sqlite")

    @property
    def debits(self):
        return len(us.Ledger.open(self.ledger, create=False).entries()) if self.ledger.exists() else 0

    @property
    def answers(self):
        """How many noisy answers it keeps of sessions that are not finished."""
        return len(list(records_beside(str(self.data)).glob("*/*.answer")))

    def start(self):
        if not self.ledger.exists():
            us.Ledger.open(self.ledger).set_limit(
                Budget(1000.0, 1e-6), "add-remove", failure_delta=1e-7, training_epsilon=100.0
            )
        arguments = ["site", "--data", str(self.data), "--coordinator", f"127.0.0.1:{self.port}", "--name", self.name]
        trusts = [word for trust in self.trusts for word in ("--trust", trust)]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "understudy", *arguments, *trusts, "--honest", "2", "--quiet"],
            stdout=subprocess.DEVNULL,
        )
        return self

    def kill(self):
        """As a power cut does it."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        if self.process is not None:
            self.process.wait()


@contextmanager
def running(*sites: SiteProcess):
    try:
        yield [site.start() for site in sites]
    finally:
        for site in sites:
            site.kill()
