"""How often the intervals of `release.count` hold the true count, over simulated releases: `scripts/bench intervals`.

Each release is made anew at ε = 1 from a generated table, from nursery or from 3,000 rows of adult, by mst, aim or
rake. Asked are cells of its measured tables, ranges inside one measured table, and random ranges and value sets of one
to four columns. The naive interval counts the synthetic rows and allows for sampling alone.
"""

from __future__ import annotations

import argparse
import itertools
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
from places import DATA

import understudy as us
from understudy.boundary.schema.domain import Coding, Domain
from understudy.datasets import schema as bundled
from understudy.releases.interval import Count
from understudy.releases.observation import RecordedTable

METHODS = ("mst", "aim", "rake")
EPSILON = 1.0
Z = 1.96
RANDOM_QUERIES, ASKED, CELLS, INSIDE = 500, 25, 15, 10
"""A pool of random queries for each table, of which each release answers some; cells and inner queries per release."""
GENERATED = """
[columns.age]
type = "integer"
min = 0
max = 59
[columns.region]
type = "categorical"
values = ["a", "b", "c", "d", "e", "f"]
[columns.pay]
type = "number"
min = 0
max = 100
bins = 20
decimals = 1
[columns.job]
type = "categorical"
values = ["p", "q", "r", "s"]
missing = true
[columns.member]
type = "boolean"
"""


@dataclass
class Tally:
    """Coverage and widths of one kind of question."""

    held: list[bool] = field(default_factory=list)
    width: list[float] = field(default_factory=list)
    exact: list[bool] = field(default_factory=list)
    naive_held: list[bool] = field(default_factory=list)
    naive_width: list[float] = field(default_factory=list)

    def add(self, found: Count, truth: int, synthetic: int, rows: int, drawn: int) -> None:
        share = synthetic / drawn
        reach = Z * math.sqrt(rows * share * (1 - share))
        self.held.append(found.low <= truth <= found.high)
        self.width.append((found.high - found.low) / rows)
        self.exact.append(found.exact_noise)
        self.naive_held.append(abs(share * rows - truth) <= reach)
        self.naive_width.append(2 * reach / rows)

    def line(self, name: str) -> str:
        wide, naive = np.mean(self.width), np.mean(self.naive_width)
        return (
            f"{name:<38} {len(self.held):>7,} {np.mean(self.held):>9.1%} {wide:>9.2%} {wide / naive:>9.1f} "
            f"{np.mean(self.naive_held):>9.1%} {np.mean(self.exact):>9.0%}"
        )


HEAD = f"{'':<38} {'asked':>7} {'coverage':>9} {'width/n':>9} {'to naive':>9} {'naive cov':>9} {'exact':>9}"


def generated(rows: int, seed: int) -> tuple[pa.Table, us.Schema]:
    rng = np.random.default_rng(seed)
    age = np.minimum(rng.gamma(3, 8, rows).astype(int), 59)
    region = (age // 10 + rng.integers(0, 4, rows)) % 6
    pay = np.clip(np.round(age + 10 * region + rng.normal(0, 15, rows), 1), 0, 100)
    job = (region + (pay > 50) + rng.integers(0, 2, rows)) % 4
    jobs = [None if rng.random() < 0.05 else "pqrs"[j] for j in job]
    member = rng.random(rows) < 0.2 + 0.5 * (job == 1)
    columns = {"age": age, "region": ["abcdef"[r] for r in region], "pay": pay, "job": jobs, "member": member}
    return pa.table(columns), us.Schema.loads(GENERATED)


def public(name: str, file: str, rows: int, seed: int) -> tuple[pa.Table, us.Schema]:
    options = pacsv.ConvertOptions(null_values=["?"], strings_can_be_null=True)
    whole = pacsv.read_csv(DATA / file, convert_options=options)
    chosen = np.random.default_rng(seed).permutation(whole.num_rows)[:rows]
    return whole.take(chosen), bundled(name)


def tables() -> Iterator[tuple[str, pa.Table, us.Schema]]:
    yield "generated, 4,000 rows", *generated(4_000, 1)
    if DATA.is_dir():
        yield "nursery, 12,960 rows", *public("nursery", "nursery.csv", 12_960, 2)
        yield "adult, 3,000 rows", *public("adult", "adult.train.csv", 3_000, 3)


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def literal(value: object) -> str:
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)


def any_of(coding: Coding, codes: list[int]) -> str:
    """The condition that a column has one of these codes."""
    return "(" + " OR ".join(is_code(coding, c) for c in codes) + ")"


def is_code(coding: Coding, code: int) -> str:
    name = quoted(coding.name)
    if code == coding.levels:
        return f"{name} IS NULL"
    if coding.labels is not None:
        return f"{name} = {literal(coding.labels[code])}"
    assert coding.edges is not None
    low, high = coding.edges[code], coding.edges[code + 1]
    return f"({name} >= {low} AND {name} {'<' if code < coding.levels - 1 else '<='} {high})"


def cell_query(table: RecordedTable, domain: Domain, rng: np.random.Generator) -> str:
    """A random cell of a measured table."""
    parts = []
    for column, groups in zip(table.columns, table.groups, strict=True):
        group = rng.integers(0, max(groups) + 1)
        parts.append(any_of(domain[column], [c for c, g in enumerate(groups) if g == group]))
    return " AND ".join(parts)


def random_query(columns: tuple[str, ...], domain: Domain, rng: np.random.Generator) -> str:
    return " AND ".join(random_part(domain[c], rng) for c in columns)


def random_part(coding: Coding, rng: np.random.Generator) -> str:
    """A random range of a column of numbers, or a random set of some of the values of another."""
    if coding.edges is None or coding.levels == 1:
        size = rng.integers(1, max(2, coding.levels))
        return any_of(coding, sorted(rng.permutation(coding.levels)[:size].tolist()))
    low, high = sorted(rng.uniform(coding.edges[0], coding.edges[-1], 2).round(0).tolist())
    return f"{quoted(coding.name)} BETWEEN {int(low)} AND {int(high)}"


def pool(domain: Domain, rng: np.random.Generator) -> list[tuple[int, str]]:
    sizes = itertools.islice(itertools.cycle((1, 2, 3, 4)), RANDOM_QUERIES)
    names = np.array(domain.names)
    return [(k, random_query(tuple(rng.permutation(names)[:k]), domain, rng)) for k in sizes]


def true_counts(frame: pa.Table, queries: list[str]) -> list[int]:
    with duckdb.connect() as connection:
        connection.register("frame", frame)
        asked = ", ".join(f"count(*) FILTER (WHERE {q})" for q in queries)
        return list(connection.execute(f"SELECT {asked} FROM frame").fetchall()[0])


def questions(release: us.Release, random: list[tuple[int, str]], rng: np.random.Generator) -> list[tuple[str, str]]:
    """Kind and expression of everything that one release is asked."""
    measured = [t for t in release._counter.tables if t.columns]
    joint = [t for t in measured if len(t.columns) > 1] or measured

    def some(of: list[RecordedTable], number: int) -> list[RecordedTable]:
        return [of[i] for i in rng.integers(0, len(of), number)]

    domain = release.domain
    cells = [("measured: a cell", cell_query(t, domain, rng)) for t in some(measured, CELLS)]
    inner = [("measured: ranges in one table", random_query(t.columns, domain, rng)) for t in some(joint, INSIDE)]
    chosen = [random[i] for i in rng.permutation(len(random))[:ASKED]]
    return cells + inner + [(f"random: {k} column{'s' * (k > 1)}", q) for k, q in chosen]


def simulate(name: str, frame: pa.Table, schema: us.Schema, method: str, releases: int, seed: int) -> dict[str, Tally]:
    rng = np.random.default_rng(seed)
    tallies: dict[str, Tally] = {}
    random = pool(Domain.of(schema), rng)
    for _ in range(releases):
        release = us.synthesize(us.open(frame, schema), epsilon=EPSILON, method=method)
        asked = questions(release, random, rng)
        texts = [text for _, text in asked]
        truths, synthetic = true_counts(frame, texts), true_counts(release.arrow, texts)
        for (kind, text), truth, drawn in zip(asked, truths, synthetic, strict=True):
            tally = tallies.setdefault(kind, Tally())
            tally.add(release.count(text), truth, drawn, frame.num_rows, release.arrow.num_rows)
    return tallies


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--releases", type=int, default=34, help="of each table by each method")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS), metavar="METHOD")
    asked = parser.parse_args()
    releases = asked.releases
    start, whole, made = time.perf_counter(), dict[str, Tally](), 0
    print(f"95 % intervals at epsilon {EPSILON:g}; {releases} releases of each table by each method")
    print(HEAD)
    for number, ((name, frame, schema), method) in enumerate(itertools.product(tables(), asked.methods)):
        tallies = simulate(name, frame, schema, method, releases, number)
        made += releases
        print(f"{name}, {method}", flush=True)
        for kind in sorted(tallies):
            print(tallies[kind].line("  " + kind), flush=True)
            for key in (kind, f"all {kind.partition(':')[0]}"):
                into = whole.setdefault(key, Tally())
                for part in vars(into):
                    getattr(into, part).extend(getattr(tallies[kind], part))
    print(f"all {made} releases")
    for kind in sorted(whole, key=lambda k: (k.startswith("all"), k)):
        print(whole[kind].line("  " + kind))
    print(f"{time.perf_counter() - start:.0f} seconds")


if __name__ == "__main__":
    main()
