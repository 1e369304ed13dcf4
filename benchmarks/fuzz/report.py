"""The table of a run, and of each kind of failure one case that can be run again."""

from __future__ import annotations

from collections.abc import Mapping

from fuzz.targets import TARGETS
from fuzz.worker import Tally

HOW = (
    "Seconds are those of the processor, since others may use the machine; so are the two that a bomb may take, beside "
    "300 MB."
)
SHOWN = 120
"""Characters of what a failure said."""


def render(found: Mapping[str, Tally], seed: int) -> str:
    cases, failing = (sum(counts) for counts in zip(*((t.cases, len(t.failing)) for t in found.values()), strict=True))
    lines = [f"{cases:,} inputs, {failing:,} failing. {HOW}", ""]
    lines += [
        "| test | what | inputs | failing | kinds | CPU s | the most of a case |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, tally in found.items():
        most = ", ".join(f"{figure:,.3g} {unit}" for unit, figure in tally.most.items())
        inputs = f"{tally.cases:,}"
        if tally.cases < TARGETS[name].cases:  # it was stopped, or is of a smaller scale
            inputs += f" of {TARGETS[name].cases:,}"
        figures = f"{inputs} | {len(tally.failing):,} | {len(tally.kinds)} | {tally.seconds:.0f}"
        lines.append(f"| {name} | {TARGETS[name].what} | {figures} | {most} |")
    if any(tally.kinds for tally in found.values()):
        lines += [
            "",
            "Each kind of failure, by how many cases show it, and one that can be run again with `--case`:",
            "",
        ]
        lines += ["| case | kind | cases | it said |", "|---|---|---|---|"]
        lines += [line for name, tally in found.items() for line in _kinds(name, tally, seed)]
    return "\n".join(lines) + "\n"


def _kinds(name: str, tally: Tally, seed: int) -> list[str]:
    lines = []
    for kind, count in tally.kinds.most_common():
        index, note = tally.examples[kind]
        said = note[:SHOWN].replace("|", "\\|")
        lines.append(f"| `{name}:{seed}:{index}` | {kind} | {count:,} | {said} |")
    return lines


def summary(name: str, tally: Tally) -> str:
    """One line for whoever watches."""
    ends = ", ".join(f"{count:,} {outcome}" for outcome, count in sorted(tally.outcomes.items()))
    return f"{name}: {tally.cases:,} cases in {tally.seconds:.0f} CPU s, {len(tally.failing):,} failing: {ends}"
