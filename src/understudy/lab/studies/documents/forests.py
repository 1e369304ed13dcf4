"""Adversarial forests (Merchant 2024, §5): real rows, ARF, its published private form and honest methods.

    write(study(folder, schemas, out), out)

On the insurance, healthcare and Adult tables at the document's three budgets, with every metric of its §4.5.2, its
printed figures beside ours. The folder `out` keeps the trials and the rows of the first seed, which the pictures show;
all of it was made from real rows, so it is internal and for this user alone. A run that was stopped goes on.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from understudy.boundary.privacy.budget import DEFAULT_DELTA
from understudy.boundary.schema.column import Integer, Number
from understudy.boundary.schema.schema import Schema
from understudy.boundary.tables.rows import Rows
from understudy.files import make_private, write_atomically
from understudy.lab.evaluation.comparison import Comparison
from understudy.lab.evaluation.holdout import HoldoutSplit
from understudy.lab.evaluation.picture_data import draw, overlay
from understudy.lab.specimens import arf, published_arf
from understudy.lab.studies.documents.forests_page import ForestsChapter, Gallery, cloud_of, overlaid, render
from understudy.lab.studies.layout import QUANTITIES, TextTable, lay_out
from understudy.lab.studies.method_comparison import TrialAdvance, compare
from understudy.lab.studies.study import WITHOUT_GUARANTEE, Case, Study, Trial
from understudy.lab.studies.worker import StudyTask
from understudy.methods import dp_arf, rake
from understudy.pages.formatting import counted
from understudy.progress import Listener, Progress, listening
from understudy.releases.synthetic_table import parquet_bytes

if TYPE_CHECKING:
    import pyarrow as pa

TARGETS = {"insurance": "smoker", "healthcare": "Medical Condition", "adult": "income"}
POSITIVE = {"healthcare": "Cancer"}
"""The document asks a classifier whether it is cancer or not, of six conditions."""
FILES = {"adult": "adult.train.csv"}
EPSILONS = (0.1, 0.5, 1.0)
MEASURES = tuple(measure for measure, _ in QUANTITIES.values())
SPECIMENS = (arf.SPECIMEN.name, published_arf.SPECIMEN.name)
HONEST = (dp_arf.METHOD.name, rake.METHOD.name)
REAL = "real rows"
PAGE, TABLES = "adversarial-forests.html", "adversarial-forests.md"
CITED = ("Wasserstein distance", "Chi-square test", "Classification accuracy", "Reconstruction attack error")
"""The tables that the short form has; the page has all of them."""
TITLE = (
    "# The tables of “Enhancing Generative Tree Based Modeling With Differential Privacy” (§5): "
    "real, ARF, published, honest"
)


@dataclass(frozen=True)
class ForestsPlan:
    """How much is tried."""

    methods: tuple[str, ...] = HONEST
    """Those with a guarantee."""
    seeds: int = 3
    epsilons: tuple[float, ...] = EPSILONS
    jobs: int = 2
    rows: int | None = None
    """At most so many rows of each table."""
    pictures: bool = True

    @property
    def everything(self) -> tuple[str, ...]:
        return (*SPECIMENS, *self.methods)


def remarks(plan: ForestsPlan) -> tuple[str, ...]:
    """What a reader of the tables has to know."""
    return (
        "“Real rows” stand for the training rows in place of synthetic ones.",
        "arf is the adversarial random forest without any privacy; it is the same at every ε.",
        "published-dp-arf is the document's method as printed. It has no finite ε: its noise is scaled by the rows "
        "that it should hide, and coverage, deviations, categories and splits are released as they are.",
        f"{' and '.join(plan.methods)}: with a guarantee at the ε named (δ = 1e-6).",
        "Of the healthcare table, classifiers say whether the condition is cancer or not, as in the document; who "
        "always says “not cancer” is right in five of six rows.",
        "The reconstruction error is over numbers alone, as the document's code leaves text out.",
        "RMSE and MAE compare rows that have nothing to do with each other, as the document does; they say little.",
        *([f"At most {plan.rows:,} rows of each table."] if plan.rows else []),
    )


@dataclass(frozen=True)
class StudiedTable:
    """One table of the document."""

    name: str
    schema: Schema
    rows: pa.Table

    @classmethod
    def read(cls, name: str, folder: Path, schema: Schema, most: int | None) -> StudiedTable:
        rows = Rows.of(folder / FILES.get(name, f"{name}.csv")).everything()
        return cls(name, schema, rows.slice(0, most))

    @property
    def numbers(self) -> tuple[str, ...]:
        """The columns that the document draws."""
        return tuple(c.name for c in self.schema.modelled if isinstance(c, Integer | Number))


def study(
    folder: str | Path,
    schemas: Mapping[str, Schema],
    out: str | Path,
    plan: ForestsPlan | None = None,
    progress: Progress | Callable[[TrialAdvance], None] | None = None,
    drawing: Listener | None = None,
) -> list[ForestsChapter]:
    """A chapter for each table, in the order given."""
    plan, told = plan or ForestsPlan(), listening(drawing)
    chapters = []
    for name, schema in schemas.items():
        subject = StudiedTable.read(name, Path(folder), schema, plan.rows)
        found = _compared(subject, Path(out) / name, plan, progress)
        tables = tuple(_without_double(grid) for grid in lay_out(_with_real(found), "adversarial-forests"))
        galleries = list[Gallery]()
        if plan.pictures:
            told(f"pictures of {name}")
            galleries = list(_galleries(subject, Path(out) / name, plan))
        facts = (
            f"{found.rows:,} rows to learn from, {found.holdout_rows:,} held out; target {found.target}; means over "
            f"{counted(plan.seeds, 'seed')}."
        )
        chapters.append(ForestsChapter(name, facts, tables, tuple(galleries)))
    return chapters


def write(chapters: Sequence[ForestsChapter], out: str | Path, plan: ForestsPlan | None = None) -> None:
    """The page, and the short form in Markdown; only this user may read them."""
    said = remarks(plan or ForestsPlan())
    write_atomically(Path(out) / PAGE, render(chapters, said).encode(), private=True)
    write_atomically(Path(out) / TABLES, markdown(chapters, said).encode(), private=True)


def markdown(chapters: Sequence[ForestsChapter], said: Sequence[str]) -> str:
    """The tables that are cited."""
    parts = ["\n".join([TITLE, "", *(f"- {remark}" for remark in said)])]
    for chapter in chapters:
        grids = [_over_epsilon(name, chapter.grids) for name in CITED]
        parts += [f"## {chapter.title}", chapter.facts, *(_markdown(grid) for grid in grids if grid.rows)]
    return "\n\n".join(parts) + "\n"


def _compared(
    subject: StudiedTable, out: Path, plan: ForestsPlan, progress: Progress | Callable[[TrialAdvance], None] | None
) -> Study:
    return compare(
        subject.rows, subject.schema, methods=plan.everything, epsilons=plan.epsilons, seeds=plan.seeds,
        target=TARGETS[subject.name], positive=POSITIVE.get(subject.name), measures=MEASURES, out=out, jobs=plan.jobs,
        progress=progress,
    )  # fmt: skip


def _with_real(found: Study) -> Study:
    """Real rows as one more column of every table, the first."""
    real = tuple(Trial(REAL, epsilon, 0, 0.0, 0.0, found.baseline) for epsilon in found.epsilons)
    families = found.families | {REAL: WITHOUT_GUARANTEE}
    return dataclasses.replace(found, trials=(*real, *found.trials), families=families)


def _galleries(subject: StudiedTable, out: Path, plan: ForestsPlan) -> Iterator[Gallery]:
    """Of the first seed: all methods over the real rows, column by column, and a cloud for each method."""
    split = HoldoutSplit.of(subject.rows, subject.schema)
    task = StudyTask(
        split.train,
        split.holdout,
        subject.schema,
        delta=DEFAULT_DELTA,
        target=TARGETS[subject.name],
        groups=(),
        measures=(),
    )
    for epsilon in plan.epsilons:
        made = {m: _kept(task, Case(m, epsilon, 0), out / "rows", plan) for m in plan.everything}
        compared = {
            method: Comparison.of(split.train, rows, schema=subject.schema, target=task.target)
            for method, rows in made.items()
        }
        over = tuple(overlaid(overlay(compared, name)) for name in subject.numbers)
        clouds = tuple(figure for m, c in compared.items() if (figure := cloud_of(draw(c), m)))
        yield Gallery(epsilon, over, clouds)


def _kept(task: StudyTask, case: Case, folder: Path, plan: ForestsPlan) -> pa.Table:
    """What was made once is read again, so that a run that was stopped draws the same rows."""
    if case.method == arf.SPECIMEN.name:  # the same at every ε
        case = dataclasses.replace(case, epsilon=plan.epsilons[0])
    path = folder / f"{case.method}-{case.epsilon:g}.parquet"
    if not path.exists():
        make_private(folder)
        write_atomically(path, parquet_bytes(task.synthetic(case)), private=True)
    return Rows.of(path).everything()


def _without_double(grid: TextTable) -> TextTable:
    """A table of correlations has the real ones already."""
    if "real" not in grid.heads:
        return grid
    kept = [i for i, head in enumerate(grid.heads) if head != REAL]
    rows = tuple(tuple(row[i] for i in kept) for row in grid.rows)
    return dataclasses.replace(grid, heads=tuple(grid.heads[i] for i in kept), rows=rows)


def _over_epsilon(name: str, grids: Sequence[TextTable]) -> TextTable:
    """The tables of one quantity as one, each row with its ε and the number of the printed table."""
    some = [grid for grid in grids if grid.title.startswith(name)]
    heads = ("ε", *(some[0].heads if some else ()))
    rows = tuple((grid.title.partition("ε = ")[2], *row) for grid in some for row in grid.rows)
    notes = (f"At ε = {grid.title.partition('ε = ')[2]}: {grid.note}" for grid in some if grid.note)
    return TextTable(name, heads, rows, " ".join(notes))


def _markdown(grid: TextTable) -> str:
    lines: list[Sequence[str]] = [grid.heads, ["---"] * len(grid.heads), *grid.rows]
    table = "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
    return f"### {grid.title}\n\n{table}" + (f"\n\n{grid.note}" if grid.note else "")
