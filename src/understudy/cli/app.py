"""The commands, as typer sees them. Each one reads its arguments, calls the library and prints."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from understudy.boundary.privacy.budget import DEFAULT_DELTA, Budget

# Each command imports what it needs when it runs, so that help and completion don't load pyarrow and all methods.
# Help texts are rich markup: a bracket that is meant is written \\[.
app = typer.Typer(
    name="understudy",
    help="Differentially private stand-ins for tables that may not be shared.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,  # they show the local variables of every frame, and rows may be among them
    rich_markup_mode="rich",
)
budget_app = typer.Typer(help="The ledger of a data set: what may be spent, and what was.", no_args_is_help=True)
app.add_typer(budget_app, name="budget")
study_app = typer.Typer(help="Studies of methods on public tables; each writes a page.", no_args_is_help=True)
app.add_typer(study_app, name="study")

# --- arguments and options that several commands have


def _option(help: str, *names: str) -> Any:
    """An option without a default, or whose default the help text tells."""
    return typer.Option(*names, help=help, show_default=False)


def _flag(name: str, help: str) -> Any:
    return typer.Option(name, help=help, metavar="")  # "<bool>" tells nobody anything


def _argument(help: str) -> Any:
    return typer.Argument(help=help, show_default=False)


Data = Annotated[
    str,
    _argument("A CSV or Parquet file, file.duckdb::table, a table on a server, or flower://host:port?sites=N."),
]
Folder = Annotated[Path, _argument("The folder of a release.")]
Synthetic = Annotated[str, _argument("The synthetic table, or the folder of a release.")]
PublicTables = Annotated[Path, _argument("The folder with the public tables.")]
Delta = Annotated[float, typer.Option(help="The probability that the claim may fail; 0 asks for pure epsilon.")]
SchemaPath = Annotated[Path | None, _option("The schema file \\[default: DATA with the ending .toml].", "--schema")]
LedgerPath = Annotated[Path | None, _option("The ledger file \\[default: beside the data].", "--ledger")]
Analyst = Annotated[str, typer.Option(help="Who is asking, for the ledger.")]
Confidence = Annotated[float, typer.Option(help="The confidence of the interval.")]
Pushdown = Annotated[
    bool, _flag("--pushdown", "Let a PostgreSQL server count by itself, which is slow: no code of a row leaves it.")
]
AcceptDraft = Annotated[
    bool, _flag("--accept-draft-as-public", "Use an unconfirmed draft; nothing is guaranteed then.")
]
Target = Annotated[str | None, _option("A column to predict.")]
Groups = Annotated[list[str] | None, _option("A column that divides people into groups; may be repeated.", "--group")]
Tables = Annotated[list[str] | None, _option("Only this table; may be repeated.", "--table")]
Report = Annotated[Path | None, _option("The report to write, .html or .json.")]
Figures = Annotated[Path | None, _option("A folder for the figures of the report, one file each.")]
FigureFormat = Annotated[str, typer.Option(help="svg or png.")]
Overwrite = Annotated[bool, _flag("--overwrite", "Replace the file if it exists.")]
Quiet = Annotated[bool, _flag("--quiet", "Show no progress.")]
Json = Annotated[bool, _flag("--json", "Print JSON, for programs.")]
Debug = Annotated[bool, _flag("--debug", "Show the traceback of an error.")]


def command() -> Any:
    """The whole command line as one callable."""
    return typer.main.get_command(app)


def _print_version(wanted: bool) -> None:
    if wanted:
        from understudy import __version__

        print(f"understudy {__version__}")
        raise typer.Exit


def _complete_method(incomplete: str) -> list[str]:
    from understudy.cli.method_commands import method_names

    return [name for name in method_names() if name.startswith(incomplete)]


def _complete_option(context: typer.Context, incomplete: str) -> list[str]:
    from understudy.cli.method_commands import option_texts

    # The shell completes a line as far as it is typed: a --method that comes later is not known here.
    texts = option_texts(context.params.get("method") or "")
    return [text for text in texts if text.startswith(incomplete)]


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.", metavar="")
    ] = False,
    debug: Debug = False,
) -> None:
    pass  # `cli.run` has taken --debug out of the arguments; here it stands for the help alone


@app.command()
def synth(
    data: Data,
    # Not required here, since --no-privacy goes without it; `cli.synth` asks for it otherwise.
    epsilon: Annotated[float | None, _option("The privacy loss that the release may have.")] = None,
    schema: SchemaPath = None,
    delta: Delta = DEFAULT_DELTA,
    method: Annotated[
        str, typer.Option(help="One of `understudy methods`, or auto.", autocompletion=_complete_method)
    ] = "auto",
    target: Annotated[list[str] | None, _option("A column that people will want to predict; may be repeated.")] = None,
    marginal: Annotated[
        list[str] | None, _option("Columns to measure together, as in age,income; may be repeated.")
    ] = None,
    weight: Annotated[
        list[str] | None,
        _option("Two or three columns that matter more, and by how much, as in age,income=5; may be repeated."),
    ] = None,
    workload: Annotated[
        str, typer.Option(help="pairs, or triples: whether every set of three columns matters too.")
    ] = "pairs",
    by: Annotated[str, typer.Option(help="noise, or sampling: draws from a posterior (method polya-tree).")] = "noise",
    draws: Annotated[int | None, _option("How many draws from a posterior \\[default: chosen by the method].")] = None,
    pool: Annotated[str, _option("The method that makes the pool of dp-select \\[default: mst].")] = "",
    numeric: Annotated[
        str, typer.Option(help="bins, or polya: buy the bins of numbers (methods mst, aim and dp-arf).")
    ] = "bins",
    option: Annotated[
        list[str] | None,
        typer.Option(
            help="An option of the method, as in distance=L2; may be repeated (see `understudy methods NAME`).",
            show_default=False,
            autocompletion=_complete_option,
        ),
    ] = None,
    given: Annotated[
        list[str] | None, _option("A value that every row shall have, as in sex=Female; may be repeated.")
    ] = None,
    prior: Annotated[
        Path | None,
        _option(
            "An earlier release of the same data, or a CSV or Parquet file of PUBLIC rows, which nothing protects."
        ),
    ] = None,
    rows: Annotated[
        int | None, _option("How many synthetic rows \\[default: the noisy number of private rows].")
    ] = None,
    out: Annotated[Path | None, _option("The release folder \\[default: DATA-release].")] = None,
    format: Annotated[str, typer.Option(help="csv or parquet.")] = "csv",
    seed: Annotated[int | None, _option("Seed of the post-processing; safe to publish.")] = None,
    ledger: LedgerPath = None,
    analyst: Analyst = "",
    title: Annotated[str, _option("What the table is called, for the head of the report.")] = "",
    publisher: Annotated[str, _option("Who publishes it, likewise.")] = "",
    overwrite: Annotated[bool, _flag("--overwrite", "Replace the release folder if it exists.")] = False,
    resume: Annotated[
        bool, _flag("--resume", "Continue a release that was interrupted; it is not paid for again.")
    ] = False,
    journal: Annotated[
        Path | None, _option("Where answers are kept until the release is written \\[default: OUT.journal].")
    ] = None,
    pushdown: Pushdown = False,
    accept_draft_as_public: AcceptDraft = False,
    test_only_noise_seed: Annotated[
        int | None, _option("Make the noise repeatable: the release is stamped TEST-ONLY.")
    ] = None,
    audit: Annotated[
        str | None, _option("quick or full: audit the method first; the certificate carries the findings.")
    ] = None,
    no_privacy: Annotated[
        bool, _flag("--no-privacy", "Write rows without any guarantee, as one file (methods arf and published-…).")
    ] = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Make a differentially private stand-in of a table."""
    from understudy.cli.synth import Request, check_no_privacy, run, run_without_privacy

    request = Request(
        data, schema, out, format=format, ledger=ledger, overwrite=overwrite, audit=audit, resume=resume,
        journal=journal, quiet=quiet or json, as_json=json, pushdown=pushdown,
    )  # fmt: skip
    request.check()
    check_no_privacy(method, no_privacy)
    if no_privacy:
        run_without_privacy(request, method, epsilon=epsilon, rows=rows, seed=seed, options=option or ())
        return
    run(
        request, epsilon=epsilon, delta=delta, method=method, target=tuple(target or ()), marginals=marginal or (),
        weights=weight or (), workload=workload, by=by, draws=draws, pool=pool, numeric=numeric, options=option or (),
        given=given or (), prior=prior, rows=rows, seed=seed, analyst=analyst, title=title, publisher=publisher,
        accept_draft_as_public=accept_draft_as_public, test_only_noise_seed=test_only_noise_seed,
    )  # fmt: skip


@app.command()
def schema(
    data: Data,
    out: Annotated[Path | None, _option("The file to write \\[default: standard output].")] = None,
    overwrite: Overwrite = False,
) -> None:
    """Draft a schema from the data, for a person to check and confirm."""
    from understudy.cli.data_commands import draft_to

    draft_to(data, out, overwrite)


@app.command()
def check(
    data: Data,
    schema: SchemaPath = None,
    report: Report = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Say what the schema does to the rows, before anything is spent. For internal use only, since it reads rows.

    Exits with 1 where something would spoil a release.
    """
    from understudy.cli.check_command import show_check
    from understudy.cli.screen import Output

    show_check(data, schema, Output(json, quiet, report=report))


@app.command()
def methods(
    name: Annotated[
        str | None,
        typer.Argument(help="A method, to see its options too.", show_default=False, autocompletion=_complete_method),
    ] = None,
    json: Json = False,
) -> None:
    """List every method with its guarantee, what it is good for, and its limits; or one, with its options."""
    from understudy.cli.method_commands import show_method, show_methods

    if name is None:
        show_methods(json)
    else:
        show_method(name, json)


@app.command()
def plan(
    data: Annotated[str | None, _argument("The data, to find the schema beside them; no row is read.")] = None,
    epsilon: Annotated[float | None, _option("The privacy loss that the release may have.")] = None,
    error: Annotated[
        str | None, _option("In place of epsilon: the error that is wanted, as in 3%; says which epsilon that takes.")
    ] = None,
    schema: SchemaPath = None,
    delta: Delta = DEFAULT_DELTA,
    rows: Annotated[int | None, _option("About how many rows the table has \\[default: 10,000].")] = None,
    target: Annotated[list[str] | None, _option("A column that synth will get as its target; may be repeated.")] = None,
    prior: Annotated[Path | None, _option("What synth will get as its prior.")] = None,
    json: Json = False,
) -> None:
    """Predict error, time and memory of every method, before any budget is spent."""
    from understudy.cli.method_commands import parse_error, show_plan

    show_plan(
        data, schema, epsilon=epsilon, error=parse_error(error), delta=delta, rows=rows, target=tuple(target or ()),
        prior=prior, as_json=json,
    )  # fmt: skip


@app.command()
def verify(folder: Folder, json: Json = False) -> None:
    """Recompute the claimed epsilon of a release from its recorded spends, and the hash of every file."""
    from understudy.cli.data_commands import show_verified

    show_verified(folder, json)


@app.command()
def replay(folder: Folder, json: Json = False) -> None:
    """Rebuild the synthetic table from its measurements alone, and compare it byte for byte."""
    from understudy.cli.data_commands import show_replayed

    show_replayed(folder, json)


@app.command()
def count(
    folder: Folder,
    expression: Annotated[str, _argument("What a row must satisfy, as in \"age > 40 and sex = 'Female'\".")],
    confidence: Confidence = 0.95,
    json: Json = False,
) -> None:
    """Estimate how many private rows satisfy an expression, with an interval; costs no budget."""
    from understudy.cli.data_commands import show_count

    show_count(folder, expression, confidence, json)


@app.command()
def evaluate(
    real: Annotated[str, _argument("The real table: a CSV or Parquet file, or file.duckdb::table.")],
    synthetic: Synthetic,
    holdout: Annotated[str | None, _option("Real rows that the method never saw.")] = None,
    target: Target = None,
    group: Groups = None,
    schema: Annotated[
        Path | None,
        _option("The schema file \\[default: that of the release, or REAL with the ending .toml, or a draft]."),
    ] = None,
    report: Report = None,
    figures: Figures = None,
    figure_format: FigureFormat = "svg",
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Compare a synthetic table with the real one. For internal use only, since it reads real rows.

    To choose among releases by these figures voids the claim of the one chosen.
    """
    from understudy.cli.evaluation_commands import show_evaluation
    from understudy.cli.screen import Output

    output = Output(json, quiet, report=report, figures=figures, figure_format=figure_format)
    show_evaluation(real, synthetic, output, schema=schema, holdout=holdout, target=target, groups=tuple(group or ()))


@app.command()
def attack(
    train: Annotated[str, _argument("The rows that the synthetic table was made from.")],
    holdout: Annotated[str, _argument("Real rows that it was not made from.")],
    synthetic: Synthetic,
    secret: Annotated[
        list[str] | None,
        _option("A column that an attacker wants to learn; may be repeated \\[default: every column in turn]."),
    ] = None,
    schema: Annotated[
        Path | None,
        _option("The schema file \\[default: that of the release, or TRAIN with the ending .toml, or a draft]."),
    ] = None,
    method: Annotated[str | None, _option("Also attack this method, with shadow models; needs --epsilon.")] = None,
    # No defaults: what was typed without --method is refused, and a default could not be told from it.
    epsilon: Annotated[float | None, _option("The privacy loss of each shadow model.")] = None,
    delta: Annotated[float | None, _option("The delta of each shadow model \\[default: 1e-06].")] = None,
    shadows: Annotated[int | None, _option("How many shadow models to make \\[default: 40].")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the rows that are drawn, and of the shadow models.")] = 0,
    report: Report = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Attack a synthetic table, and compare with people who were never in it. For internal use only."""
    from understudy.cli.evaluation_commands import show_attacks
    from understudy.cli.screen import Output

    # No secret named means every column in turn, which the library knows as None.
    show_attacks(
        train, holdout, synthetic, output=Output(json, quiet, report=report), schema=schema,
        secrets=tuple(secret or ()) or None, method=method, epsilon=epsilon, delta=delta, shadows=shadows, seed=seed,
    )  # fmt: skip


@app.command()
def query(
    data: Data,
    sql: Annotated[str, _argument("SELECT … FROM … WHERE … GROUP BY …")],
    epsilon: Annotated[float, _option("The privacy loss of this question.")],
    delta: Delta = DEFAULT_DELTA,
    schema: SchemaPath = None,
    ledger: LedgerPath = None,
    analyst: Analyst = "",
    confidence: Confidence = 0.95,
    pushdown: Pushdown = False,
    accept_draft_as_public: AcceptDraft = False,
    test_only_noise_seed: Annotated[
        int | None, _option("Make the noise repeatable: the answer is stamped TEST-ONLY.")
    ] = None,
    json: Json = False,
) -> None:
    """Ask one question about a table, paid from the budget; the same question again costs nothing."""
    from understudy.cli.data_commands import show_query

    show_query(
        data, sql, schema=schema, ledger=ledger, pushdown=pushdown, as_json=json, epsilon=epsilon, delta=delta,
        analyst=analyst, confidence=confidence, accept_draft_as_public=accept_draft_as_public,
        test_only_noise_seed=test_only_noise_seed,
    )  # fmt: skip


@app.command()
def audit(
    method: Annotated[
        list[str] | None, _argument("One of `understudy methods`; with --mutants, any number of them.")
    ] = None,
    epsilon: Annotated[float, typer.Option(help="The epsilon of the claim.")] = 1.0,
    delta: Annotated[float, typer.Option(help="The delta of the claim; 0 claims pure epsilon.")] = DEFAULT_DELTA,
    setting: Annotated[str, typer.Option(help="quick or full: how thoroughly to look.")] = "quick",
    mutant: Annotated[str | None, _option("Audit the method with this mistake built in.")] = None,
    mutants: Annotated[
        bool, _flag("--mutants", "Audit the auditor: it must find every mistake in every method.")
    ] = False,
    function: Annotated[
        str | None,
        _option("Audit a function of another tool, as in module:function, instead of a method.", "--callable"),
    ] = None,
    python: Annotated[Path | None, _option("The interpreter that runs the function \\[default: this one].")] = None,
    level: Annotated[float, typer.Option(help="How often a correct method may be reported as a violation.")] = 0.05,
    time_limit: Annotated[float | None, _option("Seconds for all games \\[default: by the setting].")] = None,
    out: Annotated[Path | None, _option("A folder for the results so far, so that a stopped audit can go on.")] = None,
    jobs: Annotated[int | None, _option("How many processes to run \\[default: one for each core].")] = None,
    neighbours: Annotated[
        str, typer.Option(help="add-remove or replace-one: the neighbouring relation of the claim.")
    ] = "add-remove",
    postgres: Annotated[
        str | None,
        _option(
            "Also look at a server, postgresql://host/database or sc://host:port, with made-up tables that are dropped."
        ),
    ] = None,
    sites: Annotated[
        str | None, _option("Also run the method over three sites: aggregator, secure-sum or nobody is trusted.")
    ] = None,
    report: Report = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Try to break the privacy claim of a method, on made-up tables; exits with 1 on a violation."""
    from understudy.cli.audit_command import AuditRequest, run_audit
    from understudy.cli.screen import Output

    request = AuditRequest(
        methods=tuple(method or ()), epsilon=epsilon, delta=delta, setting=setting, mutant=mutant, function=function,
        python=python, level=level, time_limit=time_limit, out=out, jobs=jobs, neighbours=neighbours, postgres=postgres,
        sites=sites,
    )  # fmt: skip
    run_audit(request, mutants, Output(json, quiet, report=report))


@app.command()
def compare(
    data: Data,
    methods: Annotated[str | None, _option("Methods, as in mst,aim,arf \\[default: all with a guarantee].")] = None,
    epsilons: Annotated[str | None, _option("Budgets \\[default: 0.1,0.5,1,3,10].")] = None,
    seeds: Annotated[int, typer.Option(help="How often to repeat each of them.")] = 3,
    target: Target = None,
    group: Groups = None,
    holdout: Annotated[str | None, _option("Real rows kept apart \\[default: a random fifth].")] = None,
    schema: SchemaPath = None,
    delta: Delta = DEFAULT_DELTA,
    out: Annotated[
        Path | None, _option("The folder of the study \\[default: DATA-study]; a study begun there goes on.")
    ] = None,
    jobs: Annotated[int, typer.Option(help="How many cases to run at a time.")] = 2,
    positive: Annotated[str | None, _option("A value of the target, to be told from all others.")] = None,
    attacks: Annotated[bool, _flag("--attacks", "Attack the rows of every trial, too.")] = False,
    option: Annotated[
        list[str] | None, _option("An option of one method, as in dp-gan.steps=50; may be repeated.")
    ] = None,
    layout: Annotated[
        str | None,
        _option("Add the tables of a published work: adversarial-forests, selection or model-or-statistics."),
    ] = None,
    figures: Figures = None,
    figure_format: FigureFormat = "svg",
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Compare methods at several budgets with several seeds, on a public table or a release. For internal use only.

    It spends nothing, and its figures have no noise.
    To choose a method or an epsilon by private rows voids the claim of the release.
    Choose on a public table of the same shape, such as last year's.
    """
    from understudy.cli.screen import Output
    from understudy.cli.study_commands import show_comparison

    show_comparison(
        data, Output(json, quiet, figures=figures, figure_format=figure_format), methods=methods, epsilons=epsilons,
        schema=schema, out=out, layout=layout, seeds=seeds, delta=delta, target=target, groups=tuple(group or ()),
        holdout=holdout, jobs=jobs, positive=positive, attacks=attacks, options=option or (),
    )  # fmt: skip


# --- the ledger


@budget_app.command("show")
def budget_show(data: Data, ledger: LedgerPath = None, json: Json = False) -> None:
    """Show the budget of a data set: its limit, what was spent, and what is left."""
    from understudy.cli.budget_commands import show_budget

    show_budget(data, ledger, json)


@budget_app.command("set")
def budget_set(
    data: Data,
    epsilon: Annotated[float, _option("The epsilon that all releases together may reach.")],
    delta: Annotated[float, typer.Option(help="The delta of the limit; 0 allows pure releases only.")] = DEFAULT_DELTA,
    failure_delta: Annotated[
        float | None, _option("The part of delta for private values and trainings \\[default: by the first release].")
    ] = None,
    training_epsilon: Annotated[
        float | None, _option("The part of epsilon for trainings \\[default: by the first release].")
    ] = None,
    neighbours: Annotated[str | None, _option("add-remove or replace-one \\[default: that of the schema].")] = None,
    ledger: LedgerPath = None,
    schema: SchemaPath = None,
) -> None:
    """Set the budget of a data set, from now on, for the unit of its schema."""
    from understudy.cli.budget_commands import set_limit

    set_limit(
        data, Budget(epsilon, delta), neighbours, failure_delta=failure_delta, training_epsilon=training_epsilon,
        ledger=ledger, schema=schema,
    )  # fmt: skip


@budget_app.command("unit")
def budget_unit(data: Data, ledger: LedgerPath = None, schema: SchemaPath = None) -> None:
    """State the unit of earlier debits, for a ledger from before units were recorded: that of the schema."""
    from understudy.cli.budget_commands import state_unit

    state_unit(data, ledger, schema)


@budget_app.command("history")
def budget_history(data: Data, ledger: LedgerPath = None, json: Json = False) -> None:
    """List every debit and every limit of a data set."""
    from understudy.cli.budget_commands import show_history

    show_history(data, ledger, json)


@budget_app.command("share")
def budget_share(
    data: Data,
    analyst: Annotated[str, _argument("The analyst's name.")],
    share: Annotated[float, _argument("A share from 0 to 1, as in 0.25.")],
    ledger: LedgerPath = None,
) -> None:
    """Give an analyst a share of the budget, from now on."""
    from understudy.cli.budget_commands import set_share

    set_share(data, analyst, share, ledger)


@budget_app.command("export")
def budget_export(
    data: Data, out: Annotated[Path, _argument("A .csv or .json file.")], ledger: LedgerPath = None
) -> None:
    """Write the whole history of a data set to a file."""
    from understudy.cli.budget_commands import export

    export(data, ledger, out)


@budget_app.command("backup")
def budget_backup(
    data: Data, out: Annotated[Path, _argument("A path where nothing is yet.")], ledger: LedgerPath = None
) -> None:
    """Copy the ledger of a data set, once it was verified, to a file."""
    from understudy.cli.ledger_commands import back_up

    back_up(data, ledger, out)


@budget_app.command("restore")
def budget_restore(
    data: Data, backup: Annotated[Path, _argument("A backup, or an older copy.")], ledger: LedgerPath = None
) -> None:
    """Put a backup in the place of a ledger that is damaged or gone, and debit again what came after it."""
    from understudy.cli.ledger_commands import restore

    restore(data, ledger, backup)


@budget_app.command("forget")
def budget_forget(data: Data, ledger: LedgerPath = None) -> None:
    """Begin anew where a ledger is gone, as if nothing had been released; its debits protect nobody any more."""
    from understudy.cli.ledger_commands import forget

    forget(data, ledger)


# --- federated tables


@app.command()
def site(
    data: Annotated[str, typer.Option(help="The rows of this site: a file, or a table of a database.")],
    coordinator: Annotated[str, typer.Option(help="Where the aggregator listens, such as 127.0.0.1:9092.")],
    schema: SchemaPath = None,
    name: Annotated[
        str | None, _option("What the aggregator calls this site \\[default: the name of the data].")
    ] = None,
    trust: Annotated[
        list[str] | None,
        _option(
            "A trust model that this site agrees to: nobody, secure-sum or aggregator; may be repeated "
            "\\[default: nobody]."
        ),
    ] = None,
    honest: Annotated[
        int,
        typer.Option(help="In a secure sum, how many sites' noise this one relies on, at most; itself is one.", min=1),
    ] = 1,
    ledger: LedgerPath = None,
    certificate: Annotated[Path | None, _option("The certificate that the aggregator's must be signed by.")] = None,
    quiet: Quiet = False,
) -> None:
    """Answer for one part of a table whose parts are at several sites; runs until it is stopped."""
    from understudy.cli.site_command import run_site

    run_site(
        data, coordinator, schema=schema, name=name, trusts=tuple(trust or ()), honest=honest, ledger=ledger,
        certificate=certificate, quiet=quiet,
    )  # fmt: skip


# --- studies of public tables


Seeds = Annotated[int, typer.Option(help="How often to repeat everything.", min=1)]
Jobs = Annotated[int, typer.Option(help="How many cases to run at a time.")]
MostRows = Annotated[int | None, typer.Option(help="Learn from at most so many rows of a table.", min=20)]


@study_app.command("forests")
def study_forests(
    folder: PublicTables,
    out: Annotated[Path, typer.Option(help="The folder to write to; a study begun there goes on.")] = Path("forests"),
    tables: Tables = None,
    seeds: Seeds = 3,
    rows: MostRows = None,
    no_pictures: Annotated[bool, _flag("--no-pictures", "Only the tables.")] = False,
    jobs: Jobs = 2,
    quiet: Quiet = False,
) -> None:
    """Adversarial forests, their published private form and honest methods, beside the printed figures."""
    from understudy.cli.study_commands import show_forests

    show_forests(folder, out, tables or [], seeds=seeds, rows=rows, pictures=not no_pictures, jobs=jobs, quiet=quiet)


@study_app.command("model-or-statistics")
def study_model_or_statistics(
    folder: PublicTables,
    out: Annotated[Path, typer.Option(help="The folder to write to; a study begun there goes on.")] = Path(
        "model-or-statistics"
    ),
    seeds: Seeds = 3,
    rows: Annotated[int, typer.Option(help="Learn from at most so many rows.", min=20)] = 10_000,
    steps: Annotated[int, typer.Option(help="Steps of the networks that learn by gradients.", min=1)] = 50,
    methods: Annotated[str | None, _option("Methods, as in rake,dp-gan \\[default: those of the document].")] = None,
    jobs: Jobs = 2,
    quiet: Quiet = False,
) -> None:
    """Networks against noisy counts at equal budgets, with attacks and figures by group."""
    from understudy.cli.study_commands import show_model_or_statistics

    show_model_or_statistics(
        folder, out, methods=methods, seeds=seeds, rows=rows, steps=steps, jobs=jobs, quiet=quiet
    )  # fmt: skip


@study_app.command("nonparametric")
def study_nonparametric(
    out: Annotated[Path, typer.Option(help="The page to write.")] = Path("nonparametric.html"),
    seed: Annotated[int, typer.Option(help="Seed of the made-up rows.", min=0)] = 0,
    quiet: Quiet = False,
) -> None:
    """What Polya trees and urns learn, and what their draws cost, exact and simulated."""
    from understudy.cli.study_commands import show_nonparametric

    show_nonparametric(out, seed, quiet)


@study_app.command("prediction")
def study_prediction(
    folder: PublicTables,
    out: Annotated[Path, typer.Option(help="The folder to write to.")] = Path("prediction"),
    tables: Tables = None,
    repeats: Annotated[int, typer.Option(help="How many splits of each table.", min=1)] = 5,
    quick: Annotated[bool, _flag("--quick", "Try fewer sizes.")] = False,
    quiet: Quiet = False,
) -> None:
    """Private trees and forests of every size, as heat maps."""
    from understudy.cli.study_commands import show_prediction

    show_prediction(folder, out, tables or [], repeats=repeats, quick=quick, quiet=quiet)


@study_app.command("selection")
def study_selection(
    folder: PublicTables,
    out: Annotated[Path, typer.Option(help="The page to write.")] = Path("selection.html"),
    tables: Tables = None,
    seed: Annotated[int, typer.Option(help="Seed of the first release.", min=0)] = 0,
    pools: Annotated[str, _option("Methods that make pools, as in mst,dp-gan.")] = "independent,privbayes,mst",
    epsilons: Annotated[str, _option("Budgets.")] = "1,2,4,8",
    swept: Annotated[str, _option("The pool over which parameters are varied.")] = "mst",
    swept_epsilons: Annotated[str, _option("The budgets at which they are.")] = "2",
    seeds: Seeds = 5,
    swept_seeds: Annotated[int, typer.Option(help="How often to repeat what is varied.", min=0)] = 2,
    rows: MostRows = None,
    steps: Annotated[int | None, typer.Option(help="Steps of a network, where it is the pool.", min=1)] = None,
    quiet: Quiet = False,
) -> None:
    """Rows selected from pools, privately and as published, for every parameter."""
    from understudy.cli.study_commands import show_selection

    show_selection(
        folder, out, tables or [], seed=seed, quiet=quiet, pools=pools, epsilons=epsilons, swept=swept,
        swept_epsilons=swept_epsilons, seeds=seeds, swept_seeds=swept_seeds, rows=rows, steps=steps,
    )  # fmt: skip
