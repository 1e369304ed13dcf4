"""k-anonymity, l-diversity and t-closeness of a table, for named quasi-identifiers: checks of old, and their limits.

People who share all quasi-identifiers (age, postcode, sex …) form a group. k is the size of the smallest group, l the
fewest different sensitive values in a group, t the farthest that a group's sensitive values are from those of the whole
table. All are properties of one table, not of how it was made: nothing follows for what else an attacker may know.
`SHORTCOMINGS` says what they fail to promise. They read rows, so they are internal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.schema.schema import Schema
from understudy.boundary.tables.draft import draft_schema
from understudy.boundary.tables.rows import Rows
from understudy.errors import InputError
from understudy.lab.evaluation.comparison import RowSample, Variable, encode

if TYPE_CHECKING:
    import pyarrow as pa

SHORTCOMINGS = (
    "Whoever knows the quasi-identifiers of a person learns the sensitive value for sure where a group has only one, "
    "however large k is.",
    "Whoever knows more (that a person has been to South America) can rule out values, whatever l is.",
    "Whoever knows all people of a group but one can find out the last, whatever k, l and t are.",
    "Two tables that are each k-anonymous may tell everything when they are laid beside each other.",
)
ORDERED, EQUAL = "ordered", "equal"


@dataclass(frozen=True)
class Anonymity:
    """What the table has: for each sensitive column l and t, and k for all."""

    quasi_identifiers: tuple[str, ...]
    rows: int
    groups: int
    k: int
    unique_rows: int
    """Rows that are alone in their group."""
    sensitive: tuple[Sensitive, ...] = ()
    shortcomings: tuple[str, ...] = SHORTCOMINGS

    def satisfies(self, *, k: int = 1, l: int = 1, t: float = 1.0) -> bool:  # noqa: E741 - their names
        """Whether the table has at least this k and l, and at most this t.

        >>> Anonymity(("age",), 4, 2, 2, 0).satisfies(k=2), Anonymity(("age",), 4, 2, 2, 0).satisfies(k=3)
        (True, False)
        """
        return self.k >= k and all(s.l >= l and s.t <= t for s in self.sensitive)


@dataclass(frozen=True)
class Sensitive:
    """One sensitive column: fewest different values in a group, the same by entropy, and the largest distance."""

    column: str
    l: int  # noqa: E741 - its name
    entropy_l: float
    """exp of the least entropy of a group: l values that are equally frequent give l."""
    t: float
    distance: str
    """How values are apart: all equally, or along their order."""
    disclosed: int
    """Rows in groups of a single value: their value is told to whoever knows their quasi-identifiers."""


def anonymity(
    data: Any,
    quasi_identifiers: Sequence[str],
    sensitive: Sequence[str] = (),
    schema: Schema | str | Path | None = None,
) -> Anonymity:
    """k of a table (a frame, a path, or what `understudy.open` returns), and l and t of each sensitive column.

    Values count as they are stored.

    Args:
        data: The rows.
        quasi_identifiers: Columns by which people could be recognised.
        sensitive: Columns that nobody should learn about them.
        schema: The public facts; without them some are drafted, to tell numbers from categories.

    Returns:
        An `Anonymity`.

    Raises:
        InputError: A column is not there, or is named twice.

    >>> import pyarrow as pa
    >>> rows = pa.table({"age": [50, 50, 31, 31], "zip": ["38", "38", "40", "40"], "ill": ["a", "b", "a", "a"]})
    >>> found = anonymity(rows, ["age", "zip"], ["ill"])
    >>> found.k, found.sensitive[0].l, found.sensitive[0].disclosed
    (2, 1, 2)
    """
    names = _checked(quasi_identifiers, sensitive)
    declared = schema if isinstance(schema, Schema | None) else Schema.load(schema)
    declared = declared or getattr(data, "schema", None)
    if not isinstance(declared, Schema):  # a pyarrow table has a schema of another kind
        declared = draft_schema(data)
    rows = Rows.of(data, "the table", declared)
    table = rows.everything()
    absent = next((n for n in names if n not in table.column_names), None)
    if absent is not None:
        raise InputError(
            f"{absent!r} is not a column of {rows.name}; it has {', '.join(table.column_names[:8])}", absent
        )
    if not table.num_rows:
        raise InputError("the table has no rows, so there is nobody to be anonymous", rows.name)
    group = _groups(table, quasi_identifiers)
    # k as Sweeney (2002) has it: over the groups that occur, since nobody is in the others.
    sizes = np.bincount(group)
    variables, sample = _encoded(rows, declared, sensitive)
    return Anonymity(
        tuple(quasi_identifiers),
        table.num_rows,
        len(sizes),
        int(sizes.min()),
        int((sizes == 1).sum()),
        tuple(_sensitive(v, sample, group, sizes) for v in variables),
    )


def _checked(quasi_identifiers: Sequence[str], sensitive: Sequence[str]) -> tuple[str, ...]:
    for kind, names in (("quasi_identifiers", quasi_identifiers), ("sensitive", sensitive)):
        if isinstance(names, str):
            raise InputError(f"{kind} ({names!r}) must be a list of column names", names)
    if not quasi_identifiers:
        raise InputError("quasi_identifiers must name at least one column by which people could be recognised", None)
    both = next((n for n in sensitive if n in quasi_identifiers), None)
    if both is not None:
        raise InputError(f"{both!r} can't be a quasi-identifier and sensitive; name it once", both)
    return (*quasi_identifiers, *sensitive)


def _groups(table: pa.Table, columns: Sequence[str]) -> NDArray[np.int64]:
    """The group of each row: rows are together where all their values are the same, missing ones included."""
    group = np.zeros(table.num_rows, dtype=np.int64)
    for column in columns:
        coded = table.column(column).combine_chunks().dictionary_encode()
        codes = coded.indices.fill_null(len(coded.dictionary)).to_numpy(zero_copy_only=False).astype(np.int64)
        # Numbered anew after each column, so that codes stay below rows × values and can't overflow.
        group = np.unique(group * (len(coded.dictionary) + 1) + codes, return_inverse=True)[1]
    return group


def _encoded(rows: Rows, schema: Schema, sensitive: Sequence[str]) -> tuple[list[Variable], RowSample | None]:
    if not sensitive:
        return [], None
    columns = [schema[name] for name in sensitive]
    odd = next((c.name for c in columns if not c.modelled), None)
    if odd is not None:
        raise InputError(f"{odd!r} is an identifier, with a value for each person; name another sensitive column", odd)
    variables, samples = encode({"table": rows.read(columns, schema.missing_texts)}, columns)
    return variables, samples["table"]


def _sensitive(
    variable: Variable, sample: RowSample | None, group: NDArray[np.int64], sizes: NDArray[np.int64]
) -> Sensitive:
    assert sample is not None
    codes = sample.codes[variable.name]
    counts = np.zeros((len(sizes), variable.size))
    np.add.at(counts, (group, codes), 1.0)  # unlike `counts[group, codes] += 1`, this adds for repeated places too
    # Distinct and entropy l-diversity (Machanavajjhala et al. 2007); their recursive (c, l)-diversity is not computed.
    different = (counts > 0).sum(axis=1)
    shares = counts / sizes[:, None]
    logs = np.log(shares, out=np.zeros_like(shares), where=shares > 0)  # 0 · log 0 counts as 0
    entropies = np.maximum(-(shares * logs).sum(axis=1), 0.0)
    ordered = variable.on_line or variable.column.ordered
    distances = _distances(shares, counts.sum(axis=0) / len(codes), ordered)
    return Sensitive(
        variable.name,
        int(different.min()),
        float(np.exp(entropies.min())),
        float(distances.max()),
        ORDERED if ordered else EQUAL,
        int(sizes[different == 1].sum()),
    )


def _distances(shares: NDArray[np.float64], whole: NDArray[np.float64], ordered: bool) -> NDArray[np.float64]:
    """The earth mover's distance of each group to the whole table (Li, Li & Venkatasubramanian 2007).

    Between values that are all equally far apart it is the total variation; along an order of m values, the mean of the
    absolute differences of the cumulated shares, over m − 1.
    """
    apart = shares - whole
    if not ordered or len(whole) < 2:
        return np.abs(apart).sum(axis=1) / 2
    return np.abs(np.cumsum(apart, axis=1))[:, :-1].sum(axis=1) / (len(whole) - 1)
