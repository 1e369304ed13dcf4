"""The report of attacks on a synthetic table: what each would mean for a person, and how far it got. It is internal."""

from __future__ import annotations

import math
from dataclasses import dataclass

from understudy.lab.attacks.attacks import NO_PROOF, Attacks
from understudy.lab.attacks.shadow_models import SHADOW
from understudy.lab.attacks.threat import DISTANCE, NOT_DEFINED, Attack, Finding
from understudy.lab.evaluation.evaluation import NOTICE
from understudy.pages.curves import Reference
from understudy.pages.dial import gauge
from understudy.pages.figure import Figure
from understudy.pages.formatting import counted, percent, valued
from understudy.pages.page import fill

RANGES = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
"""Of a gauge: the first that holds the interval, so that a small advantage can be seen at all."""
MARK = "no advantage"


@dataclass(frozen=True)
class AttackEntry:
    """An attack as the page tells it."""

    attack: Attack
    finding: Finding
    words: str
    figure: Figure
    parts: tuple[tuple[str, Finding, str], ...]
    """Name, finding, and the same in words."""


def render(attacks: Attacks) -> str:
    """One self-contained page for whoever made the synthetic table; same input, same bytes."""
    entries = _entries(attacks)
    return fill(
        "attacks.html.j2",
        notice=NOTICE,
        limits=NO_PROOF,
        facts=attacks.facts,
        level=f"{100 * attacks.facts.level:g}\N{NO-BREAK SPACE}%",
        summary=summary(attacks),
        alarming=bool(attacks.successful),
        shadowed=SHADOW.title if SHADOW.name in attacks.findings else "",
        entries=[e for e in entries if e.finding.verdict != NOT_DEFINED],
        undefined=[e for e in entries if e.finding.verdict == NOT_DEFINED],
    )


def render_brief(attacks: Attacks) -> str:
    """The verdicts as a small table, for a notebook."""
    rows = [(e.attack.title, e.finding.verdict, e.words) for e in _entries(attacks)]
    return fill("attacks-brief.html.j2", notice=NOTICE, facts=attacks.facts, summary=summary(attacks), rows=rows)


def pictures(attacks: Attacks) -> list[Figure]:
    """Every picture of the report, in its order."""
    return [e.figure for e in _entries(attacks) if e.finding.verdict != NOT_DEFINED]


def summary(attacks: Attacks) -> str:
    """The verdict on all attacks, in one sentence."""
    made = [a for a in attacks.attacks if attacks.findings[a.name].verdict != NOT_DEFINED]
    if not made:
        return "No attack could be made."
    if not attacks.successful:
        return f"No advantage was seen in {counted(len(made), 'attack')}."
    names = ", ".join(a.title.lower() for a in attacks.successful)
    return f"{len(attacks.successful)} of {counted(len(made), 'attack')} found an advantage: {names}."


def in_words(attack: Attack, finding: Finding) -> str:
    """A finding in words."""
    if finding.success is None or finding.baseline is None or finding.interval is None:
        return finding.reason
    shown = valued if attack.unit == DISTANCE else percent
    low, high = (_signed(end, attack) for end in finding.interval)
    inside, outside = shown(finding.success), shown(finding.baseline)
    rates = f"{inside}, beside {outside} by guessing"
    if not finding.guessed:
        rates = f"{inside} for rows of the table, {outside} for rows that were never in it"
    return f"{rates}; the advantage lies between {low} and {high}."


def _signed(value: float, attack: Attack) -> str:
    """A difference: shares in points of a hundred."""
    shown = f"{100 * abs(value):.1f} points"
    if attack.unit == DISTANCE:
        shown = valued(abs(value))
    return f"−{shown}" if value < 0 else shown


def _entries(attacks: Attacks) -> list[AttackEntry]:
    return [_entry(attack, attacks.findings[attack.name]) for attack in attacks.attacks]


def _entry(attack: Attack, finding: Finding) -> AttackEntry:
    parts = tuple((name, part, in_words(attack, part)) for name, part in finding.parts.items())
    return AttackEntry(attack, finding, in_words(attack, finding), _gauge(attack, finding), parts)


def _gauge(attack: Attack, finding: Finding) -> Figure:
    """The advantage with its interval, on a range whose middle is none at all."""
    needed = max((abs(end) for end in finding.interval or ()), default=1.0)
    # Only a distance can need more than 1: shares and areas differ by no more.
    reach = next((r for r in RANGES if needed <= r), float(math.ceil(needed)))
    return gauge(
        finding.advantage,
        -reach,
        reach,
        title=attack.title,
        mark=Reference(MARK, 0.0),
        interval=finding.interval,
        note=f"Verdict: {finding.verdict}. {in_words(attack, finding)}",
    )
