"""The marginal of any columns, against the full joint table."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.graphs import COLUMNS, SIZES, dense, fitted, random_potentials, shapes
from understudy.inference.graphical.graphical_model import marginalise
from understudy.inference.graphical.marginals import Joints

TOTAL = 1000.0


@shapes
@given(seed=st.integers(0, 10**6), scale=st.sampled_from([0.5, 3.0, 300.0]), size=st.sampled_from([1, 2, 3, 4]))
@settings(max_examples=8, deadline=None)
def test_any_columns_in_any_order_equal_brute_force(shape: str, seed: int, scale: float, size: int):
    """Also where no two of them share a clique."""
    potentials = random_potentials(shape, scale, seed)
    joints, joint = Joints(fitted(shape, potentials, TOTAL)), dense(SIZES, potentials, TOTAL)
    for columns in itertools.permutations(COLUMNS, size):
        assert np.abs(joints.table(columns) - marginalise(joint, COLUMNS, columns)).max() < 1e-6, columns


def test_mutant_of_columns_independent_of_each_other_is_told_apart():
    potentials = random_potentials("chain", 2.0, 5)
    joint = dense(SIZES, potentials, TOTAL)
    product = np.einsum("i,j,k->ijk", *(marginalise(joint, COLUMNS, (c,)) for c in "ace")) / TOTAL**2
    assert np.abs(product - marginalise(joint, COLUMNS, ("a", "c", "e"))).max() > 1e-3
