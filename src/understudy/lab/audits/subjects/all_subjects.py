"""Everything that can be audited by its name, and the mistakes that it can make."""

from __future__ import annotations

from understudy.boundary.privacy.budget import Budget
from understudy.errors import MethodError
from understudy.lab.audits.mutants.mutants import MUTANTS, OF_TRAINING
from understudy.lab.audits.subjects.predictors import PREDICTORS, PredictorSubject
from understudy.lab.audits.subjects.queries import QUERIES, QuerySubject
from understudy.lab.audits.subjects.specimens import SPECIMENS
from understudy.lab.audits.subjects.subject import Subject
from understudy.lab.audits.subjects.synthesizers import SynthesisSubject, variants
from understudy.methods.registry import METHODS
from understudy.parameters import suggestion

LOOKED_AT = (*PREDICTORS, *QUERIES)
"""What is no method and is audited from both sides of a curator, too."""
CHOOSING = ("private-forest", "private-greedy-tree", "query-quantile")
"""Those of them that make private choices."""
BLIND = {
    "domain-from-data": ("query-total", "query-count", "query-average", "query-quantile"),
    "bins-from-data": ("query-total", "query-count"),
    "index-blocks": ("query-total", "query-count", "query-quantile"),
    "storage-types": ("query-total",),
    "free-total": ("query-count", "query-groups", "query-average", "query-quantile"),
}
"""What a mistake can't touch: a question that looks at no category, at no bound or at no column; one rank, which moves
by one; and what never asks for the number of all rows. What it can't touch of a method, the method says."""


def trained() -> tuple[str, ...]:
    """Methods that train, which takes too long for games: `training` looks at them from inside, in one run."""
    return tuple(m.name for m in METHODS.with_trait("trains"))


def syntheses() -> tuple[str, ...]:
    """Methods, each in every way to run it, but for those that train."""
    return tuple(name for name, (method, _) in variants().items() if not method.traits.trains)


def subjects() -> tuple[str, ...]:
    """Those that learn through a curator, and are audited from both sides of it."""
    return (*syntheses(), *LOOKED_AT)


def subject_of(name: str, budget: Budget) -> Subject:
    if name in (*syntheses(), *trained()):
        return SynthesisSubject(name, budget)
    if name in PREDICTORS:
        return PredictorSubject(name, budget)
    if name in QUERIES:
        return QuerySubject(name)
    known = (*subjects(), *trained(), *SPECIMENS)
    raise MethodError(f"{name!r} can't be audited: it is not known; {suggestion(name, known)}", name)


def mutants_of(name: str) -> tuple[str, ...]:
    """All that may be asked for of a method by its name."""
    if name in trained():
        return tuple(m for m in MUTANTS if applies(m, name))
    return tuple(m for m in MUTANTS if m not in OF_TRAINING)


def is_opaque(name: str) -> bool:
    """Whether only what it shows can be looked at."""
    return name in SPECIMENS


def kind_of(name: str) -> str:
    return "specimen" if name in SPECIMENS else subject_of(name, Budget(1.0, 0.0)).kind


SOME = ("monotone-constant", "late-admission")
"""Mistakes that a method makes only where it says so."""


def applies(mutant: str, name: str) -> bool:
    """Whether a subject can make that mistake at all."""
    if name in LOOKED_AT:
        return _applies_elsewhere(mutant, name)
    method, variant = variants()[name]
    if mutant in (*SOME, *OF_TRAINING):
        return mutant in variant.mutants
    if method.traits.trains and not MUTANTS[mutant].boundary:
        return False  # the parts that count and debit are those of all methods, and broken there
    return mutant not in variant.immune


def _applies_elsewhere(mutant: str, name: str) -> bool:
    """To a predictor or a query, which draws no rows, and picks one candidate at a time."""
    if mutant == "monotone-constant":
        return name in CHOOSING
    if mutant in ("late-admission", "exact-row-count", *OF_TRAINING):
        return False
    return name not in BLIND.get(mutant, ())


def selects_wide(name: str) -> bool:
    """Whether it picks several sets in one selection only of wide tables."""
    return name in variants() and variants()[name][1].selects_wide
