"""Rules of admission: which candidates of one selection may still be picked, given those that were picked before.

A selection of k candidates orders all of them once, by scores with Gumbel noise, and takes the first k that its rule
admits. That is the law of k exponential mechanisms, each among what is then admissible, if what is admissible only ever
shrinks (proved in `docs/mechanisms/exponential.md`). Were a candidate admitted late that had been passed over before,
its turn in the hidden order would already be gone, and the law would depend on scores in a way that nobody paid for.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from understudy.errors import InternalError


class Admission(Protocol):
    """A rule as it stands after some picks: a value that asking doesn't change.

    It may depend on public facts, earlier answers and the picks. It must never depend on which candidates it was asked
    about, for these are private. `after` admits no candidate that the rule before it refused: each rule says in its
    docstring why, `first_admissible` checks it, and `test_admission.py` enumerates the law of each.
    """

    def admits(self, candidate: int) -> bool:
        """Whether this candidate (by index) may be picked next."""
        ...

    def after(self, picked: int) -> Admission:
        """The rule once this candidate, which it admits, is picked."""
        ...


@dataclass(frozen=True)
class OneOfEach:
    """At most one pick for each owner, such as a column or a tree: `owners` has that of every candidate.

    What is admissible only shrinks, since `served` only grows.

    >>> rule = OneOfEach(["a", "a", "b"])
    >>> first_admissible([1, 0, 2], rule, 2)
    [1, 2]
    """

    owners: Sequence[Hashable]
    served: frozenset[Hashable] = frozenset()

    def admits(self, candidate: int) -> bool:
        return self.owners[candidate] not in self.served

    def after(self, picked: int) -> OneOfEach:
        return replace(self, served=self.served | {self.owners[picked]})


def first_admissible(order: Iterable[int], rule: Admission, k: int) -> list[int]:
    """The first k of an order that the rule admits, in turn; fewer where it admits no more.

    Raises before anything is handed out if the rule turns out to admit what it refused: a candidate that was passed
    over, after any later pick; or a pick that an earlier state of the rule refuses.
    """
    picked: list[int] = []
    passed: list[int] = []
    states = [rule]
    for candidate in order:
        if not states[-1].admits(candidate):
            passed.append(candidate)
            continue
        picked.append(candidate)
        states.append(states[-1].after(candidate))
        if not all(s.admits(candidate) for s in states[:-1]) or any(map(states[-1].admits, passed)):
            raise InternalError(
                f"what {type(rule).__name__} admits must only shrink, but after pick {len(picked)} it admits a "
                "candidate that it refused before.",
                rule,
            )
        if len(picked) == k:
            break
    return picked
