"""The audit of trainings: it finds nothing in honest ones, and each mutant."""

from __future__ import annotations

import pytest

pytest.importorskip("dp_accounting", reason="the extra gan is not installed")
pytest.importorskip("torch", reason="the extra gan is not installed")

import understudy as us
from understudy.attacks.audit import FAILED
from understudy.audits.training import MUTANTS, audit_training, workshop_of
from understudy.errors import InputError
from understudy.privacy.budget import Budget
from understudy.synthesizers.dp_ctgan import dp_ctgan
from understudy.synthesizers.dp_gan import dp_gan

FINDS = {
    "no-clipping": "sensitivity of gradients",
    "half-gradient-noise": "noise of gradients",
    "shuffled-batches": "sizes of batches",
    "shared-teachers": "sensitivity of votes",
    "raw-condition-law": "noise of the law of conditions",
}
BUDGET = Budget(2.0, 1e-5)


@pytest.mark.parametrize("recipe", [dp_gan(), dp_ctgan()], ids=["dp-gan", "dp-ctgan"])
def test_honest_methods_pass(recipe) -> None:
    """The canaries alone may raise a false alarm, in far fewer than one of twenty runs: they know less than all."""
    found = audit_training(recipe, BUDGET)
    assert [c.name for c in found if c.outcome == FAILED] == []
    assert len(found) == 6


@pytest.mark.parametrize("mutant", MUTANTS)
def test_each_mutant_is_caught_by_its_look(mutant: str) -> None:
    found = {c.name: c.outcome for c in audit_training(dp_ctgan(), BUDGET, mutant)}
    assert found[FINDS[mutant]] == FAILED


def test_an_unknown_mutant_is_refused() -> None:
    with pytest.raises(InputError, match="not known"):
        workshop_of("no-such")


def test_a_method_that_trains_is_audited_by_its_name() -> None:
    found = us.audit("dp-gan", epsilon=2.0, delta=1e-5)
    assert not found.violated and [len(s.checks) for s in found.steps] == [2, 3, 0, 0, 1]
    assert "dp-gan" in found.to_html()
    assert us.audit("dp-ctgan", epsilon=2.0, delta=1e-5, mutant="no-clipping").violated
    assert us.audit("pate-gan", epsilon=2.0, delta=1e-5, mutant="shared-teachers").violated
    assert not us.audit("pate-gan", epsilon=2.0, delta=1e-5).violated


def test_what_a_training_cannot_claim_is_refused() -> None:
    with pytest.raises(us.MethodError, match="no pure form"):
        us.audit("dp-gan", epsilon=1.0, delta=0.0)
    with pytest.raises(us.MethodError, match="mutants of its own"):
        us.audit_mutants(["dp-gan"])
