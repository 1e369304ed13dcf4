"""What is looked at in released rows: cases that can be counted by hand."""

from __future__ import annotations

import numpy as np
import pytest

from understudy.lab.audits.games.features import features

LINKS, SHARE = "links between the row's rare values", "share of links between the row's"
EXTRA = {"a": 1, "b": 1, "c": 1, "d": 0}


def released(*together: str) -> dict[str, list[int]]:
    """A hundred rows; the columns of each word are 1 together in ten of them, and in no others."""
    columns = {name: np.zeros(100, dtype=int) for name in EXTRA}
    for place, word in enumerate(together):
        for name in word:
            columns[name][10 * place : 10 * place + 10] = 1
    return {name: values.tolist() for name, values in columns.items()}


def test_links_follow_values_that_are_rare_together() -> None:
    """With a, b and c rare together, the tree joins them by two links; d, never rare, hangs on by one that is weak."""
    seen = features(released("abc"), EXTRA)
    assert seen[LINKS] == 2
    assert seen[SHARE] == pytest.approx(1.0)


def test_links_to_other_columns_are_not_the_rows() -> None:
    """Where b is rare with d, half of the strength is that of b–d; the link that joins both halves has none."""
    seen = features(released("ac", "bd"), EXTRA)
    assert seen[SHARE] == pytest.approx(0.5)


@pytest.mark.parametrize("columns", [{}, {"a": []}, {"a": [1]}, {"a": [1, 0], "b": [1]}])
def test_odd_releases_have_every_statistic(columns: dict[str, list[int]]) -> None:
    assert features(columns, EXTRA).keys() == features(released("abc"), EXTRA).keys()


def test_what_is_no_number_is_far_from_all_of_them() -> None:
    seen = features({"a": ["1", None, "x", float("inf")]}, {"a": 1})
    assert (seen["rows with the row's a"], seen["largest a"], seen["least a"]) == (1, 1, -1e9)
