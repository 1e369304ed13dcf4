"""Pictures: well formed, to scale, never without a coordinate, whatever the data are."""

from __future__ import annotations

import importlib
import itertools
import math
import re
import struct
import zlib
from xml.etree import ElementTree

import pytest

from helpers.made_results import CONTROL, EVIL, QUOTES, cloud, density, matrix, shares
from understudy.errors import InputError
from understudy.lab.evaluation import distribution_figures as distribution
from understudy.lab.evaluation.heatmap import heatmaps
from understudy.lab.evaluation.picture_data import AssociationPicture, DensityPicture, ScatterPicture, SharesPicture
from understudy.pages.axis import Scale, log_ticks, spread, ticks
from understudy.pages.curves import GAP, Dot, Reference, Series, curves, dots
from understudy.pages.dial import Slice, donut, gauge
from understudy.pages.figure import Figure, shortened, width_of
from understudy.pages.formatting import valued, written
from understudy.pages.palette import DARK, LIGHT

SVG = "{http://www.w3.org/2000/svg}"
SMALLEST = 10.0

LINES = [
    Series("aim", ((0.1, 0.7, 0.6, 0.8), (1.0, 0.8, 0.75, 0.85), (10.0, 0.9, 0.88, 0.92))),
    Series("mst", ((0.1, 0.69, 0.6, 0.8), (1.0, 0.79, 0.75, 0.85), (10.0, 0.899, 0.88, 0.92))),
    Series(EVIL, ((0.1, 0.5, 0.5, 0.5), (3.0, 0.6, math.nan, math.nan))),
]
RANKING = [Dot("aim", 0.9, 0.8, 0.95), Dot(QUOTES, 0.7, 0.7, 0.7), Dot("lost", math.nan, 0.0, 1.0)]
NOTHING = DensityPicture("flat", (), (), (), (), 0.0)
NAMES = {"title": "AUC", "across": "ε", "up": "AUC of <b>"}

ALL: dict[str, Figure] = {
    "bars": distribution.bars(shares()),
    "bars of hostile values": distribution.bars(SharesPicture(EVIL, (QUOTES, CONTROL), (0.5, 0.5), (1.0, 0.0), 0.5)),
    "many bars": distribution.bars(shares("wide", 40)),
    "no bars": distribution.bars(SharesPicture("none", (), (), (), 0.0)),
    "bars of nothing": distribution.bars(SharesPicture("nan", ("a",), (math.nan,), (0.0,), math.nan)),
    "density": distribution.density(density()),
    "density of dates": distribution.density(density("day", ("2019-01-01", "2021-07-02", "2024-12-31"))),
    "density of nothing": distribution.density(NOTHING),
    "density of one point": distribution.density(DensityPicture("one", (3.0,), ("3",), (1.0,), (1.0,), 0.0)),
    "constant density": distribution.density(
        DensityPicture("flat", (3.0, 3.0), ("3", "3"), (0.0, 0.0), (0.0, 0.0), 0.0)
    ),
    "infinite density": distribution.density(
        DensityPicture("inf", (0.0, math.inf, 2.0), ("0", "∞", "2"), (1.0, 1.0, math.nan), (1.0, 1.0, 1.0), math.inf)
    ),
    "huge density": distribution.density(
        DensityPicture("huge", (-1e308, 1e308), ("a", "b"), (1.0, 2.0), (2.0, 1.0), 0.0)
    ),
    "scatter": distribution.scatter(cloud()),
    "scatter of one row": distribution.scatter(ScatterPicture(((1.0, 1.0),), (), (1.0, 0.0))),
    "scatter of nothing": distribution.scatter(ScatterPicture(((math.nan, 1.0),), (), (0.0, 0.0))),
    **{f"heat map {i}": f for i, f in enumerate(heatmaps(matrix(("a", EVIL, "c", QUOTES))))},
    **{f"large heat map {i}": f for i, f in enumerate(heatmaps(matrix(tuple(f"column {i}" for i in range(45)))))},
    **{f"empty heat map {i}": f for i, f in enumerate(heatmaps(AssociationPicture("association", (), (), ())))},
    "curves": curves(LINES, **NAMES, reference=Reference("real rows", 0.91)),
    "no curves": curves([], **NAMES),
    "curve of one point": curves([Series("one", ((1.0, 0.5, 0.4, 0.6),))], **NAMES),
    "curves without a place": curves([Series("none", ((0.0, 0.5, 0.5, 0.5), (math.inf, 1.0, 1.0, 1.0)))], **NAMES),
    "constant curve": curves([Series("flat", ((1.0, 0.5, 0.5, 0.5), (2.0, 0.5, 0.5, 0.5)))], **NAMES),
    "dots": dots(RANKING, title="AUC", across="AUC", reference=Reference("real", 0.99)),
    "no dots": dots([], title="AUC", across="AUC"),
    "donut": donut([Slice("counts", 3.0), Slice(EVIL, 1.0), Slice("none", 0.0)], title="Budget", centre="ε = 1"),
    "donut of one": donut([Slice("counts", 3.0)], title="Budget"),
    "donut of many": donut([Slice(f"part {i}", 1.0) for i in range(30)], title="Budget"),
    "no donut": donut([Slice("nan", math.nan)], title="Budget"),
    "gauge": gauge(0.6, 0.5, 1.0, title="Attack", mark=Reference("guessing", 0.5), interval=(0.55, 0.65)),
    "gauge of nothing": gauge(None, 0.0, 1.0, title=EVIL),
    "gauge outside": gauge(7.0, 0.0, 1.0, title="Attack", mark=Reference("", math.nan)),
}


@pytest.fixture(params=ALL)
def drawn(request: pytest.FixtureRequest) -> Figure:
    return ALL[request.param]


def parsed(picture: Figure) -> ElementTree.Element:
    return ElementTree.fromstring(picture.standalone())


def texts(picture: Figure) -> list[ElementTree.Element]:
    return list(parsed(picture).iter(f"{SVG}text"))


def test_pictures_are_well_formed_and_say_what_they_are(drawn: Figure):
    root = parsed(drawn)
    assert root.get("role") == "img"
    assert [child.tag for child in root][:2] == [f"{SVG}title", f"{SVG}desc"]
    assert (root[0].text or "").strip() and len(root[1].text or "") > 10
    assert not list(root.iter(f"{SVG}script"))


def test_coordinates_are_finite(drawn: Figure):
    values = [v for e in parsed(drawn).iter() for k, v in e.attrib.items() if k not in ("font-family", "style")]
    assert not [v for v in values if re.search(r"\b(nan|inf|infinity)\b", v, re.IGNORECASE)]


def test_text_is_large_enough_and_on_the_canvas(drawn: Figure):
    root = parsed(drawn)
    left, top, width, height = map(float, root.get("viewBox", "").split())
    for mark in texts(drawn):
        assert float(mark.get("font-size", root.get("font-size", "0"))) >= SMALLEST
        x, y = float(mark.get("x", "nan")), float(mark.get("y", "nan"))
        assert left <= x <= left + width and top <= y <= top + height


def test_marks_are_on_the_canvas(drawn: Figure):
    for mark in parsed(drawn).iter(f"{SVG}rect"):
        x, y, width, height = (float(mark.get(k, "nan")) for k in ("x", "y", "width", "height"))
        assert width >= 0 and height >= 0 and x >= 0 and y >= 0
        assert x + width <= drawn.width + 1e-6 and y + height <= drawn.height + 1e-6


def test_numbers_are_a_table(drawn: Figure):
    assert drawn.numbers.header
    assert all(len(row) == len(drawn.numbers.header) for row in drawn.numbers.rows)


def test_colours_of_a_page_are_variables_and_those_of_a_file_are_not(drawn: Figure):
    assert "var(--" in drawn.svg and "var(" not in drawn.standalone() and "http" not in drawn.svg


def test_hostile_names_are_texts():
    whole = "".join(ALL["bars of hostile values"].svg)
    assert "<script" not in whole and "\x00" not in whole
    root = parsed(ALL["bars of hostile values"])
    assert root[0].text == EVIL and QUOTES in (root[1].text or "")
    assert "a\ufffdb\ufffd\ufffdc" in "".join(root.itertext())


def test_palettes_name_the_same_colours():
    assert LIGHT.keys() == DARK.keys()


# --- to scale


def bar_widths(picture: Figure) -> tuple[list[float], list[float]]:
    """Real bars have no outline, synthetic ones have; the legend's have round corners."""
    rects = [r for r in parsed(picture).iter(f"{SVG}rect") if r.get("rx") is None]
    real = [float(r.get("width", "")) for r in rects if r.get("stroke") is None]
    return real, [float(r.get("width", "")) for r in rects if r.get("stroke")]


def test_bars_are_as_long_as_the_shares():
    found = SharesPicture("job", ("a", "b", "c"), (0.5, 0.3, 0.2), (0.25, 0.7, 0.05), 0.4)
    real, synthetic = bar_widths(distribution.bars(found))
    unit = real[0] / 0.5
    assert real == pytest.approx([unit * p for p in found.real], abs=0.02)
    assert synthetic == pytest.approx([unit * p for p in found.synthetic], abs=0.02)


def test_many_bars_are_the_long_ones_and_the_rest():
    found = SharesPicture(
        "job", tuple(f"v{i}" for i in range(30)), (0.71, *[0.01] * 29), (0.5, 0.21, *[0.29 / 28] * 28), 0.2
    )
    picture = distribution.bars(found)
    real, synthetic = bar_widths(picture)
    labels = [t.text for t in texts(picture) if t.get("text-anchor") == "end"][1:]
    assert labels == ["v0", "v1", "all others"]
    assert sum(real) == pytest.approx(sum(synthetic), abs=0.05)
    assert len(picture.numbers.rows) == 30


def test_ranked_dots_lie_where_their_values_are():
    root = parsed(dots(RANKING, title="t", across="a"))
    first, second = (float(c.get("cx", "")) for c in root.iter(f"{SVG}circle"))
    interval = next(mark for mark in root.iter(f"{SVG}line") if mark.get("stroke-width") == "2")
    unit = (float(interval.get("x2", "")) - float(interval.get("x1", ""))) / (0.95 - 0.8)
    assert first - second == pytest.approx((0.9 - 0.7) * unit, abs=0.1)


def test_slices_of_a_donut_are_as_wide_as_their_shares():
    picture = donut([Slice("a", 1.0), Slice("b", 3.0)], title="t")
    first = next(parsed(picture).iter(f"{SVG}path")).get("d", "")
    x, y = map(float, re.findall(r"1 (-?[\d.]+) (-?[\d.]+)L", first)[0])
    centre = tuple(map(float, re.findall(r"^M(-?[\d.]+) (-?[\d.]+)A", first)[0]))
    assert (x - centre[0], y - centre[1]) == pytest.approx((84.0, 84.0), abs=0.02)  # a quarter of a ring of radius 84


def test_strongest_colour_is_that_of_the_largest_difference():
    found = AssociationPicture("association", ("a", "b"), ((1.0, 0.2), (0.2, 1.0)), ((1.0, 0.3), (0.3, 1.0)))
    cells = [r for r in parsed(heatmaps(found)[2]).iter(f"{SVG}rect") if r.get("width") == "33"]
    assert [float(c.get("fill-opacity", "")) for c in cells] == [0.0, 1.0, 1.0, 0.0]


def test_a_cell_without_a_value_has_a_stroke_and_says_so():
    found = AssociationPicture("association", ("a", "b"), ((1.0, None), (None, 1.0)), ((1.0, 0.5), (0.5, 1.0)))
    real, synthetic, difference = heatmaps(found)
    assert real.svg.count("no value") == 2 and difference.svg.count("no value") == 2
    assert "no value" not in synthetic.svg
    assert difference.numbers.rows == (("b", "a", "no value"),)


# --- labels


def boxes(picture: Figure) -> list[tuple[float, float, float, float]]:
    """Where each level text is, at most."""
    found = []
    for mark in texts(picture):
        if mark.get("transform") is None and (mark.text or "").strip():
            size = float(mark.get("font-size", "11.5"))
            width, x, y = width_of(mark.text or "", size) * 0.8, float(mark.get("x", "")), float(mark.get("y", ""))
            left = x - {"end": width, "middle": width / 2}.get(mark.get("text-anchor", ""), 0.0)
            found.append((left, y - 0.75 * size, left + width, y))
    return found


def test_no_text_lies_on_another(drawn: Figure):
    for a, b in itertools.combinations(boxes(drawn), 2):
        apart = a[2] <= b[0] + 0.5 or b[2] <= a[0] + 0.5 or a[3] <= b[1] + 0.5 or b[3] <= a[1] + 0.5
        assert apart, (a, b)


@pytest.mark.parametrize("number", [1, 2, 9, 14])
def test_names_at_the_ends_of_lines_keep_apart(number: int):
    series = [Series(f"method {i}", ((1.0, 0.5, 0.5, 0.5), (10.0, 0.9 + i / 1e4, 0.9, 0.9))) for i in range(number)]
    named = [t for t in texts(curves(series, **NAMES)) if (t.text or "").startswith("method")]
    heights = sorted(float(t.get("y", "")) for t in named)
    assert len(heights) == number
    assert all(b - a >= GAP - 0.01 for a, b in itertools.pairwise(heights))


def test_spread_moves_no_more_than_it_must():
    assert spread([0.0, 50.0, 100.0], 10, 0, 100) == [0.0, 50.0, 100.0]
    assert spread([50.0, 50.0], 10, 0, 100) == [45.0, 55.0]
    assert spread([99.0, 100.0], 10, 0, 100) == [90.0, 100.0]
    assert spread([], 10, 0, 100) == []


def test_names_of_dates_stand_under_the_axis():
    labels = [t.text for t in texts(ALL["density of dates"])]
    assert {"2019-01-01", "2021-07-02", "2024-12-31"} <= set(labels)
    assert {"0", "25", "50", "75", "100"} <= {t.text for t in texts(ALL["density"])}


def test_long_names_keep_both_ends():
    found = shortened("a column with a very long name 17", 90)
    assert found.startswith("a col") and found.endswith("17") and width_of(found) <= 90
    assert shortened("short", 90) == "short" and shortened("anything", 1) == "…"


# --- axes


@pytest.mark.parametrize(
    ("low", "high"), [(0, 1), (17, 90), (-3, 3), (0, 99_999), (1e-9, 2e-9), (1e12, 3e12), (-5e8, 1)]
)
@pytest.mark.parametrize("most", [4, 6, 10])
def test_ticks_are_round_inside_and_few(low: float, high: float, most: int):
    found = ticks(low, high, most)
    slack = 1e-6 * (high - low)
    assert 2 <= len(found) <= most
    assert all(low - slack <= t <= high + slack for t in found)
    steps = [b - a for a, b in itertools.pairwise(found)]
    digits = f"{steps[0]:.6e}".split("e")[0].rstrip("0").rstrip(".")
    assert digits in ("1", "2", "2.5", "5") and steps == pytest.approx([steps[0]] * len(steps))


@pytest.mark.parametrize(("low", "high"), [(0.1, 10), (0.5, 2), (1e-6, 1e6), (3, 4), (0.01, 100)])
def test_logarithmic_ticks_are_inside_and_few(low: float, high: float):
    found = log_ticks(low, high)
    assert 2 <= len(found) <= 7 and all(low * 0.999 <= t <= high * 1.001 for t in found)


def test_scales_put_values_between_their_ends():
    scale = Scale(10, 20, 100, 300)
    assert (scale(10), scale(15), scale(20), scale(99), scale(-99)) == (100, 200, 300, 300, 100)
    logarithmic = Scale(0.1, 10, 0, 100, True)
    assert logarithmic(1) == pytest.approx(50)
    assert Scale.over([7.0, 7.0], 0, 10)(7.0) == 5.0
    assert Scale.over([], 0, 10)(0.5) == 5.0
    assert Scale.over([3.0], 0, 10, logarithmic=True)(3.0) == pytest.approx(5.0)


@pytest.mark.parametrize(
    ("shown", "wanted"),
    [
        (written(1e-7), "1e-07"),
        (written(20_000), "20,000"),
        (written(3e9), "3 G"),
        (written(-0.5), "-0.5"),
        (valued(0.12345), "0.123"),
        (valued(-0.004), "−0.004"),
        (valued(1e-7), "1.0e-07"),
        (valued(932.04), "932.0"),
        (valued(2.5e10), "2.5e+10"),
    ],
)
def test_numbers_are_written_plainly(shown: str, wanted: str):
    assert shown == wanted


# --- files


def test_svg_is_written(tmp_path):
    ALL["bars"].save(tmp_path / "bars.svg")
    assert ElementTree.parse(tmp_path / "bars.svg").getroot().tag == f"{SVG}svg"


def test_other_endings_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"'bars.pdf' must end in .svg or .png"):
        ALL["bars"].save(tmp_path / "bars.pdf")


def test_png_without_its_extra_says_what_to_install(tmp_path, monkeypatch):
    def absent(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", absent)
    with pytest.raises(InputError, match=r"pip install '\.\[figures\]'"):
        ALL["bars"].save(tmp_path / "bars.png")
    assert not list(tmp_path.iterdir())


def pixels(png: bytes) -> tuple[int, int, set[bytes]]:
    """Width, height, and the raw rows of a PNG."""
    width, height = struct.unpack(">II", png[16:24])
    data, place = b"", 8
    while place < len(png):
        (length,) = struct.unpack(">I", png[place : place + 4])
        if png[place + 4 : place + 8] == b"IDAT":
            data += png[place + 8 : place + 8 + length]
        place += 12 + length
    raw = zlib.decompress(data)
    return width, height, {raw[i : i + 4] for i in range(0, len(raw), 4)}


def test_png_has_its_texts(tmp_path):
    pytest.importorskip("resvg_py", reason="the extra `figures` is not installed")
    ALL["gauge"].save(tmp_path / "gauge.png")
    without = Figure(re.sub("<text.*?</text>", "", ALL["gauge"].svg), "t", "d", 340, 74)
    without.save(tmp_path / "mute.png")
    width, height, colours = pixels((tmp_path / "gauge.png").read_bytes())
    assert (width, height) == (2 * (340 + 24), 2 * (74 + 24))
    assert len(colours) > len(pixels((tmp_path / "mute.png").read_bytes())[2])
