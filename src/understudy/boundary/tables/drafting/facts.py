"""What a draft is made of: a sample of the rows, from which kinds are guessed, one full pass for the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from understudy.boundary.tables.connection import quoted_text
from understudy.boundary.tables.drafting.readings import Reading, agreed, reading_of
from understudy.boundary.tables.rows import Rows
from understudy.boundary.tables.sql import ROWS, Stored, text_of

MISSING_TOKENS = ("?", "NA", "N/A", "NaN", "nan", "null", "NULL", "None")
SAMPLE_ROWS = 20_000
SAMPLE_CELLS = 1_000_000
COUNTED_VALUES = 1_500
"""Columns with at most as many different values in the sample have all of theirs counted."""
STRAYS = 6
ANSWERS = 7
"""For each column in the full pass."""
PASS_COLUMNS = 40
"""That one pass over the rows takes: a state for each value of each of them is in memory."""
SENTINELS = frozenset(
    [s * int(str(d) * k) for s in (1, -1) for d in (7, 8, 9) for k in range(1, 7)] + [-1, 97, 98, 997, 998, 9997, 9998]
)

Watch = Callable[[str], None]


@dataclass(frozen=True)
class Facts:
    """What is known of one column. `counts` are those of all rows, where the values are few; else of the sample."""

    name: str
    stored: Stored
    reading: Reading
    believed: bool
    """Whether its type was declared by whoever stored it."""
    rows: int
    present: int
    sample: Counter[str]
    distinct: int
    longest: int
    counts: Counter[str] | None = None
    low: Any = None
    high: Any = None
    read: int = 0
    whole: bool = False
    decimals: int = 0
    zeros: bool = False
    """Whether a number begins with a zero that no number needs."""
    midnights: bool = False
    strays: dict[str, int] = field(default_factory=dict)
    tokens: tuple[str, ...] = ()
    categories: tuple[tuple[str, ...], bool] | None = None
    """Those that a frame declares, and whether they are in order."""

    @property
    def missing(self) -> bool:
        return self.present < self.rows

    @property
    def unique(self) -> bool:
        """Whether (nearly) all values differ; the number of different ones is an estimate in long tables."""
        return self.distinct >= (0.999 if self.counts is not None or self.rows <= SAMPLE_ROWS else 0.95) * self.present


def gather(rows: Rows, categories: dict[str, tuple[tuple[str, ...], bool]], watch: Watch) -> list[Facts]:
    """The facts of all columns, by a scan for a sample and one for each forty columns."""
    watch("a sample of the rows")
    typed = rows.kind not in ("csv", "excel")
    names = rows.columns
    sampled = _sample(rows)
    tokens = tuple(t for t in MISSING_TOKENS if any(t in counts for counts in sampled))
    samples = [Counter({t: n for t, n in counts.items() if t not in tokens}) for counts in sampled]
    stored = [rows.source.columns[n] for n in names]
    readings = [reading_of(s, kind, typed) for s, kind in zip(samples, stored, strict=True)]
    readings = agreed(readings, samples)
    found: list[Facts] = []
    for start in range(0, len(names), PASS_COLUMNS):
        part = slice(start, start + PASS_COLUMNS)
        watch(f"columns {start + 1} to {min(start + PASS_COLUMNS, len(names))}")
        blank = [
            Facts(
                name,
                stored=kind,
                reading=reading,
                believed=typed,
                rows=0,
                present=0,
                sample=sample,
                distinct=0,
                longest=0,
                tokens=tokens,
                categories=categories.get(name),
            )
            for name, kind, reading, sample in zip(
                names[part], stored[part], readings[part], samples[part], strict=True
            )
        ]
        found += _counted(rows, blank, tokens)
    return found


def _sample(rows: Rows) -> list[Counter[str]]:
    """The texts of some rows; of all, where they are few."""
    size = max(2_000, min(SAMPLE_ROWS, SAMPLE_CELLS // max(1, len(rows.columns))))
    texts = ", ".join(f"{_text(kind)} AS c{i}" for i, kind in enumerate(rows.source.columns.values()))
    query = f"SELECT {texts} FROM (SELECT * FROM {rows.relation} USING SAMPLE reservoir({size} ROWS) REPEATABLE (7))"
    table = rows.fetch(f"{query} AS {ROWS}")
    return [Counter(t for t in column.to_pylist() if t) for column in table.columns]


def _counted(rows: Rows, blank: Sequence[Facts], tokens: Sequence[str]) -> list[Facts]:
    listed = ", ".join(map(quoted_text, ("", *tokens)))
    texts = ", ".join(f"{_text(f.stored)} AS r{i}" for i, f in enumerate(blank))
    present = ", ".join(f"CASE WHEN r{i} NOT IN ({listed}) THEN r{i} END AS t{i}" for i in range(len(blank)))
    values = ", ".join(f"t{i}, {f.reading.sql(f't{i}')} AS v{i}" for i, f in enumerate(blank))
    asked = ["count(*)", *(a for i, f in enumerate(blank) for a in _aggregates(i, f))]
    cells = f"(SELECT {present} FROM (SELECT {texts} FROM {rows.relation} AS {ROWS}))"
    (row,) = rows.query(f"SELECT {', '.join(asked)} FROM (SELECT {values} FROM {cells})")
    lists = _lists(rows, cells, [f"t{i}" for i, f in enumerate(blank) if _is_listed(f)])
    answers = iter(row)
    total = next(answers)
    return [_filled(f, total, lists.get(f"t{i}"), [next(answers) for _ in range(ANSWERS)]) for i, f in enumerate(blank)]


def _lists(rows: Rows, cells: str, texts: Sequence[str]) -> dict[str, Counter[str]]:
    """All values of some columns with their counts, in one scan; DuckDB's histograms keep a copy of every text."""
    if not texts:
        return {}
    named, sets = ", ".join(texts), ", ".join(f"({t})" for t in texts)
    found = {t: Counter[str]() for t in texts}
    for which, value, count in rows.query(
        f"SELECT grouping({named}), coalesce({named}), count(*) FROM {cells} GROUP BY GROUPING SETS ({sets})"
    ):
        if value is not None:
            # A bit for each column, the first on the left; it is zero for the one that is grouped by.
            place = next(i for i in range(len(texts)) if not which >> (len(texts) - 1 - i) & 1)
            found[texts[place]][value] = count
    return found


def _aggregates(i: int, facts: Facts) -> list[str]:
    """Seven for each column, null where they make no sense."""
    t, v = f"t{i}", f"v{i}"
    basis = [f"count({t})", f"approx_count_distinct({t})", f"max(length({t}))"]
    match facts.reading.kind:
        case "number":
            fine = f"FILTER (isfinite({v}))"
            # Digits behind the last mark, and the sign of a whole number, in one figure each.
            mark = "." if facts.reading.marks.plain else facts.reading.marks.decimal
            behind = f"length({t}) - instr({t}, {quoted_text(mark)})"
            digits = f"max(CASE WHEN contains({t}, {quoted_text(mark)}) THEN {behind} END) {fine}"
            zeros = f"count(*) FILTER ({t}[1] = '0' AND {t}[2] BETWEEN '0' AND '9')"
            flags = f"[count({v}) {fine}, count(*) FILTER ({v} = floor({v})), {digits}, {zeros}]"
            strays = f"approx_top_k({t}, {STRAYS}) FILTER ({t} IS NOT NULL AND {v} IS NULL)"
            return [*basis, f"min({v}) {fine}", f"max({v}) {fine}", flags, strays]
        case "moment":
            fine = f"FILTER (isfinite({v}))"
            flags = f"[count({v}) {fine}, count({v}) FILTER ({v} = date_trunc('day', {v}))]"
            strays = f"approx_top_k({t}, {STRAYS}) FILTER ({t} IS NOT NULL AND {v} IS NULL)"
            # Python has no dates beyond these, and would be handed texts.
            kept = f"least(greatest({v}, TIMESTAMP '0001-01-01'), TIMESTAMP '9999-12-31')"
            return [*basis, f"min({kept}) {fine}", f"max({kept}) {fine}", flags, strays]
    return [*basis, *["NULL"] * 4]


def _is_listed(facts: Facts) -> bool:
    return facts.reading.kind != "moment" and len(facts.sample) <= COUNTED_VALUES


def _filled(facts: Facts, rows: int, counts: Counter[str] | None, answers: Sequence[Any]) -> Facts:
    present, distinct, longest, low, high, flags, strays = answers
    if counts is not None:
        distinct = len(counts)
    elif rows <= SAMPLE_ROWS and sum(facts.sample.values()) >= present:
        distinct = len(facts.sample)
    known = replace(
        facts, rows=rows, present=present, distinct=distinct or 0, longest=longest or 0, counts=counts,
        low=low, high=high, strays=dict.fromkeys(strays or (), 0),
    )  # fmt: skip
    if facts.reading.kind == "number" and flags:
        read, whole, decimals, zeros = flags
        return replace(known, read=read, whole=read == whole, decimals=decimals or 0, zeros=bool(zeros))
    if facts.reading.kind == "moment" and flags:
        return replace(known, read=flags[0], midnights=flags[0] == flags[1])
    return known


def _text(stored: Stored) -> str:
    return str(text_of(stored).sql(dialect="duckdb"))
