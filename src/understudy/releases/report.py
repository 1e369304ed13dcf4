"""The publishable report of a release: what the certificate claims, in words and pictures, on one page.

Everything on it is public: the certificate, the domain, and the synthetic table, which is post-processing of paid noise
(Dwork & Roth 2014, Proposition 2.1). Nothing is estimated here; numbers are only counted and rounded for display, and
whatever is part of a claim is rounded up.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from understudy.boundary.privacy import asks
from understudy.boundary.privacy.budget import GDP, ZCDP, Budget, Spend
from understudy.boundary.privacy.measurement import RecordedAnswer
from understudy.boundary.schema.column import Column, Datetime, Identifier, Integer
from understudy.boundary.schema.domain import Coding, Domain
from understudy.boundary.schema.schema import CONFIRMED, DECLARED, REPLACE_ONE, UNCHANGED
from understudy.boundary.schema.spelling import special_text
from understudy.methods.forecast.caution import rough
from understudy.methods.forecast.forecast import Forecast
from understudy.methods.registry import METHODS
from understudy.pages.dial import Slice, donut
from understudy.pages.figure import Figure
from understudy.pages.formatting import upward
from understudy.pages.page import plain_environment, rendered
from understudy.pages.palette import DARK, LIGHT, SERIES
from understudy.releases.certificate import BOUGHT, NEVER_READ, READ_TO_CAP, REBUILT, UNCONFIRMED, Certificate
from understudy.releases.report_figures import (
    MEANING,
    MOST_NAMED_BARS,
    ColumnChart,
    column_chart,
    curve_of,
    first_point,
    last_point,
    training_curve,
)
from understudy.releases.synthetic_table import as_texts

if TYPE_CHECKING:
    import jinja2
    import pyarrow as pa

OPEN_SPENDS = 30  # lines of the budget table that are shown at once; the others unfold
MOST_LISTED = 200
SAMPLE = 10
"""Synthetic rows on the page."""
MOST_SHOWN = 40
"""Columns of theirs; more would make the page of a wide table as large as the table."""
BELIEFS = (0.01, 0.1, 0.5, 0.9)
NORMAL_REACH, LAPLACE_REACH = 1.96, math.log(20)
"""How many scales 95 % of the noise stays within: P(|X| > b ln 20) = 1/20 for a Laplace variable of scale b."""

ORIGINS = {
    DECLARED: "Declared public in the schema.",
    CONFIRMED: "Drafted from the data, then confirmed as public by a person.",
    UNCHANGED: "Drafted from the data, and confirmed as public by a person who changed nothing.",
    BOUGHT: "Learned with a part of the budget.",
    UNCONFIRMED: "Drafted from the data and accepted as public by a flag; so this release has no guarantee.",
    NEVER_READ: "An identifier: never modelled.",
    REBUILT: "Not modelled by itself: it follows from other columns, one of which may have been derived from it.",
    READ_TO_CAP: "Tells people apart, so that each counts with a bounded number of rows; never modelled.",
}

ROW_RULES = {"as asked": "the one that was asked for", "noisy total": "the noisy total of the private rows"}


@dataclass(frozen=True)
class _Noise:
    """A mechanism as the page speaks of it: its names, and how far 95 % of its noise reaches, per unit of scale."""

    words: str
    norm: str = ""
    scale: str = ""
    reach: float | None = None

    def margin(self, spend: Spend, noises: float = 1.0) -> int | None:
        """How many rows 95 % of the noise stays within. Noise is whole, so rounding up keeps the 95 %.

        Several sites may each have added theirs: their variances add up. None where there is no noise, or where the
        answer is a sum of numbers and no count of rows.
        """
        if self.reach is None or asks.kind_of_spend(spend) is asks.Moments:
            return None
        return math.ceil(self.reach * spend.scale * math.sqrt(noises))


NOISES = {
    "rounded-gaussian": _Noise("Gaussian noise", "L2", "σ", NORMAL_REACH),
    "discrete-gaussian": _Noise("Gaussian noise", "L2", "σ", NORMAL_REACH),
    "discrete-laplace": _Noise("Laplace noise", "L1", "b", LAPLACE_REACH),
    "thresholded-gaussian": _Noise("Gaussian noise and a threshold", "L2", "σ", NORMAL_REACH),
    "thresholded-rounded-gaussian": _Noise("Gaussian noise and a threshold", "L2", "σ", NORMAL_REACH),
    "exponential": _Noise("noisy choice", "L∞", "ε"),
    "shared-gaussian": _Noise("Gaussian noise that sites share", "L2", "σ", NORMAL_REACH),
    "posterior-draws": _Noise("draws from a posterior", "rows", "m"),
    "public": _Noise("public fact, no noise"),
    "sampled-gaussian": _Noise("noisy gradients", "L2", "σ"),
}


UNITS = {GDP: "g", ZCDP: "ρ"}
"""What costs are counted in that are not pure."""


def render(
    certificate: Certificate,
    domain: Domain,
    table: pa.Table,
    *,
    record: Sequence[RecordedAnswer] = (),
    expected: Forecast | None = None,
    cautions: Sequence[str] = (),
) -> str:
    """One self-contained page for whoever decides about publication and whoever gets the table; same input, same bytes.

    Args:
        certificate: What is claimed, and every spend.
        domain: The columns with their codes, bought ones included.
        table: The synthetic rows.
        record: The noisy answers, of which the page shows the curve of a training, where there is one.
        expected: What releases of other tables lead to expect of this one (`planning.forecast_of`), if anything.
        cautions: What whoever uses the table should know first.

    >>> import pyarrow as pa, understudy as us
    >>> schema = us.Schema.loads('[columns.age]\\ntype = "integer"\\nmin = 0\\nmax = 99')
    >>> release = us.synthesize(us.open(pa.table({"age": [31, 47, 52]}), schema), epsilon=1.0, rows=5)
    >>> "<h1 class" in render(release.certificate, release.domain, release.arrow)
    True
    """
    lines, curve, own = _lines(certificate), curve_of(record), _margins_by_words(certificate)
    margins = [line.margin for line in lines if line.margin is not None]
    return rendered(
        _template(),
        certificate=certificate,
        claim=_Claim.of(certificate),
        lines=lines,
        open_lines=OPEN_SPENDS,
        margins=(min(margins), max(margins)) if margins else None,
        parts=_parts(lines, domain),
        trained=_trained(certificate),
        unit=UNITS[certificate.asked.accounting],
        curve=training_curve(curve) if curve else None,
        meaning=MEANING,
        expected=expected,
        cautions=cautions,
        sample=_Sample.of(table, domain),
        columns=_entries(certificate, domain, table, own),
        origins=_origin_counts(certificate),
        origin_words=ORIGINS,
        spent=certificate.composed[0],
        rules=domain.schema.rules,
        row_words=_row_words(certificate.rows_rule),
        method=METHODS.get(certificate.method),
        parameters=_parameters(certificate.parameters),
        most_listed=MOST_LISTED,
        most_named=MOST_NAMED_BARS,
    )


@lru_cache(maxsize=1)
def _template() -> jinja2.Template:
    environment = plain_environment()
    environment.filters |= {
        "upward": upward,
        "percent": percent,
        "counted": "{:,}".format,
        "clipped": clipped,
        "rough": rough,
    }
    environment.globals |= {"series": {n: (LIGHT[n], DARK[n]) for n in SERIES}}
    return environment.get_template("release.html.j2")


# --- numbers as texts


def percent(share: float) -> str:
    """A share for display.

    >>> percent(0.25), percent(0.00001), percent(0.0)
    ('25.0 %', '< 0.1 %', '0 %')
    """
    if share == 0:
        return "0 %"
    if share < 0.001:
        return "< 0.1 %"
    return f"{100 * share:.1f} %"


def clipped(text: str, most: int) -> str:
    """The text, or its beginning.

    >>> clipped("abcdef", 4)
    'abc…'
    """
    if len(text) <= most:
        return text
    return text[: most - 1] + "…"


# --- the claim


@dataclass(frozen=True)
class _Claim:
    """The guarantee in words for people."""

    epsilon: float
    delta: float
    factor: str
    one_in: str
    beliefs: tuple[tuple[float, float], ...]
    person: bool
    max_rows: int
    unit_column: str
    replace_one: bool

    @classmethod
    def of(cls, certificate: Certificate) -> _Claim:
        epsilon, delta = certificate.epsilon, certificate.delta
        unit = certificate.unit
        return cls(
            epsilon=epsilon,
            delta=delta,
            factor=_factor(epsilon),
            one_in=_one_in(delta),
            beliefs=tuple((p, _belief(p, epsilon)) for p in BELIEFS),
            person=unit.get("what") == "person",
            max_rows=int(unit.get("max_rows", 1)),
            unit_column=str(unit.get("column", "")),
            replace_one=certificate.neighbours == REPLACE_ONE,
        )


def _factor(epsilon: float) -> str:
    """e^ε, rounded up; as a power of ten where nobody would read the digits."""
    if math.isinf(epsilon):
        return "∞"
    if epsilon > 16:
        return f"10^{math.ceil(epsilon / math.log(10))}"
    if epsilon < 6:
        return upward(math.exp(epsilon), 3)
    return upward(math.exp(epsilon), 8)


def _one_in(delta: float) -> str:
    """δ as "1 in n", n rounded down; through its decimal digits, since 1/1e-5 isn't 100,000 in binary."""
    if not delta:
        return ""
    return f"1 in {int(1 / Decimal(repr(delta))):,}"


def _belief(before: float, epsilon: float) -> float:
    """The most that odds multiplied by e^ε make of a belief, rounded up to a tenth of a per cent."""
    # Bayes: differential privacy bounds the likelihood ratio by e^ε, and posterior odds are prior odds times it.
    after = before / (before + (1 - before) * math.exp(-epsilon))
    return min(1.0, math.ceil(1000 * after) / 1000)


# --- the budget


@dataclass(frozen=True)
class _Line:
    """One spend as a line of the budget table."""

    spend: Spend
    noise: _Noise
    price: float
    currency: str
    share: float
    start: float
    margin: int | None


def _lines(certificate: Certificate) -> list[_Line]:
    """Every spend with its share of the total: by its cost, or where something was trained by what it adds to ε."""
    pure, trained = certificate.asked.pure, _trained(certificate)
    unit = UNITS[certificate.asked.accounting]
    # Where all that was asked is public, nothing was spent, and there would be nothing to divide by.
    counted = sum(_price(s, certificate.asked) for s in certificate.spends if not s.steps) or 1.0
    whole = certificate.composed[0] if trained else 1.0
    lines, start = list[_Line](), 0.0
    for spend in certificate.spends:
        noise = NOISES.get(spend.mechanism, _Noise(spend.mechanism))
        price, currency = _price(spend, certificate.asked), "ε" if pure or spend.steps else unit
        # A training is counted in ε at δ; what is counted in g (or ρ), or in pure ε, shares what is left by price.
        if spend.steps:
            share = price / whole
        else:
            share = price / counted * (1.0 - trained / whole)
        lines.append(
            _Line(spend, noise, price, currency=currency, share=share, start=start, margin=noise.margin(spend))
        )
        start += share
    return lines


def _price(spend: Spend, asked: Budget) -> float:
    """In the currency that the budget was asked in, or of a training, which has none but its own, in ε."""
    cost = spend.cost
    if cost.direct:
        return float(cost.direct)
    if asked.pure:
        return float(cost.epsilon or 0)
    return float(cost.by(asked.accounting) or 0)


def _trained(certificate: Certificate) -> float:
    """The ε of what was trained."""
    return float(sum(s.cost.direct for s in certificate.spends))


def _parts(lines: list[_Line], domain: Domain) -> Figure:
    """The budget by what it was spent on."""
    single = {asks.Marginals.words((name,)) for name in domain.names}
    names = ["single columns", "columns together", "choosing what to count", "training a network", "other questions"]
    amounts = dict.fromkeys(names, 0.0)
    for line in lines:
        amounts[_part(line.spend, single)] += line.share
    slices = [Slice(name, amount) for name, amount in amounts.items()]
    return donut(slices, title="What it was spent on", note="By cost, over all questions.", width=480)


def _part(spend: Spend, single: set[str]) -> str:
    kind = asks.kind_of_spend(spend)
    if kind in (asks.Select, asks.Quantile, asks.Ranks):
        return "choosing what to count"
    if kind in (asks.Train, asks.Consult):
        return "training a network"
    if spend.asked in single:
        return "single columns"
    if kind in (asks.Marginals, asks.Partitions, asks.Moments):
        return "columns together"
    return "other questions"


# --- the rows


@dataclass(frozen=True)
class _Sample:
    """The first synthetic rows, as the file has them; None is a missing value."""

    names: tuple[str, ...]
    rows: tuple[tuple[str | None, ...], ...]
    columns: int
    """Of the whole table, of which `names` may be the first ones."""

    @classmethod
    def of(cls, table: pa.Table, domain: Domain) -> _Sample:
        shown = table.select(table.column_names[:MOST_SHOWN]).slice(0, SAMPLE)
        rows = tuple(zip(*as_texts(shown, domain.schema), strict=True))
        return cls(tuple(shown.column_names), rows, table.num_columns)


# --- the columns


@dataclass(frozen=True)
class _Entry:
    """One column of the schema as a line of the column table."""

    column: Column
    origin: str
    codes: str
    values: tuple[str, ...]
    chart: ColumnChart | None
    margin: int | None = None
    """How many rows 95 % of the noise of its own counts stays within, where it was counted by itself."""
    no_chart: str = "never modelled"
    """Why there is no chart, where there is none."""

    @classmethod
    def of(
        cls,
        column: Column,
        certificate: Certificate,
        domain: Domain,
        values: Mapping[str, pa.ChunkedArray],
        margins: Mapping[str, int],
    ) -> _Entry:
        origin = certificate.columns.get(column.name, DECLARED)
        if isinstance(column, Identifier):
            words = "left out of the table"
            if column.made_up is not None:
                words = f"made-up values such as {column.made_up.format(1)}"
            return cls(column, origin, words, (), None)
        source = getattr(column, "rebuilt_from", None)
        if source:
            return cls(column, origin, f"rebuilt from {source}", (), None, no_chart="not counted by itself")
        coding = domain[column.name]
        labels = () if coding.labels is None else tuple(map(str, coding.labels))
        # A column that is derived alone stands in no table.
        chart = column_chart(coding, values[column.name]) if column.name in values else None
        margin = margins.get(asks.Marginals.words((column.name,)))
        return cls(column, origin, _codes_words(coding), labels, chart, margin, no_chart="not in the table itself")


def _entries(certificate: Certificate, domain: Domain, table: pa.Table, margins: Mapping[str, int]) -> list[_Entry]:
    # A table looks for a name from its first column on, and there may be thousands.
    values = dict(zip(table.column_names, table.columns, strict=True))
    return [_Entry.of(column, certificate, domain, values, margins) for column in domain.schema]


def _margins_by_words(certificate: Certificate) -> dict[str, int]:
    """The least margin of all spends that say the same; made once, since there may be thousands of columns."""
    found: dict[str, int] = {}
    noises = certificate.federation.noises if certificate.federation else 1.0
    for spend in certificate.spends:
        margin = NOISES[spend.mechanism].margin(spend, noises) if spend.mechanism in NOISES else None
        if margin is not None:
            found[spend.asked] = min(margin, found.get(spend.asked, margin))
    return found


def _codes_words(coding: Coding) -> str:
    """What the codes of a column stand for, in a few words."""
    edges, whole = coding.edges or (), isinstance(coding.column, Integer | Datetime)
    single = coding.labels is not None or (whole and edges[-1] - edges[0] == coding.levels)
    kind = "value" if single else "bin"
    plural = "" if coding.levels == 1 else "s"
    words = f"{coding.levels:,} {kind}{plural}"
    if edges:
        words += f", {first_point(coding, 0)} to {last_point(coding)}"
    if isinstance(coding.column, Datetime):
        words += f", by the {coding.column.resolution}"
    if coding.special:
        words += f", or {', '.join(map(special_text, coding.special))}"
    if coding.column.missing:
        words += ", or missing"
    return words


# --- the rest


def _origin_counts(certificate: Certificate) -> list[tuple[str, int]]:
    """How many columns came about in each way, in a fixed order."""
    tally = Counter(certificate.columns.values())
    return [(origin, tally[origin]) for origin in (*ORIGINS, *sorted(set(tally) - set(ORIGINS))) if tally[origin]]


def _row_words(rule: str) -> str:
    rule, cut, most = rule.partition(", cut at ")
    return f"{ROW_RULES.get(rule, rule)}{cut}{most}"


def _parameters(parameters: dict[str, Any]) -> list[tuple[str, str]]:
    """What was set, leaving out what was left as it is, and the rows, which have a line of their own."""
    shown = {k: v for k, v in parameters.items() if k != "rows" and v not in (None, [], (), "", {})}
    return [(k, _setting(k, v)) for k, v in shown.items() if (k, v) != ("workload", "pairs")]


def _setting(name: str, value: Any) -> str:
    if name == "weights":
        return "; ".join(f"{_joined(columns)} = {weight:g}" for columns, weight in value)
    if name == "options":
        return "; ".join(f"{option} = {stated}" for option, stated in value.items())
    if name == "given":
        return "; ".join(f"{c} = missing" if stated is None else f"{c} = {stated}" for c, stated in value.items())
    if name == "prior":
        return f"{value['name']} (SHA-256 {value['sha256'][:16]}…), {value['said']}"
    if isinstance(value, list | tuple):
        return "; ".join(map(_joined, value))
    return str(value)


def _joined(item: Any) -> str:
    if isinstance(item, list | tuple):
        return ", ".join(map(str, item))
    return str(item)
