"""Adversarial forests (Merchant 2024, §5): real rows, ARF, its published private form and honest methods.

The printed figures stand beside them.

`scripts/bench documents [--seeds N] [--methods M …] [--tables T …] [--no-pictures]`

On the insurance, healthcare and Adult tables at the document's three budgets, with every metric of its §4.5.2. Writes
adversarial-forests.md to benchmarks/results and, with densities and principal components, adversarial-forests.html. A
run that was stopped goes on where it was. Neither ARF nor its published form has any guarantee, whatever ε is named.
"""

from __future__ import annotations

import argparse
import dataclasses
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from importlib.metadata import version

import pyarrow as pa
from places import DATA, RAW, ROOT, TABLES

import understudy as us
from understudy.boundary.schema.column import Integer, Number
from understudy.datasets import schema
from understudy.lab.evaluation.comparison import Comparison
from understudy.lab.evaluation.evaluation import chosen
from understudy.lab.evaluation.holdout import HoldoutSplit
from understudy.lab.evaluation.picture_data import Pictures, draw
from understudy.lab.specimens import arf as adversarial
from understudy.lab.specimens import published_arf
from understudy.lab.studies.documents.forests_page import ForestsChapter, render
from understudy.lab.studies.layout import QUANTITIES, TextTable, lay_out
from understudy.lab.studies.record import StudyQuestion, StudyRecord
from understudy.lab.studies.study import Study, Trial
from understudy.methods.method import MODEL_FIRST

BENCH = ROOT / ".bench"
NAME = "adversarial-forests"
CITED = ("Wasserstein distance", "Chi-square test", "Classification accuracy")
"""The tables that docs/concepts/forests.md speaks of; the page has all of them."""
TARGETS = {"insurance": "smoker", "healthcare": "Medical Condition", "adult": "income"}
FILES = {"adult": "adult.train.csv"}
EPSILONS = (0.1, 0.5, 1.0)
MEASURES = tuple(measure for measure, _ in QUANTITIES.values())
REAL = "real rows"
HONEST = tuple(method for method in ("dp-arf", "rake") if method in us.METHODS)
TITLE = (
    "# The tables of “Enhancing Generative Tree Based Modeling With Differential Privacy” (§5): "
    "real, ARF, published, honest"
)
REMARKS = (
    "“Real rows” stand for the training rows in place of synthetic ones.",
    "arf is the adversarial random forest without any privacy; it is the same at every ε.",
    "published-dp-arf is the document's method as printed. It has no finite ε: its noise is scaled by the rows that it "
    "should hide, and coverage, deviations, categories and splits are released as they are.",
    f"{' and '.join(HONEST)}: with a guarantee at the ε named (δ = 1e-6).",
    "RMSE and MAE compare rows that have nothing to do with each other, as the document does; they say little.",
)


@dataclass(frozen=True)
class Subject:
    """One table of the document."""

    name: str
    schema: us.Schema
    split: HoldoutSplit

    @classmethod
    def of(cls, name: str) -> Subject:
        known = schema(name)
        return cls(name, known, HoldoutSplit.of(DATA / FILES.get(name, f"{name}.csv"), known))

    @property
    def target(self) -> str:
        return TARGETS[self.name]

    @property
    def numbers(self) -> tuple[str, ...]:
        return tuple(c.name for c in self.schema.modelled if isinstance(c, Integer | Number))

    @property
    def question(self) -> StudyQuestion:
        """What the figures of the specimens depend on."""
        known = sha256(self.schema.dumps().encode()).hexdigest()
        data, rule = self.split.marks(b"public tables")
        return StudyQuestion(data, rule, known, 0.0, self.target, (), MEASURES, version("understudy"))

    def compared(self, synthetic: pa.Table, seed: int) -> Comparison:
        train, holdout = self.split.train, self.split.holdout
        return Comparison.of(train, synthetic, holdout=holdout, schema=self.schema, target=self.target, seed=seed)


Maker = Callable[[Subject, float, int], pa.Table]


def _kept(method: str, make: Maker) -> Maker:
    """What was made once is read again: the pictures show the rows that were measured."""

    def find(subject: Subject, epsilon: float, seed: int) -> pa.Table:
        import pyarrow.parquet as pq

        path = BENCH / f"adversarial-forests-{subject.name}-specimens" / f"{method}-{epsilon:g}-{seed}.parquet"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(make(subject, epsilon, seed), path)
        return pq.read_table(path)

    return find


def _arf(subject: Subject, epsilon: float, seed: int) -> pa.Table:
    return adversarial.specimen(subject.split.train, subject.schema, seed=seed).table


def _published(subject: Subject, epsilon: float, seed: int) -> pa.Table:
    return published_arf.specimen(subject.split.train, subject.schema, epsilon, seed=seed).table


SPECIMENS: dict[str, Maker] = {
    method: _kept(method, make)
    for method, make in {adversarial.SPECIMEN.name: _arf, published_arf.SPECIMEN.name: _published}.items()
}


def _honest(method: str) -> Maker:
    """With seeded noise, as a study has it; nothing of it is a release."""

    def make(subject: Subject, epsilon: float, seed: int) -> pa.Table:
        table = us.open(subject.split.train, subject.schema)
        options = {"target": subject.target, "seed": seed, "test_only_noise_seed": seed}
        return us.synthesize(table, method=method, epsilon=epsilon, delta=1e-6, **options).arrow

    return _kept(method, make)


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/bench documents", description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--methods", nargs="+", metavar="METHOD", default=list(HONEST), help="private ones")
    parser.add_argument("--tables", nargs="+", choices=TARGETS, default=list(TARGETS))
    parser.add_argument("--no-pictures", action="store_true")
    asked = parser.parse_args()
    parts = [
        "\n".join([TITLE, "", *(f"- {remark}" for remark in REMARKS)]),
        f"Means over {asked.seeds} seeds; by `scripts/bench documents`.",
    ]
    chapters = []
    for name in asked.tables:
        subject = Subject.of(name)
        grids = tuple(_without_double(grid) for grid in lay_out(_study(subject, asked), "adversarial-forests"))
        parts += [f"## {name}", *(_markdown(grid) for grid in grids if grid.title.startswith(CITED))]
        pictures = {} if asked.no_pictures else dict(_pictures(subject, asked.methods))
        chapters.append(ForestsChapter(name, _facts(subject, asked.seeds), subject.numbers, grids, pictures))
    (TABLES / f"{NAME}.md").write_text("\n\n".join(parts) + "\n")
    (RAW / f"{NAME}.html").write_text(render(chapters, REMARKS))
    print(f"written to {TABLES.relative_to(ROOT)}/{NAME}.md and {RAW.relative_to(ROOT)}/{NAME}.html")


def _facts(subject: Subject, seeds: int) -> str:
    rows, held = subject.split.train.num_rows, subject.split.holdout.num_rows
    return f"{rows:,} rows to learn from, {held:,} held out; target {subject.target}; means over {seeds} seeds."


def _study(subject: Subject, asked: argparse.Namespace) -> Study:
    """Real rows first, then the specimens, then the methods that have a guarantee."""
    study = us.compare(
        DATA / FILES.get(subject.name, f"{subject.name}.csv"),
        subject.schema,
        methods=asked.methods,
        epsilons=EPSILONS,
        seeds=asked.seeds,
        target=subject.target,
        measures=MEASURES,
        out=BENCH / f"adversarial-forests-{subject.name}",
        jobs=asked.jobs,
        progress=lambda step: print(f"{subject.name}: {step.done} of {step.total}", flush=True),
    )
    real = [Trial(REAL, epsilon, 0, 0.0, 0.0, study.baseline) for epsilon in EPSILONS]
    specimens = list(_specimen_trials(subject, asked.seeds))
    families = study.families | dict.fromkeys((REAL, *SPECIMENS), MODEL_FIRST)
    return dataclasses.replace(study, trials=(*real, *specimens, *study.trials), families=families)


def _specimen_trials(subject: Subject, seeds: int) -> Iterator[Trial]:
    with StudyRecord.open(BENCH / f"adversarial-forests-{subject.name}-specimens", subject.question) as record:
        for method, make in SPECIMENS.items():
            for epsilon in EPSILONS:
                for seed in range(seeds):
                    found = record.trials.get((method, epsilon, seed))
                    if found is None:
                        same = (
                            record.trials.get((method, EPSILONS[0], seed))
                            if method == adversarial.SPECIMEN.name
                            else None
                        )
                        fresh = same or _trial(subject, method, make, epsilon, seed)
                        found = dataclasses.replace(fresh, epsilon=epsilon)
                        record.add(found)
                        print(f"{subject.name}: {method}, ε = {epsilon:g}, seed {seed}", flush=True)
                    yield found


def _trial(subject: Subject, method: str, make: Maker, epsilon: float, seed: int) -> Trial:
    begun = time.perf_counter()
    synthetic = make(subject, epsilon, seed)
    seconds = time.perf_counter() - begun
    comparison = subject.compared(synthetic, seed)
    figures = {m.name: m.of(comparison) for m in chosen(MEASURES)}
    return Trial(method, epsilon, seed, seconds, 0.0, figures)


def _pictures(subject: Subject, methods: list[str]) -> Iterator[tuple[tuple[float, str], Pictures]]:
    """Of the first seed."""
    yield (
        (0.0, adversarial.SPECIMEN.name),
        draw(subject.compared(SPECIMENS[adversarial.SPECIMEN.name](subject, EPSILONS[0], 0), 0)),
    )
    published = published_arf.SPECIMEN.name
    makers = {published: SPECIMENS[published], **{method: _honest(method) for method in methods}}
    for epsilon in EPSILONS:
        for method, make in makers.items():
            yield (epsilon, method), draw(subject.compared(make(subject, epsilon, 0), 0))
        print(f"{subject.name}: pictures at ε = {epsilon:g}", flush=True)


def _without_double(grid: TextTable) -> TextTable:
    """A table of correlations has the real ones already."""
    if "real" not in grid.heads:
        return grid
    kept = [i for i, head in enumerate(grid.heads) if head != REAL]
    rows = tuple(tuple(row[i] for i in kept) for row in grid.rows)
    return dataclasses.replace(grid, heads=tuple(grid.heads[i] for i in kept), rows=rows)


def _markdown(grid: TextTable) -> str:
    lines = [grid.heads, ["---"] * len(grid.heads), *grid.rows]
    table = "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
    return f"### {grid.title}\n\n{table}" + (f"\n\n{grid.note}" if grid.note else "")


if __name__ == "__main__":
    main()
