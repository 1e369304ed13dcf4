"""The commands, as typer sees them. Each one reads its arguments, calls the library and prints."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

app = typer.Typer(
    name="understudy",
    help="Differentially private stand-ins for tables that may not be shared.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
budget_app = typer.Typer(help="The ledger of a data set: what may be spent, and what was.", no_args_is_help=True)
app.add_typer(budget_app, name="budget")
study_app = typer.Typer(help="Studies of methods on tables that anybody may see, a page each.", no_args_is_help=True)
app.add_typer(study_app, name="study")

Data = Annotated[str, typer.Argument(help="A CSV or Parquet file, or file.duckdb::table.", show_default=False)]
Folder = Annotated[Path, typer.Argument(help="The folder of a release.", show_default=False)]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
LedgerPath = Annotated[
    Path | None, typer.Option("--ledger", help="The ledger file \\[default: beside the data].", show_default=False)
]
SchemaPath = Annotated[
    Path | None, typer.Option("--schema", help="The schema \\[default: beside the data].", show_default=False)
]
Figures = Annotated[
    Path | None, typer.Option(help="A folder for the pictures of the report, one file each.", show_default=False)
]
FigureFormat = Annotated[str, typer.Option(help="svg or png.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]


def command() -> Any:
    """The whole command line as one callable."""
    return typer.main.get_command(app)


def _print_version(wanted: bool) -> None:
    if wanted:
        from understudy import __version__

        print(f"understudy {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
    debug: Debug = False,
) -> None:
    pass


@app.command()
def synth(
    data: Data,
    epsilon: Annotated[
        float | None, typer.Option(help="The privacy loss that the release may have.", show_default=False)
    ] = None,
    schema: Annotated[
        Path | None, typer.Option(help="The schema file \\[default: DATA with the ending .toml].", show_default=False)
    ] = None,
    delta: Annotated[
        float, typer.Option(help="The probability that the claim may fail; 0 asks for pure epsilon.")
    ] = 1e-6,
    method: Annotated[str, typer.Option(help="One of `understudy methods`, or auto.")] = "auto",
    target: Annotated[
        list[str] | None,
        typer.Option(help="A column that people will want to predict; may be repeated.", show_default=False),
    ] = None,
    marginal: Annotated[
        list[str] | None,
        typer.Option(help="Columns to measure together, as in age,income; may be repeated.", show_default=False),
    ] = None,
    weight: Annotated[
        list[str] | None,
        typer.Option(
            help="Two or three columns that matter more, and how much, as in age,income=5; may be repeated.",
            show_default=False,
        ),
    ] = None,
    workload: Annotated[
        str, typer.Option(help="pairs, or triples: whether every set of three columns matters too.")
    ] = "pairs",
    by: Annotated[str, typer.Option(help="noise, or sampling: draws from a posterior (method polya-tree).")] = "noise",
    draws: Annotated[
        int | None,
        typer.Option(help="How many draws from a posterior \\[default: a good number].", show_default=False),
    ] = None,
    pool: Annotated[
        str, typer.Option(help="The method that makes the pool of dp-select \\[default: mst].", show_default=False)
    ] = "",
    numeric: Annotated[
        str, typer.Option(help="bins, or polya: bins of numbers are bought (methods mst, aim and dp-arf).")
    ] = "bins",
    given: Annotated[
        list[str] | None,
        typer.Option(help="A value that all rows have, as in sex=Female; may be repeated.", show_default=False),
    ] = None,
    rows: Annotated[
        int | None,
        typer.Option(help="Number of synthetic rows \\[default: the noisy number of rows].", show_default=False),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="The release folder \\[default: DATA-release].", show_default=False)
    ] = None,
    format: Annotated[str, typer.Option(help="csv or parquet.")] = "csv",
    seed: Annotated[
        int | None, typer.Option(help="Seed of the post-processing; safe to publish.", show_default=False)
    ] = None,
    ledger: LedgerPath = None,
    analyst: Annotated[str, typer.Option(help="Who asks, for the ledger.")] = "",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the release folder if it exists.")] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with a release that was interrupted; it is not paid for again.")
    ] = False,
    accept_draft_as_public: Annotated[
        bool, typer.Option("--accept-draft-as-public", help="Use an unconfirmed draft; then nothing is guaranteed.")
    ] = False,
    test_only_noise_seed: Annotated[
        int | None, typer.Option(help="Repeatable noise: the release is stamped TEST-ONLY.", show_default=False)
    ] = None,
    audit: Annotated[
        str | None,
        typer.Option(
            help="quick or full: audit the method first; the certificate carries what was found.", show_default=False
        ),
    ] = None,
    no_privacy: Annotated[
        bool,
        typer.Option("--no-privacy", help="Rows without any guarantee, as one file (methods arf and published-…)."),
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress bar.")] = False,
    json: Json = False,
) -> None:
    """Make a differentially private stand-in of a table."""
    from understudy.cli import specimen
    from understudy.cli.synth import Request, check_format, demanded, run

    check_format(format)
    if specimen.check_wish(method, no_privacy):
        specimen.run(
            data, method, epsilon, schema, rows, out, format, seed, overwrite, quiet=quiet or json, as_json=json
        )
        return
    request = Request(
        data, demanded(epsilon), delta, schema, method, tuple(target or ()), tuple(marginal or ()), rows, out, format,
        seed, ledger, analyst, overwrite, accept_draft_as_public, test_only_noise_seed,
        weights=tuple(weight or ()), workload=workload, given=tuple(given or ()), audit=audit, by=by, draws=draws,
        pool=pool, numeric=numeric, resume=resume,
    )  # fmt: skip
    run(request, quiet=quiet or json, as_json=json)


@app.command()
def schema(
    data: Data,
    out: Annotated[
        Path | None, typer.Option(help="The file to write \\[default: standard output].", show_default=False)
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file if it exists.")] = False,
) -> None:
    """Draft a schema from the data, for a person to check and confirm."""
    from understudy.cli.schema import draft

    draft(data, out, overwrite)


@app.command()
def methods(json: Json = False) -> None:
    """List every method with its guarantee, what it is good for, and its limits."""
    from understudy.cli.methods import show

    show(json)


@app.command()
def plan(
    epsilon: Annotated[float, typer.Option(help="The privacy loss that the release may have.", show_default=False)],
    data: Annotated[
        str | None, typer.Argument(help="The data, whose schema lies beside them; not read.", show_default=False)
    ] = None,
    schema: Annotated[
        Path | None, typer.Option(help="The schema file \\[default: DATA with the ending .toml].", show_default=False)
    ] = None,
    delta: Annotated[
        float, typer.Option(help="The probability that the claim may fail; 0 asks for pure epsilon.")
    ] = 1e-6,
    rows: Annotated[
        int | None, typer.Option(help="About how many rows the table has \\[default: 10,000].", show_default=False)
    ] = None,
    target: Annotated[
        list[str] | None,
        typer.Option(help="A column that synth will be told to predict; may be repeated.", show_default=False),
    ] = None,
    json: Json = False,
) -> None:
    """Foretell error, time and memory of every method, before any budget is spent."""
    from understudy.cli.plan import show

    show(data, schema, epsilon, delta, rows, tuple(target or ()), json)


@app.command()
def verify(folder: Folder, json: Json = False) -> None:
    """Recompute a release's claimed epsilon from its recorded spends, and the hash of every file."""
    from understudy.cli.checks import show_verified

    show_verified(folder, json)


@app.command()
def replay(folder: Folder, json: Json = False) -> None:
    """Rebuild the synthetic table from its measurements alone, and compare it byte for byte."""
    from understudy.cli.checks import show_replayed

    show_replayed(folder, json)


@app.command()
def count(
    folder: Folder,
    expression: Annotated[
        str,
        typer.Argument(help="What the rows must satisfy, as in \"age > 40 and sex = 'Female'\".", show_default=False),
    ],
    confidence: Annotated[float, typer.Option(help="How sure the interval shall be.")] = 0.95,
    json: Json = False,
) -> None:
    """Estimate how many private rows satisfy an expression, with an interval; costs no budget."""
    from understudy.cli.count import show_count

    show_count(folder, expression, confidence, json)


@app.command()
def evaluate(
    real: Annotated[
        str,
        typer.Argument(help="The real table: a CSV or Parquet file, or file.duckdb::table.", show_default=False),
    ],
    synthetic: Annotated[
        str, typer.Argument(help="The synthetic table, or the folder of a release.", show_default=False)
    ],
    holdout: Annotated[
        str | None, typer.Option(help="Real rows that the method never saw.", show_default=False)
    ] = None,
    target: Annotated[str | None, typer.Option(help="A column to predict.", show_default=False)] = None,
    group: Annotated[
        list[str] | None, typer.Option(help="A column that divides people; may be repeated.", show_default=False)
    ] = None,
    schema: Annotated[
        Path | None,
        typer.Option(
            help="The schema file \\[default: that of the release, or REAL with the ending .toml, or a draft].",
            show_default=False,
        ),
    ] = None,
    report: Annotated[
        Path | None, typer.Option(help="The report to write, .html or .json.", show_default=False)
    ] = None,
    figures: Figures = None,
    figure_format: FigureFormat = "svg",
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress bar.")] = False,
    json: Json = False,
) -> None:
    """Compare a synthetic table with the real one; internal, since it reads real rows.

    To decide by its figures whether to release, or to release again otherwise, voids the claim of that release.
    """
    from understudy.cli.evaluate import show

    show(real, synthetic, holdout, target, tuple(group or ()), schema, report, json, quiet, figures, figure_format)


@app.command()
def attack(
    train: Annotated[str, typer.Argument(help="The rows that the synthetic table was made from.", show_default=False)],
    holdout: Annotated[str, typer.Argument(help="Real rows that it was not made from.", show_default=False)],
    synthetic: Annotated[
        str, typer.Argument(help="The synthetic table, or the folder of a release.", show_default=False)
    ],
    secret: Annotated[
        list[str] | None,
        typer.Option(
            help="A column that an attacker wants to learn; may be repeated \\[default: all].", show_default=False
        ),
    ] = None,
    schema: Annotated[
        Path | None,
        typer.Option(
            help="The schema file \\[default: that of the release, or TRAIN with the ending .toml, or a draft].",
            show_default=False,
        ),
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(help="Attack this method too, by its shadow models; needs --epsilon.", show_default=False),
    ] = None,
    epsilon: Annotated[
        float | None, typer.Option(help="The privacy loss of each shadow model.", show_default=False)
    ] = None,
    delta: Annotated[
        float | None, typer.Option(help="The delta of each shadow model \\[default: 1e-06].", show_default=False)
    ] = None,
    shadows: Annotated[
        int | None, typer.Option(help="How often the method is run \\[default: 40].", show_default=False)
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the rows that are drawn, and of the shadow models.")] = 0,
    report: Annotated[
        Path | None, typer.Option(help="The report to write, .html or .json.", show_default=False)
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress bar.")] = False,
    json: Json = False,
) -> None:
    """Attack a synthetic table, beside people who were never in it; internal, since it reads real rows."""
    from understudy.cli.attack import show

    show(
        train,
        holdout,
        synthetic,
        tuple(secret or ()),
        schema,
        seed,
        report,
        json,
        quiet,
        method,
        epsilon,
        delta,
        shadows,
    )


@app.command()
def query(
    data: Data,
    sql: Annotated[str, typer.Argument(help="SELECT … FROM … WHERE … GROUP BY …", show_default=False)],
    epsilon: Annotated[float, typer.Option(help="The privacy loss of this question.", show_default=False)],
    delta: Annotated[
        float, typer.Option(help="The probability that the claim may fail; 0 asks for pure epsilon.")
    ] = 1e-6,
    schema: Annotated[
        Path | None, typer.Option(help="The schema file \\[default: DATA with the ending .toml].", show_default=False)
    ] = None,
    ledger: LedgerPath = None,
    analyst: Annotated[str, typer.Option(help="Who asks, for the ledger.")] = "",
    confidence: Annotated[float, typer.Option(help="How sure the interval shall be.")] = 0.95,
    accept_draft_as_public: Annotated[
        bool, typer.Option("--accept-draft-as-public", help="Use an unconfirmed draft; then nothing is guaranteed.")
    ] = False,
    test_only_noise_seed: Annotated[
        int | None, typer.Option(help="Repeatable noise: the answer is stamped TEST-ONLY.", show_default=False)
    ] = None,
    json: Json = False,
) -> None:
    """Ask one metered question about a table; the same question again costs nothing."""
    from understudy.cli.query import show_query

    show_query(
        data, sql, epsilon, delta, schema, ledger, analyst, confidence, accept_draft_as_public, test_only_noise_seed,
        json,
    )  # fmt: skip


@app.command()
def audit(
    method: Annotated[
        list[str] | None,
        typer.Argument(help="One of `understudy methods`; with --mutants any number of them.", show_default=False),
    ] = None,
    epsilon: Annotated[float, typer.Option(help="The claim that is audited.")] = 1.0,
    delta: Annotated[float, typer.Option(help="The delta of the claim; 0 claims pure epsilon.")] = 1e-6,
    setting: Annotated[str, typer.Option(help="quick or full: how long it looks.")] = "quick",
    mutant: Annotated[
        str | None, typer.Option(help="Audit the method with this mistake in it.", show_default=False)
    ] = None,
    mutants: Annotated[
        bool, typer.Option("--mutants", help="Audit the auditor: every mistake in every method must be found.")
    ] = False,
    function: Annotated[
        str | None,
        typer.Option(
            "--callable",
            help="Audit a function of another tool, as in module:function, instead of a method.",
            show_default=False,
        ),
    ] = None,
    python: Annotated[
        Path | None,
        typer.Option(help="The interpreter that runs the function \\[default: this one].", show_default=False),
    ] = None,
    level: Annotated[float, typer.Option(help="How often a correct method may be called a violation.")] = 0.05,
    time_limit: Annotated[
        float | None, typer.Option(help="Seconds for all games \\[default: by the setting].", show_default=False)
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="A folder for what was played; an audit that was stopped goes on from there.", show_default=False
        ),
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(help="How many processes run \\[default: one for each core].", show_default=False)
    ] = None,
    neighbours: Annotated[
        str, typer.Option(help="add-remove or replace-one: the relation of the claim.")
    ] = "add-remove",
    postgres: Annotated[
        str | None,
        typer.Option(
            help="A server, as in postgresql://host/database, to look at with made-up tables that are dropped again.",
            show_default=False,
        ),
    ] = None,
    report: Annotated[
        Path | None, typer.Option(help="The report to write, .html or .json.", show_default=False)
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress bar.")] = False,
    json: Json = False,
) -> None:
    """Try to break the claim of a method, on made-up tables; exits 1 on a violation."""
    from understudy.cli.audit import Request, run

    request = Request(
        tuple(method or ()), epsilon, delta, setting, mutant, function, python, level, time_limit, out, jobs, report,
        neighbours, postgres,
    )  # fmt: skip
    run(request, mutants, json, quiet)


@app.command()
def compare(
    data: Data,
    methods: Annotated[
        str | None, typer.Option(help="Methods, as in mst,aim \\[default: all].", show_default=False)
    ] = None,
    epsilons: Annotated[
        str | None, typer.Option(help="Budgets \\[default: 0.1,0.5,1,3,10].", show_default=False)
    ] = None,
    seeds: Annotated[int, typer.Option(help="How often each is repeated.")] = 3,
    target: Annotated[str | None, typer.Option(help="A column to predict.", show_default=False)] = None,
    group: Annotated[
        list[str] | None, typer.Option(help="A column that divides people; may be repeated.", show_default=False)
    ] = None,
    holdout: Annotated[
        str | None, typer.Option(help="Real rows kept apart \\[default: a random fifth].", show_default=False)
    ] = None,
    schema: Annotated[
        Path | None, typer.Option(help="The schema file \\[default: DATA with the ending .toml].", show_default=False)
    ] = None,
    delta: Annotated[
        float, typer.Option(help="The probability that the claim may fail; 0 asks for pure epsilon.")
    ] = 1e-6,
    out: Annotated[
        Path | None,
        typer.Option(
            help="The folder of the study \\[default: DATA-study]; one that was begun is continued.", show_default=False
        ),
    ] = None,
    jobs: Annotated[int, typer.Option(help="How many cases run at a time.")] = 2,
    layout: Annotated[
        str | None,
        typer.Option(
            help="Add the tables of a published work: adversarial-forests, selection or model-or-statistics.",
            show_default=False,
        ),
    ] = None,
    figures: Figures = None,
    figure_format: FigureFormat = "svg",
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress.")] = False,
    json: Json = False,
) -> None:
    """Study methods at several budgets with several seeds, on a public table or a release; internal.

    It spends nothing, and its figures have no noise: to choose a method or an epsilon by those of private rows voids
    the claim of the release that follows. Choose on a public table of the same shape, such as last year's.
    """
    from understudy.cli.compare import show

    show(
        data, methods, epsilons, seeds, target, tuple(group or ()), holdout, schema, delta, out, jobs, layout, json,
        quiet, figures, figure_format,
    )  # fmt: skip


@budget_app.command("show")
def budget_show(data: Data, ledger: LedgerPath = None, json: Json = False) -> None:
    """Show what may be spent on a data set, what was spent, and what is left."""
    from understudy.cli.budget import show

    show(data, ledger, json)


@budget_app.command("set")
def budget_set(
    data: Data,
    epsilon: Annotated[float, typer.Option(help="All releases together may reach this.", show_default=False)],
    delta: Annotated[float, typer.Option(help="At this delta; 0 admits pure releases only.")] = 1e-6,
    neighbours: Annotated[
        str | None,
        typer.Option(help="add-remove or replace-one \\[default: that of the schema].", show_default=False),
    ] = None,
    ledger: LedgerPath = None,
    schema: SchemaPath = None,
) -> None:
    """Set the budget of a data set, from now on, for the unit of its schema."""
    from understudy.cli.budget import set_limit

    set_limit(data, epsilon, delta, neighbours, ledger, schema)


@budget_app.command("unit")
def budget_unit(data: Data, ledger: LedgerPath = None, schema: SchemaPath = None) -> None:
    """State, for a ledger from before units were recorded, that its debits had the unit of the schema."""
    from understudy.cli.budget import state_unit

    state_unit(data, ledger, schema)


@budget_app.command("history")
def budget_history(data: Data, ledger: LedgerPath = None, json: Json = False) -> None:
    """List every debit and every limit of a data set."""
    from understudy.cli.budget import history

    history(data, ledger, json)


@budget_app.command("share")
def budget_share(
    data: Data,
    analyst: Annotated[str, typer.Argument(help="Who.", show_default=False)],
    share: Annotated[float, typer.Argument(help="From 0 to 1, as in 0.25.", show_default=False)],
    ledger: LedgerPath = None,
) -> None:
    """Give an analyst a share of the budget, from now on."""
    from understudy.cli.budget import set_share

    set_share(data, analyst, share, ledger)


@budget_app.command("export")
def budget_export(
    data: Data,
    out: Annotated[Path, typer.Argument(help="A .csv or .json file.", show_default=False)],
    ledger: LedgerPath = None,
) -> None:
    """Write the whole history of a data set to a file."""
    from understudy.cli.budget import export

    export(data, ledger, out)


@study_app.command("nonparametric")
def study_nonparametric(
    out: Annotated[Path, typer.Option(help="The page to write.")] = Path("nonparametric.html"),
    seed: Annotated[int, typer.Option(help="Seed of the made-up rows.", min=0)] = 0,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress bar.")] = False,
) -> None:
    """What Polya trees and urns learn, and what their draws cost, exactly and simulated."""
    from understudy.cli.study import show_nonparametric

    show_nonparametric(out, seed, quiet)


@study_app.command("prediction")
def study_prediction(
    folder: Annotated[Path, typer.Argument(help="The folder of the public tables.", show_default=False)],
    out: Annotated[Path, typer.Option(help="The folder to write to.")] = Path("prediction"),
    tables: Annotated[
        list[str] | None, typer.Option("--table", help="Only this table; may be repeated.", show_default=False)
    ] = None,
    repeats: Annotated[int, typer.Option(help="Splits of each table.", min=1)] = 5,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer sizes.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress bar.")] = False,
) -> None:
    """Private trees and forests of every size, as heat maps."""
    from understudy.cli.predict_study import show

    show(folder, out, tables or [], repeats, quick, quiet)


@study_app.command("selection")
def study_selection(
    folder: Annotated[Path, typer.Argument(help="The folder of the public tables.", show_default=False)],
    out: Annotated[Path, typer.Option(help="The page to write.")] = Path("selection.html"),
    tables: Annotated[
        list[str] | None, typer.Option("--table", help="Only this table; may be repeated.", show_default=False)
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the first release.", min=0)] = 0,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress bar.")] = False,
) -> None:
    """Rows selected out of pools, privately and as printed, over every parameter."""
    from understudy.cli.study import show_selection

    show_selection(folder, out, tables or [], seed, quiet)
