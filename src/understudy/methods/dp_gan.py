"""`dp-gan`: a Wasserstein GAN whose critic learns by noisy gradients."""

from __future__ import annotations

from dataclasses import replace

from understudy.boundary.schema.domain import ColumnSet
from understudy.inference.generators.adversarial_training import TrainingConfig
from understudy.methods.method import Method, Variant
from understudy.methods.parts.networks import MUTANTS, TRAITS, USUAL, Network, NetworkParams, Report
from understudy.methods.rake import rake


def dp_gan(targets: ColumnSet = (), config: TrainingConfig = USUAL, report: Report | None = None) -> Network:
    """The recipe; targets make no difference to it."""
    return Network(config, targets, conditional=False, report=report)


METHOD = Method(
    name="dp-gan",
    guarantee="(ε, δ) by the privacy loss distribution of its training",
    good_for="what networks can do: a generator against a critic that learns by noisy gradients",
    limits="needs the extra gan, a delta above 0 and minutes; statistics first are better",
    build=lambda options, params: replace(dp_gan(options.targets, params.training()), rate=params.rate),
    params=NetworkParams,
    traits=TRAITS,
    spending=rake.spending,
    variants=(Variant(mutants=MUTANTS),),
)
