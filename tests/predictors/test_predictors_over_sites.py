"""Predictors over several sites: those that ask for counts alone learn, and are read back, under every trust model."""

from __future__ import annotations

import pytest

import understudy as us
from helpers import federation as sites
from understudy.boundary.schema.federation import TRUSTS


def federated(trust):
    sites.skip_without_masks()
    parts = [us.open(part, sites.adult_schema()) for part in sites.uneven(sites.adult_rows())]
    return us.federate(parts, trust=trust, honest=2 * (trust == "secure-sum"))


@pytest.mark.parametrize("trust", TRUSTS)
def test_random_forests_learn_from_sites_and_are_read_back(trust, tmp_path):
    forest = us.PrivateForest(epsilon=1.0, delta=1e-6, structure="random").fit(federated(trust), target="income")
    assert forest.rounds_[0].certificate.federation.trust == trust
    forest.save(tmp_path / "forest.json")
    again = us.PrivateForest.load(tmp_path / "forest.json")
    rows = sites.adult_rows()
    assert (again.predict(rows) == forest.predict(rows)).all()


def test_greedy_trees_are_refused_before_anything_is_spent(tmp_path):
    forest = us.PrivateForest(epsilon=1.0, delta=1e-6, ledger=tmp_path / "whole.sqlite")
    with pytest.raises(us.MethodError, match="use random or noisy"):
        forest.fit(federated("nobody"), target="income")
    assert not (tmp_path / "whole.sqlite").exists()


def test_boosted_trees_learn_from_sites_that_trust_the_aggregator(tmp_path):
    rows = sites.adult_rows()
    boosting = us.PrivateBoosting(epsilon=200.0, rows=rows.num_rows).fit(federated("aggregator"), target="income")
    assert boosting.rounds_[0].certificate.federation.trust == "aggregator"
    asked = {answer.question["ask"] for answer in boosting.rounds_[0].record}
    assert any(answer.question.get("kind") == "gradients" for answer in boosting.rounds_[0].record), asked
    boosting.save(tmp_path / "boosting.json")
    assert (us.PrivateBoosting.load(tmp_path / "boosting.json").predict(rows) == boosting.predict(rows)).all()


@pytest.mark.parametrize("trust", ["secure-sum", "nobody"])
def test_boosted_trees_are_refused_where_sites_give_noisy_sums(trust, tmp_path):
    boosting = us.PrivateBoosting(epsilon=1.0, delta=1e-6, ledger=tmp_path / "whole.sqlite")
    with pytest.raises(us.MethodError):
        boosting.fit(federated(trust), target="income")
    assert not (tmp_path / "whole.sqlite").exists()
