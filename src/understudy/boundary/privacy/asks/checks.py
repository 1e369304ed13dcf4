"""What asks are refused for by public facts, before anything is counted; and whose code may run on what is counted."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from understudy.boundary.privacy.mechanisms.exponential import OneOfEach
from understudy.boundary.privacy.mechanisms.noise import LARGEST_SCALE
from understudy.boundary.privacy.mechanisms.score import GRID_BITS, Candidate, Departure, Dependence, Rank
from understudy.boundary.schema.domain import Domain
from understudy.boundary.schema.expression import Predicate
from understudy.boundary.schema.grouped_sums import PersonCount, RowCount, ValueSum
from understudy.boundary.schema.moment import Moment
from understudy.boundary.schema.partition import Bundle, Crossed, CrossTable, Grid, Partition, Tree
from understudy.errors import InternalError, MethodError

MOST_CELLS = 20_000_000
"""The most cells that one marginal may have: each of them gets noise, and memory."""
MOST_SUMMED = 2.0 ** (63 - GRID_BITS)
"""Rows that the noise of one marginal may add up to: a score counts them in steps of 2^-20 rows, in 64 bits."""

OWN_KINDS: tuple[type, ...] = (Grid, Tree, Crossed, CrossTable, Bundle, Candidate, Dependence, Departure, OneOfEach)
OWN_KINDS += (Rank, RowCount, PersonCount, ValueSum, Predicate, Moment)
OUTSIDE_KINDS = {
    "understudy.inference.polya.dyadic.Dyadic": "nodes by a formula, where a grid would list millions of codes",
    "understudy.predictors.decision_tree.DecisionTree": "the very tree that predicts says which leaf a row is in",
    "understudy.predictors.decision_tree.LeafClasses": "the same, by class",
    "understudy.predictors.greedy.Purity": "scores thousands of splits from the counts of one bundle",
    "understudy.predictors.gradients.GradientCells": "rows by leaf and by the gradient of a public model",
    "understudy.predictors.gradients.GradientTable": "the same, by the values of a column",
    "understudy.predictors.gradients.LeafSums": "adds up whole numbers, as a moment does, over these cells",
    "understudy.predictors.gradients.Pull": "scores the splits of a column from these cells",
    "understudy.methods.parts.select_measure.Acyclic": "a rule, as the next three: quick if asked only as needed",
    "understudy.methods.parts.select_measure.ModelSizeLimit": "finds a junction tree for each candidate",
    "understudy.methods.rake.rake.SmallOverlap": "may have thousands of candidates",
    "understudy.methods.dp_arf.dp_arf.TreesAndGrids": "the same",
}
"""What is handed rows, exact counts or private orders, inside the boundary and outside of it: proofs rest on either."""


def check_cells(columns: Sequence[str], cells: int) -> None:
    """Refuses a marginal that is too large; strategies call it early, so that nothing is spent before the refusal."""
    if cells > MOST_CELLS:
        raise MethodError(
            f"the marginal of {', '.join(columns)} has {cells:,} cells and may have at most {MOST_CELLS:,}; "
            "leave a column out, or give one fewer bins",
            columns,
        )


def is_known(kind: type) -> bool:
    if kind in OWN_KINDS:
        return True
    name = f"{kind.__module__}.{kind.__qualname__}"
    return name in OUTSIDE_KINDS and getattr(sys.modules[kind.__module__], kind.__qualname__, None) is kind


def check_kinds(*values: object) -> None:
    """Refuses other code to run on rows or exact counts, as that of a subclass."""
    for kind in map(type, values):
        if not is_known(kind):
            raise InternalError(f"a {kind.__name__} is of no kind that the boundary knows.", kind)


def check_partition(domain: Domain, partition: Partition | Bundle) -> None:
    """Refuses one of another domain, or of more cells than can be counted."""
    check_fit(domain, partition)
    for part in partition.parts if isinstance(partition, Bundle) else (partition,):
        check_cells(part.columns, part.cells)


def check_fit(domain: Domain, partition: Partition | Bundle) -> None:
    """Refuses one of another domain: that some row is in none of its cells would show, unpaid, in an error."""
    check_kinds(partition)
    if not partition.fits(domain):
        columns = ", ".join(partition.columns)
        raise InternalError(f"a partition over {columns} must have a cell for each of the domain's codes.", columns)
    if hasattr(partition, "base"):
        check_partition(domain, partition.base)


def check_scale(asked: str, scale: float, cells: int = 1) -> None:
    """Refuses noise beyond what the samplers, or the scores of a later selection, can hold."""
    # The samplers would refuse it, too, but only after the debit.
    most = min(LARGEST_SCALE, MOST_SUMMED / cells)
    if scale > most:
        raise MethodError(
            f"the noise scale ({scale:.4g}) for {asked} must be at most {most:.4g}; ask with a larger epsilon", asked
        )
