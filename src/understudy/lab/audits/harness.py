"""Everything around a method that may be broken: how rows are opened, the schema, the curator, its randomness, what is
debited and what is claimed.

The honest harness is what every release uses. A mutant is a harness with one part replaced. A subject is
what is audited in it: anything that learns through a curator and shows something of it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from understudy.boundary.privacy.budget import Budget
from understudy.boundary.privacy.curator import Curator
from understudy.boundary.privacy.gates import Gate
from understudy.boundary.privacy.ledger.ledger import Ledger
from understudy.boundary.privacy.mechanisms.randomness import ExactRandomness, Randomness
from understudy.boundary.privacy.mechanisms.teachers import ExactVotes
from understudy.boundary.privacy.mechanisms.training import GradientSums
from understudy.boundary.schema.schema import Schema
from understudy.boundary.tables.cache import CachedTable
from understudy.boundary.tables.sources import open as open_table
from understudy.boundary.tables.table import Table
from understudy.lab.audits.checks.paired_gate import Draw, PairedGate, RecordingRandomness, RepeatedNoise
from understudy.lab.audits.pairs import Pair, Row
from understudy.queries.answer import Answer
from understudy.releases.certificate import Certificate

if TYPE_CHECKING:
    import pyarrow as pa


WithGuarantee = Certificate | Answer


def opened(frame: Any, schema: Schema) -> Table:
    # Cached: a game asks the same questions of the same rows thousands of times.
    return CachedTable(open_table(frame, schema, name="audited"))


@dataclass(frozen=True)
class Harness:
    """One way of running methods on rows."""

    schema: Callable[[Sequence[Row], Schema], Schema] = lambda rows, schema: schema
    opened: Callable[[Any, Schema], Table] = opened
    curator: Callable[[Schema, Budget, Gate], Curator] = Curator
    randomness: Callable[[], Randomness] = ExactRandomness.system
    rows: Callable[[Sequence[Row]], int | None] = lambda rows: None
    """How many synthetic rows are asked for; None leaves their number to the noisy answers."""
    ledger: Callable[[], Ledger] = Ledger.memory
    sums: type[GradientSums] = GradientSums
    """The noisy gradients of a training."""
    votes: type[ExactVotes] = ExactVotes
    """The votes of teachers."""
    guaranteed: Callable[[WithGuarantee], Any] = lambda claim: claim.guarantee
    """What a program would take for the guarantee."""

    def context(self, pair: Pair, second: bool) -> RunContext:
        """A run on the first or the second table, with the other beside it."""
        (here, there), rows = pair.tables, pair.first
        if second:
            here, there, rows = there, here, pair.second
        schema = self.schema(rows, pair.schema)
        return RunContext(self, schema, self.opened(here, schema), self.opened(there, schema), self.rows(rows))


@dataclass(frozen=True)
class RunContext:
    """One table of a pair as a method meets it, and the other one to compare with."""

    harness: Harness
    schema: Schema
    here: Table
    there: Table
    rows: int | None

    def curator(self, budget: Budget, repeated: Sequence[Draw] = ()) -> tuple[Curator, PairedGate]:
        """With noise of its own, or with what a run on the other table drew."""
        randomness = RepeatedNoise(self.harness.randomness(), repeated)
        gate = PairedGate(self.here, self.there, RecordingRandomness(randomness))
        curator = self.harness.curator(self.schema, budget, gate)
        gate.curator = curator  # the gate reads off it what was debited for each exchange
        return curator, gate


@dataclass(frozen=True)
class RunOutput:
    """What a run makes public."""

    outside: dict[str, Any]
    """All but the values of measurements and what follows from them, each in a form that can be compared."""
    rows: pa.Table | None = None
    numbers: dict[str, float] = field(default_factory=dict)
    """What somebody would look at where no rows are shown."""


@dataclass(frozen=True)
class Subject(ABC):
    """A method that is audited from both sides of the boundary."""

    name: str
    budget: Budget
    kind: ClassVar[str]

    @abstractmethod
    def learn(self, context: RunContext, curator: Curator, seed: int) -> None:
        """Asks the curator all that the method asks, and shows nothing."""

    @abstractmethod
    def show(self, context: RunContext, curator: Curator, seed: int) -> RunOutput:
        """The whole run."""

    @abstractmethod
    def claim(self, context: RunContext, curator: Curator) -> WithGuarantee:
        """What it would hand out with a result, for the spends of the curator so far; nothing is asked of it."""
