"""From the facts of a column to the column that is drafted, with notes for whoever confirms it.

The rules of thumb are documented in docs/concepts/schema.md, "Drafts".
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np

from understudy.boundary.schema.column import (
    DEFAULT_BINS,
    LARGEST_INTEGER,
    SINGLE_VALUE_BINS,
    SPACES,
    Boolean,
    Categorical,
    Column,
    Datetime,
    Identifier,
    Integer,
    Number,
    Ordinal,
)
from understudy.boundary.tables.connection import quoted_name
from understudy.boundary.tables.drafting import names
from understudy.boundary.tables.drafting.bounds import (
    common_step,
    heap_of,
    is_skewed,
    round_bounds,
    round_cuts,
    round_dates,
)
from understudy.boundary.tables.drafting.facts import MISSING_TOKENS, SENTINELS, Facts

MOST_CATEGORIES = 200
MOST_CODES = 300
FEW = 30
"""Different whole numbers with gaps between them that are taken for codes."""
MOST_DECIMALS = 4
IDENTIFIER_SHARE = 0.5
"""A text column in which more than this share of values is distinct looks like an identifier."""
MANY_NUMBERS = 0.1
"""Of the rows: with more different values, what is called a number identifies something."""
FEWEST_PEOPLE = 5
"""Different values of a column such as "subject", from which on they are people; fewer are groups of them."""
BALANCED = 50
"""Different whole numbers with gaps, all of them in the same number of rows: the ids of a panel."""
_SEASON = timedelta(days=64)
"""From here on bins of dates hold several days."""
_RARE_ONES = "drop what only a few people can have"
RARE = 10
"""Rows; a value that fewer have is rare to the notes, and is left to `other` where there are too many values."""


@dataclass(frozen=True)
class Drafted:
    """A column, what is to be said about it, and whether it tells people apart."""

    column: Column
    notes: tuple[str, ...]
    person: bool = False


def draft_column(facts: Facts) -> Drafted:
    """The narrowest kind that fits what is in the column, and what its name says."""
    if not facts.present:
        return _left_out(facts, "no row has a value here")
    if facts.categories is not None:
        return _declared(facts)
    look = names.look_of(facts.sample) if facts.stored.kind == "text" and len(facts.sample) >= 5 else None
    if look is not None:
        return _left_out(facts, f"the values look like {look}", person=True)
    match facts.reading.kind:
        case "truth":
            return Drafted(Boolean(facts.name, missing=facts.missing), _counts_note(facts))
        case "moment" if facts.low is not None:  # some of them are in the calendar
            return _date(facts)
        case "number" if not facts.zeros or not facts.whole:
            return _number(facts)
    return _text(facts)


# --- Identifiers ------------------------------------------------------------------------------------------------------


def _left_out(facts: Facts, why: str, person: bool = False) -> Drafted:
    note = f'{why}: left out of a release; made_up = "X{{:06d}}" fills it with numbers'
    return Drafted(Identifier(facts.name), (*_counts_note(facts), note), person)


def _identifies(facts: Facts) -> str | None:
    """Why a column of texts or whole numbers is taken for an identifier; None where it is not."""
    name, many = facts.name, facts.present > 20
    share = facts.distinct / facts.present
    if names.CONTACT.search(name) and facts.distinct > 20:
        return "its name says that it reaches people"
    person = names.PERSON.search(name) or names.BARE.search(name)
    if person and facts.distinct >= FEWEST_PEOPLE and share <= 0.5:
        return "its name says that it tells people apart"
    named = names.IDENTIFIER.search(name) or (names.NUMBERED.search(name) and facts.unique and (facts.low or 0) >= 1000)
    if named and many and (facts.unique or facts.distinct > 50):
        return "its name says that it is an identifier"
    if person and many and share > 0.5:
        return "its name says that it tells people apart"
    # Long numbers that come back a few times each, as those of clients do; a room or a shop comes back more often.
    if names.NUMBERED.search(name) and many and share > MANY_NUMBERS and (facts.low or 0) >= 1000:
        return "its name says that it numbers something, and more than a tenth of the numbers differ"
    return None


# --- Dates ------------------------------------------------------------------------------------------------------------


def _date(facts: Facts) -> Drafted:
    low, high = round_dates(facts.low, facts.high)
    resolution = "day" if facts.midnights else "second"
    notes = [*_counts_note(facts), "the bounds were rounded outwards to whole years or months"]
    if facts.reading.doubtful:
        notes.append(f"could days and months be the other way round? they are read by {facts.reading.form}")
    if high - low > _SEASON and not names.BIRTH.search(facts.name):
        part = quoted_name(facts.name) if not facts.name.isidentifier() else facts.name
        notes.append(
            f"inside a bin all weekdays are alike; a column with type = \"derived\", of = 'weekday({part})' keeps them"
        )
    column = Datetime(
        facts.name, missing=_can_miss(facts), minimum=low, maximum=high, resolution=resolution,
        format=facts.reading.form, missing_values=_own_missing(facts),
    )  # fmt: skip
    return Drafted(column, tuple(notes))


# --- Numbers ----------------------------------------------------------------------------------------------------------


def _number(facts: Facts) -> Drafted:
    if not facts.read:
        return _text(facts)
    if facts.whole and _is_panel(facts):
        return _left_out(facts, "each number is in equally many rows, as ids are in repeated surveys", person=True)
    if facts.whole and (why := _identifies(facts) or _runs(facts)):
        named = (names.PERSON, names.IDENTIFIER, names.NUMBERED)
        return _left_out(facts, why, person=any(p.search(facts.name) for p in named))
    sentinels = _sentinels(facts)
    values = _numbers(facts, sentinels)
    if not len(values):
        return _text(facts)
    low, high = (float(values.min()), float(values.max())) if sentinels or facts.counts else (facts.low, facts.high)
    marked = (*_own_missing(facts), *map(str, sentinels))
    notes = _counts_note(facts)
    if marked:
        notes += (f"beside the numbers stand {', '.join(map(repr, marked))}, which mean something else",)
    listed = _listed(facts, values, marked)
    if listed is not None:
        return Drafted(listed, (*notes, *_list_notes(facts, listed)))
    if facts.whole and max(abs(low), abs(high)) <= LARGEST_INTEGER:
        return _whole_line(facts, values, (low, high), marked, notes)
    return _real_line(facts, values, (low, high), marked, notes)


def _is_panel(facts: Facts) -> bool:
    """Whether each number comes back equally often, as those of people do who were asked several times."""
    counts = facts.counts
    if not counts or len(counts) < BALANCED or names.TIME.search(facts.name) or names.CODE.search(facts.name):
        return False
    often = set(counts.values())
    steps = set(np.diff(np.unique(_numbers(facts))).tolist())
    return len(often) == 1 and often != {1} and len(steps) > 2


def _runs(facts: Facts) -> str | None:
    """Of whole numbers that are all different: a running number, or one that is long enough to identify."""
    if not facts.unique or facts.present <= 20 or facts.present < facts.rows or names.TIME.search(facts.name):
        return None
    if facts.low in (0, 1) and facts.high - facts.low <= 1.001 * facts.present:
        return "running numbers"
    if facts.low >= 1_000_000 and (
        len(str(int(facts.low))) == len(str(int(facts.high))) or names.CODE.search(facts.name)
    ):
        return "long numbers, all of them different"
    return None


def _numbers(facts: Facts, without: Sequence[float] = ()) -> Any:
    """The numbers among the known texts, each as often as it occurs."""
    marks, pairs = facts.reading.marks, (facts.counts or facts.sample).items()
    found, repeats = [], []
    for text, count in pairs:
        plain = text.replace(marks.thousands, "") if marks.thousands else text
        try:
            value = float(plain.replace(marks.decimal, "."))
        except ValueError:
            continue
        if math.isfinite(value) and value not in without:
            found.append(value)
            repeats.append(count)
    return np.repeat(np.array(found, dtype=np.float64), np.array(repeats, dtype=np.int64))


def _sentinels(facts: Facts) -> tuple[int, ...]:
    """Values such as -99 or 999 far outside of all others."""
    if facts.present < 20:
        return ()
    values, counts = np.unique(_numbers(facts), return_counts=True)
    found: list[int] = []
    for sign in (1, -1):
        while len(values) > 3:
            edge, beside = (values[-1], values[-2]) if sign > 0 else (values[0], values[1])
            frequent = counts[-1 if sign > 0 else 0] >= 2
            rest = values[:-1] if sign > 0 else values[1:]
            width = float(rest[-1] - rest[0])
            # 9 above -5 to 3 is a number like others, and so is 8 below 12 to 21.
            beyond = edge > 1.5 * beside and values[0] >= 0 if sign > 0 else edge < 0
            far = beyond and abs(edge - beside) > max(0.3 * width, 3.0 * (width > 0))
            lone = edge == -1 and beside >= 0 and width > 10
            if not (frequent and edge in SENTINELS and ((far and (sign > 0 or beside >= 0 or edge < -90)) or lone)):
                break
            found.append(int(edge))
            values, counts = (values[:-1], counts[:-1]) if sign > 0 else (values[1:], counts[1:])
    return tuple(found)


def _listed(facts: Facts, values: Any, marked: tuple[str, ...]) -> Column | None:
    """Few different numbers, or codes, as a list; None where they are better seen as a line."""
    distinct = np.unique(values)
    count, rows = len(distinct), len(values)
    if facts.counts is None or count > MOST_CODES or count < 2:
        return None
    missing = _can_miss(facts) or bool(marked)
    if not facts.whole:
        grain = 10.0 ** -min(MOST_DECIMALS, facts.decimals)
        gaps = (distinct[-1] - distinct[0]) / grain + 1 > 2 * count
        if count <= 20 and rows >= 10 * count and gaps and facts.reading.marks.plain:
            by_value = sorted((t for t in facts.counts if t not in marked and _is_number(t)), key=float)
            if len(by_value) == count:
                return Ordinal(facts.name, missing=missing, values=tuple(by_value), missing_values=marked)
        return None
    if max(abs(distinct[0]), abs(distinct[-1])) > LARGEST_INTEGER:
        return None
    labels = tuple(int(v) for v in distinct)
    spread = labels[-1] - labels[0] + 1
    named = bool(names.CODE.search(facts.name) or (names.IDENTIFIER.search(facts.name) and count <= FEW))
    if count == 2 and (labels == (0, 1) or spread > 2 or labels == (1, 2)):
        return Categorical(facts.name, missing=missing, values=labels, missing_values=marked)
    if (named and rows >= 3 * count) or (names.PLACE.search(facts.name) and count > FEW and rows >= 10 * count):
        return Categorical(facts.name, missing=missing, values=labels, missing_values=marked)
    amounts = count > 12 and 0 <= labels[0] < 0.1 * labels[-1]
    if count <= FEW and rows >= 10 * count and spread > 2 * count and not amounts:
        steps = {b - a for a, b in itertools.pairwise(labels)}
        kind = Ordinal if len(steps) == 1 or labels[0] == 0 or count <= 4 else Categorical
        return kind(facts.name, missing=missing, values=labels, missing_values=marked)
    if count > FEW and rows >= 15 * count and 10 * count < spread and _are_codes(values, distinct):
        return Categorical(facts.name, missing=missing, values=labels, missing_values=marked)
    return None


def _are_codes(values: Any, distinct: Any) -> bool:
    """Amounts are zero or heap at round numbers, and thin out upwards; codes do neither."""
    unit = 1
    while np.mean(values % (10 * unit) == 0) > 0.8 and unit < 10**6:  # codes that end in zeros, but for a few
        unit *= 10
    scaled = values / unit
    if np.mean(values == 0) > 0.2 or np.mean(scaled % 10 == 0) > 0.3 or np.mean(scaled % 5 == 0) > 0.45:
        return False
    middle = (distinct[0] + distinct[-1]) / 2
    return bool(0.2 < np.mean(distinct > middle) < 0.8)


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _whole_line(
    facts: Facts, values: Any, ends: tuple[float, float], marked: tuple[str, ...], notes: tuple[str, ...]
) -> Drafted:
    low, high = map(int, _bounds(facts, ends, whole=True))
    step = common_step(values)
    cuts: tuple[float, ...] | None = None
    if high - low >= SINGLE_VALUE_BINS and is_skewed(values, low, high):
        cuts = tuple(int(c) for c in round_cuts(values, low, high, smallest=float(step or 1))) or None
    column = Integer(facts.name, minimum=low, maximum=high, cuts=cuts, step=step, **_beside(Integer, facts, marked))
    line = _line_notes(values, (low, high), cuts, wide=high - low >= SINGLE_VALUE_BINS, step=step)
    return Drafted(column, (*notes, *line))


def _real_line(
    facts: Facts, values: Any, ends: tuple[float, float], marked: tuple[str, ...], notes: tuple[str, ...]
) -> Drafted:
    low, high = _bounds(facts, ends, whole=False)
    decimals, bins = _grain(high - low, facts.decimals)
    cuts: tuple[float, ...] | None = None
    finest = 10.0 ** -(decimals or 0)
    # Doubles have no such fine steps in numbers whose sizes lie further apart.
    fits = decimals is not None and bins is None and high - low < 1e12 * finest
    if fits and is_skewed(values, low, high):
        cuts = round_cuts(values, low, high, smallest=finest) or None
    column = Number(
        facts.name, minimum=low, maximum=high, decimals=decimals, bins=bins, cuts=cuts,
        **_beside(Number, facts, marked),
    )  # fmt: skip
    return Drafted(column, (*notes, *_line_notes(values, (low, high), cuts, wide=True)))


def _bounds(facts: Facts, ends: tuple[float, float], *, whole: bool) -> tuple[float, float]:
    low, high = ends
    if names.AGE.search(facts.name) and low >= 0 and 20 < high <= 120:
        return 0.0, 120.0
    if names.SHARE.search(facts.name) and low >= 0 and 10 < high <= 100:
        return 0.0, 100.0
    return round_bounds(low, high, whole=whole)


def _grain(width: float, decimals: int) -> tuple[int | None, int | None]:
    """Decimals, and bins of at least two steps of them: a bin without any value could not be released."""
    decimals = min(MOST_DECIMALS, decimals)
    steps = width * 10.0**decimals
    if steps < 2:  # numbers such as 3e-7, which show no decimals
        return None, None
    return decimals, None if steps >= 2 * DEFAULT_BINS else int(steps / 2)


def _line_notes(
    values: Any, bounds: tuple[float, float], cuts: tuple[float, ...] | None, *, wide: bool, step: int | None = None
) -> tuple[str, ...]:
    said = "were rounded outwards"
    if bounds == (float(values.min()), float(values.max())):
        said = "are the least and the greatest value of the rows"
    notes = [f"the bounds {said}; put in those that you can defend without the rows"]
    if cuts:
        notes.append("skewed: the cuts were rounded from quantiles of the rows; confirm them, or choose others")
    if step is not None:
        notes.append(f"all values that were seen are multiples of {step}; is that the rule? Else leave out the step")
    elif wide and (heap := heap_of(values.tolist()[:50_000])):
        notes.append(f"many values are multiples of {heap}: cuts around the largest heaps keep them apart")
    elif wide:
        notes.append("values inside a bin are invented")
    return tuple(notes)


# --- Texts ------------------------------------------------------------------------------------------------------------


def _text(facts: Facts) -> Drafted:
    present, distinct = facts.present, facts.distinct
    if why := _free_text(facts):  # the same words again are not the same person
        return _left_out(facts, why)
    if why := _identifies(facts):
        return _left_out(facts, why, person=True)
    named = names.NAMES.search(facts.name) and distinct > 20
    if named and (distinct > 0.05 * present or facts.name.lower() != "name" or names.are_full_names(facts.sample)):
        people = distinct > 0.05 * present  # few names are shared by many, and tell nobody apart
        return _left_out(facts, "its name says that it holds names of people", person=people)
    if present > 20 and distinct > IDENTIFIER_SHARE * present:
        return _left_out(facts, "more than half of the values are different", person=True)
    counts = _labels(facts)
    if not counts or facts.counts is None:
        return _left_out(facts, "too many different values")
    missing = _can_miss(facts) or any(t in MISSING_TOKENS for t in facts.counts)
    other = None
    if len(counts) > MOST_CATEGORIES:
        frequent = [t for t, n in counts.most_common(MOST_CATEGORIES) if n >= RARE]
        if sum(counts[t] for t in frequent) < 0.5 * present:
            return _left_out(facts, "too many different values")
        counts, other = Counter({t: counts[t] for t in frequent}), "other"
        if other in counts:
            other = None
    order = names.ordered(list(counts))
    if order is not None and other is None:
        column: Column = Ordinal(facts.name, missing=missing, values=order)
    else:
        column = Categorical(facts.name, missing=missing, values=tuple(sorted(counts, key=_natural)), other=other)
    return Drafted(column, (*_counts_note(facts), *_list_notes(facts, column)))


def _natural(value: str | int) -> tuple[bool, float, str]:
    """Numbers by their size, before all words."""
    label = str(value)
    number = _is_number(label)
    return not number, float(label) if number else 0.0, label


def _labels(facts: Facts) -> Counter[str]:
    """The texts as labels, without those that mean a missing value."""
    return Counter({t: n for t, n in _stripped(facts.counts or {}).items() if t and t not in MISSING_TOKENS})


def _stripped(counts: Mapping[str, int]) -> Counter[str]:
    """Each text without the spaces of any script around it."""
    found: Counter[str] = Counter()
    for text, count in counts.items():
        found[text.strip(SPACES)] += count
    return found


def _free_text(facts: Facts) -> str | None:
    texts = facts.sample
    words = sum(len(t.split()) * n for t, n in texts.items()) / sum(texts.values())
    length = sum(len(t) * n for t, n in texts.items()) / sum(texts.values())
    # What is written by hand has letters, small ones too; a long code or a formula has not.
    prose = sum(bool(re.search(r"[^\W\d_]{3,} [^\W\d_]+", t)) for t in texts) > 0.5 * len(texts)
    named = bool(names.FREE_TEXT.search(facts.name))
    if prose and (((words >= 4 or length >= 40) and facts.distinct > 0.2 * facts.present) or (named and words >= 3)):
        return "WARNING: free text, in which people may be named"
    return None


def _declared(facts: Facts) -> Drafted:
    """As the frame declares it."""
    assert facts.categories is not None
    labels, in_order = facts.categories
    labels = tuple(dict.fromkeys(t for label in labels if (t := label.strip(SPACES)) and t not in facts.tokens))
    if why := _identifies(facts):
        return _left_out(facts, why, person=True)
    if not labels or (facts.present > 20 and len(labels) > max(MOST_CATEGORIES, IDENTIFIER_SHARE * facts.present)):
        return _left_out(facts, "too many categories")
    # Whole numbers are labels that are matched as numbers, whatever the frame stores them as.
    whole = all(re.fullmatch(r"-?(0|[1-9]\d{0,14})", label) for label in labels)
    values: tuple[Any, ...] = tuple(map(int, labels)) if whole and facts.stored.kind == "whole" else labels
    kind = Ordinal if in_order else Categorical
    column = kind(facts.name, missing=_can_miss(facts), values=values)
    return Drafted(column, (*_counts_note(facts), "the categories are those that the frame declares"))


# --- What is the same for all -----------------------------------------------------------------------------------------


def _can_miss(facts: Facts) -> bool:
    return facts.missing or bool(facts.strays)


def _own_missing(facts: Facts) -> tuple[str, ...]:
    """Texts among numbers or dates, which become missing values of their column."""
    return tuple(t for t in facts.strays if t not in MISSING_TOKENS)


def _beside(kind: type[Column], facts: Facts, marked: tuple[str, ...]) -> dict[str, Any]:
    """How a line of numbers says that it has markers: as values of their own, where its type knows them."""
    if hasattr(kind, "special") and marked:
        values = tuple(int(m) if re.fullmatch(r"-?\d+", m) else m for m in marked)
        return {"special": values, "missing": facts.missing or any(t in MISSING_TOKENS for t in facts.strays)}
    return {"missing_values": marked, "missing": _can_miss(facts) or bool(marked)}


def _counts_note(facts: Facts) -> tuple[str, ...]:
    share = 100 * (facts.rows - facts.present) / max(1, facts.rows)
    missing = f"{share:.1f} % missing, " if facts.missing else "never missing, "
    about = "" if facts.counts is not None or facts.rows <= 20_000 else "about "
    values = "one value" if facts.distinct == 1 else f"{facts.distinct:,} different values"
    return (f"{missing}{about}{values}",)


def _list_notes(facts: Facts, column: Column) -> tuple[str, ...]:
    assert isinstance(column, Categorical)
    counts = facts.counts or facts.sample
    notes = []
    for slip, meant in names.slips(_stripped(counts), [v for v in column.values or () if isinstance(v, str)]):
        notes.append(f"{slip!r} looks like a slip of the pen for {meant!r}: mend the file; see `check`")
    if (rare := [n for t, n in counts.items() if n < RARE]) and column.values:
        few = "one of the values has" if len(rare) == 1 else f"{len(rare)} of the values have"
        lost = "become missing" if column.missing else f"count as {column.values[0]!r}"
        notes.append(f"{few} fewer than {RARE} rows (the rarest {min(rare)}): {_RARE_ONES}")
        if column.other is None:
            unless = "" if column.numeric else ', unless the list has an other = "other"'
            notes.append(f"rows whose value is not listed {lost}{unless}")
    if column.other is not None:
        notes.append(f"only values of at least {RARE} rows are listed; the others become {column.other!r}")
    if isinstance(column, Ordinal):
        notes.append("the order was guessed, from lowest to highest")
    elif not column.numeric and column.values and any(len(str(v).split()) > 4 for v in column.values):
        notes.append("WARNING: long texts. Were they written by people about people? Then declare it an identifier")
    if set(map(str, column.values or ())) == {"0", "1"}:
        notes.append('type = "boolean" would write true and false')
    return tuple(notes)
