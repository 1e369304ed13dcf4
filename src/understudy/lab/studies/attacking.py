"""`understudy.attack`: every attack on a synthetic table, and on a method by its shadow models."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from understudy.boundary.privacy.budget import Budget
from understudy.boundary.schema.schema import REPLACE_ONE, Schema
from understudy.boundary.tables.cache import CachedTable
from understudy.boundary.tables.draft import draft_schema
from understudy.boundary.tables.opening import open as open_table
from understudy.boundary.tables.reading import Rows
from understudy.boundary.tables.table import Table, is_table
from understudy.errors import InputError
from understudy.files import write_atomically
from understudy.lab.attacks import attack_results as attacking
from understudy.lab.attacks import report as attacks_report
from understudy.lab.attacks.attack import FEWEST, Attack, Finding
from understudy.lab.attacks.attack_results import Progress, attack_tables
from understudy.lab.attacks.nearest_rows import Places
from understudy.lab.attacks.shadow_models import (
    PURPOSE,
    SHADOW,
    SHADOWS,
    check_shadows,
    most_exposed,
    shadow_membership,
)
from understudy.lab.attacks.threat import Setting, some
from understudy.lab.evaluation.holdout import people
from understudy.lab.studies.result import report_writer, save_figures
from understudy.methods.method import Options
from understudy.releases.synthesis import DEFAULT_DELTA, Plan, synthesize

if TYPE_CHECKING:
    import pyarrow as pa

MOST_ROWS = 1_000
"""Of a shadow's training table: a person hides worse among few, and many runs must not take long."""


class Attacks(attacking.Attacks):
    """The findings of all attacks on a synthetic table. It is internal: it was computed from real rows."""

    def to_html(self) -> str:
        """The report as one page that needs nothing else."""
        return attacks_report.render(self)

    def save(self, path: str | Path) -> None:
        """Writes the report (.html) or the findings (.json), by the ending of the path."""
        path = Path(path)
        write_atomically(path, report_writer(path, {".html": self.to_html, ".json": self.to_json})().encode())

    def save_figures(self, folder: str | Path, format: str = "svg") -> list[Path]:
        """Writes every picture of the report as a file of its own, for papers and slides."""
        return save_figures(attacks_report.pictures(self), Path(folder), format)

    def _repr_html_(self) -> str:
        return attacks_report.render_brief(self)


def attack(
    train: Any,
    holdout: Any,
    synthetic: Any,
    *,
    schema: Schema | str | Path | None = None,
    secrets: Sequence[str] | None = None,
    method: str | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    shadows: int | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Attacks:
    """Attacks a synthetic table as somebody would who wants to learn about people. The result is internal.

    Tables are frames, paths, or what `understudy.open` returned: the rows that the synthetic table was made from, real
    rows from the same population that it was not made from, and itself. `secrets` are the columns that an attacker
    would like to learn; by default every column is one in its turn.

    A `method` with its `epsilon` (and `delta`, else 1e-6) is attacked too: it runs on some of the training rows as
    often as `shadows` says (else 40), half of the time without the person most at risk, and its outputs are told apart.

    >>> import pyarrow as pa
    >>> people, others = pa.table({"age": range(20, 60)}), pa.table({"age": range(60, 100)})
    >>> attack(people, others, people)["copies"].verdict
    'advantage'
    """
    more: tuple[Attack, ...] = ()
    if method is None:
        _check_nothing_asked(epsilon=epsilon, delta=delta, shadows=shadows)
    else:
        models = Shadows.of(train, schema, method, epsilon, delta, shadows, progress)
        schema, more = models.schema, (dataclasses.replace(SHADOW, compute=models.found),)
    found = attack_tables(
        train, holdout, synthetic, schema=schema, secrets=secrets, seed=seed, more=more, progress=progress
    )
    return Attacks(found.facts, found.findings)


def _check_nothing_asked(**asked: object) -> None:
    name = next((n for n, value in asked.items() if value is not None), None)
    if name is not None:
        raise InputError(f"{name} ({asked[name]}) is that of shadow models; name their method too, such as mst", name)


@dataclass(frozen=True)
class Shadows:
    """Releases of a method, made to be told apart: their noise is seeded, none is kept, and no budget is spent."""

    train: Any
    schema: Schema
    method: str
    budget: Budget
    count: int
    progress: Progress | None = None

    @classmethod
    def of(
        cls,
        train: Any,
        schema: Schema | str | Path | None,
        method: str,
        epsilon: float | None,
        delta: float | None,
        shadows: int | None,
        progress: Progress | None = None,
    ) -> Shadows:
        """Refuses whatever can be refused before anything is run."""
        if epsilon is None:
            raise InputError(f"shadow models of {method} need an epsilon to be made with, such as 1", method)
        budget = Budget(epsilon, DEFAULT_DELTA if delta is None else delta)
        count = SHADOWS if shadows is None else shadows
        check_shadows(count)
        known = _schema_of(train, schema)
        plan = Plan.of(known, budget, method, Options(), None, 0, accept_draft=True)
        plan.check()
        if not is_table(train):
            open_table(train, known)
        return cls(train, known, plan.choice.method.name, budget, count, progress)

    def found(self, setting: Setting) -> Finding:
        """How well it is told whether the person who is farthest from all others was in the method's table."""
        rows, seed = Rows.of(self.train, "the training table").everything(), setting.comparison.seed
        places = worlds(people(rows, self.schema), most_exposed(setting), self.schema, setting.generator(PURPOSE))
        others = len(places[1])
        if others < FEWEST:
            return Finding.undefined(f"of the others there are {others} rows, and fewer than {FEWEST} say nothing")
        tables = [open_table(rows.take(p), self.schema, name="a shadow's table") for p in places]
        counted = {table: CachedTable(table) for table in tables}
        finding = shadow_membership(
            lambda table, run: shadow_of(counted[table], self.method, self.budget, run),
            tables[0],
            0,
            without=tables[1],
            schema=self.schema,
            shadows=self.count,
            seed=seed,
            progress=self.progress,
        )
        return dataclasses.replace(finding, note=f"{self._spoken(len(places[0]))}; {finding.note}")

    def _spoken(self, rows: int) -> str:
        person = "the person who is farthest from all others"
        replaced = f"{person} or somebody else in their place"
        both = replaced if self.schema.neighbours == REPLACE_ONE else f"{person} or without"
        return f"{self.method} with {self.budget}, on {rows:,} training rows with {both}"


def shadow_of(table: Table, method: str, budget: Budget, seed: int) -> pa.Table:
    """The rows of one release that nobody keeps; so a draft of a schema will do."""
    return synthesize(
        table,
        method=method,
        epsilon=budget.epsilon,
        delta=budget.delta,
        seed=seed,
        test_only_noise_seed=seed,
        accept_draft_as_public=True,
        ledger=False,
    ).arrow


def worlds(people: Places, row: int, schema: Schema, rng: np.random.Generator) -> tuple[Places, Places]:
    """Rows of two neighbouring tables: with the person, whose row comes first, and without.

    Of a person only as many rows as count are taken. Where the number of rows is public, somebody else stands in.
    """
    own = np.flatnonzero(people == people[row])
    own = np.concatenate([[row], own[own != row]])[: schema.rows_per_unit]
    others = np.flatnonzero(people != people[row])
    replaced = int(schema.neighbours == REPLACE_ONE)
    if replaced:
        others = others[np.unique(people[others], return_index=True)[1]]
    drawn = others[some(len(others), max(FEWEST, MOST_ROWS - len(own) + replaced), rng)]
    return np.concatenate([own, drawn[replaced:]]), drawn


def _schema_of(train: Any, schema: Schema | str | Path | None) -> Schema:
    """The one that is given, that of an open table, or a draft."""
    if schema is None:
        return train.schema if is_table(train) else draft_schema(train)
    return schema if isinstance(schema, Schema) else Schema.load(schema)
