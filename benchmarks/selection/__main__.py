"""The study of DP-Select: `PYTHONPATH=src:benchmarks .venv/bin/python -m selection [--tables adult …] [--seeds 5] …`.

Trials are kept in benchmarks/.results/selection.jsonl; what is there is not measured again. Writes the page
benchmarks/.results/selection.html, and prints its tables as Markdown. `--report` measures nothing.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from places import DATA, RAW, TABLES

from understudy.datasets import schema
from understudy.lab.jobs.job_record import JobRecord
from understudy.lab.studies.documents import selection_study as selection
from understudy.lab.studies.documents.selection_page import (
    QUANTITIES,
    SelectionResults,
    SelectionTrial,
    _grid,
    _sweep_grid,
    verdict,
)
from understudy.lab.studies.documents.selection_study import SelectionSize, sweeps
from understudy.lab.studies.layout import TextTable


def main() -> None:
    asked = _parser().parse_args()
    size = SelectionSize(
        tuple(asked.pools), tuple(asked.epsilons), asked.seeds, asked.swept, tuple(asked.swept_epsilons),
        asked.swept_seeds, asked.rows, asked.steps,
    )  # fmt: skip
    schemas = {name: schema(name) for name in asked.tables}
    page = RAW / f"{asked.page}.html"
    if not asked.report:
        selection.write(page, DATA, schemas, 0, size, lambda text: print(text, flush=True))
    with JobRecord.open(page.with_suffix(".jsonl")) as record:
        trials = [SelectionTrial.from_dict(line) for line in record.values]
    text = markdown(SelectionResults(trials), size, asked.tables, asked.sweeps_only)
    if asked.write:
        known = f"At most {size.rows:,} rows to learn from. " if size.rows else ""
        known += f"Networks learn for {size.steps} steps. " if size.steps else ""
        made = f"{known}Seeds of what is varied: {size.swept_seeds}. Made by `python -m selection`.\n\n"
        (TABLES / f"{asked.page}.md").write_text(f"# Selection over {size.swept}\n\n{made}{text}\n")
    else:
        print(text)


def markdown(results: SelectionResults, size: SelectionSize, tables: Sequence[str], sweeps_only: bool = False) -> str:
    blocks = []
    for table in tables:
        cases = results.compared(table)
        blocks += [f"## {table}", verdict(results, cases)]
        if not sweeps_only:
            blocks += [_block(_grid(results, cases, quantity)) for quantity in QUANTITIES]
        by_parameter: dict[str, list[selection.Sweep]] = {}
        for sweep in sweeps(size, [table]):
            by_parameter.setdefault(sweep.parameter, []).append(sweep)
        blocks += [_block(_sweep_grid(results, name, some)) for name, some in by_parameter.items()]
    return "\n\n".join(blocks)


def _block(grid: TextTable) -> str:
    lines = [grid.heads, ("---",) * len(grid.heads), *grid.rows]
    return f"### {grid.title}\n\n" + "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _parser() -> argparse.ArgumentParser:
    usual = SelectionSize()
    parser = argparse.ArgumentParser(prog="selection", description=__doc__.splitlines()[0])
    parser.add_argument("--report", action="store_true", help="print what is kept, and measure nothing")
    parser.add_argument("--tables", nargs="+", default=list(selection.TARGETS))
    parser.add_argument("--pools", nargs="+", default=list(usual.pools))
    parser.add_argument("--epsilons", nargs="+", type=float, default=list(usual.epsilons))
    parser.add_argument("--seeds", type=int, default=usual.seeds)
    parser.add_argument("--swept", default=usual.swept)
    parser.add_argument("--swept-epsilons", nargs="+", type=float, default=list(usual.swept_epsilons))
    parser.add_argument("--rows", type=int, help="at most so many rows to learn from")
    parser.add_argument("--steps", type=int, help="of networks, where they are a pool")
    parser.add_argument("--write", action="store_true", help="write the tables to benchmarks/results")
    parser.add_argument("--sweeps-only", action="store_true", help="leave the tables of the comparison out")
    parser.add_argument("--page", default="selection", help="the name of page and record")
    parser.add_argument("--swept-seeds", type=int, default=usual.swept_seeds)
    return parser


if __name__ == "__main__":
    main()
