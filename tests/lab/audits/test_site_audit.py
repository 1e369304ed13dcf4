"""The auditor over several sites: it finds nothing in honest ones, and every mistake that they can make."""

from __future__ import annotations

import pytest

import understudy as us
from helpers.federation import skip_without_masks
from understudy.boundary.privacy.budget import Budget
from understudy.boundary.privacy.mechanisms.randomness import ExactRandomness
from understudy.boundary.schema.federation import TRUSTS
from understudy.lab.audits.checks.sites import SiteMaking, check, mutants
from understudy.lab.audits.result import PASSED
from understudy.lab.audits.subjects import subject_of

HONEST = ExactRandomness.system()
MISTAKES = [(name, trust) for name, (trusts, _) in mutants(HONEST).items() for trust in trusts]


def looked(trust, making=None, method="independent"):
    skip_without_masks()
    budget = Budget(1.0, 1e-6)
    making = making or SiteMaking(ExactRandomness.system())
    return list(check(subject_of(method, budget), budget, trust, making))


@pytest.mark.parametrize("trust", TRUSTS)
def test_nothing_is_found_in_honest_sites(trust):
    found = looked(trust)
    assert all(c.outcome == PASSED for c in found), found
    assert len(found) >= 2 + (trust == "secure-sum")


@pytest.mark.parametrize(("mistake", "trust"), MISTAKES)
def test_every_mistake_of_sites_is_found(mistake, trust):
    _, making = mutants(ExactRandomness.system())[mistake]
    assert any(c.outcome != PASSED for c in looked(trust, making))


def test_what_sites_can_not_answer_is_not_audited_over_them():
    for method, sites in (("rake", "nobody"), ("private-forest", "aggregator"), ("independent", "friends")):
        with pytest.raises(us.InputError, match="sites"):
            us.audit(method, sites=sites)
