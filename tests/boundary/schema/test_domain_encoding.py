"""Domains and decoding: which codes a column has, what they stand for, and that values stay inside their bins."""

from __future__ import annotations

import doctest
from datetime import datetime

import numpy as np
import pytest

from understudy.boundary.schema import domain as domain_module
from understudy.boundary.schema import partition as partition_module
from understudy.boundary.schema.column import Boolean, Categorical, Datetime, Identifier, Integer, Number, Ordinal
from understudy.boundary.schema.domain import Domain, units_between
from understudy.boundary.schema.partition import Grid, Partition
from understudy.boundary.schema.schema import Schema
from understudy.errors import InternalError, SchemaError
from understudy.inference.values import check_decodable, decimals_of, decode, made_up


def coding_of(column):
    return Domain.of(Schema((column,)))[column.name]


def decoded(column, codes, seed=0):
    domain = Domain.of(Schema((column,)))
    return decode({column.name: np.asarray(codes)}, domain, np.random.default_rng(seed))[column.name]


@pytest.mark.parametrize(
    ("column", "edges"),
    [
        (Integer("x", minimum=-2, maximum=2), (-2, -1, 0, 1, 2, 3)),
        (Integer("x", minimum=5, maximum=5), (5, 6)),
        (Integer("x", minimum=0, maximum=9, bins=4), (0, 3, 6, 9, 10)),
        (Integer("x", minimum=0, maximum=9, bins=500), tuple(range(11))),
        (Integer("x", minimum=0, maximum=9, cuts=(1, 7)), (0, 1, 7, 10)),
        (Integer("x", minimum=0, maximum=9, cuts=()), (0, 10)),
        (Integer("x", minimum=1, maximum=128), tuple(range(1, 130))),
        (Integer("x", minimum=0, maximum=128), (*range(0, 129, 3), 129)),
        (Number("x", minimum=0, maximum=1, bins=4), (0, 0.25, 0.5, 0.75, 1)),
        (Number("x", minimum=0, maximum=1, cuts=(0.1,)), (0, 0.1, 1)),
        (Datetime("x", minimum=datetime(2024, 1, 1, 5), maximum=datetime(2024, 1, 3)), (0, 1, 2, 3)),
        (Datetime("x", minimum=datetime(2024, 1, 1), maximum=datetime(2024, 1, 1, 1), resolution="hour"), (0, 1, 2)),
    ],
)
def test_edges_of_the_bins(column, edges):
    coding = coding_of(column)
    assert coding.edges == edges and coding.levels == coding.size == len(edges) - 1


@pytest.mark.parametrize(
    ("column", "size", "null", "stray"),
    [
        (Categorical("x", values=("a", "b")), 2, 0, 0),
        (Categorical("x", values=("a", "b"), missing=True), 3, 2, 2),
        (Categorical("x", values=("a", "b"), other="o"), 3, 2, 2),
        (Categorical("x", values=("a", "b"), other="o", missing=True), 4, 3, 2),
        (Ordinal("x", values=("a", "o", "b"), other="o"), 3, 1, 1),
        (Boolean("x"), 2, 0, 0),
        (Boolean("x", missing=True), 3, 2, 2),
        (Integer("x", minimum=0, maximum=3, missing=True), 5, 4, 4),
    ],
)
def test_codes_of_missing_and_stray_values(column, size, null, stray):
    coding = coding_of(column)
    assert (coding.size, coding.null_code, coding.stray_code) == (size, null, stray)


def test_a_domain_knows_shapes_and_refuses_what_it_does_not_hold():
    schema = Schema((Integer("age", minimum=0, maximum=99), Identifier("id"), Boolean("ill", missing=True)))
    domain = Domain.of(schema)
    assert domain.names == ("age", "ill") and domain.shape(("ill", "age")) == (3, 100) and domain.cells(()) == 1
    assert domain.size("ill") == 3 and [c.name for c in domain] == ["age", "ill"]
    with pytest.raises(SchemaError, match="column 'id' is an identifier, which is never modelled"):
        domain["id"]
    with pytest.raises(SchemaError, match="column 'nobody' is not in the schema; it has age, id, ill"):
        domain.size("nobody")
    with pytest.raises(InternalError, match="column 'x' is still private"):
        Domain.of(Schema((Integer("x", minimum=0),)))


def test_bins_narrower_than_doubles_are_refused():
    with pytest.raises(SchemaError, match=r"column 'x': bins \(64\) are too narrow between 1e\+17 and"):
        coding_of(Number("x", minimum=1e17, maximum=1e17 + 64))


def test_units_are_whole_and_counted_from_the_start():
    column = Datetime("x", minimum=datetime(2024, 1, 1, 23), maximum=datetime(2024, 12, 31))
    assert units_between(column, datetime(2024, 1, 2)) == 1
    assert units_between(column, datetime(2023, 12, 31, 12)) == -1


@pytest.mark.parametrize(
    "column",
    [
        Integer("x", minimum=-3, maximum=900, bins=7),
        Integer("x", minimum=0, maximum=9, cuts=(1, 7)),
        Number("x", minimum=-1.5, maximum=2.0, bins=13),
        Number("x", minimum=0, maximum=100, decimals=0, bins=10),
        Number("x", minimum=0, maximum=1e18, bins=5),
        Number("x", minimum=0.1, maximum=0.3, decimals=1, cuts=(0.2, 0.3)),
        Number("x", minimum=-1e300, maximum=1e300, bins=8),
        Number("x", minimum=1e-30, maximum=3e9, decimals=12, bins=3),
    ],
)
def test_values_lie_inside_their_bins(column):
    coding = coding_of(column)
    check_decodable(Domain.of(Schema((column,))))
    codes = np.repeat(np.arange(coding.levels), 200)
    data, edges = decoded(column, codes).data, np.array(coding.edges, dtype=float)
    assert np.all(edges[codes] <= data) and np.all((data < edges[codes + 1]) | (codes == coding.levels - 1))
    assert np.all(data <= edges[-1]) and np.isfinite(data.astype(float)).all()
    assert len(np.unique(data[codes == 1])) > 1 or column.decimals == 1 or coding.edges[2] - coding.edges[1] == 1


def test_values_are_even_over_bins_of_equal_density():
    """Whatever the seed: rows of a bin are spread over it, so that each of its values gets its share up to one row."""
    codes = np.tile([0, 1], 50_300)
    counts = np.bincount(decoded(Integer("x", minimum=0, maximum=9, bins=2), codes).data, minlength=10)
    assert np.all(np.abs(counts - 10_060) <= 1)
    alone = np.bincount(np.random.default_rng(1).integers(0, 5, 50_300), minlength=5)  # the mutant: rows by themselves
    assert not np.all(np.abs(alone - 10_060) <= 1)


def test_decimals_are_declared_or_fit_the_bins_and_the_precision():
    assert decimals_of(coding_of(Number("x", minimum=0, maximum=1, bins=10))) == 3
    assert decimals_of(coding_of(Number("x", minimum=0, maximum=1, decimals=7))) == 7
    assert decimals_of(coding_of(Number("x", minimum=0, maximum=64_000))) == 0
    assert decimals_of(coding_of(Number("x", minimum=0, maximum=1e9, decimals=12))) == 6
    assert decimals_of(coding_of(Number("x", minimum=0, maximum=1e20))) == -5


def test_a_bin_without_a_value_is_refused():
    domain = Domain.of(Schema((Number("x", minimum=0, maximum=1, bins=4, decimals=0),)))
    with pytest.raises(SchemaError, match=r"column 'x': no value of 0 decimals lies in the bin from 0.25 to 0.5"):
        check_decodable(domain)


def test_labels_flags_and_dates_are_decoded_with_their_missing():
    jobs = decoded(Categorical("x", values=("a", "b"), missing=True), [0, 1, 2])
    assert jobs.data[:2].tolist() == ["a", "b"] and jobs.missing.tolist() == [False, False, True]
    assert decoded(Categorical("x", values=(7, 3)), [1, 0]).data.tolist() == [3, 7]
    flags = decoded(Boolean("x", missing=True), [0, 1, 2])
    assert flags.data[:2].tolist() == [False, True] and flags.missing.tolist() == [False, False, True]
    assert decoded(Boolean("x"), [1]).missing is None
    when = decoded(Datetime("x", minimum=datetime(2024, 2, 28, 9), maximum=datetime(2024, 3, 1)), [0, 1, 2])
    assert when.data.astype("datetime64[D]").astype(str).tolist() == ["2024-02-28", "2024-02-29", "2024-03-01"]


def test_decoding_takes_its_randomness_as_an_argument():
    column, codes = Number("x", minimum=0, maximum=1, bins=2), np.zeros(50, dtype=int)
    assert np.array_equal(decoded(column, codes, 1).data, decoded(column, codes, 1).data)
    assert not np.array_equal(decoded(column, codes, 1).data, decoded(column, codes, 2).data)


def test_identifiers_are_numbered_by_their_template():
    assert made_up(Identifier("x", made_up="P{:03d}"), 2).data.tolist() == ["P001", "P002"]


def test_a_grid_merges_codes_by_row_alone():
    grid = Grid(("a", "b"), ((0, 0, 1), (1, 0)))
    assert isinstance(grid, Partition) and grid.shape == (2, 2) and grid.cells == 4
    assert grid.assign({"a": np.array([0, 1, 2, 2]), "b": np.array([0, 1, 0, 1])}).tolist() == [1, 0, 3, 2]
    assert grid.describe() == {"kind": "grid", "columns": ["a", "b"], "groups": [[0, 0, 1], [1, 0]]}


@pytest.mark.parametrize("module", [domain_module, partition_module])
def test_examples_in_the_docstrings_run(module):
    assert doctest.testmod(module).failed == 0
