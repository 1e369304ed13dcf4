"""A prior from what is on disk: the folder of an earlier release, or a file of public rows; and the record of it.

The release that used a prior keeps the prior's tables in a file of its own, so that `replay` needs nothing else. A
public table is taken for public on the word of whoever names it: nothing protects its rows.
"""

from __future__ import annotations

import hashlib
import io
import itertools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.privacy.facts import PrivacyUnit
from understudy.boundary.schema.domain import Coding, ColumnSet, Domain
from understudy.boundary.schema.encoding import codes_of_column
from understudy.boundary.schema.schema import Schema
from understudy.boundary.tables.rows import Rows
from understudy.errors import CheckFailed, InputError, ReleaseError, TableError, UnderstudyError
from understudy.inference.discovery import provisional
from understudy.inference.noisy_table import NoisyTable
from understudy.methods.method import POLYA
from understudy.methods.parts.prior import EARLIER, MOST_COLUMNS, PUBLIC, Prior
from understudy.methods.parts.resolution import Resolutions
from understudy.releases.certificate import Certificate
from understudy.releases.observation import tables_of
from understudy.releases.untrusted.arrays import demand_names, read_arrays
from understudy.releases.untrusted.reading import parse_json, parse_schema

FILE = "prior.npz"
TAKEN_AS_PUBLIC = "taken as public: nothing protects the rows of this file, and the claim is not about them"
PAID_BEFORE = "an earlier release of the same data: what it cost is counted besides, and is no part of this claim"
MOST_VALUES = 50_000_000
"""Rows times columns of a public table: they are held in memory, and a sample says as much."""
MOST_CELLS = 2_500
"""Of a pair of public columns; a table of an earlier release may have as many as ten times that."""
ROWS_PER_CELL = 5.0
RANKED_ROWS, RANKED_GROUPS = 20_000, 16
"""By how many public rows, and at which resolution, pairs are ranked."""
FURTHER_PAIRS = 2
"""For each column, beside a spanning forest: the strongest pairs that remain."""


def load_prior(source: str | Path, schema: Schema, data: str | None = None) -> Prior:
    """The prior at a path; refused in one sentence where nothing of it can be used.

    Args:
        source: The folder of an earlier release, or a CSV or Parquet file of public rows.
        schema: That of the table that is to be released.
        data: Where the private rows are, which are no prior.
    """
    path = Path(source)
    if not path.exists():
        raise InputError(f"the prior {str(source)!r} does not exist; give the folder of a release, or a file", source)
    if path.is_dir():
        return _earlier_release(path, schema)
    private = None if data is None else Path(data.partition("::")[0])
    # By the file system, which knows links of both kinds, and not by content: a refusal must not follow from the rows.
    if private is not None and private.exists() and path.samefile(private):
        raise InputError(f"the prior {path.name!r} is the private table itself, which is not public", source)
    return _public_table(path, schema)


def _domain(schema: Schema) -> Domain:
    """Of the columns whose codes are known before anything is bought."""
    known = Domain.of(provisional(schema))
    private = {c.name for c in schema.private}
    return Domain(known.schema, tuple(c for c in known if c.name not in private))


# --- an earlier release


def _earlier_release(folder: Path, schema: Schema) -> Prior:
    from understudy.releases.checking import read_file, verify
    from understudy.releases.release import CERTIFICATE, MEASUREMENTS, SCHEMA

    try:
        verify(folder)
        content = read_file(folder, CERTIFICATE)
        certificate = Certificate.from_bytes(content)
        _check_usable(folder, certificate, schema)
        earlier = parse_schema(read_file(folder, SCHEMA), SCHEMA)
        tables, left_out = _earlier_tables(read_file(folder, MEASUREMENTS), certificate, earlier, schema)
    except CheckFailed as error:
        raise ReleaseError(f"the prior {folder.name!r} can't be relied on: {error}", folder) from error
    except UnderstudyError:
        raise
    # Anybody may have made the folder: whatever its content breaks makes it no prior.
    except Exception as error:
        raise ReleaseError(f"the prior {folder.name!r} is not a release that can be read", folder) from error
    if not tables:
        raise ReleaseError(f"the prior {folder.name!r} holds no counts of columns that this schema codes alike", folder)
    paid = None if certificate.ledger is None else str(certificate.ledger)
    facts = {
        "said": PAID_BEFORE,
        "epsilon": certificate.epsilon,
        "delta": certificate.delta,
        "paid": paid or "its certificate names no ledger",
        "left_out": left_out,
    }
    return Prior(EARLIER, folder.name, hashlib.sha256(content).hexdigest(), tables, facts)


def _check_usable(folder: Path, certificate: Certificate, schema: Schema) -> None:
    # Its answers would carry what nothing protects into a release that claims protection.
    if certificate.guarantee is None:
        raise ReleaseError(f"the prior {folder.name!r} guarantees nothing ({certificate.stamp}); leave it out", folder)
    here = schema.neighbours, PrivacyUnit.of(schema).to_dict()
    if (certificate.neighbours, certificate.unit) != here:
        raise ReleaseError(
            f"the prior {folder.name!r} protects another unit or other neighbours than this schema; leave it out",
            folder,
        )


def _earlier_tables(
    content: bytes, certificate: Certificate, earlier: Schema, schema: Schema
) -> tuple[tuple[NoisyTable, ...], list[str]]:
    """Its noisy tables of columns that are coded alike in both, and the names of the other columns."""
    from understudy.releases.release import read_record

    now, then = _domain(schema), _domain(earlier)
    bought_bins = certificate.parameters.get("numeric") == POLYA
    known = {
        c.name: c.edges is None or not bought_bins
        for c in then
        if c.name in now.names and _meaning(c) == _meaning(now[c.name])
    }
    fit = {name for name, usable in known.items() if usable}
    record = [a for a in read_record(content) if (asked := a.question.get("columns")) and fit.issuperset(asked)]
    found = tables_of(record, then, frozenset(), certificate.asked.capacity.mechanism)
    tables = [t for t in found if len(t.columns) <= MOST_COLUMNS and t.counts.size <= 10 * MOST_CELLS]
    merged: dict[Any, NoisyTable] = {}
    for table in (NoisyTable(t.columns, t.counts, t.variance, t.groups).sorted_by(now.names) for t in tables):
        key = table.columns, tuple(g.tobytes() for g in table.groups)
        # The same cells measured twice: single columns always, pairs now and then.
        merged[key] = merged[key].averaged_with(table) if key in merged else table
    return tuple(sorted(merged.values(), key=lambda t: len(t.columns))), sorted(set(now.names) - fit)


def _meaning(coding: Coding) -> tuple[Any, ...]:
    """What the codes of a column stand for."""
    column = coding.column
    return column.type, coding.labels, coding.edges, column.missing, getattr(column, "start", None), coding.special


# --- a public table


def _public_table(path: Path, schema: Schema) -> Prior:
    rows = Rows.of(path, schema=schema)
    domain = _domain(schema)
    shared = [c for c in domain if c.name in rows.columns]
    if not shared:
        raise TableError(f"the prior {path.name!r} has none of the schema's columns", path)
    ((count,),) = rows.query(f"SELECT count(*) FROM {rows.relation}")
    if not count:
        raise TableError(f"the prior {path.name!r} has no rows", path)
    if count * len(rows.columns) > MOST_VALUES:
        raise TableError(
            f"the prior {path.name!r} has {count:,} rows of {len(rows.columns)} columns, more than {MOST_VALUES:,} "
            "values; take a sample of it",
            path,
        )
    frame, missing = rows.everything(), schema.missing_texts
    codes = {c.name: codes_of_column(c, frame.column(c.name), missing).astype(np.intp) for c in shared}
    tables = _counts(Domain(domain.schema, tuple(shared)), codes, count)
    facts = {"said": TAKEN_AS_PUBLIC, "rows": count, "left_out": sorted(set(domain.names) - codes.keys())}
    return Prior(PUBLIC, path.name, hashlib.sha256(path.read_bytes()).hexdigest(), tables, facts)


def _counts(domain: Domain, codes: Mapping[str, NDArray[np.intp]], rows: int) -> tuple[NoisyTable, ...]:
    """Single columns, and the pairs that tell most about each other: a spanning forest, and some more."""
    weights = {c.name: np.bincount(codes[c.name], minlength=c.size).astype(np.float64) for c in domain}
    resolutions = Resolutions.of(domain, weights)
    dependent = _ranked(domain, codes, resolutions)
    forest = _spanning(dependent)
    further = [pair for pair in dependent if pair not in set(forest)][: FURTHER_PAIRS * len(domain.names)]
    most = min(float(MOST_CELLS), max(4.0, rows / ROWS_PER_CELL))
    single = [NoisyTable((c.name,), weights[c.name], 0.0, (np.arange(c.size),)) for c in domain]
    return (*single, *(_counted(codes, pair, resolutions, most) for pair in (*forest, *further)))


def _ranked(domain: Domain, codes: Mapping[str, NDArray[np.intp]], resolutions: Resolutions) -> list[ColumnSet]:
    """The pairs that depend on each other beyond chance, the strongest first."""
    step = -(-len(codes[domain.names[0]]) // RANKED_ROWS)
    coarse: dict[str, tuple[NDArray[np.intp], int]] = {}
    for name in (n for n in domain.names if domain.size(n) > 1):
        # Once for each column: with hundreds of them, pairs are many.
        (groups,) = resolutions.groups((name,), RANKED_GROUPS)
        coarse[name] = groups[codes[name][::step]], int(groups.max()) + 1
    found: dict[ColumnSet, float] = {}
    for (a, (first, rows)), (b, (second, columns)) in itertools.combinations(coarse.items(), 2):
        found[a, b] = _information(
            np.bincount(first * columns + second, minlength=rows * columns).reshape(rows, columns)
        )
    return sorted((pair for pair, nats in found.items() if nats > 0.0), key=lambda pair: -found[pair])


def _counted(
    codes: Mapping[str, NDArray[np.intp]], pair: ColumnSet, resolutions: Resolutions, most_cells: float
) -> NoisyTable:
    """A pair at the finest level that has so few cells; at the coarsest, where none has."""
    levels = resolutions.levels(pair, most_cells) or resolutions.levels(pair, np.inf)[:1]
    groups = resolutions.groups(pair, levels[-1])
    shape = tuple(int(g.max()) + 1 for g in groups)
    cells = np.ravel_multi_index(tuple(g[codes[c]] for c, g in zip(pair, groups, strict=True)), shape)
    counts = np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape)
    return NoisyTable(pair, counts.astype(np.float64), 0.0, groups)


def _information(counts: NDArray[np.intp]) -> float:
    """Mutual information in nats, less what chance gives (Miller 1955)."""
    share = counts / counts.sum()
    first, second = share.sum(axis=1), share.sum(axis=0)
    seen = share > 0
    found = float((share[seen] * np.log(share[seen] / np.outer(first, second)[seen])).sum())
    freedom = (np.count_nonzero(first) - 1) * (np.count_nonzero(second) - 1)
    return found - freedom / (2.0 * float(counts.sum()))


def _spanning(pairs: Sequence[ColumnSet]) -> list[ColumnSet]:
    """Kruskal's forest of pairs, the strongest first."""
    tree: dict[str, str] = {}

    def root(name: str) -> str:
        while name in tree:
            name = tree[name]
        return name

    forest: list[ColumnSet] = []
    for first, second in pairs:
        if root(first) != root(second):
            tree[root(first)] = root(second)
            forest.append((first, second))
    return forest


# --- the record of it


def prior_bytes(prior: Prior) -> bytes:
    """What each table is of as JSON, counts and groups as arrays; no pickle, so that reading it runs nothing."""
    head = prior.to_dict() | {
        "tables": [{"columns": list(t.columns), "variance": float(t.variance)} for t in prior.tables]
    }
    arrays: dict[str, Any] = {f"counts_{i}": t.counts for i, t in enumerate(prior.tables)}
    arrays |= {f"groups_{i}_{j}": g for i, t in enumerate(prior.tables) for j, g in enumerate(t.groups)}
    buffer = io.BytesIO()
    text = json.dumps(head, ensure_ascii=False).encode()
    np.savez_compressed(buffer, prior=np.frombuffer(text, dtype=np.uint8), **arrays)
    return buffer.getvalue()


def read_prior(content: bytes) -> Prior:
    """The inverse of `prior_bytes`."""
    arrays = read_arrays(content, FILE)
    head = parse_json(arrays.get("prior", np.empty(0)).tobytes(), FILE)
    try:
        tables = tuple(
            NoisyTable(
                tuple(t["columns"]),
                arrays[f"counts_{i}"].astype(np.float64),
                float(t["variance"]),
                tuple(arrays[f"groups_{i}_{j}"].astype(np.intp) for j in range(len(t["columns"]))),
            )
            for i, t in enumerate(head.pop("tables"))
        )
        prior = Prior(head.pop("kind"), head.pop("name"), head.pop("sha256"), tables, head)
        prior.to_dict()
    except (UnderstudyError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise CheckFailed("the tables of the prior can't be read: they were changed or cut short", FILE) from error
    demand_names(arrays, _names(tables), FILE)
    return prior


def _names(tables: Sequence[NoisyTable]) -> set[str]:
    """Of the arrays that the file has."""
    groups = {f"groups_{i}_{j}" for i, t in enumerate(tables) for j in range(len(t.groups))}
    return {"prior", *groups, *(f"counts_{i}" for i in range(len(tables)))}
