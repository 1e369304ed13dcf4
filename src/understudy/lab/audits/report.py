"""The report of an audit: the verdict, the claim beside what was proved against it, every step with every check.

Its pictures show the claimed curve with what was proved, and how far each game came.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context

from understudy.lab.audits import result
from understudy.lab.audits.result import (
    FAILED,
    PASSED,
    SKIPPED,
    Audit,
    AuditCheck,
    AuditStep,
    Bound,
    Claim,
    MutantMatrix,
)
from understudy.pages.axis import Scale, bottom_axis, left_axis
from understudy.pages.figure import SMALL, Figure, Numbers, element, figure, line, path, shortened, text, tip, width_of
from understudy.pages.formatting import counted, duration, percent
from understudy.pages.page import fill
from understudy.pages.palette import var

# From which on an audit that finds nothing is said to have looked hard.
MUCH_POWER = 0.8
# Of a step that are shown at once; violations always are.
MOST_CHECKS = 16
NEIGHBOURS = {
    "add-remove": "add-remove: one unit added or removed",
    "replace-one": "replace-one: one unit replaced by another",
}
BADGES = {PASSED: "passed", FAILED: "failed", SKIPPED: "skipped"}
WIDTH = 346.0
# Of the plane of the curve.
LEFT, TOP, BOTTOM = 44.0, 42.0, 300.0
# Heights of a line of the key, and of a game.
KEY, GAME = 17.0, 34.0
MOST_GAMES = 12
DASHES = "5 3"
# Left and right of the bars.
EDGE = 5.0
# How many times below the claimed δ the plane ends.
BELOW = 30.0
REFUTED = "a bound in here refutes the claim"
# In decimals, as it is printed: 0.29 is less than 0.29 in binary, and would be cut to 0.289.
DOWN = Context(prec=3, rounding=ROUND_FLOOR)


@dataclass(frozen=True)
class Verdict:
    """What the page says first, and in which tone: "bad", "weak" or "none"."""

    tone: str
    words: str
    reason: str


@dataclass(frozen=True)
class KeyFigure:
    """A figure that stands out."""

    title: str
    value: str
    words: str


@dataclass(frozen=True)
class StepSection:
    """A step as the page tells it."""

    number: int
    step: AuditStep
    shown: tuple[AuditCheck, ...]
    rest: tuple[AuditCheck, ...]
    """Passed ones that would make the page long."""


def render(audit: Audit) -> str:
    """One self-contained page; same input, same bytes."""
    best: dict[str, float] = {}
    for bound in audit.bounds:
        best[bound.pair] = max(bound.epsilon, best.get(bound.pair, bound.epsilon))
    proved = {pair: f"≥ {at_least(epsilon)}" for pair, epsilon in best.items()}
    return fill(
        "audit.html.j2",
        audit=audit,
        limits=result.LIMITS,
        verdict=_verdict(audit),
        claim=claimed(audit.claim),
        neighbours=NEIGHBOURS.get(audit.claim.neighbours, audit.claim.neighbours),
        headlines=_headlines(audit),
        figures=pictures(audit),
        chapters=[_section(i, step) for i, step in enumerate(audit.steps, 1)],
        pairs=[(p.name, p.difference, proved.get(p.name, "–")) for p in audit.pairs],
        bounds=audit.bounds,
        power=_power(audit),
        false_alarms=f"{100 * audit.level:g}\N{NO-BREAK SPACE}%",
        took=duration,
        at_least=at_least,
        exactly=exactly,
        badges=BADGES,
    )


def render_brief(audit: Audit) -> str:
    """The verdict with the outcome of every step, for a notebook."""
    rows = [(s.title, s.outcome, _in_short(s)) for s in audit.steps]
    verdict = _verdict(audit)
    return fill(
        "audit-brief.html.j2", audit=audit, verdict=verdict, summary=summary(audit), rows=rows, limits=result.LIMITS
    )


def pictures(audit: Audit) -> list[Figure]:
    """Every picture of the report, in its order; where no game was played, the claimed curve alone."""
    found = [claimed_curve(audit.claim, audit.bounds)]
    if audit.bounds:
        found += [reached(audit.bounds, parameter) for parameter in claim_parameters(audit.claim)]
    return found


def summary(audit: Audit) -> str:
    """The verdict in one sentence."""
    made = sum(c.outcome != SKIPPED for s in audit.steps for c in s.checks)
    claim = claimed(audit.claim)
    if audit.violated:
        names = ", ".join(s.title.lower() for s in audit.steps if s.outcome == FAILED)
        found = f"{len(audit.violations)} of {counted(made, 'check')} found a violation ({names})"
        return f"{audit.subject} does not keep its claim of {claim}: {found}."
    if not made:
        return f"Nothing could be checked of the claim of {audit.subject}, {claim}."
    proved, best = "no game was played", max((b.epsilon for b in audit.bounds), default=0.0)
    if best > 0:
        proved = f"the largest ε that was proved is {at_least(best)}"
    elif audit.bounds:
        proved = "its games proved nothing"
    return f"{audit.subject} claims {claim}, and {counted(made, 'check')} found no violation; {proved}."


def claimed(claim: Claim) -> str:
    """ε and δ of a claim, in words.

    >>> claimed(Claim(1.0, 1e-6, "add-remove")), claimed(Claim(0.5, 0.0, "add-remove"))
    ('ε = 1 at δ = 1e-6', 'pure ε = 0.5')
    """
    if not claim.delta:
        return f"pure ε = {exactly(claim.epsilon)}"
    return f"ε = {exactly(claim.epsilon)} at δ = {exactly(claim.delta)}"


def _verdict(audit: Audit) -> Verdict:
    tone = "weak"
    if audit.violated:
        tone = "bad"
    elif (audit.power or 0.0) >= MUCH_POWER:
        tone = "none"
    return Verdict(tone, audit.verdict[:1].upper() + audit.verdict[1:], summary(audit))


def _headlines(audit: Audit) -> list[KeyFigure]:
    claim = audit.claim
    beside = ["pure: δ = 0"]
    if claim.delta:
        beside = [f"δ = {exactly(claim.delta)}"]
    beside += [
        f"{symbol} = {exactly(value)}" for symbol, value in (("μ", claim.mu), ("ρ", claim.rho)) if value is not None
    ]
    found = [KeyFigure("Claimed", f"ε = {exactly(claim.epsilon)}", ", ".join(beside))]
    if audit.bounds:
        best = max(audit.bounds, key=lambda b: b.epsilon)
        where = f"by {counted(len(audit.bounds), 'game')}"
        if best.epsilon > 0:
            where = _game(best)
        found.append(KeyFigure("Proved against it", f"ε ≥ {at_least(best.epsilon)}", where))
    if audit.tightness is not None:
        share = f"{math.floor(100 * audit.tightness)}\N{NO-BREAK SPACE}%"
        seen = "how much of the loss the auditor sees"
        if audit.tightness > 1:
            seen = "more than is claimed"
        found.append(KeyFigure("Of the claimed μ", share, f"were proved: {seen}"))
    found.append(KeyFigure("Power", result.power_in_words(audit.power), "the probability of finding the noise halved"))
    return found


def _power(audit: Audit) -> str:
    """What the power means, in a sentence."""
    if audit.power is None:
        return "Whether this audit would have found halved noise can't be known: nothing says what noise there is."
    share = percent(math.floor(1000 * audit.power) / 1000)
    found = f"Of methods like this one with half the noise, an audit like this one finds {share}"
    if audit.power < MUCH_POWER:
        found += ": it says little that it found nothing"
    return f"{found}."


def _section(number: int, step: AuditStep) -> StepSection:
    """Violations first, then what was passed, then what was not made."""
    order = {FAILED: 0, PASSED: 1, SKIPPED: 2}
    checks = sorted(step.checks, key=lambda c: order.get(c.outcome, len(order)))
    shown = max(MOST_CHECKS, len(step.violations))
    return StepSection(number, step, tuple(checks[:shown]), tuple(checks[shown:]))


def _in_short(step: AuditStep) -> str:
    if step.violations:
        return step.violations[0].found
    if step.checks:
        return counted(len(step.checks), "check")
    return step.reason


# --- mutants


def render_matrix(matrix: MutantMatrix) -> str:
    """One page for all mutants of all methods: what caught each."""
    rows = [(mutant, [(m, _caught(matrix, mutant, m)) for m in matrix.methods]) for mutant in matrix.mutants]
    return fill("audit-matrix.html.j2", matrix=matrix, rows=rows, summary=matrix_summary(matrix))


def matrix_summary(matrix: MutantMatrix) -> str:
    """How many were caught, in one sentence."""
    applied = [c for c in matrix.cells.values() if c != result.DOES_NOT_APPLY]
    caught = sum(map(bool, applied))
    if not applied:
        return "No mutant applies to any of these methods."
    were = "was" if caught == 1 else "were"
    return f"{caught} of {counted(len(applied), 'mutant')} {were} caught."


def _caught(matrix: MutantMatrix, mutant: str, method: str) -> tuple[str, str, str]:
    """A class of the page, the step that caught it, and by which check."""
    found = matrix.cells.get((mutant, method), result.DOES_NOT_APPLY)
    if found == result.DOES_NOT_APPLY:
        return "skipped", found, ""
    if not found:
        return "failed", "survived", ""
    step, _, check = found.partition(": ")
    return "passed", step, check


# --- numbers


def at_least(value: float) -> str:
    """A proved bound in three digits, never rounded up.

    >>> at_least(0.29), at_least(1.2399), at_least(0.00058799), at_least(0.0)
    ('0.290', '1.23', '0.000587', '0')
    """
    if not math.isfinite(value):
        return "∞"
    if value <= 0:
        return "0"
    return f"{float(DOWN.create_decimal(repr(float(value)))):#.3g}".rstrip(".")


def exactly(value: float) -> str:
    """A claimed number, as short as it can be said.

    >>> exactly(1.0), exactly(1e-06)
    ('1', '1e-6')
    """
    return f"{value:.4g}".replace("e-0", "e-").replace("e+0", "e")


# --- the claimed curve


@dataclass(frozen=True)
class _Plane:
    """Where the curve is drawn: ε to the right; δ upward, by its logarithm unless the claim is pure."""

    claim: Claim
    x: Scale
    y: Scale

    @classmethod
    def of(cls, claim: Claim, bounds: Sequence[Bound]) -> _Plane:
        right = max(2.0 * claim.epsilon, *(1.08 * b.epsilon for b in bounds if math.isfinite(b.epsilon)), 0.0)
        x = Scale.over((0.0, right), LEFT + 8, WIDTH - 12)
        if claim.delta > 0:
            return cls(claim, x, Scale.over((claim.delta / BELOW, 1.0), BOTTOM, TOP, logarithmic=True))
        highest = max(delta for _, delta in claim.curve([0.0]))
        return cls(claim, x, Scale.over((0.0, highest), BOTTOM, TOP).widened(0.06))

    def __call__(self, curve: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
        """The part of a curve that lies above the lower edge."""
        return [(self.x(e), self.y(delta)) for e, delta in curve if delta >= self.y.low]

    @property
    def epsilons(self) -> list[float]:
        """All that are plotted, on to the right edge, and more of them where a curve may fall steeply to its δ."""
        steep = (self.claim.epsilon * (1 - 0.1**k) for k in range(2, 8))
        return sorted({*result.plotted_epsilons(self.claim), *steep, self.x.high})


def claimed_curve(claim: Claim, bounds: Sequence[Bound]) -> Figure:
    """δ over ε as claimed, with every proved ε at the claimed δ, and the Gaussian curve of the largest proved μ."""
    plane = _Plane.of(claim, bounds)
    curve = claim.curve(plane.epsilons)
    name, said = "Claimed δ(ε)", "No game was played."
    if bounds:
        name += ", and what was proved"
        said = f"The largest proved ε at that δ is {at_least(max(b.epsilon for b in bounds))}."
    marks = [text(0, 14, name, size=13.5, bold=True)]
    marks += left_axis(plane.y, LEFT, plane.x.end, name=exactly) + bottom_axis(plane.x, BOTTOM, TOP)
    marks.append(text(0, TOP - 8, "δ", size=SMALL, quiet=True))
    marks.append(text((plane.x.start + plane.x.end) / 2, BOTTOM + 28, "ε", size=SMALL, anchor="middle", quiet=True))
    marks += _forbidden(plane, plane(curve))
    dashed, dashed_key = _proved_curve(plane, bounds)
    shapes = dict.fromkeys(_shape(b) for b in bounds)
    names = {s: f"proved ε, {s}" for s in shapes} | {"refuting": "proved by a game that refutes the claim"}
    keys = [("line", "claimed: no more δ than this"), *dashed_key, *((s, names[s]) for s in shapes)]
    marks += dashed
    marks.append(element("path", d=path(plane(curve)), fill="none", stroke=var("ink"), stroke_width=2))
    # Refuting bounds are drawn last: no other mark may hide one.
    for bound in sorted(bounds, key=lambda b: bool(b.refutes)):
        spot = _mark(_shape(bound), plane.x(bound.epsilon), plane.y(max(claim.delta, plane.y.low)))
        marks.append(tip(spot, f"{_game(bound)}: ε ≥ {at_least(bound.epsilon)}. {bound.refutes}".strip()))
    marks += [m for i, (shape, words) in enumerate(keys) for m in _key(shape, words, BOTTOM + 46 + KEY * i)]
    # In numbers: every tenth point of the curve, then the bounds.
    rows = [("claimed", exactly(e), f"{d:.3g}") for e, d in claim.curve(result.plotted_epsilons(claim)[::10])]
    rows += [(_game(b), f"≥ {at_least(b.epsilon)}", exactly(claim.delta)) for b in bounds]
    words = f"Claimed: ε = {exactly(claim.epsilon)} at δ = {exactly(claim.delta)}. {said}"
    height = BOTTOM + 40 + KEY * len(keys)
    return figure(marks, WIDTH, height, name, words, Numbers(("what", "ε", "δ"), tuple(rows)))


def _forbidden(plane: _Plane, curve: Sequence[tuple[float, float]]) -> list[str]:
    """All that lies above the curve: what the claim says is impossible."""
    if not curve:
        return []
    right, top = plane.x.end, plane.y(plane.y.high)
    last = [(curve[-1][0], BOTTOM), (right, BOTTOM)]
    if plane.claim.curve([plane.x.high])[0][1] >= plane.y.low:
        last = [(right, curve[-1][1])]
    outline = [*curve, *last, (right, top), (curve[0][0], top)]
    words = text(right - 4, top + 14, REFUTED, size=SMALL, anchor="end", quiet=True)
    return [element("path", d=path(outline, closed=True), fill=var("alarm"), fill_opacity=0.08), words]


def _proved_curve(plane: _Plane, bounds: Sequence[Bound]) -> tuple[list[str], list[tuple[str, str]]]:
    """Where all noise is claimed to be Gaussian a μ is a curve, too: its mark and its key."""
    mu = max((b.mu for b in bounds if math.isfinite(b.mu)), default=0.0)
    if plane.claim.mu is None or mu <= 0:
        return [], []
    drawn = plane([(e, result.delta_from_gaussian(mu, e)) for e in plane.epsilons])
    mark = ""
    if len(drawn) > 1:
        style = {"fill": "none", "stroke": var("series-1"), "stroke_dasharray": DASHES}
        mark = element("path", d=path(drawn), stroke_width=2, **style)
    return [mark], [("dashes", f"Gaussian of the largest proved μ, {at_least(mu)}")]


def _shape(bound: Bound) -> str:
    return "refuting" if bound.refutes else bound.view


def _mark(shape: str, x: float, y: float) -> str:
    if shape == "refuting":
        around = [(x, y - 7), (x + 6, y), (x, y + 7), (x - 6, y)]
        return element("path", d=path(around, closed=True), fill=var("alarm"), stroke=var("card"), stroke_width=1)
    fill = var("series-1") if shape == result.WHITE_BOX else var("card")
    return element("circle", cx=x, cy=y, r=4.5, fill=fill, stroke=var("series-1"), stroke_width=1.8)


def _key(shape: str, words: str, y: float) -> list[str]:
    mark = _mark(shape, LEFT - 2, y - 4)
    ends = LEFT - 14, y - 4, LEFT + 10, y - 4
    if shape == "line":
        mark = line(*ends, var("ink"), 2)
    elif shape == "dashes":
        mark = line(*ends, var("series-1"), 2, DASHES)
    return [mark, text(LEFT + 18, y, shortened(words, WIDTH - LEFT - 22))]


# --- how far each game came


@dataclass(frozen=True)
class PrivacyParameter:
    """ε, μ or ρ: what it is claimed to be, and what a bound proves of it."""

    symbol: str
    claimed: float
    of: Callable[[Bound], float]


def claim_parameters(claim: Claim) -> tuple[PrivacyParameter, ...]:
    """ε at the claimed δ, and μ or else ρ where the claim has one."""
    found = [PrivacyParameter("ε", claim.epsilon, lambda b: b.epsilon)]
    if claim.mu is not None:
        found.append(PrivacyParameter("μ", claim.mu, lambda b: b.mu))
    elif claim.rho is not None:
        found.append(PrivacyParameter("ρ", claim.rho, lambda b: b.rho))
    return tuple(found)


def reached(bounds: Sequence[Bound], parameter: PrivacyParameter) -> Figure:
    """A bar for each game, from nothing to what it proves, and a line where the claim is."""
    ranked = sorted(bounds, key=parameter.of, reverse=True)
    shown, rest = ranked[:MOST_GAMES], ranked[MOST_GAMES:]
    name = f"Proved {parameter.symbol} of each game"
    scale = Scale.over((0.0, 1.15 * parameter.claimed, *(parameter.of(b) for b in shown)), EDGE, WIDTH - EDGE)
    bottom = TOP + GAME * max(len(shown), 1) + 4
    marks = [text(0, 14, name, size=13.5, bold=True), *bottom_axis(scale, bottom, name=exactly)]
    marks += [_bar(b, parameter, scale, TOP + GAME * i) for i, b in enumerate(shown)]
    words = f"claimed {exactly(parameter.claimed)}"
    place, half = scale(parameter.claimed), width_of(words, SMALL) / 2
    centre = min(max(place, half), WIDTH - half)
    marks.append(text(centre, TOP - 8, words, size=SMALL, anchor="middle"))
    marks.append(line(place, TOP - 5, place, TOP, "currentColor"))
    height = bottom + 22
    if rest:
        more = f"and {len(rest)} more, all at {at_least(parameter.of(rest[0]))} or below"
        marks.append(text(0, bottom + 32, more, size=SMALL, quiet=True))
        height = bottom + 40
    rows = tuple((_game(b), f"≥ {at_least(parameter.of(b))}", b.refutes or "nothing") for b in ranked)
    said = f"Proved {parameter.symbol} of {len(ranked)} games, beside the claim of {exactly(parameter.claimed)}."
    return figure(marks, WIDTH, height, name, said, Numbers(("game", parameter.symbol, "refutes"), rows))


def _bar(bound: Bound, parameter: PrivacyParameter, scale: Scale, y: float) -> str:
    value = parameter.of(bound)
    shown, style = f"≥ {at_least(value)}", dict[str, str | float](fill=var("series-1"))
    if value > parameter.claimed:
        shown, style = f"{shown}, above the claim", {"fill": var("alarm")}
    elif bound.view != result.WHITE_BOX:
        style["fill_opacity"] = 0.45
    marks = text(EDGE, y + 13, shortened(_game(bound), WIDTH - width_of(shown) - 18))
    marks += text(WIDTH - EDGE, y + 13, shown, anchor="end", bold=True)
    box = {"x": scale.start, "y": y + 18.0, "height": 9.0, "rx": 2.0}
    marks += element("rect", **box, width=scale.end - scale.start, fill=var("track"))
    marks += element("rect", **box, width=max(scale(value) - scale.start, 0.0), **style)
    place = scale(parameter.claimed)
    marks += line(place, y + 16.5, place, y + 29, "currentColor", 2)
    return tip(marks, f"{_game(bound)}, {bound.statistic}: {parameter.symbol} {shown}")


def _game(bound: Bound) -> str:
    return f"{bound.pair}, {bound.view}"
