"""Everything that can be audited by its name, and the rigs it can be audited with."""

from __future__ import annotations

from understudy.boundary.privacy.budget import Budget
from understudy.errors import MethodError
from understudy.lab.audits.checks import trained_methods as training
from understudy.lab.audits.mutants.mutants import MUTANTS
from understudy.lab.audits.subjects.predictors import PREDICTORS, Prediction
from understudy.lab.audits.subjects.queries import QUERIES, Query
from understudy.lab.audits.subjects.rig import Rig
from understudy.lab.audits.subjects.specimens import SPECIMENS
from understudy.lab.audits.subjects.subject import Subject
from understudy.lab.audits.subjects.synthesizers import BY_SAMPLING, Synthesis
from understudy.methods.registry import METHODS
from understudy.parameters import known_name, suggestion

TRAINED = ("dp-gan", "dp-ctgan", "pate-gan")
"""Those that train, which takes too long for games: `training` looks at them from inside, in one run."""
SYNTHESES = (*(m for m in METHODS if m not in TRAINED), f"polya-tree{BY_SAMPLING}")
SUBJECTS = (*SYNTHESES, *PREDICTORS, *QUERIES)
"""Those that learn through a curator, and are audited from both sides of it."""
OF_TRAINING = training.MUTANTS
"""Mistakes that only a training can make."""
KNOWN = (*SUBJECTS, *TRAINED, *SPECIMENS)
CHOOSERS = (
    "privbayes",
    "mwem",
    "mst",
    "aim",
    "rake",
    "dp-arf",
    "dp-select",
    "polya-tree",
    "private-forest",
    "private-greedy-tree",
    "query-quantile",
)
"""Subjects that make private choices."""
SELECTS_WIDE = ("aim", "privbayes")
"""Those that pick several sets in one selection only of wide tables."""
SELECTS_SEVERAL = (*SELECTS_WIDE, "mst", "rake", "dp-arf", "dp-select", "polya-tree")
"""Subjects that pick several candidates, by a rule, in one selection."""
BLIND = {
    "domain-from-data": ("query-total", "query-count", "query-average", "query-quantile"),
    "bins-from-data": ("query-total", "query-count"),
    "index-blocks": ("query-total", "query-count", "query-quantile", "dirichlet", f"polya-tree{BY_SAMPLING}"),
    "storage-types": ("query-total",),
    "free-total": ("query-count", "query-groups", "query-average", "query-quantile"),
}
"""What a mistake can't touch: a question that looks at no category, at no bound or at no column; one rank, which moves
by one; draws from a posterior, which cost the same where one row takes the place of another; and what never asks for
the number of all rows."""


def subject_of(name: str, budget: Budget) -> Subject:
    if name in SYNTHESES:
        return Synthesis(name, budget)
    if name in PREDICTORS:
        return Prediction(name, budget)
    if name in QUERIES:
        return Query(name)
    raise MethodError(f"{name!r} can't be audited: it is not known; {suggestion(name, KNOWN)}", name)


def trained_subject_of(name: str, budget: Budget) -> Subject:
    """A method that trains, up to where its training begins."""
    return Synthesis(name, budget)


def mutants_of(name: str) -> tuple[str, ...]:
    """All that may be asked for of a method by its name."""
    return tuple(m for m in (*MUTANTS, *OF_TRAINING) if applies(m, name)) if name in TRAINED else tuple(MUTANTS)


def is_opaque(name: str) -> bool:
    """Whether only what it shows can be looked at."""
    return name in SPECIMENS


def kind_of(name: str) -> str:
    return "specimen" if name in SPECIMENS else subject_of(name, Budget(1.0, 0.0)).kind


def applies(mutant: str, name: str) -> bool:
    """Whether a subject can make that mistake at all."""
    if mutant in OF_TRAINING:
        return name in training.APPLY[mutant]
    if name in TRAINED and not MUTANTS[mutant].boundary:
        return False  # the parts that count and debit are those of all methods, and broken there
    if mutant == "monotone-constant":
        return name in CHOOSERS
    if mutant == "late-admission":
        return name in SELECTS_SEVERAL
    if mutant == "exact-row-count":
        return name in SYNTHESES
    return name not in BLIND.get(mutant, ())


def rig_of(mutant: str | None) -> Rig:
    """The honest rig, or a mutant's."""
    if mutant is None:
        return Rig()
    return MUTANTS[known_name("mutant", mutant, MUTANTS)].rig


def betrayed(mutant: str | None) -> tuple[str, ...]:
    """The looks at the boundary that should find a mistake; none of one that is made in the noise or its price."""
    return MUTANTS[mutant].betrayed if mutant in MUTANTS else ()
