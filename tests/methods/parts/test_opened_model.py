"""A model over groups of values, given values: the group is the evidence, and the value stays."""

from __future__ import annotations

import numpy as np

from understudy.inference.graphical.graphical_model import GraphicalModel, JunctionTree
from understudy.inference.grouping import Grouping
from understudy.methods.parts.compression import Compression, OpenedModel

ROWS = 6_000
GROUPS = {"town": Grouping.of((0, 1, 2, 2, 2)), "job": Grouping.of((0, 1, 1))}
"""Towns 2, 3 and 4 are one group, and jobs 1 and 2."""
WEIGHTS = {"town": np.array([40.0, 30.0, 20.0, 10.0, 0.0]), "job": np.array([50.0, 30.0, 20.0])}
TABLE = np.array([[30.0, 10.0], [15.0, 15.0], [5.0, 25.0]])


def opened() -> OpenedModel:
    sizes = {"town": 3, "job": 2}
    tree = JunctionTree.over([("town", "job")], sizes)
    model = GraphicalModel.from_potentials(sizes, tree, {("town", "job"): np.log(TABLE)}, 100.0)
    return OpenedModel(model, Compression(GROUPS, WEIGHTS))


def test_given_values_of_a_merged_group_stay_as_they_are():
    towns = np.tile(np.arange(5, dtype=np.int32), ROWS // 5)
    drawn = opened().complete({"town": towns}, np.random.default_rng(1))
    assert np.array_equal(drawn["town"], towns)


def test_the_group_of_a_given_value_is_the_evidence():
    """Town 4 has no weight of its own and belongs to group 2: job 0 in 5 of 30, and jobs 1 and 2 as 3 to 2."""
    drawn = opened().complete({"town": np.full(ROWS, 4, dtype=np.int32)}, np.random.default_rng(1))
    expected = ROWS * np.array([5 / 30, 25 / 30 * 0.6, 25 / 30 * 0.4])
    assert np.abs(np.bincount(drawn["job"], minlength=3) - expected).max() < 2


def test_mutant_that_ignores_the_evidence_is_told_apart():
    drawn = opened().sample(ROWS, np.random.default_rng(1))
    expected = ROWS * np.array([5 / 30, 25 / 30 * 0.6, 25 / 30 * 0.4])
    assert np.abs(np.bincount(drawn["job"], minlength=3) - expected).max() > 1000


def test_opened_groups_are_drawn_by_weight_to_within_rounding():
    drawn = opened().sample(ROWS, np.random.default_rng(1))
    town = np.bincount(drawn["town"], minlength=5)
    assert np.abs(town - ROWS * np.array([0.4, 0.3, 0.2, 0.1, 0.0])).max() < 2 and town[4] == 0
