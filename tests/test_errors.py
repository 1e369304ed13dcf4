"""Messages: one line, no password, and nothing that a terminal would obey."""

from __future__ import annotations

import pytest

from understudy.errors import TableError, shown

HOSTILE = "\x1b]0;x\x07\x9b2J\x7f\u202e\u2066\u2028\n\r\t\x00\udce9"


def test_what_a_terminal_would_obey_is_escaped():
    message = str(TableError(f"column {HOSTILE} is gone"))
    assert message == (r"column \x1b]0;x\x07\x9b2J\x7f\u202e\u2066\u2028\n\r\t\x00\udce9 is gone"), "one line, in ASCII"


@pytest.mark.parametrize("text", ["naïve café", "数据", "ε ≤ 1 – “so”", "👩‍🔬", r"C:\new"])
def test_what_people_write_is_left_alone(text: str):
    assert shown(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "'postgresql://ada:s3 cr3t@host/db' is gone",
        "password='s3 cr3t' host=h",
        'password = "s3 cr3t"',
        "PGPASSWORD=s3cr3t",
        "SSLPassword=s3cr3t&x=1",
        "postgresql:/ada:s3/cr3t@host/db",
    ],
)
def test_no_password_is_shown(text: str):
    assert "cr3t" not in str(TableError(text))
