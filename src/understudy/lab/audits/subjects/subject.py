"""What is audited: anything that learns through a curator and shows something of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from understudy.boundary.privacy.curator import Curator
from understudy.lab.audits.subjects.harness import RunContext, WithGuarantee

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class RunOutput:
    """What a run makes public."""

    outside: dict[str, Any]
    """All but the values of measurements and what follows from them, each in a form that can be compared."""
    rows: pa.Table | None = None
    numbers: dict[str, float] = field(default_factory=dict)
    """What somebody would look at where no rows are shown."""


class Subject(Protocol):
    """A method that is audited from both sides of the boundary."""

    @property
    def name(self) -> str: ...

    @property
    def kind(self) -> str: ...

    @property
    def buys_keys(self) -> bool:
        """Whether it can learn the values of a private column."""
        ...

    def learn(self, context: RunContext, curator: Curator, seed: int) -> None:
        """Asks the curator all that the method asks, and shows nothing."""
        ...

    def show(self, context: RunContext, curator: Curator, seed: int) -> RunOutput:
        """The whole run."""
        ...

    def claim(self, context: RunContext, curator: Curator) -> WithGuarantee:
        """What it would hand out with a result, for the spends of the curator so far; nothing is asked of it."""
        ...
