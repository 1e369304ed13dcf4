"""Everything around a method that may be broken: how rows are opened, the schema, the curator, its randomness.

The honest rig is what every release uses. A mutant is a rig with one part replaced.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from understudy.audits.pair import Pair
from understudy.audits.witness import Spy, WitnessGate
from understudy.privacy.budget import Budget
from understudy.privacy.curator import Curator, Gate
from understudy.privacy.mechanism import ExactRandomness, Randomness
from understudy.schema.schema import Schema
from understudy.tables.cache import CachedTable
from understudy.tables.opening import open as open_table
from understudy.tables.table import Table

if TYPE_CHECKING:
    import pyarrow as pa


def declared(rows: pa.Table, schema: Schema) -> Schema:
    return schema


def opened(rows: pa.Table, schema: Schema) -> Table:
    return CachedTable(open_table(rows, schema, name="audited"))


def unasked(rows: pa.Table) -> int | None:
    """The number of synthetic rows comes from the noisy answers."""
    return None


@dataclass(frozen=True)
class Rig:
    """One way of running methods on rows."""

    schema: Callable[[pa.Table, Schema], Schema] = declared
    opened: Callable[[pa.Table, Schema], Table] = opened
    curator: Callable[[Schema, Budget, Gate], Curator] = Curator
    randomness: Callable[[], Randomness] = ExactRandomness.system
    rows: Callable[[pa.Table], int | None] = unasked

    def world(self, pair: Pair, second: bool) -> World:
        """A run on the first or the second table, with the other beside it."""
        here, there = reversed(pair.tables) if second else pair.tables
        schema = self.schema(here, pair.schema)
        return World(self, schema, self.opened(here, schema), self.opened(there, schema), self.rows(here))


@dataclass(frozen=True)
class World:
    """One table of a pair as a method meets it, and the other one to compare with."""

    rig: Rig
    schema: Schema
    here: Table
    there: Table
    rows: int | None

    def curator(self, budget: Budget) -> tuple[Curator, WitnessGate]:
        gate = WitnessGate(self.here, self.there, Spy(self.rig.randomness()))
        curator = self.rig.curator(self.schema, budget, gate)
        gate.curator = curator
        return curator, gate

    def pinned(self, budget: Budget, gate: Gate) -> Curator:
        """A curator whose answers come from elsewhere."""
        return self.rig.curator(self.schema, budget, gate)
