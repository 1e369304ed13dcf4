"""`understudy.synthesize`: from a table behind the boundary to a release.

`Plan` is the whole recipe of a release. It runs on a curator of rows to make one, and on a curator of recorded
answers to replay it; there is no second code path.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import numpy as np
from threadpoolctl import threadpool_limits

from understudy.bars import shown
from understudy.boundary.privacy.asks.ask import Ask, Result
from understudy.boundary.privacy.asks.counts import no_pure_keys
from understudy.boundary.privacy.budget import DEFAULT_DELTA, Budget
from understudy.boundary.privacy.curator import Curator
from understudy.boundary.privacy.facts import PrivacyUnit
from understudy.boundary.privacy.journal import Journal
from understudy.boundary.privacy.ledger.ledger import Debited, Ledger, ledger_for
from understudy.boundary.privacy.mechanisms.randomness import Randomness, randomness_of
from understudy.boundary.privacy.queryable import Queryable, Wrapper
from understudy.boundary.schema.column import Categorical
from understudy.boundary.schema.domain import Domain
from understudy.boundary.schema.schema import DRAFT, Schema
from understudy.boundary.tables.table import Table, opened
from understudy.errors import CheckFailed, InputError
from understudy.inference.discovery import discover, provisional
from understudy.inference.model import Model
from understudy.inference.values import check_decodable
from understudy.methods.forecast.caution import cautions_before, spoken
from understudy.methods.method import POLYA, Options, Recipe
from understudy.methods.parts.bought_bins import with_bought_bins
from understudy.methods.parts.workload import stated_targets, stated_weights
from understudy.methods.registry import Choice, MethodName, build_recipe, check_sites, choose
from understudy.parameters import whole_number
from understudy.progress import Advance, Listener, listening
from understudy.releases.certificate import Audited, Certificate, provenance, versions
from understudy.releases.drawing import Columns, check_satisfiable, draw, seed_or_fresh
from understudy.releases.evidence import Evidence, Plain, check_stated
from understudy.releases.imprint import Imprint
from understudy.releases.interruption import POSTPROCESSING, continued, facts, journal_at, without_ledger
from understudy.releases.planning import forecast_after
from understudy.releases.priors import load_prior
from understudy.releases.release import Release
from understudy.releases.room import MOST_ROWS, check_memory, most_rows
from understudy.releases.synthetic_table import from_values, to_native

EXPECTED = "; expected: "
"""What comes after it in the reason for a method follows from the noisy number of rows."""
STEPS = ("learning what the schema keeps private", "measuring", "drawing rows")
QUESTION = "question"


def steps_of(schema: Schema) -> int:
    """How many of them a release takes: where nothing is private, there is nothing to learn first."""
    return len(STEPS) if schema.private else len(STEPS) - 1


def synthesize(
    table: Table,
    *,
    epsilon: float,
    delta: float = DEFAULT_DELTA,
    method: MethodName | str = "auto",
    target: str | Sequence[str] | None = None,
    marginals: Sequence[Sequence[str]] = (),
    weights: Mapping[str | tuple[str, ...], float] | None = None,
    workload: Literal["pairs", "triples"] = "pairs",
    by: Literal["noise", "sampling"] = "noise",
    draws: int | None = None,
    pool: MethodName | str = "",
    numeric: Literal["bins", "polya"] = "bins",
    options: Mapping[str, object] | None = None,
    given: Mapping[str, object] | None = None,
    prior: str | Path | None = None,
    rows: int | None = None,
    seed: int | None = None,
    ledger: Debited = None,
    analyst: str = "",
    title: str = "",
    publisher: str = "",
    accept_draft_as_public: bool = False,
    test_only_noise_seed: int | None = None,
    audit: Audited | Callable[[Plan], Audited] | None = None,
    journal: str | Path | Journal | None = None,
    resume: bool = False,
    progress: Listener | Literal[False] | None = None,
    deliver: Callable[[Release], None] | None = None,
) -> Release:
    """Makes a differentially private stand-in of a table.

    The whole budget is debited from the ledger before anything is drawn.

    Args:
        table: What `understudy.open` returned.
        epsilon: The privacy loss that the release may have.
        delta: The probability that the claim may fail; 0 asks for pure ε.
        method: One of `understudy.METHODS`, or "auto", which chooses from public facts and says why.
        target: The column, or a list of columns, that people will want to predict.
        marginals: Sets of columns to measure together, for method marginals.
        weights: Sets of two or three columns that matter more, such as `{("age", "income"): 5}`.
        workload: "pairs", or "triples" if every set of three columns matters (methods aim, mwem and rake).
        by: "noise", or "sampling": the privacy of polya-tree is then that of draws from a posterior.
        draws: How many of them.
        pool: The method from whose rows dp-select selects.
        numeric: "bins", or "polya" to buy the bins of numbers for which the schema declares none.
        options: The method's own, such as `{"distance": "L2"}` of dp-select; `understudy methods NAME` lists them with
            their bounds.
        given: Values that every synthetic row has, such as `{"sex": "Female"}`; the others are drawn given them. It is
            post-processing, and changes neither what is measured nor the budget.
        prior: The folder of an earlier release of the same data, or a CSV or Parquet file of **public** rows, as
            evidence for method rake. What the earlier release cost stays in the ledger besides; nothing protects the
            rows of the file.
        rows: How many synthetic rows; by default the noisy number of private ones, `given` or not, and at most ten
            million, or fewer where memory is short: the certificate says so then.
        seed: Fixes the post-processing only, and is safe to publish.
        ledger: A ledger or its path. By default it is the one beside the file that the table was opened from; a frame
            has none. False debits none. The certificate says which debit paid, or that none did.
        analyst: Who is asking, for the ledger.
        title: What the table is called, for the head of the report. It is public, and so is the publisher.
        publisher: Who publishes it.
        accept_draft_as_public: Use a schema that is an unconfirmed draft; nothing is guaranteed then.
        test_only_noise_seed: Makes the noise repeatable: the release is stamped TEST-ONLY and guarantees nothing.
        audit: What `understudy.audit` found of the method with this budget, or a function that audits it now, once all
            else was checked; the certificate will carry it.
        journal: A file that keeps each noisy answer until the release is made; it needs a ledger.
        resume: Continue the release of this journal, which was interrupted: nothing is paid or drawn twice. `rows`,
            `given`, `title` and `publisher` may be others than before, since they ask nothing of the private rows.
        progress: A function of the name of each part as it begins, or an `understudy.progress.Progress`. By default a
            bar on standard error, in a terminal and in a notebook; False shows none.
        deliver: Called with the release before the journal is deleted, to save it where no interruption can lose it.

    Returns:
        A `Release`: the synthetic table, its certificate, and the noisy answers that both follow from.

    Raises:
        InputError: What was asked is impossible or contradicts itself; nothing was spent.
        TableError: The table is not open (`understudy.open`), or can't be read to its end.
        MethodError: The method can't do what was asked of it.
        BudgetExhausted: The ledger has a limit, and this would pass it; nothing was spent.
        CheckFailed: The audit found a violation; nothing was spent.

    >>> import pyarrow as pa, understudy as us
    >>> schema = us.Schema.loads('[columns.age]\\ntype = "integer"\\nmin = 0\\nmax = 99')
    >>> release = us.synthesize(us.open(pa.table({"age": [31, 47, 52]}), schema), epsilon=1.0, delta=0, rows=5)
    >>> release.table.num_rows, release.certificate.epsilon <= 1.0
    (5, True)
    """
    table = opened(table)
    # A text is a sequence too: ["age"] would be taken for the columns a, g and e.
    if any(isinstance(m, str) for m in marginals):
        raise InputError('marginals must be lists of column names, such as [["age", "income"]]', marginals)
    said = Options(
        targets=stated_targets(target),
        marginals=tuple(tuple(m) for m in marginals),
        weights=stated_weights({} if weights is None else weights),
        workload=workload,
        by=by,
        draws=draws,
        pool=pool,
        numeric=numeric,
        own={} if options is None else dict(options),
        prior=None if prior is None else load_prior(prior, table.schema, getattr(table, "source", None)),
    )
    randomness, budget = randomness_of(test_only_noise_seed), Budget(epsilon, delta)
    imprint = Imprint(title, publisher)
    plan = Plan.of(
        table.schema, budget, method, said, rows=rows, seed=seed, accept_draft=accept_draft_as_public, given=given,
        most_rows=most_rows(table.schema),
    ).check()  # fmt: skip
    plan = replace(plan, imprint=imprint)
    check_sites(plan.choice, table)
    # After the check: a refusal must not make a ledger or a journal, let alone debit one.
    paying = ledger_for(table, ledger)
    kept = journal
    if not isinstance(kept, Journal):
        kept = journal_at(kept, paying, resume)
    with closing(kept) if kept else nullcontext():
        said_now = imprint if imprint.stated else None
        plan = continued(plan, kept, seed=seed, rows=rows, given=given, imprint=said_now)
        check_memory(plan.schema, plan.rows)
        with shown(progress, steps_of(table.schema)) as told:
            for sentence in cautions_before(plan.choice.method, plan.schema, plan.budget):
                told.caution(sentence)
            if callable(audit):
                audit = audit(plan)
            release = synthesize_with(
                table,
                plan.audited(audit),
                randomness=randomness,
                ledger=paying,
                analyst=analyst,
                progress=told,
                journal=kept,
            )
        if deliver is not None:
            deliver(release)
        # Only now: a release that is not delivered yet can still be rebuilt from its journal.
        if kept and paying:
            kept.finish(paying)
        return release


def synthesize_with(
    table: Table,
    plan: Plan,
    *,
    randomness: Randomness,
    ledger: Ledger | Path | None = None,
    analyst: str = "",
    progress: Listener | None = None,
    journal: Journal | None = None,
) -> Release:
    """Runs a plan on a table, once it is checked; who gives a journal closes or finishes it.

    Only the ledger that is given is debited: who calls this has settled which one it is.
    """
    plan = plan.check()
    purpose = f"synth {plan.choice.method.name} of {table.name}"
    if journal is not None:
        if ledger is None:
            raise without_ledger(journal.path)
        # Answers that were given to another plan, by other versions or with other noise can't be continued.
        journal.settle(
            facts(plan, table.name, randomness.secure, versions() | plan.choice.package), free=POSTPROCESSING
        )
    # It debits the whole budget before its first draw (docs/decisions/0001-whole-budget-debit.md).
    curator = Curator.on(
        table,
        plan.budget,
        ledger=ledger,
        purpose=purpose,
        analyst=analyst,
        randomness=randomness,
        journal=journal,
    )
    release = plan.release(curator, table.kind, progress)
    curator.finish()
    return release


@dataclass(frozen=True)
class Plan:
    """Everything about a release that is settled before a row is read."""

    schema: Schema
    budget: Budget
    choice: Choice
    options: Options
    rows: int | None
    seed: int
    # It follows from the choice and the options, which are compared.
    recipe: Recipe = field(compare=False)
    draft_accepted: bool = False
    given: Mapping[str, Plain] = field(default_factory=dict)
    audit: Audited | None = None
    imprint: Imprint = field(default_factory=Imprint)
    most_rows: int = MOST_ROWS
    """Of a release that is asked for no number of rows."""
    checked: bool = field(default=False, compare=False)
    before_drawing: Callable[[Schema, int], None] | None = field(default=None, compare=False)
    """Told the schema, with all that was bought, and the number of rows; who replays a release may refuse them."""

    @classmethod
    def of(
        cls,
        schema: Schema,
        budget: Budget,
        method: str,
        options: Options,
        rows: int | None,
        seed: int | None,
        accept_draft: bool = False,
        given: Mapping[str, object] | None = None,
        most_rows: int = MOST_ROWS,
    ) -> Plan:
        if rows is not None:
            whole_number("rows", rows, 1, MOST_ROWS)
        whole_number("most_rows", most_rows, 1, MOST_ROWS)
        seed = seed_or_fresh(seed)
        schema.check_confirmed(accept_draft)
        choice = choose(method, options, schema, budget)
        own = choice.method.params.of(choice.method.name, options.own).changed()
        options = replace(options, own=own)
        stated = check_stated({} if given is None else given, schema)
        return cls(
            schema,
            budget,
            choice,
            options=options,
            rows=rows,
            seed=seed,
            recipe=build_recipe(choice.method, options),
            draft_accepted=schema.status == DRAFT,
            given=stated,
            most_rows=most_rows,
        )

    def audited(self, audit: Audited | None) -> Plan:
        """With an audit of this very method at this very budget, which must have found no violation."""
        if audit is None:
            return self
        if self.options.own:
            raise InputError(
                f"an audit is of the method with its default options, and {next(iter(self.options.own))} was changed; "
                "leave the audit or the option out",
                audit,
            )
        if self.options.prior is not None:
            raise InputError("an audit is of the method without a prior; leave the audit or the prior out", audit)
        wanted = (self.choice.method.name, self.budget.epsilon, self.budget.delta, self.schema.neighbours)
        found = (audit.subject, audit.claim.epsilon, audit.claim.delta, audit.claim.neighbours)
        if found != wanted:
            words = "{} at epsilon {:g} and delta {:g}, neighbours {}"
            raise InputError(f"the audit is of {words.format(*found)}, and must be of {words.format(*wanted)}", audit)
        if audit.violated:
            raise CheckFailed(f"the audit of {audit.subject} found a violation, so nothing was spent", audit)
        return replace(self, audit=audit)

    def check(self) -> Plan:
        """Refuses whatever can be refused from public facts, before anything is spent; once for each plan."""
        if self.checked:
            return self
        for name in (*self.options.targets, *(c for s in self.options.marginals for c in s)):
            self.schema[str(name)]
        # Private values are found by a threshold on noisy counts, which has a δ and no pure form.
        wanted = [c.name for c in self.schema.private if isinstance(c, Categorical)]
        if self.budget.pure and wanted:
            raise no_pure_keys(wanted[0])
        if self.schema.private:
            domain = Domain.of(provisional(self.schema))  # rules can't be tried on values that are not bought yet
        else:
            domain = self._domain(self.schema)
        self.recipe.calibrate(domain, self.budget.capacity)
        return replace(self, checked=True)

    def run(self, curator: Curator, progress: Listener | None = None) -> tuple[Columns, Domain, Model]:
        """The release itself: buy what is private, measure, fit, draw."""
        # Results must not depend on how many cores add them up; and for small products, cores only wait for each other.
        with threadpool_limits(1):
            told = listening(progress)
            domain, model = self.learn(curator, told)
            told(STEPS[2])
            # The total is noisy: it may be below 1, or far above what a disk holds.
            rows = self.rows or min(self.most_rows, max(1, round(model.total)))
            if self.before_drawing:
                self.before_drawing(domain.schema, rows)
            given = Evidence.stated(self.given, domain)
            return draw(model, domain, rows, self._generator(1), given, self._witness()), domain, model

    def learn(self, curator: Queryable, progress: Listener | None = None) -> tuple[Domain, Model]:
        """All that is asked of the curator, and what is made of the answers before a row is drawn."""
        told, recipe = listening(progress), self.recipe
        if told.detailed:
            recipe, curator = watched(recipe, curator, told.advance)
        # Before anything is bought: a training reserves its part of the budget, or refuses the table.
        if prepare := getattr(recipe, "prepare", None):
            prepare(curator)
        if self.schema.private:
            told(STEPS[0])
        known = discover(self.schema, curator)
        if self.options.numeric == POLYA:
            known = with_bought_bins(known, curator)
        domain = self._domain(known)
        told(STEPS[1])
        # What buying left is the same in a replay, which spends the same; so the replay is calibrated alike.
        return domain, recipe.calibrate(domain, curator.remaining()).fit(curator, self._generator(0))

    def _generator(self, place: int) -> np.random.Generator:
        """Of two: one to fit with, one to draw rows with. Each draws alike however much the other one drew."""
        return np.random.Generator(np.random.PCG64(np.random.SeedSequence(self.seed).spawn(2)[place]))

    def release(self, curator: Curator, kind: str, progress: Listener | None = None) -> Release:
        values, domain, model = self.run(curator, progress)
        arrow = from_values(values, domain.schema)
        return Release(
            to_native(arrow, kind),
            self.certificate(
                curator,
                arrow.num_rows,
                self._expected(domain, model),
                cut=self.rows is None and round(model.total) > self.most_rows,
            ),
            record=tuple(curator.record),
            schema=self.schema,
            domain=domain,
            arrow=arrow,
            model=model,
            prior=self.options.prior,
        )

    def _expected(self, domain: Domain, model: Model) -> str:
        """The forecast with the noisy number of rows, in words; nothing where there is none."""
        if self.given:
            return ""
        total = max(1, round(model.total))
        found = forecast_after(self.choice.method, domain.schema, self.budget, total)
        return "" if found is None else f"{EXPECTED}{spoken(found, total)}"

    def certificate(self, curator: Curator, rows: int, expected: str = "", cut: bool = False) -> Certificate:
        parameters = self.options.to_dict() | {"rows": self.rows}
        if cut:  # a replay elsewhere must cut there too
            parameters["most_rows"] = self.most_rows
        if self.given:
            parameters["given"] = self.given
        return Certificate(
            method=self.choice.method.name,
            parameters=parameters,
            reason=f"{self.choice.reason}{expected}",
            asked=self.budget,
            neighbours=self.schema.neighbours,
            unit=PrivacyUnit.of(self.schema).to_dict(),
            spends=curator.spends,
            columns=provenance(self.schema),
            rows=rows,
            rows_rule=self._rows_rule() + f", cut at {rows:,}" * cut,
            seed=self.seed,
            secure=curator.secure,
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            versions=versions() | self.choice.package,
            audit=None if self.audit is None else self.audit.for_certificate(),
            ledger=curator.receipt,
            schema_status=self.schema.status,
            federation=curator.facts.federation,
            confirmation=None if self.schema.confirmation is None else dataclasses.asdict(self.schema.confirmation),
            imprint=self.imprint,
        )

    def _domain(self, schema: Schema) -> Domain:
        domain = Domain.of(schema)
        check_decodable(domain)
        check_satisfiable(domain, self._witness(), Evidence.stated(self.given, domain))
        return domain

    def _witness(self) -> np.random.Generator:
        """In the same state each time: what `check` found to satisfy the rules, `draw` finds again."""
        return np.random.Generator(np.random.PCG64(self.seed))

    def _rows_rule(self) -> str:
        if self.rows is not None:
            return "as asked"
        if self.schema.public_rows:
            return "the number of private rows, public under replace-one"
        return "noisy total"


# --- progress: a run that is watched asks the same questions in the same order, and its record is the same


def watched(recipe: Recipe, curator: Queryable, advance: Callable[[Advance], None]) -> tuple[Recipe, Queryable]:
    """The same recipe and the same curator, which tell how far they are."""
    observed = ReportingCurator(curator, advance, early=hasattr(recipe, "reporting"))
    if reporting := getattr(recipe, "reporting", None):
        recipe = reporting(observed.tell)
    return recipe, observed


class ReportingCurator(Wrapper):
    """A curator that tells after every answer what all answers so far amount to."""

    def __init__(self, curator: Queryable, advance: Callable[[Advance], None], *, early: bool = False) -> None:
        super().__init__(curator)
        self._advance, self._early = advance, early
        self._last = Advance(QUESTION, 0, budget=curator.budget.epsilon)

    def ask(self, ask: Ask[Result]) -> Result:
        answer = super().ask(ask)
        epsilon = self.guarantee[0]
        if self._last.counted:  # the recipe counts its own steps: between two of them a question moves ε alone
            self._last = replace(self._last, epsilon=epsilon)
        else:
            self._last = Advance(QUESTION, len(self.spends), epsilon=epsilon, budget=self.budget.epsilon)
            self._last = replace(self._last, early=self._early)
        self._advance(self._last)
        return answer

    def tell(self, unit: str, done: int, steps: int, epsilon: float) -> None:
        """Takes the report of a recipe that counts its steps."""
        self._early = False
        self._last = Advance(unit, done, steps, epsilon=epsilon, budget=self.budget.epsilon)
        self._advance(self._last)
