"""What `rake` spends on single columns."""

from __future__ import annotations

import numpy as np
import pytest

from understudy.methods.parts.one_ways import NARROW, error_weights
from understudy.methods.rake.single_columns import GLANCE, LARGEST_SHARE, POWER_OF_CELLS, share_of_columns

ERRORS = (0.001, 0.01, 0.02, 0.033, 0.05, 0.1, 0.2, 0.3, 2.0)
MANY, FEW = 1_000.0, 3.0


def test_the_share_grows_with_noise_and_columns_and_leaves_something() -> None:
    for sizes in ([2] * 16, [2, 3, 7, 40], [64] * 200, [2, 1000]):
        shares = [share_of_columns(e, sizes, MANY, pure=False) for e in ERRORS]
        assert shares == sorted(shares)
        assert GLANCE <= shares[0] <= shares[-1] < 1.0
        assert shares[-1] <= LARGEST_SHARE or len(sizes) > NARROW
    wide = share_of_columns(0.01, [10] * 200, MANY, pure=False)
    assert wide > share_of_columns(0.01, [10] * NARROW, MANY, pure=False)


def test_columns_of_two_values_are_left_to_their_pairs_where_there_are_enough() -> None:
    assert share_of_columns(0.3, [2] * 16, MANY, pure=False) == GLANCE
    assert share_of_columns(0.3, [2] * 16, FEW, pure=False) > GLANCE
    assert share_of_columns(0.3, [3] * 16, MANY, pure=False) < share_of_columns(0.3, [30] * 16, MANY, pure=False)


@pytest.mark.parametrize("pure", [False, True])
def test_shares_by_cells_leave_the_least_error_where_it_grows_by_their_power(pure: bool) -> None:
    """Any shift from one column to another makes the sum of errors larger, and so do the shares of another power."""
    cells = np.array([2.0, 9.0, 40.0, 200.0])

    def error(weights: list[float]) -> float:
        shares = np.array(weights) / sum(weights)
        return float((cells**POWER_OF_CELLS / (shares if pure else np.sqrt(shares))).sum())

    sizes = [int(c) for c in cells]
    best = error_weights(sizes, pure, POWER_OF_CELLS)
    for i in range(len(cells)):
        for factor in (0.9, 1.1):
            assert error([w * factor if i == j else w for j, w in enumerate(best)]) > error(best)
    assert error(error_weights(sizes, pure)) > error(best)
