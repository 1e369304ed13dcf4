"""`understudy check`: what a schema does to the rows, for whoever may see them; nothing is spent."""

from __future__ import annotations

import json
from pathlib import Path

from understudy.boundary.schema.column import Identifier
from understudy.boundary.schema.schema import DRAFT
from understudy.boundary.tables.sources import open as open_table
from understudy.cli.locations import schema_of
from understudy.cli.screen import Output, print_facts, print_json, print_table, progress, tell
from understudy.errors import CheckFailed
from understudy.lab.intake.check import STEPS, check
from understudy.lab.intake.findings import NOISE_AT, NOTICE, Check
from understudy.lab.intake.verdict import spoken
from understudy.pages.formatting import counted, percent


def show_check(data: str, schema: Path | None, output: Output) -> None:
    """Ends with a failed check where something would spoil a release, so that a script stops before it spends."""
    output.check()
    table = open_table(data, schema_of(data, schema))
    with progress(len(STEPS) + 1, output.silent) as told:
        found = check(table, progress=told)
        output.save(found)
    if output.as_json:
        print_json(json.loads(found.to_json()))
    else:
        left_out = sum(isinstance(c, Identifier) for c in table.schema.columns)
        _print(found, draft=table.schema.status == DRAFT, left_out=left_out)
        output.print_paths()
    if found.to_mend:
        raise CheckFailed(
            f"the schema does not fit: {counted(len(found.to_mend), 'thing')} to mend; nothing was spent", found
        )


def _print(found: Check, *, draft: bool, left_out: int) -> None:
    columns = counted(len(found.columns), "column") + (f" and {counted(left_out, 'identifier')}" if left_out else "")
    tell(f"INTERNAL. {found.table}: {counted(found.rows, 'row')}, {columns}")
    if found.issues:
        rows = [("mend" if i.mend else "look", i.sentence) for i in found.issues]
        print_table("What was found", ("", "what"), rows)
    for column in found.columns:
        said = "; ".join(map(spoken, column.strange))
        if said and not any(said in i.sentence for i in found.issues):
            tell(f"{column.name}: {said}")
    facts = [("protects", found.protects)]
    if found.person is not None:
        lost = ", ".join(f"{c.max_rows}: {percent(c.rows_lost / found.rows)}" for c in found.person.caps)
        facts.append(("rows lost", f"by max_rows, {lost}"))
    if found.noise is not None:
        noise = f"{percent(found.noise.error)} of the rows misplaced per pair of columns, by {found.noise.method}"
        facts.append(("noise", f"at epsilon {NOISE_AT:g}, {noise}"))
    facts.append(("verdict", found.verdict))
    if draft:
        facts.append(("status", 'a draft: go through every line, then set status = "confirmed"'))
    print_facts(facts)
    tell(NOTICE)
