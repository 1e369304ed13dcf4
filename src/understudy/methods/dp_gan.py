"""`dp-gan`: a Wasserstein GAN whose critic learns by noisy gradients."""

from __future__ import annotations

from understudy.boundary.schema.domain import ColumnSet
from understudy.inference.generators.adversarial_training import TrainingConfig
from understudy.methods.parts.networks import Network, Report

SCHOOL = TrainingConfig()


def dp_gan(targets: ColumnSet = (), school: TrainingConfig = SCHOOL, report: Report | None = None) -> Network:
    """The recipe; targets make no difference to it."""
    return Network(school, targets, conditional=False, report=report)
