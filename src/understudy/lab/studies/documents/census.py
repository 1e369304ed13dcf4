"""Adult as Hanisch made it for his decision trees: seven columns in few bins, cut by public facts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from understudy.boundary.schema.schema import Schema

if TYPE_CHECKING:
    import pyarrow as pa

EDUCATION = {
    "HS_or_below": (
        "Preschool", "1st-4th", "5th-6th", "7th-8th", "9th", "10th", "11th", "12th", "HS-grad",
    ),
    "College": ("Some-college", "Assoc-voc", "Assoc-acdm"),
    "Bachelors": ("Bachelors",),
    "Masters": ("Masters",),
    "Doctorate": ("Prof-school", "Doctorate"),
}  # fmt: skip
LEVEL = "education_level"

ADULT_BINNED = Schema.loads("""
missing_values = ["?"]
[columns.age]
type = "integer"
min = 17
max = 90
cuts = [38]
[columns.workclass]
type = "categorical"
values = [
  "Private", "Self-emp-not-inc", "Self-emp-inc", "Federal-gov", "Local-gov", "State-gov", "Without-pay", "Never-worked",
]
missing = true
[columns.education_level]
type = "categorical"
values = ["HS_or_below", "College", "Bachelors", "Masters", "Doctorate"]
[columns.relationship]
type = "categorical"
values = ["Wife", "Own-child", "Husband", "Not-in-family", "Other-relative", "Unmarried"]
[columns.race]
type = "categorical"
values = ["White", "Asian-Pac-Islander", "Amer-Indian-Eskimo", "Other", "Black"]
[columns.sex]
type = "categorical"
values = ["Female", "Male"]
[columns.hours-per-week]
type = "integer"
min = 1
max = 99
cuts = [37, 51]
[columns.income]
type = "categorical"
values = ["<=50K", ">50K"]
""")


def grouped_education(rows: pa.Table) -> pa.Table:
    """The table with its sixteen levels of education put into five."""
    import pyarrow as pa

    group = {level: name for name, levels in EDUCATION.items() for level in levels}
    levels = [group[str(v)] for v in rows.column("education").to_pylist()]
    return rows.append_column(LEVEL, pa.array(levels))
