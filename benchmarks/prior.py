"""What a prior is worth to `rake`, and what a bad one costs: Adult, coded; errors of pairs, and prediction.

A random 5 % of the training rows is set aside as if it were public; the private table is the other 95 %. Beside it as a
prior: the same public rows with each column shuffled by itself, the public rows with the codes of each column reversed,
an earlier release at the same ε, and an earlier release of shuffled private rows, which is none of the same data.
"""

from __future__ import annotations

import argparse
import itertools
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
from places import DATA, TABLES
from results_cache import ResultsCache
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score

import understudy as us
from understudy.boundary.schema.domain import Domain
from understudy.boundary.schema.encoding import codes_of_column
from understudy.datasets import schema

TABLE, TARGET, PUBLIC_SHARE, DELTA = "adult_coded", "income>50K", 0.05, 1e-6
EPSILONS, SEEDS = (0.1, 1.0), 5
SCHEMA = schema(TABLE)
DOMAIN = Domain.of(SCHEMA)
Codes = dict[str, np.ndarray]


def codes_of(table: pa.Table) -> Codes:
    return {c.name: codes_of_column(c, table.column(c.name), ()).astype(np.int64) for c in DOMAIN}


def shuffled(table: pa.Table, rng: np.random.Generator) -> pa.Table:
    """Every column by itself: its own values, and no relation to the others."""
    return pa.table({name: table[name].take(rng.permutation(table.num_rows)) for name in table.column_names})


def reversed_codes(table: pa.Table) -> pa.Table:
    """The relations of other values: code 0 stands for the last one, and so on."""
    return pa.table({c.name: c.size - 1 - table[c.name].to_numpy() for c in DOMAIN})


def errors(real: Codes, made: Codes) -> float:
    """The mean total variation distance of pairs."""
    found = []
    for a, b in itertools.combinations(DOMAIN.names, 2):
        cells, size = DOMAIN.cells((a, b)), DOMAIN.size(b)
        counts = [np.bincount(t[a] * size + t[b], minlength=cells) / len(t[a]) for t in (real, made)]
        found.append(0.5 * float(np.abs(counts[0] - counts[1]).sum()))
    return float(np.mean(found))


def auc(made: Codes, test: Codes) -> float:
    others = [n for n in DOMAIN.names if n != TARGET]
    features, asked = (np.column_stack([t[n] for n in others]) for t in (made, test))
    model = HistGradientBoostingClassifier(random_state=0).fit(features, made[TARGET])
    return float(roc_auc_score(test[TARGET], model.predict_proba(asked)[:, 1]))


def released(rows: pa.Table, epsilon: float, prior: Path | None = None) -> us.Release:
    return us.synthesize(
        us.open(rows, SCHEMA), method="rake", target=TARGET, epsilon=epsilon, delta=DELTA, prior=prior, ledger=False
    )


@dataclass(frozen=True)
class Case:
    epsilon: float
    prior: str
    seed: int


NONE, EARLIER = "none", "earlier release"
KINDS: dict[str, Callable[[pa.Table, pa.Table, np.random.Generator], pa.Table | None]] = {
    NONE: lambda public, private, rng: None,
    "public": lambda public, private, rng: public,
    "public, shuffled": lambda public, private, rng: shuffled(public, rng),
    "public, reversed": lambda public, private, rng: reversed_codes(public),
    EARLIER: lambda public, private, rng: private,
    "earlier, of shuffled rows": lambda public, private, rng: shuffled(private, rng),
}
"""The public rows, or the rows of the earlier release."""


def measure(case: Case) -> dict[str, float]:
    """The scores of one release, with real noise."""
    rng = np.random.default_rng(case.seed)
    rows = pacsv.read_csv(DATA / f"{TABLE}.train.csv")
    order, aside = rng.permutation(rows.num_rows), round(PUBLIC_SHARE * rows.num_rows)
    public, private = rows.take(order[:aside]), rows.take(order[aside:])
    known, prior = KINDS[case.prior](public, private, rng), None
    with tempfile.TemporaryDirectory() as folder:
        if known is not None and case.prior.startswith("earlier"):
            prior = Path(folder) / "earlier"
            released(known, case.epsilon).save(prior)
        elif known is not None:
            prior = Path(folder) / "public.csv"
            pacsv.write_csv(known, prior)
        made = codes_of(released(private, case.epsilon, prior).arrow)
    test = codes_of(pacsv.read_csv(DATA / f"{TABLE}.test.csv"))
    return {"tv2": errors(codes_of(private), made), "auc": auc(made, test)}


def table(results: dict[Case, dict[str, float]]) -> str:
    """Means with standard deviations; beside them the mean ratio to the release without a prior of the same seed."""
    lines = ["| ε | prior | seeds | TV2 | of none | AUC |", "|---|---|---|---|---|---|"]
    for epsilon, kind in itertools.product(EPSILONS, KINDS):
        found = {c.seed: r for c, r in results.items() if (c.epsilon, c.prior) == (epsilon, kind)}
        plain = {c.seed: r for c, r in results.items() if (c.epsilon, c.prior) == (epsilon, NONE)}
        if found:
            tv, area = ([r[score] for r in found.values()] for score in ("tv2", "auc"))
            ratio = np.mean([r["tv2"] / plain[seed]["tv2"] for seed, r in found.items() if seed in plain])
            lines.append(
                f"| {epsilon:g} | {kind} | {len(found)} | {np.mean(tv):.4f} ± {np.std(tv):.4f} | {ratio:.2f} | "
                f"{np.mean(area):.4f} ± {np.std(area):.4f} |"
            )
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=SEEDS, help="0 prints what was measured before")
    parser.add_argument("--kinds", nargs="*", default=list(KINDS), choices=list(KINDS))
    asked = parser.parse_args()
    cache: ResultsCache[Case] = ResultsCache("prior", Case)
    # Seeds come outermost, so that a run that is stopped has one of everything.
    for seed, epsilon, kind in itertools.product(range(asked.seeds), EPSILONS, asked.kinds):
        case = Case(epsilon, kind, seed)
        if case not in cache.results:
            cache.add(case, measure(case))
    text = f"# What a prior is worth\n\n{__doc__.partition(chr(10))[2].strip()}\n\nMade by `scripts/bench prior`.\n\n"
    (TABLES / "prior.md").write_text(text + table(cache.results))
    print(table(cache.results))


if __name__ == "__main__":
    main()
