"""What every model offers: an estimated number of rows, and rows of codes, freely drawn or given some of them."""

from __future__ import annotations

from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

CodeColumns: TypeAlias = dict[str, NDArray[np.integer]]


class Model(Protocol):
    """A distribution over the codes of a domain, fitted to measurements and nothing else."""

    @property
    def total(self) -> float:
        """The estimated number of private rows."""
        ...

    def sample(self, rows: int, rng: np.random.Generator) -> CodeColumns:
        """That many rows, as one array of codes per column."""
        ...

    def complete(self, given: CodeColumns, rng: np.random.Generator) -> CodeColumns:
        """For each row of the given codes (of one column at least, and one row) a whole row that keeps them.

        The other columns follow the model's distribution given the codes of that row; where the model gives these no
        probability, one that leaves out what contradicts.
        """
        ...


@runtime_checkable
class DensityModel(Protocol):
    """A model that can also say how likely a row is."""

    def log_density(self, codes: CodeColumns) -> NDArray[np.float64]:
        """The natural logarithm of the probability of each row of codes; −∞ for what the model rules out."""
        ...
