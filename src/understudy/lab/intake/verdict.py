"""What a check found, in words, the gravest first: what would spoil a release, and what is only good to know."""

from __future__ import annotations

from collections.abc import Iterator

from understudy.lab.intake.findings import Check, ColumnCheck, Issue, PersonCheck, Strange
from understudy.lab.intake.likeness import has_decimal_comma
from understudy.methods.forecast.caution import NOISY
from understudy.pages.formatting import counted, percent

MENDABLE = 0.01
"""The share of rows from which something spoils a release. Below it, it may be meant: a bound that cuts outliers."""
MOVED = 0.1
"""How far the median may move, of the width of the middle half, before bins are called too wide."""
LOST = 0.05
"""The share of rows that a cap may lose before it is worth a word."""
SHOWN = 3
"""Strange texts that a sentence quotes."""


def issues_of(check: Check) -> tuple[Issue, ...]:
    """Everything worth a word; what must be mended before the rest, and each by the share of rows it concerns."""
    found = [*_columns(check), *_people(check), *_rules(check), *_noise(check)]
    return tuple(sorted(found, key=lambda i: (not i.mend, -i.share)))


def verdict(check: Check) -> str:
    """What to do, in one or two sentences."""
    mend = check.to_mend
    if mend:
        more = f" Then {counted(len(mend) - 1, 'more thing')}." if len(mend) > 1 else ""
        return f"Mend the schema before you spend. First, {mend[0].sentence}{more}"
    if check.issues:
        first = check.issues[0]
        return f"The schema fits the rows. Worth a look: {first.sentence}"
    return "The schema fits the rows."


def _columns(check: Check) -> Iterator[Issue]:
    for column in check.columns:
        if column.undeclared:
            yield _strays(check, column)
        if column.unreadable:
            yield _issue(check, column, column.unreadable, _unreadable(column))
        if column.clamped:
            yield _issue(check, column, column.clamped, _clamped(column))
        if column.missing_undeclared:
            words = f"{counted(column.missing, 'value')} missing, and the schema has no missing = true: they become "
            yield _issue(check, column, column.missing, words + "another value")
        yield from _blurred(check, column)


def _issue(check: Check, column: ColumnCheck, rows: int, words: str) -> Issue:
    share = rows / check.rows
    return Issue(f"column {column.name!r}", words, share, mend=share >= MENDABLE)


def _strays(check: Check, column: ColumnCheck) -> Issue:
    """A slip of the pen is to be mended however rare it is; what becomes `other` was meant to, but for a slip."""
    share, slip = column.undeclared / check.rows, any(s.meant for s in column.strange)
    mend = slip or (column.other is None and share >= MENDABLE)
    return Issue(f"column {column.name!r}", _undeclared(column), share, mend=mend)


def _undeclared(column: ColumnCheck) -> str:
    becomes = "another value"
    if column.other is not None:
        becomes = repr(column.other)
    quoted = _quoted(column.strange)
    return f"{counted(column.undeclared, 'row')} with values that are not declared, which become {becomes}{quoted}"


def _unreadable(column: ColumnCheck) -> str:
    words = f"{counted(column.unreadable, 'value')} that can't be read as {column.type}{_quoted(column.strange)}"
    if any(has_decimal_comma(s.text) for s in column.strange):
        return f"{words}; they look like numbers with a decimal comma"
    if column.type == "datetime":
        return f"{words}; state their notation with format"
    return f"{words}; list what stands for nothing under missing_values"


def _clamped(column: ColumnCheck) -> str:
    sides = [f"{n:,} {side}" for n, side in ((column.below, "below min"), (column.above, "above max")) if n]
    return f"{' and '.join(sides)} are clamped to the bounds (values go from {column.least} to {column.most})"


def _quoted(strange: tuple[Strange, ...]) -> str:
    if not strange:
        return ""
    return ": " + "; ".join(map(spoken, strange[:SHOWN]))


def spoken(strange: Strange) -> str:
    """A strange text in words.

    >>> spoken(Strange("male", 676, "Male"))
    "'male', 676 rows: did you mean 'Male'?"
    """
    said = f"{strange.text!r}, {counted(strange.rows, 'row')}"
    return f"{said}: did you mean {strange.meant!r}?" if strange.meant else said


def _blurred(check: Check, column: ColumnCheck) -> Iterator[Issue]:
    if column.blur is None or max(column.blur.moved, column.blur.mean_moved) < MOVED:
        return
    if column.clamped >= MENDABLE * check.rows:  # the bounds did it, which was said already
        return
    what, (before, after) = "median", column.blur.median
    if column.blur.moved < MOVED:
        what, (before, after) = "mean", column.blur.mean
    unit = ", in units since min," if column.type == "datetime" else ""
    words = (
        f"bins alone move the {what}{unit} from {before:.4g} to {after:.4g}; name cuts where values lie close together"
    )
    yield Issue(f"column {column.name!r}", words, 0.0, mend=False)


def _people(check: Check) -> Iterator[Issue]:
    if check.person is None:
        return
    person, place = check.person, "[unit]"
    if person.without_id:
        words = f"{counted(person.without_id, 'row')} without {person.column!r} belong to nobody, and don't count"
        share = person.without_id / check.rows
        yield Issue(place, words, share, mend=share >= LOST)
    lost = person.stated.rows_lost / check.rows
    if lost >= LOST:
        first = "the first" if person.max_rows == 1 else f"their first {person.max_rows}"
        words = (
            f"max_rows = {person.max_rows} loses {percent(lost)} of the rows, those of "
            f"{counted(person.stated.persons_cut, 'person', 'persons')} beyond {first}"
        )
        yield Issue(place, words, lost, mend=False)
    elif person.max_rows > max(1, person.most):
        yield Issue(place, _generous(person), 0.0, mend=False)


def _generous(person: PersonCheck) -> str:
    return f"max_rows = {person.max_rows} is more than anybody has, and noise grows with it"


def _rules(check: Check) -> Iterator[Issue]:
    for rule in check.rules:
        if rule.broken:
            share = rule.broken / check.rows
            words = f"{counted(rule.broken, 'row')} break {rule.text!r}, which every synthetic row will obey"
            yield Issue("constraints", words, share, mend=share >= MENDABLE)


def _noise(check: Check) -> Iterator[Issue]:
    noise = check.noise
    if noise is not None and noise.error >= NOISY:
        words = (
            f"at epsilon 1 about {percent(noise.error)} of the rows would have to move per pair of columns; give more "
            "epsilon, fewer columns or bins, or a smaller max_rows"
        )
        yield Issue("noise", words, 0.0, mend=False)
