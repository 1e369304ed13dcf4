"""Which cells a constraint makes impossible."""

from __future__ import annotations

import numpy as np

from understudy import Schema
from understudy.boundary.schema.domain import Domain
from understudy.inference.structural_zeros import MOST_CELLS, structural_zeros

COLUMNS = """
[columns.age]
type = "integer"
min = 0
max = 99
bins = 20
[columns.married]
type = "categorical"
values = ["no", "yes"]
missing = true
[columns.name]
type = "identifier"
"""


def zeros_of(*rules: str) -> dict[tuple[str, ...], np.ndarray]:
    return structural_zeros(Domain.of(Schema.loads(COLUMNS + "".join(f"[[constraints]]\n{rule}\n" for rule in rules))))


def test_no_rule_forbids_nothing():
    assert zeros_of() == {}


def test_whole_bins_below_a_bound_are_forbidden_and_the_missing_value_is_not():
    """Bins are five years wide: 0–14 are three of them; an unknown value never breaks a rule."""
    (found,) = zeros_of("""if = "age < 15"\nthen = "married = 'no'" """).values()
    expected = np.zeros((20, 3), dtype=bool)
    expected[:3, 1] = True
    assert np.array_equal(found, expected)


def test_a_bin_that_is_forbidden_in_part_stays_possible():
    (found,) = zeros_of("""if = "age < 17"\nthen = "married = 'no'" """).values()
    assert found[:3, 1].all() and not found[3:].any()


def test_rules_about_the_same_columns_add_up():
    found = zeros_of("""if = "age < 15"\nthen = "married = 'no'" """, """if = "age >= 95"\nthen = "married = 'yes'" """)
    assert list(found) == [("age", "married")]
    assert found["age", "married"][0, 1] and found["age", "married"][19, 0] and found["age", "married"].sum() == 4


def test_a_rule_about_one_column():
    assert np.flatnonzero(zeros_of('then = "age >= 20"')[("age",)]).tolist() == [0, 1, 2, 3]


def test_a_rule_over_too_many_cells_is_left_to_the_drawing():
    wide = "".join(f'[columns.c{i}]\ntype = "integer"\nmin = 0\nmax = 99\nbins = 100\n' for i in range(3))
    schema = Schema.loads(f'{wide}[[constraints]]\nif = "c0 > 50 and c1 > 50"\nthen = "c2 > 50"\n')
    assert Domain.of(schema).cells(("c0", "c1", "c2")) > MOST_CELLS and structural_zeros(Domain.of(schema)) == {}
