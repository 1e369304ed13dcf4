"""Runs our AIM with the estimator of mbi: `python -m marginals.mbi` in an environment that has both.

mbi comes without mechanisms. What is measured, and with how much noise, is our AIM's choice; the model that selections
are scored against, and that rows are drawn from, is fitted by mbi's mirror descent from where the last fit ended.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np

from understudy.inference.graphical.estimation import GraphicalEstimator
from understudy.inference.graphical.graphical_model import GraphicalModel

from .job import Job, Table, run
from .ours import prepare as prepare_ours

STEPS, LAST_STEPS = 250, 1_000
"""Of a round, and of the last fit (mbi's default). A fit ends sooner where the loss has settled."""
SETTLED = 1e-5


class MbiEstimator(GraphicalEstimator):
    """Our measurements, fitted by mirror descent; what our own fit would have learned stays at zero."""

    fitted: Any = None

    def fit(self, sweeps: int) -> GraphicalModel:
        import mbi  # type: ignore[import-not-found]

        from understudy.methods.parts.select_measure import FINAL_SWEEPS

        order = list(self.sizes)
        measured = [
            mbi.LinearMeasurement(o.counts.ravel(), columns, float(np.sqrt(np.mean(o.variance))))
            for columns, o in self.observations.items()
        ]
        self.fitted = mbi.estimation.MirrorDescent().estimate(
            mbi.Domain(order, [self.sizes[c] for c in order]),
            measured,
            known_total=self.total,
            iters=LAST_STEPS if sweeps == FINAL_SWEEPS else STEPS,
            warm_start=self.fitted,
            tol=SETTLED,
        )
        potentials = {}
        for clique in self.fitted.potentials.cliques:
            factor = self.fitted.potentials[clique]
            columns = tuple(sorted(factor.domain.attributes, key=order.index))
            potentials[columns] = np.asarray(factor.transpose(columns).values, dtype=np.float64)
        self.model = GraphicalModel.from_potentials(self.sizes, self.model.tree, potentials, self.total)
        return self.model


def prepare(job: Job) -> Callable[[], Table]:
    import jax  # type: ignore[import-not-found]

    jax.config.update("jax_enable_x64", True)
    work = prepare_ours(job)

    def patched() -> Table:
        with mock.patch("understudy.methods.parts.select_measure.GraphicalEstimator", MbiEstimator):
            return work()

    return patched


if __name__ == "__main__":
    from importlib.metadata import version

    run(version("mbi"), prepare)
