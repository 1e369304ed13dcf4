"""Schemas that nobody meant: each is refused in one short line, whatever stands in it, and none ends in a crash."""

from __future__ import annotations

import pytest

from understudy.boundary.schema.schema import Schema
from understudy.errors import SchemaError

HOSTILE = {
    "a number of thousands of digits": f'type = "integer"\nmin = 0\nmax = {"9" * 5000}',
    "a hexadecimal number of thousands of digits": f'type = "integer"\nmin = 0\nmax = 0x{"f" * 5000}',
    "a hexadecimal number for a type": f"type = 0x{'f' * 5000}",
    "a hexadecimal number among values": f'type = "categorical"\nvalues = ["a", 0x{"f" * 5000}]',
    "a bound beyond all doubles": f'type = "number"\nmin = 0\nmax = {"9" * 400}',
    "a cut beyond all doubles": f'type = "number"\nmin = 0\nmax = 9\ncuts = [{"9" * 400}]',
    "a label beyond all bounds": f'type = "categorical"\nvalues = [{"9" * 400}]',
    "a moment before the first day": 'type = "datetime"\nmin = 0001-01-01T00:00:00+14:00\nmax = 2024-01-01',
    "a moment after the last day": 'type = "datetime"\nmin = 2024-01-01\nmax = "9999-12-31T23:59:59-14:00"',
    "lists in lists": f'type = "categorical"\nvalues = {"[" * 5000}{"]" * 5000}',
    "tables in tables": f"type = {'{a=' * 300}1{'}' * 300}",
    "a line break for a number": 'type = "integer"\nmin = 0\nmax = 9\nbins = "\\n"',
    "a text that steers the terminal": 'type = "integer"\nmin = 0\nmax = 9\nbins = "\\u001b[31m"',
    "a long text for a type": f'type = "{"x" * 100_000}"',
    "an unknown key with a line break": 'type = "boolean"\n"a\\nb" = 1',
    "a width of two billion": 'type = "identifier"\nmade_up = "{:2000000000d}"',
    "a width that grows": 'type = "identifier"\nmade_up = "{0:{0}}"',
    "an attribute": 'type = "identifier"\nmade_up = "{0.__class__}"',
    "a format that no engine knows": 'type = "datetime"\nmin = 2020-01-01\nmax = 2021-01-01\nformat = "%Q"',
    "a format that ends too soon": 'type = "datetime"\nmin = 2020-01-01\nmax = 2021-01-01\nformat = "%Y%"',
    "a format with a part twice": 'type = "datetime"\nmin = 2020-01-01\nmax = 2021-01-01\nformat = "%Y %Y"',
}


def refusal(text: str) -> str:
    with pytest.raises(SchemaError) as refused:
        Schema.loads(text)
    return str(refused.value)


@pytest.mark.parametrize("facts", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("name", ["x", '"two\\nlines"'])
def test_what_nobody_meant_is_refused_in_one_short_line(name: str, facts: str):
    text = refusal(f"[columns.{name}]\n{facts}\n")
    assert text.isprintable()
    assert len(text) < 600


@pytest.mark.parametrize("rule", ["age > \\u001b[31m", "x\\u0000 > 1", "(" * 5000, "a\\u202eb = 1"])
def test_a_constraint_is_quoted_without_what_steers_a_terminal(rule: str):
    columns = '[columns."a\\nb"]\ntype = "boolean"\n[columns.age]\ntype = "integer"\nmin = 0\nmax = 9\n'
    assert refusal(f'{columns}[[constraints]]\nthen = "{rule}"\n').isprintable()


@pytest.mark.parametrize("content", [b"\xff\xfe", b"[columns.x]\ntype = \x00", b"[columns.\xc3]"])
def test_bytes_that_are_no_text_are_refused(tmp_path, content: bytes):
    (tmp_path / "s.toml").write_bytes(content)
    with pytest.raises(SchemaError) as refused:
        Schema.load(tmp_path / "s.toml")
    assert str(refused.value).isprintable()


def test_no_file_has_a_nul_in_its_name():
    with pytest.raises(SchemaError, match="does not exist"):
        Schema.load("a\0b.toml")


@pytest.mark.parametrize("status", [f'"draft"\n[draft]\nrows = 0x{"f" * 5000}', f"0x{'f' * 5000}"])
def test_no_key_takes_a_number_without_end(status: str):
    text = refusal(f'status = {status}\n[columns.x]\ntype = "boolean"\n')
    assert len(text) < 600
