"""Other tools through `understudy audit --callable`, each in an environment of its own: `scripts/bench audits rivals`.

Every case is one command of `understudy`, run as it is printed; what it found is kept in
benchmarks/.results/audits-rivals.json, so that a run that was stopped goes on, and written as audits-rivals.md.
`python -m audits.rivals NAME ...` plays the named cases again.

A case says what leaks before it is played. Which table it ends up in is decided by the audit alone.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from marginals.environment import BENCH, PINS, ROOT, InstallError, python_of
from places import RAW

from understudy.lab.audits.games.games import cut

HERE = Path(__file__).resolve().parents[1]
KEPT = RAW / "audits-rivals.json"
OURS = "understudy"
PURE, APPROXIMATE = 0.0, 1e-6
PACKAGES = {
    "smartnoise": "smartnoise-synth",
    "smartnoise-before": "smartnoise-synth",
    "datasynthesizer": "DataSynthesizer",
}
"""Environments that are not called as the package that is audited there."""


@dataclass(frozen=True)
class Case:
    """A function of another tool, what it claims, and what is known of it."""

    name: str
    tool: str
    """The environment that it runs in; `marginals.environment` says what is installed there."""
    function: str
    about: str
    """What leaks, or how it is used where nothing is known to leak."""
    known: str
    """What its documentation or its maintainers say, and where it was reported."""
    delta: float = PURE
    seconds: int = 60
    epsilon: float = 1.0
    pair: str = ""
    """The pair of tables that shows this leak and no other, where several would be seen."""

    @property
    def title(self) -> str:
        return f"{PACKAGES.get(self.tool, self.tool)} {PINS.get(self.tool, '')}".strip()

    @property
    def arguments(self) -> list[str]:
        """Of `understudy`, from the folder benchmarks."""
        python = [] if self.tool == OURS else ["--python", f"../{BENCH.name}/{self.tool}/bin/python"]
        claim = ["--epsilon", f"{self.epsilon:g}", "--delta", f"{self.delta:g}"]
        limit = ["--setting", "full", "--time-limit", str(self.seconds), "--jobs", "1"]
        return ["audit", "--callable", f"audits.{self.function}", *python, *claim, *limit]

    @property
    def command(self) -> str:
        return " ".join(["understudy", *self.arguments])


CASES = (
    Case(
        "diffprivlib-regression",
        "diffprivlib",
        "theirs_diffprivlib:linear_regression",
        "LinearRegression, all bounds given: the sum of squares is released without noise where the lower bound is 0.",
        "The sensitivity is computed from the lower bound twice: IBM/differential-privacy-library#105 (open, found by"
        " dp-recorder), a mend is proposed in #110 (open).",
        seconds=240,
    ),
    Case(
        "diffprivlib-classes",
        "diffprivlib",
        "theirs_diffprivlib:logistic_regression",
        "LogisticRegression, `data_norm` given: the classes are those of the rows, and one class alone is an error.",
        "IBM/differential-privacy-library#106 (open, found by dp-recorder). There is no argument to declare them.",
    ),
    Case(
        "diffprivlib-row-count",
        "diffprivlib",
        "theirs_diffprivlib:naive_bayes",
        "GaussianNB, bounds given: its noisy class counts are made to add up to the exact number of rows.",
        "Read in its code. The documentation doesn't say which neighbours are meant: if the number of rows is public,"
        " this is no violation.",
    ),
    Case(
        "diffprivlib-range",
        "diffprivlib",
        "theirs_diffprivlib:histogram_without_range",
        "histogram without `range`: the outermost edges are the exact least and largest value.",
        "Documented: a PrivacyLeakWarning is raised that asks for the range.",
    ),
    Case(
        "dpmm-categories",
        "dpmm",
        "theirs_dpmm:domain_from_rows",
        "PrivBayes pipeline without declared categories: they are read from the rows, at no cost.",
        "A warning says PrivacyLeakage. sassoftware/dpmm#18 (closed, found by dp-recorder) and #24 (open), where the"
        " maintainers say that there is no private way yet.",
        delta=APPROXIMATE,
        seconds=300,
        pair="unique category",
    ),
    Case(
        "dpmm-constant-columns",
        "dpmm",
        "theirs_dpmm:constant_columns",
        "PrivBayes pipeline with the whole domain declared: a column that is constant is released as it is.",
        "Read in its code; its documentation says that static columns are dropped. No report was found.",
        delta=APPROXIMATE,
        seconds=300,
    ),
    Case(
        "dpmm-privbayes",
        "dpmm",
        "theirs_dpmm:privbayes",
        "PrivBayes with the domain declared: its score is divided by entropies, the sensitivity is that of the sum.",
        "Read in its code. No report was found.",
        delta=APPROXIMATE,
        seconds=2400,
    ),
    Case(
        "smartnoise-covariance-before",
        "smartnoise-before",
        "theirs_smartnoise:covariance",
        "DPcovariance, bounds given: rows are clipped, and then the covariance of the rows as they were is released.",
        "opendp/smartnoise-sdk#622 (closed, found by dp-recorder), mended by #624; 1.0.8 is audited below.",
    ),
    Case(
        "smartnoise-categories",
        "smartnoise",
        "theirs_smartnoise:mwem_by_default",
        "MWEM with its own preprocessing: categories are read from the rows, at no cost.",
        "The documentation of `fit` says that preprocessing uses budget where bounds are inferred, and nothing of"
        " categories.",
        seconds=480,
    ),
    Case(
        "datasynthesizer-domain",
        "datasynthesizer",
        "theirs_datasynthesizer:domain_from_rows",
        "Independent mode without a domain file: categories and ranges are read from the rows, at no cost.",
        "Declaring them is optional, and its documentation doesn't warn. Of the same elsewhere:"
        " alan-turing-institute/reprosyn#38 (closed).",
    ),
    Case(
        "datasynthesizer-seed",
        "datasynthesizer",
        "theirs_datasynthesizer:seed_by_default",
        "Independent mode with everything declared: the seed is 0 unless named, so that the noise is known.",
        'Mended by DataResponsibly/DataSynthesizer#46 (merged 2026-07-15: "voids DP guarantee in actual deployment"),'
        " which is not in the last version on PyPI.",
    ),
    Case(
        "opacus-row-count",
        "opacus",
        "theirs_opacus:trained",
        "DP-SGD: sampling rate, number of steps and divisor of the gradient follow the exact number of rows.",
        "meta-pytorch/opacus#571 (open, by an author of dp-recorder).",
        delta=APPROXIMATE,
    ),
    Case(
        "synthcity-domain",
        "synthcity",
        "theirs_synthcity:privbayes",
        "PrivBayes: categories are read from the rows, at no cost.",
        "Read in its code. There is no argument to declare them.",
        seconds=180,
    ),
    Case(
        "synthcity-noise",
        "synthcity",
        "theirs_synthcity:privbayes_with_every_value",
        "PrivBayes where no value is new: counts get noise of scale 4(d−K)/(nε), made for shares, and none if K = d.",
        "Named in the artifact of dp-recorder (ObliviousAI/dp-recorder); no report was found. The same formula was"
        " reported to, and mended by, DataResponsibly/DataSynthesizer#34.",
        seconds=180,
    ),
    Case(
        "diffprivlib-mean",
        "diffprivlib",
        "theirs_diffprivlib:mean",
        "mean with `bounds`, as its documentation asks.",
        "",
    ),
    Case(
        "diffprivlib-histogram",
        "diffprivlib",
        "theirs_diffprivlib:histogram",
        "histogram with `range`, as its documentation asks.",
        "",
    ),
    Case(
        "smartnoise-covariance",
        "smartnoise",
        "theirs_smartnoise:covariance",
        "DPcovariance after the mend.",
        "",
    ),
    Case(
        "smartnoise-mwem",
        "smartnoise",
        "theirs_smartnoise:mwem",
        "MWEM with the domain declared to its transformer.",
        "",
        seconds=300,
    ),
    Case(
        "datasynthesizer-declared",
        "datasynthesizer",
        "theirs_datasynthesizer:declared",
        "Independent mode with everything declared, and a seed that nobody knows.",
        "",
    ),
    Case(
        "understudy-privbayes",
        OURS,
        "ours:privbayes",
        "privbayes with its schema.",
        "",
        delta=APPROXIMATE,
        seconds=120,
    ),
    Case("understudy-mst", OURS, "ours:mst", "mst with its schema.", "", delta=APPROXIMATE, seconds=120),
)

FEW_RUNS = (
    "An audit that finds nothing certifies nothing, and fewer runs say less; their number is what the time limit"
    " allowed on a busy machine. Neighbours differ by one added row; all games of an audit share a level of 5 %."
)
LEFT_OUT = (
    "Of what dp-recorder found, not tried here: ryan112358/mbi#65 (the mechanism JAM is not in mbi's package on PyPI),"
    " opendp/smartnoise-sdk#621 (what is wrong is the budget that is reported, not what is released), missing values"
    " that pass through clipping (no table for functions has any), and MOSTLY AI."
)


def table() -> str:
    """Plays what is missing, and writes down what was found."""
    for case in CASES:
        if case.name not in kept():
            play(case)
    return written(kept())


def play(case: Case) -> None:
    print(case.command, flush=True)
    found = audited(case)
    KEPT.write_text(json.dumps(kept() | {case.name: found}, indent=1, ensure_ascii=False) + "\n")
    print(found, flush=True)


def audited(case: Case) -> dict[str, Any]:
    """Runs the command; an environment that can't be made, or a run that breaks off, is a fact, too."""
    try:
        if case.tool != OURS:
            python_of(case.tool)
    except InstallError as error:
        return {"failed": f"can't be installed: {error}"}
    call = [sys.executable, "-m", "understudy", *case.arguments, "--quiet", "--json"]
    done = subprocess.run(call, cwd=HERE, capture_output=True, text=True, check=False)
    if not done.stdout.strip():
        return {"failed": (done.stderr.strip().splitlines() or ["it said nothing"])[-1]}
    return facts(json.loads(done.stdout), case.pair)


def facts(found: dict[str, Any], pair: str = "") -> dict[str, Any]:
    """Of the game of that pair, or of the one that proves most: all games share one level."""
    looked = [bound for bound in found["bounds"] if bound["pair"] == pair] or found["bounds"]
    best = max(looked, key=lambda bound: bound["epsilon"])
    told = {name: best[name] for name in ("epsilon", "runs", "accuracy", "statistic", "pair")}
    return {"violated": found["violated"], "seconds": found["seconds"], "created": found["created"][:10], **told}


def written(found: dict[str, Any]) -> str:
    """The page: violations, what was used as recommended, what failed, and every command."""
    played = [case for case in CASES if case.name in found]
    broken = [case for case in played if "failed" in found[case.name]]
    violated = [case for case in played if found[case.name].get("violated")]
    rest = [case for case in played if case not in broken and case not in violated]
    parts = [
        f"## Violations found ({len(violated)})",
        _rows("what leaks", violated, found),
        "\n".join(f"- **{case.name}**: {case.known}" for case in violated),
        f"## Nothing found ({len(rest)})",
        _rows("how it is used", rest, found),
        FEW_RUNS,
        *(f"- **{case.name}** ({case.title}) failed: {found[case.name]['failed']}" for case in broken),
        LEFT_OUT,
        "## Commands, from the folder benchmarks",
        "\n".join(f"    {case.command}" for case in played),
    ]
    return "\n\n".join(parts)


def _rows(about: str, cases: list[Case], found: dict[str, Any]) -> str:
    head = f"| case | tool | {about} | claimed ε, δ | ε is at least (95 %) | runs | told rightly | by | seconds |"
    return "\n".join([head, "|---" * 9 + "|", *(row(case, found[case.name]) for case in cases)])


def row(case: Case, found: dict[str, Any]) -> str:
    """What is proved is rounded down; runs and share are those of the game that proves it."""
    by = f"{found['statistic']} ({found['pair']})"
    share = f"{100 * found['accuracy']:.0f} %"
    claim = f"{case.epsilon:g}, {case.delta:g}"
    cells = (case.name, case.title, case.about, claim, cut(found["epsilon"]), f"{found['runs']:,}", share, by)
    return f"| {' | '.join(cells)} | {found['seconds']:.0f} |"


def kept() -> dict[str, Any]:
    return json.loads(KEPT.read_text()) if KEPT.exists() else {}


if __name__ == "__main__":
    assert Path.cwd() in (ROOT, HERE), f"run it from {ROOT.name}"
    for asked in sys.argv[1:]:
        play(next(case for case in CASES if case.name == asked))
