"""Pictures of a claim beside what was proved against it: the claimed curve, and how far each game came."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context

from understudy.lab.audits.result import WHITE_BOX, Bound, Claim, delta_from_gaussian, plotted_epsilons
from understudy.pages.axis import Scale, bottom_axis, left_axis
from understudy.pages.figure import (
    SMALL,
    Figure,
    Numbers,
    element,
    figure,
    line,
    path,
    shortened,
    text,
    tip,
    width_of,
)
from understudy.pages.palette import var

WIDTH = 346.0
LEFT, TOP, BOTTOM = 44.0, 42.0, 300.0
"""Of the plane of the curve."""
KEY, GAME = 17.0, 34.0
"""Heights of a line of the key, and of a game."""
MOST_GAMES = 12
DASHES = "5 3"
EDGE = 5.0
"""Left and right of the bars."""
BELOW = 30.0
"""How many times below the claimed δ the plane ends."""
REFUTED = "a bound in here refutes the claim"
DOWN = Context(prec=3, rounding=ROUND_FLOOR)


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
        return sorted({*plotted_epsilons(self.claim), *steep, self.x.high})


def claimed_curve(claim: Claim, bounds: Sequence[Bound]) -> Figure:
    """δ over ε as claimed, with every proved ε at the claimed δ, and the Gaussian curve of the largest proved μ."""
    plane = _Plane.of(claim, bounds)
    curve = claim.curve(plane.epsilons)
    name = "Claimed δ(ε), and what was proved" if bounds else "Claimed δ(ε)"
    marks = [text(0, 14, name, size=13.5, bold=True), *_axes(plane)]
    marks += _forbidden(plane, plane(curve))
    dashed, dashed_key = _proved_curve(plane, bounds)
    keys = [("line", "claimed: no more δ than this"), *dashed_key, *_spot_keys(bounds)]
    marks += dashed
    marks.append(element("path", d=path(plane(curve)), fill="none", stroke=var("ink"), stroke_width=2))
    marks += [_spot(plane, b) for b in sorted(bounds, key=lambda b: bool(b.refutes))]
    height = BOTTOM + 40 + KEY * len(keys)
    marks += [m for i, (shape, words) in enumerate(keys) for m in _key(shape, words, BOTTOM + 46 + KEY * i)]
    return figure(marks, WIDTH, height, name, _said_of_curve(claim, bounds), _curve_numbers(claim, bounds))


def _axes(plane: _Plane) -> list[str]:
    marks = left_axis(plane.y, LEFT, plane.x.end, name=exactly)
    marks += bottom_axis(plane.x, BOTTOM, TOP)
    marks.append(text(0, TOP - 8, "δ", size=SMALL, quiet=True))
    marks.append(text((plane.x.start + plane.x.end) / 2, BOTTOM + 28, "ε", size=SMALL, anchor="middle", quiet=True))
    return marks


def _forbidden(plane: _Plane, curve: Sequence[tuple[float, float]]) -> list[str]:
    """All that lies above the curve: what the claim says is impossible."""
    if not curve:
        return []
    right, top = plane.x.end, plane.y(plane.y.high)
    last = [(right, curve[-1][1])] if plane.claim.curve([plane.x.high])[0][1] >= plane.y.low else []
    outline = [*curve, *(last or [(curve[-1][0], BOTTOM), (right, BOTTOM)]), (right, top), (curve[0][0], top)]
    words = text(right - 4, top + 14, REFUTED, size=SMALL, anchor="end", quiet=True)
    return [element("path", d=path(outline, closed=True), fill=var("alarm"), fill_opacity=0.08), words]


def _proved_curve(plane: _Plane, bounds: Sequence[Bound]) -> tuple[list[str], list[tuple[str, str]]]:
    """Where all noise is claimed to be Gaussian a μ is a curve, too: its mark and its key."""
    mu = max((b.mu for b in bounds if math.isfinite(b.mu)), default=0.0)
    if plane.claim.mu is None or mu <= 0:
        return [], []
    drawn = plane([(e, delta_from_gaussian(mu, e)) for e in plane.epsilons])
    style = {"fill": "none", "stroke": var("series-1"), "stroke_dasharray": DASHES}
    mark = element("path", d=path(drawn), stroke_width=2, **style) if len(drawn) > 1 else ""
    return [mark], [("dashes", f"Gaussian of the largest proved μ, {at_least(mu)}")]


def _spot(plane: _Plane, bound: Bound) -> str:
    place = plane.x(bound.epsilon), plane.y(max(plane.claim.delta, plane.y.low))
    return tip(_mark(_shape(bound), *place), f"{_game(bound)}: ε ≥ {at_least(bound.epsilon)}. {bound.refutes}".strip())


def _shape(bound: Bound) -> str:
    return "refuting" if bound.refutes else bound.view


def _mark(shape: str, x: float, y: float) -> str:
    if shape == "refuting":
        around = [(x, y - 7), (x + 6, y), (x, y + 7), (x - 6, y)]
        return element("path", d=path(around, closed=True), fill=var("alarm"), stroke=var("card"), stroke_width=1)
    fill = var("series-1") if shape == WHITE_BOX else var("card")
    return element("circle", cx=x, cy=y, r=4.5, fill=fill, stroke=var("series-1"), stroke_width=1.8)


def _spot_keys(bounds: Sequence[Bound]) -> list[tuple[str, str]]:
    shapes = dict.fromkeys(_shape(b) for b in bounds)
    names = {s: f"proved ε, {s}" for s in shapes} | {"refuting": "proved by a game that refutes the claim"}
    return [(s, names[s]) for s in shapes]


def _key(shape: str, words: str, y: float) -> list[str]:
    mark = _mark(shape, LEFT - 2, y - 4)
    ends = LEFT - 14, y - 4, LEFT + 10, y - 4
    if shape == "line":
        mark = line(*ends, var("ink"), 2)
    elif shape == "dashes":
        mark = line(*ends, var("series-1"), 2, DASHES)
    return [mark, text(LEFT + 18, y, shortened(words, WIDTH - LEFT - 22))]


def _said_of_curve(claim: Claim, bounds: Sequence[Bound]) -> str:
    best = max((b.epsilon for b in bounds), default=None)
    found = "No game was played." if best is None else f"The largest proved ε at that δ is {at_least(best)}."
    return f"Claimed: ε = {exactly(claim.epsilon)} at δ = {exactly(claim.delta)}. {found}"


def _curve_numbers(claim: Claim, bounds: Sequence[Bound]) -> Numbers:
    """Every tenth point of the curve, then the bounds."""
    curve = claim.curve(plotted_epsilons(claim)[::10])
    rows = [("claimed", exactly(e), f"{delta:.3g}") for e, delta in curve]
    rows += [(_game(b), f"≥ {at_least(b.epsilon)}", exactly(claim.delta)) for b in bounds]
    return Numbers(("what", "ε", "δ"), tuple(rows))


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
    marks += _claim_name(scale, parameter)
    more = f"and {len(rest)} more, all at {at_least(parameter.of(rest[0]))} or below" if rest else ""
    marks += [text(0, bottom + 32, more, size=SMALL, quiet=True)] if rest else []
    rows = tuple((_game(b), f"≥ {at_least(parameter.of(b))}", b.refutes or "nothing") for b in ranked)
    said = f"Proved {parameter.symbol} of {len(ranked)} games, beside the claim of {exactly(parameter.claimed)}."
    height = bottom + (40 if rest else 22)
    return figure(marks, WIDTH, height, name, said, Numbers(("game", parameter.symbol, "refutes"), rows))


def _bar(bound: Bound, parameter: PrivacyParameter, scale: Scale, y: float) -> str:
    value = parameter.of(bound)
    above = value > parameter.claimed
    shown = f"≥ {at_least(value)}{', above the claim' if above else ''}"
    marks = text(EDGE, y + 13, shortened(_game(bound), WIDTH - width_of(shown) - 18))
    marks += text(WIDTH - EDGE, y + 13, shown, anchor="end", bold=True)
    box = {"x": scale.start, "y": y + 18.0, "height": 9.0, "rx": 2.0}
    marks += element("rect", **box, width=scale.end - scale.start, fill=var("track"))
    colour = var("alarm") if above else var("series-1")
    hollow = {} if bound.view == WHITE_BOX or above else {"fill_opacity": 0.45}
    marks += element("rect", **box, width=max(scale(value) - scale.start, 0.0), fill=colour, **hollow)
    place = scale(parameter.claimed)
    marks += line(place, y + 16.5, place, y + 29, "currentColor", 2)
    return tip(marks, f"{_game(bound)}, {bound.statistic}: {parameter.symbol} {shown}")


def _claim_name(scale: Scale, parameter: PrivacyParameter) -> list[str]:
    words = f"claimed {exactly(parameter.claimed)}"
    place, half = scale(parameter.claimed), width_of(words, SMALL) / 2
    centre = min(max(place, half), WIDTH - half)
    return [text(centre, TOP - 8, words, size=SMALL, anchor="middle"), line(place, TOP - 5, place, TOP, "currentColor")]


def _game(bound: Bound) -> str:
    return f"{bound.pair}, {bound.view}"
