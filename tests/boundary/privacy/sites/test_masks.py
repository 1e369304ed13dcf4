"""Masks: nothing is left of them in the sum, and nothing can be read through them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2

from helpers.federation import skip_without_masks
from understudy.boundary.privacy.sites.masks import Masks, new_key, public_of
from understudy.errors import SiteError

SESSION = "ab" * 16


@pytest.fixture
def agreed():
    skip_without_masks()
    private = {name: new_key() for name in "abc"}
    public = {name: public_of(key) for name, key in private.items()}
    return {name: Masks.agreed(name, key, public, SESSION) for name, key in private.items()}


def test_masks_cancel_in_the_sum_and_in_no_part_of_it(agreed):
    counts = {name: [np.arange(6, dtype=np.uint64).reshape(2, 3) + i] for i, name in enumerate("abc")}
    hidden = {name: agreed[name].hide(4, arrays)[0] for name, arrays in counts.items()}
    assert (sum(hidden.values()) == sum(a[0] for a in counts.values())).all()
    assert ((hidden["a"] + hidden["b"]) != (counts["a"][0] + counts["b"][0])).all()


def test_every_question_and_array_has_masks_of_its_own(agreed):
    nothing = np.zeros(50, dtype=np.uint64)
    (first, second), (third, _) = (agreed["a"].hide(place, [nothing, nothing]) for place in (1, 2))
    assert len({*first.tolist(), *second.tolist(), *third.tolist()}) == 150
    assert (agreed["a"].hide(1, [nothing])[0] == first).all()


@pytest.mark.noise(false_alarm=1e-9, why="what the aggregator sees of one site is uniform")
def test_what_is_seen_of_one_site_is_uniform(agreed):
    seen = agreed["b"].hide(1, [np.zeros(100_000, dtype=np.uint64)])[0]
    for shift in (0, 28, 56):
        found = np.bincount((seen >> np.uint64(shift)).astype(np.uint8), minlength=256)
        assert ((found - 100_000 / 256) ** 2).sum() / (100_000 / 256) < chi2.isf(3e-10, 255)


def test_keys_that_are_not_its_own_or_stand_twice_are_refused():
    skip_without_masks()
    mine, other = new_key(), new_key()
    for keys in ({"a": public_of(other), "b": public_of(other)}, {"b": public_of(other)}):
        with pytest.raises(SiteError, match="in the place of its own"):
            Masks.agreed("a", mine, keys, SESSION)
    with pytest.raises(SiteError, match="the same key"):
        Masks.agreed("a", mine, {"a": public_of(mine), "b": public_of(mine)}, SESSION)
    with pytest.raises(SiteError, match="no key"):
        Masks.agreed("a", mine, {"a": public_of(mine), "b": "00" * 32}, SESSION)
