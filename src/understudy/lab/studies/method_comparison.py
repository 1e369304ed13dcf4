"""`understudy.compare`: methods × ε × seeds on one table, as one typed result."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

from understudy.boundary.privacy.budget import DEFAULT_DELTA
from understudy.boundary.schema.schema import Schema
from understudy.errors import InputError
from understudy.lab.evaluation.comparison import Comparison
from understudy.lab.evaluation.holdout import HoldoutSplit
from understudy.lab.specimens.all_specimens import SPECIMENS
from understudy.lab.studies import record as table
from understudy.lab.studies.record import StudyQuestion, StudyRecord, study_key
from understudy.lab.studies.study import (
    BASELINE,
    WITHOUT_GUARANTEE,
    Case,
    Study,
    Trial,
    cases,
    measures_of,
    stated_options,
)
from understudy.lab.studies.worker import StudyTask, trials
from understudy.methods.registry import METHODS
from understudy.parameters import whole_number
from understudy.progress import Advance, Progress

NOTICE = (
    "No budget is spent: the noise is seeded, nothing is released, and no synthetic row is kept. To choose by it, run "
    "it on a public table or on a release: a choice made by private rows would have to be paid for."
)
# With 0.1, 0.5 and 1, at which Merchant (2024) prints figures (`layout`).
EPSILONS = (0.1, 0.5, 1, 3, 10)
MOST_JOBS = 256
FEW = 100
"""Rows that are enough to see whether columns are what they should be."""


@dataclass(frozen=True)
class TrialAdvance(Advance):
    """How far a study is: told once at its beginning, then after every trial."""

    recorded: int = 0
    """How many trials were on record already."""
    trial: Trial | None = None
    """The one that ended last."""


class _Function(Progress):
    """A plain function, which is told of every trial."""

    def __init__(self, tell: Callable[[TrialAdvance], None] | None) -> None:
        self._tell = tell

    def advance(self, now: Advance, /) -> None:
        if self._tell is not None and isinstance(now, TrialAdvance):
            self._tell(now)


def compare(
    data: Any,
    schema: Schema | str | Path,
    *,
    methods: Sequence[str] | None = None,
    epsilons: Sequence[float] = EPSILONS,
    seeds: int = 3,
    delta: float = DEFAULT_DELTA,
    target: str | None = None,
    positive: str | None = None,
    groups: Sequence[str] = (),
    holdout: Any = None,
    measures: Sequence[str] | None = None,
    attacks: bool = False,
    options: Mapping[str, Mapping[str, object]] | None = None,
    out: str | Path,
    jobs: int = 2,
    progress: Progress | Callable[[TrialAdvance], None] | None = None,
) -> Study:
    """Runs every method at every ε with every seed, and measures the rows against real ones.

    A study spends no budget: its noise is seeded, which is for tests only, nothing goes to a ledger, and no release is
    kept. It is internal, because its figures are computed from real rows without any noise. To choose a method or an ε
    for a release, run it on public rows or on an earlier release: choosing by private ones voids the release's claim.

    The methods learn from all rows, if a `holdout` is given, else from a random four fifths of them (of the people, if
    the schema names a unit). A method that refuses or breaks off is recorded as failed, and the study goes on.

    The baseline has the training rows in place of synthetic ones. A second real sample would be the honest ceiling, but
    there is none to spare: the hold-out is what classifiers are tested on. So distances of the baseline are 0, and what
    is learned from its rows is learned from the real ones: no release can beat that by more than luck.

    Trials are written to the folder `out` as they come. The same call continues a study that was stopped; with more
    methods, ε or seeds it adds to it; with another question it is refused. At the end the folder holds the results as
    Parquet and CSV too.

    Args:
        data: The rows: a frame or a path.
        schema: The public facts about them, or their file.
        methods: The names of methods; by default all that make private rows here. Methods without a guarantee, such as
            "arf", may be named too: they are shown beside the others, and never win.
        epsilons: The privacy losses to try.
        seeds: How often each of them is tried.
        delta: The δ of all of them.
        target: A column to predict.
        positive: A declared value of it: classifiers then say whether a row has it or another, instead of which it has.
        groups: Columns that divide people.
        holdout: Real rows to measure by.
        measures: The names of some measures; by default all.
        attacks: Whether every trial is attacked as `understudy.attack` does it, too; the secret is the target.
        options: What single methods are told, such as `{"dp-gan": {"steps": 50}}`.
        out: The folder of the study.
        jobs: How many cases run at a time, each in a process and on a core of its own.
        progress: A function of every case that is done, or an `understudy.progress.Progress`.

    Returns:
        A `Study`, with all figures, and a report to `save`.

    Raises:
        InputError: A name is not known, or the folder holds a study of another question.
    """
    # What can be refused without the rows is refused before they are read.
    planned = cases(methods, epsilons, seeds, delta)
    schema = schema if isinstance(schema, Schema) else Schema.load(schema)
    whole_number("jobs", jobs, 1, MOST_JOBS)
    wanted = measures_of(measures, attacks)
    stated = stated_options(options or {}, {case.method for case in planned})
    split = HoldoutSplit.of(data, schema, holdout)
    task = StudyTask(
        split.train, split.holdout, schema=schema, delta=delta, target=target, groups=tuple(groups), measures=wanted,
        options=stated,
        positive=positive,
    )  # fmt: skip
    _check_columns(task)
    if not isinstance(progress, Progress):
        progress = _Function(progress)
    with StudyRecord.open(Path(out), _question(split, task, study_key(Path(out)))) as record:
        _run(record, task, (BASELINE, *planned), jobs, progress)
        study = _study(split, task, record, planned)
        table.write(study, Path(out))  # while the record is locked: another run would write the same files
    return study


def _run(record: StudyRecord, task: StudyTask, planned: Sequence[Case], jobs: int, progress: Progress) -> None:
    """What is not on record yet. Whatever stops it, finished trials stay recorded."""
    for trial in _known_without_epsilon(record, planned):
        record.add(trial)
    left = [case for case in planned if case.key not in record.trials and not _is_repeated(case, planned)]
    known = done = sum(case.key in record.trials for case in planned)
    progress.advance(TrialAdvance("trial", done, len(planned), recorded=known))
    if not left:
        return
    # Closed by whatever stops this loop, an interrupt too: else workers would go on without anybody to record them.
    with closing(trials(task, left, jobs)) as found:
        for trial in found:
            for same in (trial, *_at_every_epsilon(trial, planned)):
                record.add(same)
                done += 1
                progress.advance(TrialAdvance("trial", done, len(planned), recorded=known, trial=same))


def _knows_epsilon(method: str) -> bool:
    return method not in SPECIMENS or SPECIMENS[method].claims


def _is_repeated(case: Case, planned: Sequence[Case]) -> bool:
    """Whether an earlier case makes the same rows: what claims no ε is the same at each."""
    if _knows_epsilon(case.method):
        return False
    return case != next(c for c in planned if (c.method, c.seed) == (case.method, case.seed))


def _at_every_epsilon(trial: Trial, planned: Sequence[Case]) -> Iterator[Trial]:
    if _knows_epsilon(trial.method):
        return
    same = (c for c in planned if (c.method, c.seed) == (trial.method, trial.seed) and c.epsilon != trial.epsilon)
    yield from (replace(trial, epsilon=c.epsilon) for c in same)


def _known_without_epsilon(record: StudyRecord, planned: Sequence[Case]) -> list[Trial]:
    """Where a later call asks for more ε: the trials on record, at those."""
    found = [t for trial in record.trials.values() for t in _at_every_epsilon(trial, planned)]
    return list({t.key: t for t in found if t.key not in record.trials}.values())


def _study(split: HoldoutSplit, task: StudyTask, record: StudyRecord, planned: Sequence[Case]) -> Study:
    # The record may hold more, of an earlier call: the study is what was asked for now.
    return Study(
        table=split.name,
        rows=split.train.num_rows,
        holdout_rows=split.holdout.num_rows,
        delta=task.delta,
        target=task.target,
        trials=tuple(record.trials[c.key] for c in planned),
        baseline=record.trials[BASELINE.key].figures,
        families={c.method: _family(c.method) for c in planned},
    )


def _family(method: str) -> str:
    return WITHOUT_GUARANTEE if method in SPECIMENS else METHODS[method].traits.family


def _question(split: HoldoutSplit, task: StudyTask, key: bytes) -> StudyQuestion:
    data, holdout = split.marks(key)
    schema = sha256(task.schema.dumps().encode()).hexdigest()
    return StudyQuestion(
        data,
        holdout,
        schema,
        delta=task.delta,
        target=task.target,
        groups=task.groups,
        measures=task.measures,
        version=version("understudy"),
        options=json.dumps(task.options) if task.options else "",
        positive=task.positive,
    )


def _check_columns(task: StudyTask) -> None:
    """Refuses a target or groups that no trial could be evaluated by, before any is run."""
    few, held = task.train.slice(0, FEW), task.holdout.slice(0, FEW)
    found = Comparison.of(few, few, holdout=held, schema=task.schema, target=task.target, groups=task.groups)
    if task.positive is not None:
        if task.target is None:
            raise InputError(
                f"positive ({task.positive!r}) is a value of the target; name the target too", task.positive
            )
        found.one_against_rest(task.positive)
