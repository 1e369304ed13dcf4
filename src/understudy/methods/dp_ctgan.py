"""`dp-ctgan`: a conditional GAN for tables, after Xu et al. (2019), with what leaks in it replaced.

The generator is asked for rows with one value of one column. Which value is drawn from noisy one-way counts, never from
the rows; real rows join their batches by coins alone, and no row is looked up by its value. The critic judges single
rows (pac = 1) without batch normalisation, so that a row's gradient is its own; numbers are grouped by noisy counts
instead of by a mixture that was fitted to rows.
"""

from __future__ import annotations

from dataclasses import replace

from understudy.boundary.schema.domain import ColumnSet
from understudy.inference.generators.adversarial_training import TrainingConfig
from understudy.methods.method import Method, Variant
from understudy.methods.parts.networks import MUTANTS, TRAITS, USUAL, Network, NetworkParams, Report
from understudy.methods.rake import rake


def dp_ctgan(targets: ColumnSet = (), config: TrainingConfig = USUAL, report: Report | None = None) -> Network:
    """The recipe: half of the conditions are values of the targets, where there are any."""
    return Network(config, targets, conditional=True, report=report)


METHOD = Method(
    name="dp-ctgan",
    guarantee="(ε, δ) by the privacy loss distribution of its training",
    good_for="the best of the networks: a generator that is asked for rows with a value",
    limits="needs the extra gan, a delta above 0 and minutes; statistics first are better",
    build=lambda options, params: replace(dp_ctgan(options.targets, params.training()), rate=params.rate),
    params=NetworkParams,
    traits=TRAITS,
    spending=rake.spending,
    variants=(Variant(mutants=MUTANTS),),
)
