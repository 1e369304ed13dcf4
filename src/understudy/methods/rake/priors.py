"""How `rake` takes in a prior, once its own forest is measured: as evidence, as a guess to be corrected, or not at all.

All of it is a function of the prior and of answers that are paid for, so nothing here costs anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from understudy.boundary.schema.domain import ColumnSet
from understudy.inference.particles.particles import LogFactor
from understudy.methods.parts.prior import EARLIER, Margins, Prior, guess_of, judge, margins_agree

if TYPE_CHECKING:
    from understudy.methods.rake.rake import RakeState


def join(state: RakeState, prior: Prior) -> None:
    """Takes the prior's tables into the model as far as the measured pairs confirm them, and fits it anew."""

    def margins() -> Margins:
        return Margins(state.weights, state.total)

    found = judge(prior, state.readings, margins())
    if prior.kind == EARLIER and found.noise_alone:
        _take_as_measured(state, prior)
    elif found.useful:
        measured = {r.columns for r in state.readings}
        for table in prior.of(2):
            if table.columns not in measured:
                guess = state.link(guess_of(table, prior.kind, found.bias, margins))
                state.guesses[table.columns] = guess
    else:
        return
    state.particles.rake(state.tuning.passes, sampling=not state.whole)
    state.refresh(state.count, state.tuning.refresh_passes)


def _take_as_measured(state: RakeState, prior: Prior) -> None:
    """Noisy counts of the same rows are evidence like those of this release, each with its own noise.

    Few of them, or none, are of pairs that were measured anew; so each has to agree in its margins at least.
    """
    tables = [t for t in prior.tables if len(t.columns) > 1 and margins_agree(t, state.columns)]
    if not tables:
        return
    state.readings += tables
    state.agree()
    for table in tables:
        state.learn_at(table, table.groups)


def settle(state: RakeState, measured: Sequence[ColumnSet]) -> None:
    """A pair that is measured is no longer guessed: the guess stays where the fit begins, and is evidence no more."""
    for columns in measured:
        guess = state.guesses.pop(columns, None)
        if guess is not None:
            guess.seen = None
            state.links = [(factor, seen) for factor, seen in state.links if factor is not guess]


Guesses = dict[ColumnSet, LogFactor]
"""The factors of a prior's pairs that were not measured yet."""
