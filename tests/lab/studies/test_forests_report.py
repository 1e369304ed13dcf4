"""The study of adversarial forests: its page, its pictures over each other, and a small run as a whole."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pytest

from understudy.datasets import schema
from understudy.lab.evaluation.comparison import Comparison
from understudy.lab.evaluation.picture_data import draw, overlay
from understudy.lab.studies.documents import forests
from understudy.lab.studies.documents.forests_page import ForestsChapter, Gallery, cloud_of, overlaid, render
from understudy.lab.studies.layout import TextTable


def table(seed: int, rows: int = 300) -> pa.Table:
    rng = np.random.default_rng(seed)
    heavy = np.where(rng.random(rows) < 0.9, 0.0, rng.normal(50, 9, rows))
    return pa.table({"height": rng.normal(170, 9, rows), "gain": heavy, "city": rng.choice(["a", "b"], rows)})


def compared() -> dict[str, Comparison]:
    return {name: Comparison.of(table(0), table(seed)) for seed, name in enumerate(("arf", "published"), 1)}


def page() -> str:
    grid = TextTable(
        "Wasserstein distance", ("feature", "printed: ARF", "arf"), (("height <m>", "0.1", "0.2"),), "A note."
    )
    drawn = compared()
    over = tuple(overlaid(overlay(drawn, name)) for name in ("height", "gain"))
    clouds = tuple(f for name, c in drawn.items() if (f := cloud_of(draw(c), name)))
    chapter = ForestsChapter("insurance", "300 rows.", (grid,), (Gallery(0.5, over, clouds),))
    return render([chapter], ["A remark & more."])


def test_the_page_holds_tables_notes_and_remarks() -> None:
    found = page()
    assert "Wasserstein distance" in found and "A note." in found and "300 rows." in found
    assert "height &lt;m&gt;" in found and "A remark &amp; more." in found
    assert "INTERNAL" in found


def test_all_methods_are_in_one_picture_and_each_has_a_cloud() -> None:
    found = page()
    over, clouds = found.split('<details class="more"')[1:]
    assert "ε = 0.5</summary>" in over and over.count("<figure") == 2
    assert over.index("Density of height") < over.index("Distribution of gain")
    assert clouds.count("<figure") == 2 and "Real rows and those of published" in clouds


def test_curves_lie_over_the_same_points() -> None:
    found = overlay(compared(), "height")
    assert list(found.curves) == ["real", "arf", "published"] and not found.cumulative
    step = found.points[1] - found.points[0]
    for heights in found.curves.values():
        assert len(heights) == len(found.points)
        # All but the two tails of half a per cent, which are not shown.
        assert sum(heights) * step == pytest.approx(1.0, abs=0.03)


def test_what_is_heavy_is_drawn_as_shares_of_the_rows_up_to_a_value() -> None:
    found = overlay(compared(), "gain")
    assert found.cumulative
    values = np.array(table(0).column("gain"))
    for point, share in zip(found.points, found.curves["real"], strict=True):
        assert share == pytest.approx((values <= point).mean())
    nothing = {"arf": Comparison.of(table(0), table(1).set_column(0, "height", pa.nulls(300, pa.float64())))}
    assert list(overlay(nothing, "height").curves) == ["real"]


def test_the_same_input_gives_the_same_bytes_and_loads_nothing() -> None:
    assert page() == page()
    assert "http://" not in page().replace("http://www.w3.org", "")
    assert "src=" not in page()


@pytest.mark.slow
def test_a_small_run_as_a_whole(tmp_path: Path) -> None:
    rng, rows = np.random.default_rng(0), 80
    columns = {
        "age": rng.integers(18, 65, rows), "sex": rng.choice(["male", "female"], rows),
        "bmi": rng.normal(30, 5, rows).round(2), "children": rng.integers(0, 4, rows),
        "smoker": rng.choice(["yes", "no"], rows), "region": rng.choice(["southwest", "southeast"], rows),
        "charges": rng.gamma(2, 6000, rows).round(2),
    }  # fmt: skip
    pacsv.write_csv(pa.table(columns), tmp_path / "insurance.csv")
    plan, out = forests.ForestsPlan(("independent",), seeds=1, epsilons=(1.0,), jobs=1), tmp_path / "out"
    chapters = forests.study(tmp_path, {"insurance": schema("insurance")}, out, plan)
    forests.write(chapters, out, plan)
    (chapter,) = chapters
    grids = {g.title: g for g in chapter.grids}
    attack = grids["Reconstruction attack error, ε = 1 (table 30)"]
    assert attack.heads == (
        "feature",
        "printed: ARF",
        "printed: DP-ARF",
        "real rows",
        "arf",
        "published-dp-arf",
        "independent",
    )
    assert "–" not in attack.rows[0] and len(chapter.galleries) == 1
    assert (out / "insurance" / "rows" / "arf-1.parquet").stat().st_mode & 0o777 == 0o600
    assert (out / forests.PAGE).stat().st_mode & 0o777 == 0o600
    short = (out / forests.TABLES).read_text()
    assert short.count("\n### ") == 4 and "| 1 (table 30) | all rows |" in short
    made = (out / "insurance" / "rows" / "arf-1.parquet").read_bytes()
    again = forests.study(tmp_path, {"insurance": schema("insurance")}, out, plan)
    assert render(again) == render(chapters) and (out / "insurance" / "rows" / "arf-1.parquet").read_bytes() == made
