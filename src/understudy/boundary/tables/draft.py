"""A first schema from the data, for a person to check. It reads rows, so it is not public until confirmed."""

from __future__ import annotations

import dataclasses
from typing import Any

from understudy.boundary.schema.column import (
    DEFAULT_BINS,
    LARGEST_INTEGER,
    Boolean,
    Categorical,
    Column,
    Datetime,
    Identifier,
    Integer,
    Number,
)
from understudy.boundary.schema.schema import DRAFT, Schema
from understudy.boundary.tables.connection import quoted_name, quoted_text
from understudy.boundary.tables.rows import Rows
from understudy.boundary.tables.table import is_table
from understudy.errors import SchemaError, TableError

MISSING_TOKENS = ("?", "NA", "N/A", "NaN", "nan", "null", "NULL", "None")
# Rules of thumb: a person checks every line of a draft before it is used.
MOST_CATEGORIES = 200
MOST_NUMERIC_CATEGORIES = 2
MOST_DECIMALS = 4
IDENTIFIER_SHARE = 0.5
"""A text column in which more than this share of values is distinct looks like an identifier."""


@dataclasses.dataclass(frozen=True)
class Profile:
    """What a draft is made of, per column: counts of what its texts can be read as."""

    rows: int
    missing: int
    distinct: int
    numbers: int
    whole: int
    dates: int
    midnights: int
    booleans: int
    low: float | None
    high: float | None
    decimals: int
    first: Any
    last: Any

    @property
    def present(self) -> int:
        return self.rows - self.missing


def draft_schema(source: Any) -> Schema:
    """Drafts a schema from a frame or a file, to be checked and confirmed by a person before it is used.

    >>> import pyarrow as pa
    >>> draft_schema(pa.table({"age": [31, 47, 52]})).status
    'draft'
    """
    if is_table(source):
        raise TableError(f"a {type(source).__name__} can't be read; give a frame or a path", source)
    rows = Rows.of(source)
    try:
        tokens = _tokens(rows)
        columns = tuple(_draft(rows, name, tokens) for name in rows.columns)
        if not any(c.modelled for c in columns):
            raise TableError(
                "no schema can be drafted: every column is an identifier, by its values; write one by hand", columns
            )
        return Schema(columns, missing_values=tokens, status=DRAFT)
    except SchemaError as error:
        # It may quote a bound or a label, which here is a cell.
        column = getattr(error.subject, "name", None)
        which = f" for column {column!r}" if isinstance(column, str) else ""
        raise TableError(
            f"no schema can be drafted{which}: no declaration fits its values; write one by hand"
        ) from None


def _tokens(rows: Rows) -> tuple[str, ...]:
    """Which of the usual tokens for a missing value occur anywhere."""
    texts = ", ".join(_text(n) for n in rows.columns)
    listed = ", ".join(map(quoted_text, MISSING_TOKENS))
    found = rows.query(
        f"SELECT DISTINCT t FROM (SELECT unnest([{texts}]) AS t FROM {rows.relation}) WHERE t IN ({listed})"
    )
    return tuple(t for t in MISSING_TOKENS if (t,) in found)


def _draft(rows: Rows, name: str, tokens: tuple[str, ...]) -> Column:
    profile = _profile(rows, name, tokens)
    missing = profile.missing > 0
    if not profile.present:
        return Identifier(name)
    # The narrowest reading that fits every value comes first; 0 and 1 are numbers, until a person says otherwise.
    if profile.booleans == profile.present and profile.distinct <= 2 and not profile.numbers:
        return Boolean(name, missing=missing)
    if profile.dates == profile.present and not profile.numbers:
        resolution = "day" if profile.midnights == profile.dates else "second"
        return Datetime(name, missing=missing, minimum=profile.first, maximum=profile.last, resolution=resolution)
    if profile.numbers == profile.present:
        return _draft_number(name, missing, profile)
    if profile.distinct > MOST_CATEGORIES or (
        profile.present > 20 and profile.distinct > IDENTIFIER_SHARE * profile.present
    ):
        return Identifier(name)
    values = rows.query(
        f"SELECT DISTINCT {_text(name)} AS v FROM {rows.relation} WHERE {_present(name, tokens)} ORDER BY v"
    )
    return Categorical(name, missing=missing, values=tuple(v for (v,) in values))


def _draft_number(name: str, missing: bool, profile: Profile) -> Column:
    assert profile.low is not None and profile.high is not None
    if profile.whole == profile.numbers and max(abs(profile.low), abs(profile.high)) <= LARGEST_INTEGER:
        if profile.distinct <= MOST_NUMERIC_CATEGORIES and profile.distinct < profile.high - profile.low + 1:
            return Categorical(name, missing=missing, values=tuple(sorted({int(profile.low), int(profile.high)})))
        return Integer(name, missing=missing, minimum=int(profile.low), maximum=int(profile.high))
    high = profile.high if profile.high > profile.low else profile.low + 1
    decimals, bins = _grain(high - profile.low, profile.decimals)
    return Number(name, missing=missing, minimum=profile.low, maximum=high, decimals=decimals, bins=bins)


def _grain(width: float, decimals: int) -> tuple[int | None, int | None]:
    """Decimals, and bins of at least two steps of them: a bin without any value could not be released."""
    decimals = min(MOST_DECIMALS, decimals)
    steps = width * 10.0**decimals
    if steps < 2:  # numbers such as 3e-7, which show no decimals
        return None, None
    return decimals, None if steps >= 2 * DEFAULT_BINS else int(steps / 2)


def _profile(rows: Rows, name: str, tokens: tuple[str, ...]) -> Profile:
    (row,) = rows.query(
        f"""
        WITH texts AS (SELECT CASE WHEN {_present(name, tokens)} THEN {_text(name)} END AS t FROM {rows.relation}),
        readings AS (
            SELECT t, TRY_CAST(t AS DOUBLE) AS x, TRY_CAST(t AS TIMESTAMP) AS d FROM texts
        )
        SELECT count(*), count(*) - count(t), count(DISTINCT t), count(x) FILTER (isfinite(x)),
               count(x) FILTER (isfinite(x) AND x = floor(x)), count(d) FILTER (isfinite(d)),
               count(d) FILTER (d = date_trunc('day', d)), count(t) FILTER (lower(t) IN ('true', 'false')),
               min(x) FILTER (isfinite(x)), max(x) FILTER (isfinite(x)),
               coalesce(max(CASE WHEN isfinite(x) THEN length(regexp_extract(t, '[.]([0-9]*)$', 1)) END), 0),
               min(d), max(d)
        FROM readings
        """
    )
    return Profile(*row)


def _text(name: str) -> str:
    return f"trim(CAST({quoted_name(name)} AS VARCHAR))"


def _present(name: str, tokens: tuple[str, ...]) -> str:
    listed = ", ".join(map(quoted_text, ("", *tokens)))
    return f"{quoted_name(name)} IS NOT NULL AND {_text(name)} NOT IN ({listed})"
