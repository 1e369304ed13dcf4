"""The audit of trainings: it finds nothing in honest ones, and each mutant."""

from __future__ import annotations

import pytest

pytest.importorskip("dp_accounting", reason="the extra gan is not installed")
pytest.importorskip("torch", reason="the extra gan is not installed")

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
