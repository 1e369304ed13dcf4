"""The audit of trainings: it finds nothing in honest ones, and each mutant."""

from __future__ import annotations

import dataclasses

import pytest

pytest.importorskip("dp_accounting", reason="the extra gan is not installed")
pytest.importorskip("torch", reason="the extra gan is not installed")

import understudy as us
from understudy.boundary.privacy.budget import Budget
from understudy.errors import InputError
from understudy.lab.audits.checks import training_checks as training
from understudy.lab.audits.checks.canaries import Canaries
from understudy.lab.audits.checks.training_checks import (
    ONE_RUN,
    TrainingTerms,
    audit_training,
    training_checks,
)
from understudy.lab.audits.harness import Harness
from understudy.lab.audits.mutants.mutants import MUTANTS, OF_TRAINING, harness_of
from understudy.lab.audits.result import FAILED, PASSED
from understudy.lab.audits.subjects import trained
from understudy.methods.dp_ctgan import dp_ctgan
from understudy.methods.dp_gan import dp_gan

FINDS = {
    "no-clipping": "sensitivity of gradients",
    "half-gradient-noise": "noise of gradients",
    "shuffled-batches": "sizes of batches",
    "shared-teachers": "sensitivity of votes",
    "raw-condition-law": "noise of the law of conditions",
}
HEARD = ("no-clipping", "half-gradient-noise")
"""Those that weaken what hides a row in the sums, so that the canaries alone find them, too."""
BUDGET = Budget(2.0, 1e-5)
FEW, AUDITED = Canaries(values=64, units=96), training.LEVEL


@pytest.fixture(autouse=True)
def few_canaries_and_rare_alarms(monkeypatch: pytest.MonkeyPatch) -> None:
    """Honest trainings are called a violation by their canaries once in a thousand million times."""
    monkeypatch.setattr(training, "CANARIES", FEW)
    monkeypatch.setattr(
        training, "CANARY_TRAINING", dataclasses.replace(training.CANARY_TRAINING, steps=40, hidden=FEW.units)
    )
    monkeypatch.setattr(training, "LEVEL", 1e-9)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("recipe", [dp_gan(), dp_ctgan()], ids=["dp-gan", "dp-ctgan"])
def test_honest_methods_pass(recipe) -> None:
    found = audit_training(recipe, BUDGET)
    assert [c.name for c in found if c.outcome == FAILED] == []
    assert len(found) == 6
    said = {c.name: c.found for c in found}[ONE_RUN]
    assert "of all 4,032" in said and "1.7 was paid for the training" in said


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("mutant", OF_TRAINING)
def test_each_mutant_is_caught_by_its_look(mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the audit's own level."""
    monkeypatch.setattr(training, "LEVEL", AUDITED)
    found = {c.name: c.outcome for c in audit_training(dp_ctgan(), BUDGET, mutant)}
    assert found[FINDS[mutant]] == FAILED
    if mutant in HEARD:
        assert found[ONE_RUN] == FAILED


def test_canaries_that_share_their_numbers_prove_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without company their values are rarer than the noise on counts, and noisy counts merge them."""
    monkeypatch.setattr(training, "MOST_COMPANY", 0)
    found = {c.name: c for c in audit_training(dp_gan(), BUDGET)}[ONE_RUN]
    assert found.outcome == PASSED and "nothing is proved" in found.found


def test_an_unknown_mutant_is_refused() -> None:
    with pytest.raises(InputError, match="not known"):
        harness_of("no-such")


RARE = 1e-9


@pytest.mark.slow
def test_a_method_that_trains_is_audited_by_its_name() -> None:
    found = us.audit("dp-gan", epsilon=2.0, delta=1e-5, level=RARE)
    assert not found.violated and [s.name for s in found.steps if s.checks] == SEEN
    assert [len(s.checks) for s in found.steps if s.name != "boundary"] == [2, 3, 0, 0, 1]
    assert found.level == RARE and "dp-gan" in found.to_html()
    assert us.audit("dp-ctgan", epsilon=2.0, delta=1e-5, mutant="no-clipping").violated
    assert us.audit("pate-gan", epsilon=2.0, delta=1e-5, mutant="shared-teachers").violated
    assert not us.audit("pate-gan", epsilon=2.0, delta=1e-5).violated


SEEN = ["sensitivity", "conformance", "boundary", "canaries"]


@pytest.mark.slow
def test_the_relation_and_the_setting_are_obeyed() -> None:
    """Canaries say nothing of replaced rows; a full audit trains as often as its setting looks."""
    found = us.audit("dp-gan", epsilon=2.0, delta=1e-5, neighbours="replace-one", level=RARE)
    assert not found.violated and found.claim.neighbours == "replace-one"
    assert [s.name for s in found.steps if s.checks] == SEEN[:3]
    assert found.steps[-1].reason.startswith("canaries are in or out")
    assert "2 allowed" in found.steps[0].checks[0].found
    twice = TrainingTerms(runs=2, level=RARE)
    names = [c.name for c in training_checks(dp_gan(), BUDGET, Harness(), twice)]
    assert names.count(ONE_RUN) == 2 and twice.each == RARE / 2


BESIDE = [m for m in MUTANTS if MUTANTS[m].boundary and m not in ("late-admission",)]


@pytest.mark.slow
@pytest.mark.parametrize("method", trained())
def test_mistakes_beside_the_training_are_found(method: str) -> None:
    matrix = us.audit_mutants([method], BESIDE, delta=1e-5)
    assert matrix.survivors == () and set(matrix.cells.values()) != {"does not apply"}
    assert all(caught.startswith("boundary") for caught in matrix.cells.values())


def test_the_matrix_knows_which_part_a_method_has() -> None:
    matrix = us.audit_mutants(["pate-gan"], ["shared-teachers", "no-clipping", "half-noise"], delta=1e-5)
    assert list(matrix.cells.values()) == ["training: sensitivity of votes", "does not apply", "does not apply"]


def test_what_a_training_cannot_claim_is_refused() -> None:
    with pytest.raises(us.MethodError, match="no pure form"):
        us.audit("dp-gan", epsilon=1.0, delta=0.0)
    with pytest.raises(us.InputError, match="not one of a training"):
        us.audit("dp-gan", epsilon=1.0, delta=1e-5, mutant="half-noise")
