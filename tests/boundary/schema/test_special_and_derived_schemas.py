"""What a schema may say about special values, derived columns and steps, and the sentences with which it refuses."""

from __future__ import annotations

import pytest

from understudy.boundary.schema.column import Integer
from understudy.boundary.schema.derived import DerivedInteger, DerivedNumber, DerivedPart
from understudy.boundary.schema.domain import Domain
from understudy.boundary.schema.expression import parse
from understudy.boundary.schema.schema import Schema
from understudy.errors import SchemaError

DATES = """
[columns.start]
type = "datetime"
min = 2020-01-01
max = 2020-12-31
{start}
[columns.end]
type = "datetime"
min = 2020-01-01
max = 2020-12-31
{end}
[columns.stay]
type = "derived"
min = 0
max = 30
{stay}
"""
OF = 'of = "end - start"'
NUMBER = '[columns.a]\ntype = "{type}"\nmin = 0\nmax = 9\n{facts}\n'
SUM = NUMBER.replace(".a]", ".b]") + '[columns.c]\ntype = "derived"\nmin = 0\nmax = 18\n{derived}\n'


def dates(*, start: str = "", end: str = "", stay: str = OF) -> Schema:
    return Schema.loads(DATES.format(start=start, end=end, stay=stay))


def numbers(facts: str = "", derived: str = 'of = "a + b"', kind: str = "integer") -> Schema:
    return Schema.loads((NUMBER + SUM).format(type=kind, facts=facts, derived=derived))


def test_a_derived_column_stands_in_for_the_one_that_is_rebuilt():
    schema = dates()
    assert [c.name for c in schema.modelled] == ["start", "stay"]
    assert [c.name for c in schema.released] == [c.name for c in schema.in_table] == ["start", "end"]
    assert isinstance(schema["stay"], DerivedInteger) and Domain.of(schema).shape(("start", "stay")) == (61, 31)
    assert set(schema.kinds) == {"start", "stay"}
    assert dates(stay=OF + '\nrebuilds = "start"').modelled[0].name == "end"


def test_a_sum_is_whole_where_its_parts_are():
    assert isinstance(numbers()["c"], DerivedInteger)
    assert isinstance(numbers(kind="number")["c"], DerivedNumber)
    assert [c.name for c in numbers().modelled] == ["b", "c"]


def test_a_column_that_rebuilds_itself_is_in_the_table_and_not_modelled():
    schema = Schema.loads(
        (NUMBER + NUMBER.replace(".a]", ".b]")).format(type="integer", facts="")
        + '[columns.c]\ntype = "derived"\nof = "a + b"\nrebuilds = "c"'
    )
    assert [c.name for c in schema.modelled] == ["a", "b"] and not schema.private
    assert [c.name for c in schema.released] == ["a", "b", "c"]
    assert Schema.loads(schema.dumps()) == schema and "private" not in schema.dumps()


def test_private_bounds_of_a_rebuilt_column_are_never_bought():
    schema = Schema.loads(DATES.format(start="", end="", stay=OF).replace("max = 2020-12-31", 'max = "private"'))
    assert [c.name for c in schema.private] == ["start"]


@pytest.mark.parametrize(
    "schema",
    [
        dates(start='special = ["open"]', end="missing = true", stay=OF + "\nmissing = true"),
        numbers(derived='of = "b - a"\nstep = 2\nrebuilds = "a"'),
        Schema.loads(NUMBER.format(type="integer", facts='special = ["N", -1]\nstep = 3')),
        numbers(kind="number", derived='of = "a + b"\ndecimals = 2\ncuts = [1, 5.5]'),
    ],
)
def test_toml_comes_back_as_it_was(schema):
    assert Schema.loads(schema.dumps()) == schema
    assert Schema.loads(schema.dumps()).dumps() == schema.dumps()


PART = """
[columns.seen]
type = "datetime"
min = 2019-06-01
max = 2024-12-31
{seen}
[columns.part]
type = "derived"
of = "{of}"
{part}
"""


def part(of: str = "weekday(seen)", *, seen: str = "", part: str = "", more: str = "") -> Schema:
    return Schema.loads(PART.format(of=of, seen=seen, part=part) + more)


@pytest.mark.parametrize(
    ("of", "low", "high"),
    [("weekday(seen)", 1, 7), ("month(seen)", 1, 12), (" year( seen ) ", 2019, 2024), ("hour(seen)", 0, 23)],
)
def test_a_part_of_a_date_has_its_own_values_and_stands_beside_the_date(of: str, low: int, high: int):
    schema = part(of, seen='missing = true\nresolution = "hour"')
    found = schema["part"]
    assert isinstance(found, DerivedPart) and (found.minimum, found.maximum) == (low, high) and found.missing
    assert [c.name for c in schema.modelled] == ["seen", "part"] and [c.name for c in schema.in_table] == ["seen"]
    assert Domain.of(schema).size("part") == high - low + 2  # and one for a missing date
    assert schema.formulas == () and parse("part = 1", schema.kinds).columns == {"part"}
    assert Schema.loads(schema.dumps()) == schema
    assert Schema.loads(schema.dumps()).dumps() == schema.dumps()


def test_a_part_is_never_missing_where_its_date_is_not():
    assert not part()["part"].missing and part(seen='special = ["open"]')["part"].missing


REFUSED = {
    "bounds of a part": (lambda: part(part="min = 1"), "has values of its own, and no min"),
    "a part of nothing": (lambda: part("month(sen)"), "names 'sen', which is not a column"),
    "a part of a number": (
        lambda: part("month(n)", more='[columns.n]\ntype = "integer"\nmin = 0\nmax = 9'),
        "must name a date, and 'n' is integer",
    ),
    "an hour of days": (lambda: part("hour(seen)"), "counted in days, which have no hour; set its resolution to hour"),
    "an unknown part": (
        lambda: part("minute(seen)"),
        "'minute' is no part of a date that can be taken; use year, month",
    ),
    "a part of a part": (
        lambda: part(more='[columns.more]\ntype = "derived"\nof = "month(part)"'),
        "must name numbers or dates, and 'part' is derived",
    ),
    "a part of what is rebuilt": (
        lambda: dates(stay=OF + '\n[columns.d]\ntype = "derived"\nof = "month(end)"'),
        "'end' is rebuilt from 'stay', and so are all its parts",
    ),
    "years of private bounds": (
        lambda: Schema.loads(
            '[columns.d]\ntype = "datetime"\nmin = "private"\nmax = "private"\n'
            '[columns.y]\ntype = "derived"\nof = "year(d)"'
        ),
        "the years of 'd' follow from its min and max",
    ),
    "a number in quotes": (lambda: numbers('special = ["-99"]'), "special value '-99' is a number in quotes"),
    "a fraction": (lambda: numbers("special = [0.5]"), "special values of an integer column must be whole numbers"),
    "twice": (lambda: numbers("special = [-9, -9.0]"), "special value '-9' is listed twice"),
    "spaces": (lambda: numbers('special = [" N"]'), "must not be empty, nor have spaces around it"),
    "a number for a date": (lambda: dates(start="special = [1]"), "must be texts, such as '9999-12-31'"),
    "step": (lambda: numbers("step = 0"), r"step \(0\) must be a whole number from 1 on"),
    "one column": (lambda: dates(stay='of = "end"'), "must be columns joined by"),
    "a product": (lambda: dates(stay='of = "end * start"'), "must be columns joined by"),
    "no sign": (lambda: dates(stay='of = "end start"'), "must be columns joined by"),
    "an open end": (lambda: dates(stay='of = "end - start -"'), "must be columns joined by"),
    "one column twice": (lambda: dates(stay='of = "end - end"'), "names 'end' twice"),
    "no such column": (lambda: dates(stay='of = "end - begin"'), "'begin', which is not a column"),
    "a sum of dates": (lambda: dates(stay='of = "end + start"'), "must be numbers alone, or one date less another"),
    "another resolution": (lambda: dates(start='resolution = "hour"'), "must have one resolution"),
    "nothing": (lambda: dates(stay=""), 'of must be stated, such as of = "discharged - admitted"'),
    "rebuilds another": (lambda: dates(stay=OF + '\nrebuilds = "x"'), "must be one of the columns in of"),
    "a missing part": (lambda: dates(start="missing = true"), "set missing = true for it"),
    "a special part": (lambda: dates(start='special = ["x"]'), "set missing = true for it"),
    "a special target": (lambda: dates(end='special = ["x"]'), "can't have special values"),
    "decimals of whole numbers": (
        lambda: numbers(derived='of = "a + b"\ndecimals = 2'),
        "is whole, which has no decim",
    ),
    "a missing text": (
        lambda: Schema.loads('missing_values = ["N"]\n' + NUMBER.format(type="integer", facts='special = ["N"]')),
        "special value 'N' is also among missing_values",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_can_not_be_read_or_rebuilt_is_refused_in_one_sentence(case):
    make, sentence = REFUSED[case]
    with pytest.raises(SchemaError, match=sentence) as refused:
        make()
    assert "\n" not in str(refused.value)


def test_columns_are_rebuilt_in_the_order_of_the_schema():
    chain = """
    [columns.born]
    type = "datetime"
    min = 1900-01-01
    max = 2020-12-31
    [columns.admitted]
    type = "datetime"
    min = 2020-01-01
    max = 2020-12-31
    [columns.discharged]
    type = "datetime"
    min = 2020-01-01
    max = 2020-12-31
    """
    days = '[columns.days]\ntype = "derived"\nof = "admitted - born"\nmin = 0\nmax = 40000\n'
    stay = '[columns.stay]\ntype = "derived"\nof = "discharged - admitted"\nmin = 0\nmax = 30\n'
    assert [c.name for c in Schema.loads(chain + days + stay).formulas] == ["days", "stay"]
    with pytest.raises(SchemaError, match="it needs a column that is rebuilt from 'days'; declare 'days' before it"):
        Schema.loads(chain + stay + days)
    with pytest.raises(SchemaError, match="'discharged' is rebuilt from 'stay' already"):
        Schema.loads(chain + stay + stay.replace(".stay]", ".again]"))


def test_steps_decide_the_edges_of_bins():
    (coding,) = Domain.of(Schema((Integer("a", minimum=3, maximum=21, step=5),))).codings
    assert coding.edges == (3, 10, 15, 20, 22)  # one bin for each of 5, 10, 15 and 20
    (wide,) = Domain.of(Schema((Integer("a", minimum=0, maximum=100_000, step=100, bins=10),))).codings
    assert wide.edges[:3] == (0, 10_100, 20_200) and all(e % 100 == 0 for e in wide.edges[:-1])
    (one,) = Domain.of(Schema((Integer("a", minimum=1, maximum=4, step=5),))).codings
    assert one.edges == (1, 5)


WRITTEN = {
    "a = 'N'": "\"special:a\" = 'N'",
    "'N' = a": "'N' = \"special:a\"",
    "a <> -99": "\"special:a\" <> '-99'",
    "a = -98": '"a" = -98',
    "a < -99": '"a" < -99',
    "a IN ('N', 3, -99)": "(\"special:a\" IN ('N', '-99')) OR (\"a\" IN (3))",
    "a BETWEEN -99 AND 0": '("a" >= -99) AND ("a" <= 0)',
    "a IS NULL": '"special:a" IS NULL',
    "a = b": '"a" = "b"',
}


@pytest.mark.parametrize("text", WRITTEN)
def test_expressions_ask_for_special_values_as_texts(text):
    kinds = numbers(derived='of = "b - a"\nrebuilds = "b"').kinds
    kinds.special = {"a": ("N", "-99")}
    kinds["b"] = kinds["a"]
    predicate = parse(text, kinds)
    assert predicate.sql().sql() == WRITTEN[text] and predicate.columns <= {"a", "b"}


def test_a_text_that_is_no_special_value_is_refused():
    kinds = numbers().kinds
    kinds.special = {"b": ("N",)}
    with pytest.raises(SchemaError, match="asks for no special value of b, which are N: use = or <>"):
        parse("b = 'M'", kinds)
    with pytest.raises(SchemaError, match="asks for no special value of b"):
        parse("b < 'N'", kinds)
    with pytest.raises(SchemaError, match="is rebuilt from c and not modelled itself: ask about c"):
        parse("a = 1", kinds)
