"""Schemas that are edited and confirmed in Python: new ones, checked like those of a file."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

import understudy as us

DRAFT = """
status = "draft"
[columns.age]
type = "integer"
min = 18
max = 64
bins = 4
[columns."Blood Type"]
type = "categorical"
values = ["A", "B"]
[columns.since]
type = "datetime"
min = 2020-01-01
max = 2020-12-31
"""


def draft() -> us.Schema:
    return us.Schema.loads(DRAFT)


def test_keys_change_and_the_old_schema_stays() -> None:
    old = draft()
    new = old.edit({"Blood Type": {"values": ("A", "B", "0"), "missing": True}}, age={"min": 0, "bins": None})
    assert (new["age"].minimum, new["age"].bins, old["age"].minimum) == (0, None, 18)
    assert new["Blood Type"].values == ("A", "B", "0") and new["Blood Type"].missing
    assert new.names == old.names and us.Schema.loads(new.dumps()) == new
    assert old.edit(since={"max": dt.date(2024, 1, 1)})["since"].maximum == dt.datetime(2024, 1, 1)


def test_another_type_starts_from_its_own_keys() -> None:
    assert draft().edit(age={"type": "number", "min": 0, "max": 9})["age"].type == "number"
    assert not draft().edit(age={"type": "identifier"})["age"].modelled


def test_a_derived_column_may_be_new_and_a_unit_can_be_named() -> None:
    old = us.Schema.loads(DRAFT + '[columns.who]\ntype = "identifier"\n[columns.until]\ntype = "datetime"\n'
                          "min = 2000-01-01\nmax = 2022-12-31\n")  # fmt: skip
    new = old.edit(stay={"type": "derived", "of": "until - since", "min": 0, "max": 60})
    assert new.names == (*old.names, "stay") and new["until"].rebuilt_from == "stay"
    asked = new.confirm(by="A. Lovelace").with_unit("who", max_rows=3)
    assert (asked.unit.column, asked.unit.max_rows, asked.status) == ("who", 3, "draft")  # nobody has looked at that
    assert us.Schema.loads(asked.dumps()) == asked
    with pytest.raises(us.SchemaError, match="'whom' is not among the columns"):
        old.with_unit("whom")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"Age": {"max": 1}}, "did you mean 'age'"),
        ({"age": {"maximum": 1}}, "did you mean 'max'"),
        ({"age": {"max": 1}}, "must not be above max"),
        ({"age": 110}, "must be keys with values"),
    ],
)
def test_what_can_not_be_is_refused_with_what_was_meant(changes: dict[str, object], said: str) -> None:
    with pytest.raises(us.SchemaError, match=said):
        draft().edit(changes)  # type: ignore[arg-type]


def test_a_confirmation_names_who_and_by_what_source() -> None:
    schema = draft().confirm(by="A. Lovelace", source='code book "2019"')
    assert us.Schema.loads(schema.dumps()) == schema and "A. Lovelace" in repr(schema)
    assert schema.edit(age={"max": 110}).status == "draft" and schema.edit(age={"max": 110}).confirmation is None
    with pytest.raises(us.SchemaError, match="by"):
        draft().confirm(by=" ")
    with pytest.raises(us.SchemaError, match='must be "confirmed"'):
        us.Schema.loads(schema.dumps().replace('status = "confirmed"', 'status = "draft"'))
    with pytest.raises(us.SchemaError, match="did you mean 'source'"):
        us.Schema.loads(schema.dumps().replace("source =", "sources ="))


def test_bytes_of_schemas_without_a_name_are_as_they_were() -> None:
    assert "confirmed]" not in us.Schema.loads(DRAFT.replace("draft", "confirmed")).dumps()


def test_the_certificate_names_who_confirmed_only_where_somebody_did() -> None:
    frame = pa.table({"age": [20, 30, 40], "Blood Type": ["A", "B", "A"], "since": [dt.date(2020, 5, 5)] * 3})
    for schema in (draft().confirm(by="A. Lovelace"), us.Schema.loads(DRAFT.replace("draft", "confirmed"))):
        certificate = us.synthesize(us.open(frame, schema), epsilon=1.0, rows=3, method="independent").certificate
        again = us.Certificate.from_bytes(certificate.to_bytes())
        assert again == certificate and again.to_bytes() == certificate.to_bytes()
        assert (b"schema_confirmed" in again.to_bytes()) == (schema.confirmation is not None)
        assert certificate.confirmation == (schema.confirmation and {"by": "A. Lovelace", "source": ""})


def test_cards_are_short_and_escaped() -> None:
    columns = "".join(f'[columns."<b>{i}"]\ntype = "boolean"\n' for i in range(300))
    schema = us.Schema.loads(columns)
    table = us.open(pa.table({f"<b>{i}": [True] for i in range(300)}), schema)
    for thing in (schema, table, us.plan(draft(), epsilon=1.0)):
        assert len(repr(thing)) < 1_500 and "<b>" not in thing._repr_html_()


def test_what_is_not_open_is_told_what_to_do_first() -> None:
    frame = pa.table({"age": [1]})
    with pytest.raises(us.SchemaError, match=r"us\.draft_schema"):
        us.open(frame)
    for wrong in (lambda: us.synthesize(frame, epsilon=1.0), lambda: us.query(frame, "SELECT 1", epsilon=1.0)):  # type: ignore[arg-type]
        with pytest.raises(us.TableError, match=r"us\.open\(table, schema\)"):
            wrong()
