"""From a model to rows of values that obey the schema's constraints. Post-processing throughout."""

from __future__ import annotations

import numpy as np

from understudy.errors import SchemaError
from understudy.models.model import Model
from understudy.models.sampling import draw_rows
from understudy.schema.column import Identifier
from understudy.schema.domain import Domain
from understudy.schema.encoding import decode, made_up
from understudy.schema.expression import Values

TRIES = 30
UNIFORM_ROWS = 50_000
LARGEST_BATCH = 2_000_000
LEAST_DRAWN, DRAWN_PER_ROW = 1_000_000, 20
"""How many rows may be drawn, in all or per row wanted, before those that obey are repeated: it bounds the time."""

Columns = dict[str, Values]


def draw(model: Model, domain: Domain, rows: int, rng: np.random.Generator) -> Columns:
    """`rows` rows of values, none of which breaks a constraint."""
    values = _draw_modelled(model, domain, rows, rng)
    numbered = {c.name: made_up(c, rows) for c in domain.schema.released if isinstance(c, Identifier)}
    return {c.name: (values | numbered)[c.name] for c in domain.schema.released}


def check_satisfiable(domain: Domain, rng: np.random.Generator) -> None:
    """Refuses constraints that no row of the domain was found to satisfy, before anything is spent."""
    if domain.schema.rules and not _size(_uniform_obedient(domain, rng)):
        raise SchemaError(
            "no row of the domain was found to satisfy all constraints; relax one of them", domain.schema.rules
        )


def _draw_modelled(model: Model, domain: Domain, rows: int, rng: np.random.Generator) -> Columns:
    """Draws, drops the rows that break a constraint, and draws again for the rest: the model, given the rules."""
    if not domain.schema.rules:
        return decode(model.sample(rows, rng), domain, rng)
    found: list[Columns] = []
    wanted, batch, left = rows, rows, max(LEAST_DRAWN, DRAWN_PER_ROW * rows)
    while left > 0:
        left -= batch
        obedient = _obedient(decode(model.sample(batch, rng), domain, rng), domain)
        found.append(_take(obedient, np.arange(min(wanted, _size(obedient)))))
        wanted -= _size(found[-1])
        if wanted <= 0:
            return _join(found)
        kept = max(_size(obedient), 1) / batch
        batch = min(LARGEST_BATCH, left, int(1.2 * wanted / kept) + 10)
    return _fill(_join(found), domain, rows, rng)


def _fill(values: Columns, domain: Domain, rows: int, rng: np.random.Generator) -> Columns:
    """A model that hardly ever obeys the rules: repeat the rows that do, or those of the whole domain that do."""
    source = values if _size(values) else _uniform_obedient(domain, rng)
    return _join([values, _take(source, draw_rows(np.ones(_size(source)), rows - _size(values), rng))])


def _uniform_obedient(domain: Domain, rng: np.random.Generator) -> Columns:
    found: Columns = {}
    for _ in range(TRIES):
        codes = {c.name: rng.integers(0, c.size, UNIFORM_ROWS) for c in domain}
        found = _obedient(decode(codes, domain, rng), domain)
        if _size(found):
            break
    return found


def _obedient(values: Columns, domain: Domain) -> Columns:
    return _take(values, np.flatnonzero(~domain.schema.violations(values, _size(values))))


def _take(values: Columns, rows: np.ndarray[tuple[int], np.dtype[np.intp]]) -> Columns:
    return {name: Values(v.data[rows], None if v.missing is None else v.missing[rows]) for name, v in values.items()}


def _join(parts: list[Columns]) -> Columns:
    return {
        name: Values(
            np.concatenate([p[name].data for p in parts]),
            None if parts[0][name].missing is None else np.concatenate([p[name].absent() for p in parts]),
        )
        for name in parts[0]
    }


def _size(values: Columns) -> int:
    return len(next(iter(values.values())).data)
