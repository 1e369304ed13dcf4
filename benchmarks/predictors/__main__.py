"""Runs both sides table by table, keeps what was measured, and prints one Markdown table."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from places import RAW, TABLES

from .case import EPSILONS, LARGE, ROOT, SEEDS, TARGETS
from .ours import runs_of

BENCH = ROOT / ".bench" / "diffprivlib"
REQUIREMENTS = ("diffprivlib==0.6.6", "scikit-learn==1.7.2", "pandas")
"""0.6.6 imports names that scikit-learn 1.8 and later no longer have."""
OURS, FOREST = "PrivateBoosting", "PrivateForest"
FASTER = "times faster, forest beside forest"


def rival_python() -> Path:
    """The interpreter of the rival's environment, which is made on first use."""
    python = BENCH / "bin" / "python"
    if not (BENCH / ".installed").exists():
        subprocess.run([sys.executable, "-m", "virtualenv", "--quiet", "--python", "3.11", str(BENCH)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", *REQUIREMENTS], check=True)
        (BENCH / ".installed").touch()
    return python


def rival_runs(table: str, epsilons: tuple[float, ...], seeds: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "runs.json"
        script = Path(__file__).with_name("rival.py")
        order = [str(rival_python()), str(script), table, json.dumps(epsilons), str(seeds), str(out)]
        subprocess.run(order, check=True)
        found: dict[str, Any] = json.loads(out.read_text())
        return found


def measure(table: str, seeds: int) -> None:
    rival = rival_runs(table, EPSILONS, seeds)
    kept = {"rival": rival["version"], "runs": rival["runs"] + runs_of(table, EPSILONS, seeds)}
    (RAW / f"predictors-{table}.json").write_text(json.dumps(kept, indent=0) + "\n")


def figures(runs: list[dict[str, Any]], method: str, key: str, epsilon: float | None, large: bool = False) -> Any:
    wanted = [r[key] for r in runs if r["method"] == method and r["large"] == large and epsilon in (None, r["epsilon"])]
    return np.array(wanted)


def report() -> str:
    methods = None
    lines: list[str] = []
    compared = []
    for table in TARGETS:
        path = RAW / f"predictors-{table}.json"
        if not path.exists():
            continue
        runs = json.loads(path.read_text())["runs"]
        if methods is None:
            methods = list(dict.fromkeys(r["method"] for r in runs))
            lines += [_row("table", "ε", *methods), _row(*["---"] * (2 + len(methods)))]
        for epsilon in EPSILONS:
            found = {m: figures(runs, m, "accuracy", epsilon) for m in methods}
            means = {m: values.mean() for m, values in found.items() if values.size}
            compared.append(_compared(found, means))
            lines.append(_row(table, f"{epsilon:g}", *(_accuracy(runs, m, epsilon) for m in methods)))
    lines += ["", *_verdict(compared), ""]
    return "\n".join([*lines, *_times(methods or [])])


def _compared(found: dict[str, Any], means: dict[str, float]) -> dict[str, tuple[float, float]]:
    """How much better ours is than the best of the other predictors and of the rival, each with its standard error."""
    rivals = [m for m in means if m.startswith("diffprivlib")]
    sides = {"other": [m for m in means if m != OURS and m not in rivals], "rival": rivals}
    return {side: _difference(found[OURS], found[max(names, key=means.__getitem__)]) for side, names in sides.items()}


def _difference(ours: Any, theirs: Any) -> tuple[float, float]:
    error = np.sqrt(ours.var(ddof=1) / ours.size + theirs.var(ddof=1) / theirs.size)
    return float(ours.mean() - theirs.mean()), float(error)


def _verdict(compared: list[dict[str, tuple[float, float]]]) -> list[str]:
    sentences = []
    for side, words in (("other", "the best of our other predictors"), ("rival", "the better of diffprivlib's two")):
        pairs = [each[side] for each in compared]
        better, surely = (sum(gain > k * error for gain, error in pairs) for k in (0, 2))
        worse = sum(gain < -2 * error for gain, error in pairs)
        sentences += [
            f"{OURS} is better than {words} in {better} of {len(pairs)} cells, in {surely} of them by more than two "
            f"standard errors, and worse by as much in {worse}.",
            "",
        ]
    return sentences[:-1]


def _accuracy(runs: list[dict[str, Any]], method: str, epsilon: float) -> str:
    values = figures(runs, method, "accuracy", epsilon)
    if not values.size:
        return "–"
    return f"{values.mean():.4f} ± {values.std(ddof=1):.4f}"


def _times(methods: list[str]) -> list[str]:
    """Median CPU seconds of every run, at all budgets; both sides from the same run of this command."""
    size = f"{LARGE['trees']} trees of depth {LARGE['depth']}"
    lines: list[str] = []
    for key, words in (
        ("training", "to train, from numbers or codes"),
        ("from_frame", "from the frame, encoding included"),
    ):
        lines += [
            _row(f"CPU seconds {words}", "", *methods, FASTER),
            _row(*["---"] * (3 + len(methods))),
        ]
        for table in TARGETS:
            path = RAW / f"predictors-{table}.json"
            runs = json.loads(path.read_text())["runs"] if path.exists() else []
            for sized, large in (("as it comes", False), (size, True)) if runs else ():
                spent = {m: figures(runs, m, key, None, large) for m in methods}
                middle = {m: float(np.median(s)) for m, s in spent.items() if s.size}
                shown = [f"{middle[m]:.4f}" if m in middle else "–" for m in methods]
                lines.append(_row(table, sized, *shown, _faster(middle)))
        lines.append("")
    return lines


def _faster(middle: dict[str, float]) -> str:
    """The faster of the rival's encodings over `PrivateForest`; where that is not measured, over our random forest."""
    ours = middle.get(FOREST, middle.get(f"{FOREST}, random"))
    rivals = [v for m, v in middle.items() if m.startswith("diffprivlib")]
    return f"{min(rivals) / ours:.1f}" if ours and rivals else "–"


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", nargs="*", default=list(TARGETS), choices=list(TARGETS))
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--report", action="store_true", help="print what was measured before, and measure nothing")
    asked = parser.parse_args()
    for table in [] if asked.report else asked.tables:
        measure(table, asked.seeds)
    text = report()
    (TABLES / "predictors.md").write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
