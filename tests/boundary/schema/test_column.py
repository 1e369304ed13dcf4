"""Columns: what each type accepts, and that every refusal names the column, the value and the bound."""

from __future__ import annotations

import dataclasses
import math
from datetime import UTC, date, datetime, timedelta, timezone

import pytest

from understudy.boundary.schema.column import (
    COLUMN_TYPES,
    LARGEST_INTEGER,
    MAX_BINS,
    MAX_LABELS,
    Boolean,
    Categorical,
    Datetime,
    Identifier,
    Integer,
    Number,
    Ordinal,
    as_datetime,
)
from understudy.boundary.schema.expression import Kind
from understudy.errors import SchemaError

NEW_YEAR, SUMMER = datetime(2024, 1, 1), datetime(2024, 7, 1)

REFUSED = [
    (Integer, {"minimum": 5, "maximum": 3}, ["min (5)", "max (3)"]),
    (Integer, {"minimum": 0.5, "maximum": 3}, ["min (0.5)", "whole number"]),
    (Integer, {"minimum": True, "maximum": 3}, ["min (True)", "whole number"]),
    (Integer, {"minimum": "0", "maximum": 3}, ["min ('0')", "whole number"]),
    (Integer, {"minimum": 0, "maximum": LARGEST_INTEGER + 1}, ["max (4503599627370497)", "2^52"]),
    (Integer, {"minimum": 0, "maximum": 9, "bins": 0}, ["bins (0)", "from 1 to 100,000"]),
    (Integer, {"minimum": 0, "maximum": 9, "bins": MAX_BINS + 1}, ["bins (100001)", "from 1 to 100,000"]),
    (Integer, {"minimum": 0, "maximum": 9, "bins": 2.5}, ["bins (2.5)", "whole number"]),
    (Integer, {"minimum": 0, "maximum": 9, "bins": 2, "cuts": (3,)}, ["bins and cuts exclude each other"]),
    (Integer, {"minimum": 0, "maximum": 9, "cuts": (5, 3)}, ["cuts (5, 3)", "rise strictly"]),
    (Integer, {"minimum": 0, "maximum": 9, "cuts": (3, 3)}, ["cuts (3, 3)", "rise strictly"]),
    (Integer, {"minimum": 0, "maximum": 9, "cuts": (2.5,)}, ["cuts (2.5)", "whole numbers"]),
    (Integer, {"minimum": 0, "maximum": 9, "cuts": (0, 3)}, ["cuts (0, 3)", "min (0)", "max (9)"]),
    (Integer, {"minimum": 0, "maximum": 9, "cuts": (1, 2, 3, 4, 10)}, ["cuts (1, 2, 3, 4, …)", "max (9)"]),
    (Integer, {"minimum": 0, "maximum": 9, "cuts": ("a",)}, ["cuts ('a')", "finite numbers"]),
    (Number, {"minimum": 1.0, "maximum": 1.0}, ["min (1.0)", "below max (1.0)"]),
    (Number, {"minimum": math.nan, "maximum": 1.0}, ["min (nan)", "finite number"]),
    (Number, {"minimum": 0, "maximum": math.inf}, ["max (inf)", "finite number"]),
    (Number, {"minimum": 0, "maximum": "9"}, ["max ('9')", "finite number"]),
    (Number, {"minimum": 0, "maximum": 1, "decimals": 13}, ["decimals (13)", "from 0 to 12"]),
    (Number, {"minimum": 0, "maximum": 1, "decimals": -1}, ["decimals (-1)", "from 0 to 12"]),
    (Number, {"minimum": 0, "maximum": 1, "cuts": (0.5, 1.5)}, ["cuts (0.5, 1.5)", "max (1)"]),
    (Number, {"cuts": (math.nan,)}, ["cuts (nan)", "finite numbers"]),
    (Datetime, {"minimum": SUMMER, "maximum": NEW_YEAR}, ["min (2024-07-01", "after max (2024-01-01"]),
    (Datetime, {"minimum": "soon", "maximum": SUMMER}, ["min ('soon')", "2024-12-31"]),
    (Datetime, {"minimum": NEW_YEAR, "maximum": 5}, ["max (5)", "2024-12-31"]),
    (
        Datetime,
        {"minimum": NEW_YEAR, "maximum": SUMMER, "resolution": "week"},
        ["resolution ('week')", "second, minute"],
    ),
    (Datetime, {"minimum": NEW_YEAR, "maximum": SUMMER, "cuts": (3,)}, ["cuts", "use bins"]),
    (Categorical, {"values": ()}, ["at least one value"]),
    (Categorical, {"values": tuple(range(MAX_LABELS + 1))}, ["100,001", "at most 100,000"]),
    (Categorical, {"values": ("a", 1)}, ["all strings or all whole numbers"]),
    (Categorical, {"values": (1.5, 2.5)}, ["all strings or all whole numbers"]),
    (Categorical, {"values": (False, True)}, ['type = "boolean"']),
    (Categorical, {"values": ("a", "b", "a")}, ["'a'", "listed twice"]),
    (Categorical, {"values": (1, 2), "other": "x"}, ["other", "strings"]),
    (Categorical, {"values": ("a", "")}, ["''", "missing = true"]),
    (Categorical, {"values": ("a", " b")}, ["' b'", "spaces around it"]),
    (Categorical, {"values": ("a\u00a0",)}, ["spaces around it"]),
    (Categorical, {"values": None, "other": ""}, ["''", "empty"]),
    (Categorical, {"values": (1, LARGEST_INTEGER + 1)}, ["4503599627370497", "2^52"]),
    (Ordinal, {"values": None}, ["order of an ordinal must be public", 'type = "categorical"']),
    (Ordinal, {"values": ("a", "a")}, ["'a'", "listed twice"]),
    (Identifier, {"made_up": "P"}, ["made_up ('P')", "one number field"]),
    (Identifier, {"made_up": "{}-{}"}, ["made_up ('{}-{}')", "one number field"]),
    (Identifier, {"made_up": "{name}"}, ["made_up ('{name}')", "one number field"]),
    (Identifier, {"made_up": "{"}, ["made_up ('{')", "one number field"]),
    (Identifier, {"made_up": "{:zz}"}, ["made_up ('{:zz}')", "one number field"]),
]


@pytest.mark.parametrize(("cls", "facts", "parts"), REFUSED, ids=lambda v: str(v)[:60])
def test_refusals_name_column_value_and_bound(cls, facts, parts):
    with pytest.raises(SchemaError) as caught:
        cls("my column", **facts)
    message = str(caught.value)
    assert message.startswith("column 'my column': ") and "\n" not in message
    assert all(part in message for part in parts), message
    assert caught.value.subject.name == "my column" and caught.value.exit_code == 2


@pytest.mark.parametrize(
    "column",
    [
        Integer("x", minimum=3, maximum=3),
        Integer("x", minimum=-LARGEST_INTEGER, maximum=LARGEST_INTEGER),
        Integer("x", minimum=0, maximum=9, cuts=(1, 9)),
        Number("x", minimum=-1, maximum=1, decimals=12, bins=MAX_BINS),
        Datetime("x", minimum=NEW_YEAR, maximum=NEW_YEAR),
        Categorical("x", values=("a b", "\ttab", "?"), other="a b"),
        Identifier("x", made_up="P{:06d}"),
        Identifier("x", made_up="{0}"),
    ],
)
def test_bounds_themselves_are_accepted(column):
    assert dataclasses.replace(column) == column and not column.private


def test_what_is_not_stated_is_private():
    assert Integer("x", minimum=0).private and Number("x", maximum=1.0).private and Datetime("x").private
    assert Categorical("x").private and not Boolean("x").private and not Identifier("x").private
    assert not dataclasses.replace(Integer("x", minimum=0), maximum=5).private


def test_kinds_tell_expressions_how_to_compare():
    kinds = {
        Kind.NUMBER: [Integer("x"), Number("x"), Categorical("x", values=(1, 2))],
        Kind.TEXT: [Categorical("x", values=("a",)), Categorical("x"), Identifier("x")],
        Kind.DATETIME: [Datetime("x")],
        Kind.BOOLEAN: [Boolean("x")],
    }
    assert all(c.kind is kind for kind, columns in kinds.items() for c in columns)
    assert {c.ordered for c in (Integer("x"), Number("x"), Datetime("x"), Ordinal("x", values=("a",)))} == {True}
    assert not Categorical("x").ordered and not Boolean("x").ordered and not Identifier("x").modelled
    assert set(COLUMN_TYPES) == {"integer", "number", "categorical", "ordinal", "boolean", "datetime", "identifier"}


def test_other_stands_last_unless_it_is_listed():
    assert Categorical("x", values=("a", "b"), other="c").labels == ("a", "b", "c")
    assert Categorical("x", values=("c", "a"), other="c").labels == ("c", "a")


def test_dates_are_read_from_what_people_write():
    noon = datetime(2024, 1, 1, 12)
    assert as_datetime("2024-01-01") == as_datetime(date(2024, 1, 1)) == NEW_YEAR
    assert as_datetime(datetime(2024, 1, 1, 14, tzinfo=timezone(timedelta(hours=2)))) == noon
    assert as_datetime(datetime(2024, 1, 1, 12, tzinfo=UTC)) == noon and as_datetime(7) == 7 and as_datetime("x") == "x"
    assert Datetime("x", minimum=date(2024, 1, 1), maximum="2024-07-01") == Datetime(
        "x", minimum=NEW_YEAR, maximum=SUMMER
    )


@pytest.mark.parametrize(
    ("resolution", "start"),
    [
        ("second", datetime(2024, 5, 6, 7, 8, 9)),
        ("minute", datetime(2024, 5, 6, 7, 8)),
        ("hour", datetime(2024, 5, 6, 7)),
        ("day", datetime(2024, 5, 6)),
    ],
)
def test_units_are_counted_from_a_whole_unit(resolution, start):
    column = Datetime(
        "x", minimum=datetime(2024, 5, 6, 7, 8, 9, 10), maximum=datetime(2025, 1, 1), resolution=resolution
    )
    assert column.start == start
