"""Step 4. What a claim rests on before and beside the noise.

A row is read by itself, whatever its neighbours make of its column; a person is who has an id, however it is written; a
ledger adds up claims about one unit only; a schema that was read off the rows guarantees nothing; no row is left in a
file. None of these looks is a matter of chance: what one of them finds is there for sure.
"""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import importlib.util
import os
import secrets
import stat
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from understudy.boundary.privacy.budget import Budget
from understudy.boundary.privacy.curator import Curator
from understudy.boundary.privacy.ledger.ledger import Ledger
from understudy.boundary.schema.schema import DRAFT, Schema
from understudy.boundary.tables.cache import CachedTable
from understudy.boundary.tables.table import Table
from understudy.errors import TableError, UnderstudyError
from understudy.lab.audits.checks import sensitivity, taint
from understudy.lab.audits.checks.paired_gate import TrainingReached
from understudy.lab.audits.checks.server import served
from understudy.lab.audits.harness import Harness, RunContext, Subject
from understudy.lab.audits.pairs import ODD, PANDAS, Pair, odd_pair, pairs, people_pairs, undated_pair, wide_pair
from understudy.lab.audits.result import FAILED, PASSED, SKIPPED, AuditCheck

DRAFTS = "a schema that is a draft of the rows guarantees nothing"
UNITS = "one ledger refuses claims about rows beside claims about people"
FILES = "no row is left in a file"
SPILLS = "the engine spills into a folder that nobody else can read"
SERVER = "people on a PostgreSQL server"
NO_PANDAS = "pandas is not installed, so that its frames were not looked at."
NO_SERVER = "no PostgreSQL server was named (postgres=, --postgres)."


class Paid(Exception):  # noqa: N818 - it says where a run was left, and is no error
    """The budget was debited, and the first draw is due."""


class Stopped:
    """Draws nothing: what is looked at is over when the first draw is due."""

    secure = True

    def noise(self, *what: Any, **more: Any) -> Any:
        raise Paid

    choose = draw = noise


@dataclass
class Boundary:
    """The looks at one subject in its harness."""

    subject: Subject
    harness: Harness
    budget: Budget
    neighbours: str
    wide: bool
    """Whether it takes many columns to make it pick several sets in one selection."""
    trains: bool = False
    """Whether it trains: then people have one row, and a run is left where the training begins."""
    postgres: str | None = None
    """The address of a server on which tables may be made, and dropped again."""
    canary: str = field(default_factory=lambda: secrets.token_hex(16))

    def checks(self, first: Sequence[str] = ()) -> Iterator[AuditCheck]:
        """All looks, those that are named `first` before the others."""
        looks = self._looks()
        for name in sorted(looks, key=lambda name: name not in first):  # stable: else the cheapest stay first
            yield from looks[name]()

    def _looks(self) -> dict[str, Callable[[], Iterable[AuditCheck]]]:
        """By the names of pairs, or of what else is looked at; the cheapest first."""
        looks: dict[str, Callable[[], Iterable[AuditCheck]]] = {
            DRAFTS: lambda: [self._drafts()],
            UNITS: lambda: [self._units()],
            FILES: self._files,
        }
        looks |= {pair.name: partial(self._looked, pair) for pair in self.pairs}
        if not self.trains:
            looks[SERVER] = lambda: [self._server()]
        return looks

    @property
    def pairs(self) -> list[Pair]:
        """By what they are about: storage types, people, several picks."""
        people = [p for p in people_pairs(self.canary) if not self.trains or p.schema.rows_per_unit == 1]
        found = [odd_pair(self.neighbours), undated_pair(self.neighbours), *people]
        if self.wide:
            found.append(wide_pair(self.neighbours))
        return found

    # --- rows and people

    def _looked(self, pair: Pair) -> Iterator[AuditCheck]:
        """Whether both tables are read, no exact answer moves by more than it declares, and nothing else moves."""
        name = f"pair {pair.name!r}"
        if pair.frame == PANDAS and importlib.util.find_spec("pandas") is None:
            yield AuditCheck(name, SKIPPED, NO_PANDAS)
            return
        try:
            context = self.harness.context(pair, second=False)
        except TableError:
            # Where both are refused nothing tells them apart; but then this pair is no good, which is a bug of ours.
            if all(self._refused(frame, pair.schema) for frame in pair.tables):
                raise
            yield AuditCheck(name, FAILED, "one table is refused, and its neighbour is read.")
            return
        yield self._moved(name, pair, context)
        if pair.name == ODD and not self.trains:
            found = taint.check(self.subject, pair.name, context, self.harness.context(pair, second=True), self.budget)
            yield dataclasses.replace(found, name=f"{name}, what is shown")

    def _refused(self, frame: Any, schema: Schema) -> bool:
        try:
            self.harness.opened(frame, schema)
        except TableError:
            return True
        return False

    def _moved(self, name: str, pair: Pair, context: RunContext) -> AuditCheck:
        curator, gate = context.curator(self.budget)
        self._run(context, curator)
        failed = [c for c in sensitivity.check([(pair.name, gate.exchanges)], self.budget) if c.outcome == FAILED]
        if failed:
            return AuditCheck(name, FAILED, f"{failed[0].name}, but {failed[0].found}")
        return AuditCheck(
            name, PASSED, f"no exact answer to {len(gate.exchanges)} questions moves by more than it declares."
        )

    def _run(self, context: RunContext, curator: Curator) -> None:
        """As far as the first training, which is looked at by other means."""
        with contextlib.suppress(TrainingReached):
            self.subject.learn(context, curator, 0)

    # --- ledgers, drafts, files

    def _units(self) -> AuditCheck:
        """Two releases of one table, for people and for rows, in either order: the second must be refused."""
        pair = next(p for p in people_pairs(self.canary) if p.schema.rows_per_unit == 1)
        schemas = pair.schema, dataclasses.replace(pair.schema, unit=None)
        person, row = (self.harness.opened(pair.tables[0], schema) for schema in schemas)
        for first, second, words in ((person, row, "rows after people"), (row, person, "people after rows")):
            ledger = self.harness.ledger()
            self._debited(first, ledger)
            if self._debited(second, ledger):
                return AuditCheck(
                    UNITS, FAILED, f"{words}: both are debited, and added up as if they protected the same."
                )
        return AuditCheck(UNITS, PASSED, "rows after people, and people after rows, are refused.")

    def _debited(self, table: Table, ledger: Ledger) -> bool:
        """Whether the ledger takes a release, which is left where its first draw is due."""
        try:
            curator = Curator.on(table, self.budget, ledger=ledger, randomness=Stopped())
            self.subject.learn(RunContext(self.harness, table.schema, table, table, None), curator, 0)
        except Paid:  # debits come before draws: who gets as far as a draw has been debited
            return True
        except UnderstudyError:
            return False
        return True

    def _drafts(self) -> AuditCheck:
        """What is handed out with a result whose schema nobody confirmed."""
        pair = pairs(self.neighbours, keys=False)[0]
        drafted = dataclasses.replace(pair, schema=dataclasses.replace(pair.schema, status=DRAFT))
        context = self.harness.context(drafted, second=False)
        curator, _ = context.curator(self.budget)
        if self.harness.guaranteed(self.subject.claim(context, curator)) is not None:
            return AuditCheck(DRAFTS, FAILED, f"a guarantee of epsilon {self.budget.epsilon:g} stands beside a draft.")
        return AuditCheck(DRAFTS, PASSED, "the guarantee beside a draft is null.")

    def _files(self) -> Iterator[AuditCheck]:
        """A run whose people have canaries for ids: while its table is open, and when it is gone."""
        pair = next(p for p in people_pairs(self.canary) if p.schema.rows_per_unit == 1)
        with Watch.begun(self.canary.encode()) as watch:
            context = self.harness.context(pair, second=False)
            self._run(context, context.curator(self.budget)[0])
            yield _spill_check(context.here)
            # An open table may keep files of the owner's own, as an engine's spills; once it is gone there may be none.
            found = watch.found(anywhere=False)
            del context
            gc.collect()  # what a table leaves behind is known when its finalizers have run
            found = found or watch.found(anywhere=True)
        words = "no id of a made-up person stands in a new file of the working or temporary folder."
        if found:
            words = f"ids of made-up people stand in {len(found)} files: {', '.join(found[:3])}."
        yield AuditCheck.of(FILES, not found, words)

    # --- a server

    def _server(self) -> AuditCheck:
        """People on PostgreSQL, where the same SQL is another dialect's, or on Spark."""
        if self.postgres is None:
            return AuditCheck(SERVER, SKIPPED, NO_SERVER)
        people = [p for p in people_pairs(self.canary) if p.frame != PANDAS]
        with served(self.postgres) as opened:
            harness = dataclasses.replace(self.harness, opened=opened)
            found = [self._moved(SERVER, p, harness.context(p, second=False)) for p in people]
        return next((c for c in found if c.outcome == FAILED), found[0])


def spill_folder(table: Table) -> Path | None:
    """The folder of DuckDB's temporary files, of a table that has such an engine."""
    inner = table
    if isinstance(table, CachedTable):
        inner = table.uncached
    connection = getattr(inner, "_connection", None)
    if connection is None:
        return None
    (place,) = connection.execute("SELECT current_setting('temp_directory')").fetchone()
    return Path(place) if place else None


def _spill_check(table: Table) -> AuditCheck:
    """Where DuckDB would put rows for which there is no memory."""
    place = spill_folder(table)
    if place is None:
        return AuditCheck(SPILLS, SKIPPED, "the table has no engine, or one that spills nowhere.")
    # DuckDB makes the folder when it first spills: until then, the nearest one above decides who can read.
    there = next((p for p in (place, *place.parents) if p.exists()), None)
    if not place.is_absolute() or there is None or stat.S_IMODE(there.stat().st_mode) & OTHERS:
        return AuditCheck(SPILLS, FAILED, "its temporary files are made where others can read them.")
    return AuditCheck(SPILLS, PASSED, "its temporary files are made in a folder for the owner alone.")


# A larger file is not searched.
MOST_BYTES = 1 << 28
# Permission bits of everybody but the owner.
OTHERS = 0o077
# How far, in nanoseconds, a file system's clock may lag behind.
CLOCK = 2 * 10**9


@dataclass(frozen=True)
class Watch:
    """Searches new files for a canary that stands in the rows.

    Knows where files may be left, and what stood there when it began: of folders that were there, the first level only.
    """

    canary: bytes
    folders: tuple[Path, ...]
    before: dict[Path, int]
    since: int
    """In nanoseconds; files that were not written since then are not searched."""

    @classmethod
    @contextmanager
    def begun(cls, canary: bytes) -> Iterator[Watch]:
        folders = tuple(dict.fromkeys((Path.cwd(), Path(tempfile.gettempdir()).resolve())))
        since = time.time_ns() - CLOCK
        yield cls(canary, folders, {p: _changed(p) for f in folders for p in _entries(f)}, since)

    def found(self, anywhere: bool) -> list[str]:
        """Files that hold the canary: those that others than their owner can read, or all."""
        new = [p for f in self.folders for p in _entries(f) if _changed(p) != self.before.get(p)]
        files = [p for entry in new for p in _files(entry) if _changed(p) >= self.since]
        return [p.name for p in files if (anywhere or _is_open(p, self.folders)) and _holds(p, self.canary)]


def _entries(folder: Path) -> list[Path]:
    try:
        return [Path(entry.path) for entry in os.scandir(folder)]
    except OSError:
        return []


def _changed(path: Path) -> int:
    try:
        return path.lstat().st_mtime_ns
    except OSError:
        return -1


def _files(entry: Path) -> Iterator[Path]:
    """The file, or all files of the folder; links are not followed."""
    if entry.is_symlink():
        return
    if entry.is_dir():
        yield from (Path(top) / name for top, _, names in os.walk(entry) for name in names)
    elif entry.is_file():
        yield entry


def _is_open(path: Path, folders: tuple[Path, ...]) -> bool:
    """Whether others can read the file, and can pass all folders above it that were made for it."""
    above = [p for p in path.parents if any(f in p.parents for f in folders)]
    try:
        return all(stat.S_IMODE(p.stat().st_mode) & OTHERS for p in (path, *above))
    except OSError:
        return False


def _holds(path: Path, canary: bytes) -> bool:
    try:
        return path.stat().st_size <= MOST_BYTES and canary in path.read_bytes()
    except OSError:
        return False
