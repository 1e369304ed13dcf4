"""From a model to rows of values that obey the schema's constraints. Post-processing throughout."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.schema.column import Identifier
from understudy.boundary.schema.domain import Domain
from understudy.boundary.schema.spelling import special_name
from understudy.errors import SchemaError
from understudy.inference.model import Model
from understudy.inference.rebuilding import with_rebuilt
from understudy.inference.sampling import draw_rows
from understudy.inference.values import Values, decode, made_up, violations
from understudy.parameters import seed_number
from understudy.releases.evidence import Evidence, take_rows

TRIES, UNIFORM_ROWS = 30, 50_000
"""Constraints that not one of 1.5 million uniform rows satisfies are refused before anything is spent."""
LARGEST_BATCH = 2_000_000
LEAST_DRAWN, DRAWN_PER_ROW = 1_000_000, 20
"""How many rows may be drawn, in all or per row wanted, before those that obey are repeated: it bounds the time."""

Columns = dict[str, Values]
Rows = NDArray[np.integer]


@dataclass(frozen=True)
class _Attempt:
    """How many completions of each row are tried at once, and whether the model draws them or they are uniform."""

    copies: int
    modelled: bool


ATTEMPTS = (*[_Attempt(1, True)] * 8, _Attempt(100, True), _Attempt(1000, False))
"""Most rows are completed at once; for those that hardly any completion suits, the model is left in the end."""


ANYTHING = Evidence()


def seed_or_fresh(seed: int | None) -> int:
    """The seed of post-processing, checked; a random one where none is given."""
    if seed is None:
        return secrets.randbelow(2**63)  # as large as JSON and SQLite can record
    return seed_number(seed)


def draw(
    model: Model,
    domain: Domain,
    rows: int,
    rng: np.random.Generator,
    given: Evidence = ANYTHING,
    witness: np.random.Generator | None = None,
) -> Columns:
    """`rows` rows of values, all with the given ones, none of which breaks a constraint.

    `witness` is a generator in the state from which `check_satisfiable` found a row: a model that never obeys the
    rules can then be replaced by the rows that were found, for certain.
    """
    return _with_made_up(_draw_modelled(model, domain, rows, rng, given, witness or rng), domain, rows)


def complete(model: Model, domain: Domain, given: Evidence, rng: np.random.Generator) -> Columns:
    """For each row of given values a whole row that keeps them, none of which breaks a constraint."""
    if not domain.schema.rules or not given.rows:
        return _with_made_up(_sampled(model, domain, given, rng), domain, given.rows)
    found, done, left = list[Columns](), list[Rows](), np.arange(given.rows)
    for attempt in ATTEMPTS:
        size = LARGEST_BATCH // attempt.copies
        for block in (left[i : i + size] for i in range(0, len(left), size)):
            values, rows = _obedient_completions(model, domain, given, block, attempt, rng)
            found.append(values)
            done.append(rows)
        left = np.setdiff1d(left, np.concatenate(done))
        if not len(left):
            # Rows were completed in the order in which they came to obey; they go back in the order of the frame.
            return _with_made_up(_take(_join(found), np.argsort(np.concatenate(done))), domain, given.rows)
    raise SchemaError(
        f"row {left[0] + 1} of the frame can't be completed: no row with its values was found to satisfy all "
        "constraints; change its values, or leave it out",
        int(left[0]),
    )


def check_satisfiable(domain: Domain, rng: np.random.Generator, given: Evidence = ANYTHING) -> None:
    """Refuses constraints that no row of the domain was found to satisfy, before anything is spent."""
    if not domain.schema.rules or _size(_uniform_obedient(domain, rng, given)):
        return
    what = "row of the domain"
    if given.codes:
        what += f" with the given {' and '.join(given.codes)}"
    raise SchemaError(f"no {what} was found to satisfy all constraints; relax one of them", domain.schema.rules)


def _with_made_up(values: Columns, domain: Domain, rows: int) -> Columns:
    numbered = {c.name: made_up(c, rows) for c in domain.schema.released if isinstance(c, Identifier)}
    # Special values go along with the numbers of their columns; what is derived alone stays behind.
    released = [n for c in domain.schema.released for n in (c.name, special_name(c.name))]
    return {n: v for n in released if (v := (values | numbered).get(n)) is not None}


def _sampled(model: Model | None, domain: Domain, given: Evidence, rng: np.random.Generator) -> Columns:
    """Values of every modelled column, the given ones among them; without a model, all codes are equally likely."""
    if model is None:
        codes = {c.name: rng.integers(0, c.size, given.rows) for c in domain} | dict(given.codes)
    elif given.codes and given.rows:
        codes = model.complete(dict(given.codes), rng)
    else:
        codes = model.sample(given.rows, rng)
    # A given value stays as it is; decoding its code would draw another one from the same bin. And rows that are alike
    # in what is given fill few bins: how these compare tells nothing of the density inside them.
    values = decode(codes, domain, rng, uniform=model is None or bool(given.codes)) | dict(given.values)
    return with_rebuilt(values, domain.schema)


def _obedient_completions(
    model: Model, domain: Domain, given: Evidence, rows: Rows, attempt: _Attempt, rng: np.random.Generator
) -> tuple[Columns, Rows]:
    """The first of some completions of each row that breaks no constraint, and which rows have one."""
    tried = given.at(np.repeat(rows, attempt.copies))
    # Uniform codes where the model gave up: it may hold impossible what the rules demand.
    values = _sampled(model if attempt.modelled else None, domain, tried, rng)
    obeys = ~violations(domain.schema, values, tried.rows).reshape(len(rows), attempt.copies)
    done = np.flatnonzero(obeys.any(axis=1))
    return _take(values, done * attempt.copies + obeys[done].argmax(axis=1)), rows[done]


def _draw_modelled(
    model: Model,
    domain: Domain,
    rows: int,
    rng: np.random.Generator,
    given: Evidence,
    witness: np.random.Generator,
) -> Columns:
    """Draws, drops the rows that break a constraint, and draws again for the rest: the model, given the rules."""
    if not domain.schema.rules:
        return _sampled(model, domain, given.repeated(rows), rng)
    found: list[Columns] = []
    wanted, batch, left = rows, rows, max(LEAST_DRAWN, DRAWN_PER_ROW * rows)
    while left > 0:
        left -= batch
        obedient = _obedient(_sampled(model, domain, given.repeated(batch), rng), domain)
        found.append(_take(obedient, np.arange(min(wanted, _size(obedient)))))
        wanted -= _size(found[-1])
        if wanted <= 0:
            return _join(found)
        kept = max(_size(obedient), 1) / batch
        # A fifth more than the share kept so far asks for, so that one more round mostly is the last.
        batch = min(LARGEST_BATCH, left, int(1.2 * wanted / kept) + 10)
    # A model that hardly ever obeys the rules: repeat the rows that do, or those of the whole domain that do.
    values = source = _join(found)
    if not _size(values):
        source = _uniform_obedient(domain, witness, given)
    # Repeating is post-processing too: it costs variety, and no privacy.
    return _join([values, _take(source, draw_rows(np.ones(_size(source)), rows - _size(values), rng))])


def _uniform_obedient(domain: Domain, rng: np.random.Generator, given: Evidence) -> Columns:
    found: Columns = {}
    for _ in range(TRIES):
        found = _obedient(_sampled(None, domain, given.repeated(UNIFORM_ROWS), rng), domain)
        if _size(found):
            break
    return found


def _obedient(values: Columns, domain: Domain) -> Columns:
    return _take(values, np.flatnonzero(~violations(domain.schema, values, _size(values))))


def _take(values: Columns, rows: Rows) -> Columns:
    return {name: take_rows(v, rows) for name, v in values.items()}


def _join(parts: list[Columns]) -> Columns:
    joined: Columns = {}
    for name, first in parts[0].items():
        missing = None
        if first.missing is not None:
            missing = np.concatenate([p[name].absent() for p in parts])
        joined[name] = Values(np.concatenate([p[name].data for p in parts]), missing)
    return joined


def _size(values: Columns) -> int:
    return len(next(iter(values.values())).data)
