"""What single columns get on top of their first share: more the noisier they are, and the more of them there are."""

from __future__ import annotations

import itertools

import pytest

from understudy.methods.parts.one_ways import FIRST_SHARE, NARROW, further_share

ERRORS = (0.001, 0.01, 0.02, 0.033, 0.05, 0.1, 0.2, 0.3, 2.0)
COLUMNS = (2, 14, NARROW, 64, 120, 500, 5_000)


@pytest.mark.parametrize("columns", [2, 14, NARROW])
def test_up_to_forty_columns_the_rule_is_that_of_the_error_alone(columns: int) -> None:
    assert [further_share(e, columns) for e in ERRORS] == [0.0, 0.0, 0.0, 0.0, 0.3, 0.3, 0.3, 0.6, 0.6]


def test_more_noise_and_more_columns_never_mean_a_smaller_share() -> None:
    for columns in COLUMNS:
        shares = [further_share(e, columns) for e in ERRORS]
        assert shares == sorted(shares)
    for error, (few, many) in itertools.product(ERRORS, itertools.pairwise(COLUMNS)):
        assert further_share(error, few) <= further_share(error, many)


def test_something_is_always_left_for_pairs() -> None:
    assert all(FIRST_SHARE + further_share(e, c) < 1.0 for e, c in itertools.product(ERRORS, COLUMNS))
