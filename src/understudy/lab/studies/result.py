"""What `evaluate` and `compare` return: typed results that can show themselves, as a page, in a notebook, as files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from understudy.errors import InputError
from understudy.files import write_atomically
from understudy.lab.evaluation import evaluation
from understudy.lab.evaluation import report as evaluation_report
from understudy.lab.studies import report as study_report
from understudy.lab.studies import study
from understudy.pages.figure import Figure, file_name

FIGURE_FORMATS = ("svg", "png")


class Evaluation(evaluation.Evaluation):
    """The figures of all measures on two tables. It is internal: it was computed from real rows."""

    def to_html(self) -> str:
        """The report as one page that needs nothing else."""
        return evaluation_report.render(self)

    def save(self, path: str | Path) -> None:
        """Writes the report (.html) or the figures (.json), by the ending of the path."""
        path = Path(path)
        write_atomically(path, report_writer(path, {".html": self.to_html, ".json": self.to_json})().encode())

    def save_figures(self, folder: str | Path, format: str = "svg") -> list[Path]:
        """Writes every picture of the report as a file of its own, for papers and slides."""
        return save_figures(evaluation_report.pictures(self), Path(folder), format)

    def __repr__(self) -> str:
        """Without the figures, some of which name values of real rows; the report has them."""
        facts = self.facts
        return f"<Evaluation of {facts.synthetic} against {facts.real}, {len(self.measures)} measures, internal>"

    def _repr_html_(self) -> str:
        return evaluation_report.render_brief(self)


class Study(study.Study):
    """Methods at several budgets with several seeds. It is internal: it was computed from real rows."""

    def to_html(self, layout: str | None = None) -> str:
        """The report as one page that needs nothing else; a `layout` adds the tables of a source document."""
        return study_report.render(self, layout)

    def save(self, path: str | Path, layout: str | None = None) -> None:
        """Writes the report, whose name must end in .html."""
        path = Path(path)
        write_atomically(path, report_writer(path, {".html": lambda: self.to_html(layout)})().encode())

    def save_figures(self, folder: str | Path, format: str = "svg") -> list[Path]:
        """Writes every picture of the report as a file of its own, for papers and slides."""
        return save_figures(study_report.pictures(self), Path(folder), format)

    def _repr_html_(self) -> str:
        return study_report.render_brief(self)


def report_writer(path: Path, writers: dict[str, Callable[[], str]]) -> Callable[[], str]:
    """What writes a file of this ending."""
    if path.suffix.lower() not in writers:
        raise InputError(f"{path.name!r} must end in {' or '.join(writers)}", path)
    return writers[path.suffix.lower()]


def check_figure_format(format: str) -> None:
    if format not in FIGURE_FORMATS:
        raise InputError(f"the format of figures ({format!r}) must be one of {', '.join(FIGURE_FORMATS)}", format)


def save_figures(figures: Sequence[Figure], folder: Path, format: str) -> list[Path]:
    """Numbered in the order of the report, so that two of one title have files of their own."""
    check_figure_format(format)
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{i:02d}-{file_name(figure.title)}.{format}" for i, figure in enumerate(figures, 1)]
    for figure, path in zip(figures, paths, strict=True):
        figure.save(path)
    return paths
