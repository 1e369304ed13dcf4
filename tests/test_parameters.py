"""What a caller gave is refused in one sentence with its name, its value and its bound."""

from __future__ import annotations

import re

import pytest

from understudy.errors import InputError, MethodError
from understudy.parameters import close_names, known_name, number_between, one_of, seed_number, suggestion, whole_number


@pytest.mark.parametrize("value", [1, 7, 10])
def test_a_whole_number_within_its_bounds_is_handed_back(value: int) -> None:
    assert whole_number("rows", value, 1, 10) == value


@pytest.mark.parametrize("value", [0, 11, True, 1.0, "3", None])
def test_another_number_is_refused_with_name_value_and_bound(value: object) -> None:
    text = f"rows ({value}) must be a whole number from 1 to 10; ask for fewer"
    with pytest.raises(InputError, match=re.escape(text)) as refused:
        whole_number("rows", value, 1, 10, advice="; ask for fewer")
    assert refused.value.subject is value


def test_a_number_without_an_upper_bound_and_a_seed() -> None:
    assert whole_number("jobs", 10**30, 1) == 10**30
    with pytest.raises(InputError, match="of at least 1"):
        whole_number("jobs", 0, 1)
    assert seed_number(2**63 - 1) == 2**63 - 1
    with pytest.raises(InputError, match=re.escape("from 0 to 2^63 - 1")):
        seed_number(2**63)


@pytest.mark.parametrize("value", [0.4, 1.1, float("nan")])
def test_a_number_outside_its_bounds(value: float) -> None:
    with pytest.raises(InputError, match=r"confidence \(.*\) must be from 0.5 to 1"):
        number_between("confidence", value, 0.5, 1.0)


def test_a_choice_is_refused_with_all_choices_and_in_the_class_that_was_asked_for() -> None:
    assert one_of("format", "csv", ("csv", "parquet")) == "csv"
    with pytest.raises(MethodError, match=re.escape("format ('xls') must be one of csv, parquet")):
        one_of("format", "xls", ("csv", "parquet"), error=MethodError)


def test_a_name_is_refused_with_the_nearest_one_or_with_all() -> None:
    assert known_name("method", "mst", ("aim", "mst")) == "mst"
    assert suggestion("MTS", ("aim", "mst")) == "did you mean 'mst'?"
    assert suggestion("zzz", ("aim", "mst"), "it takes") == "it takes aim, mst"
    assert close_names("privates", ["Private", "State-gov"]) == ["Private"]
