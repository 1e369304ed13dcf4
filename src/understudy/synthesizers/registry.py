"""Every method by its name: what it promises, what it is good for, where it ends."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass

from understudy.errors import MethodError
from understudy.synthesizers.aim import Aim
from understudy.synthesizers.independent import Independent
from understudy.synthesizers.marginals import Marginals
from understudy.synthesizers.mst import Mst
from understudy.synthesizers.mwem import Mwem
from understudy.synthesizers.privbayes import PrivBayes
from understudy.synthesizers.synthesizer import Options, Recipe

AUTO = "auto"


@dataclass(frozen=True)
class Method:
    """A method as a user meets it."""

    name: str
    guarantee: str
    good_for: str
    limits: str
    recipe: Callable[[Options], Recipe]


METHODS: dict[str, Method] = {
    m.name: m
    for m in (
        Method(
            "independent",
            "pure ε with delta = 0, else zCDP",
            "one-way counts of every column; the baseline",
            "columns are unrelated to each other",
            lambda options: Independent(),
        ),
        Method(
            "marginals",
            "pure ε with delta = 0, else zCDP",
            "a few joint tables that you can name, or one target column",
            "knows only the relations that are named; at most 20 million cells per marginal",
            lambda options: Marginals(options.marginals, options.target),
        ),
        Method(
            "privbayes",
            "pure ε with delta = 0, else zCDP",
            "tables of few values per column, with relations of three or four columns",
            "one order of columns; at most three parents each",
            lambda options: PrivBayes(),
        ),
        Method(
            "mwem",
            "pure ε with delta = 0, else zCDP",
            "the classic, as a baseline: pairs chosen where the model is worst, in equal rounds",
            "as many pairs as columns; aim spends the same budget better",
            lambda options: Mwem(options.target),
        ),
        Method(
            "mst",
            "pure ε with delta = 0, else zCDP",
            "a fast model of the strongest pairs, one tree over all columns",
            "knows one pair per column; relations beyond the tree are inferred",
            lambda options: Mst(options.target),
        ),
        Method(
            "aim",
            "pure ε with delta = 0, else zCDP",
            "the best general table: pairs chosen where the model is worst, round by round",
            "slow beyond forty columns; at most 16 MB of model",
            lambda options: Aim(options.target),
        ),
    )
}


@dataclass(frozen=True)
class Choice:
    """A method with the sentence that says why it was chosen."""

    method: Method
    reason: str


def choose(name: str, options: Options) -> Choice:
    """The named method; `auto` chooses from public facts alone: whether marginals or a target were named."""
    if name == AUTO:
        return _auto(options)
    if name not in METHODS:
        near = difflib.get_close_matches(name, [*METHODS, AUTO], 1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join([*METHODS, AUTO])}"
        raise MethodError(f"method {name!r} is not known; {hint}", name)
    return Choice(METHODS[name], "it was asked for")


def _auto(options: Options) -> Choice:
    if options.marginals:
        return Choice(METHODS["marginals"], "marginals were named")
    if options.target is not None:
        return Choice(METHODS["marginals"], "a target was named, and this method keeps each column's relation to it")
    return Choice(METHODS["independent"], "neither a target nor marginals were named")
