"""The page on adversarial forests: tables, pictures in the order of the columns, and nothing that is not escaped."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from understudy.lab.evaluation.comparison import Comparison
from understudy.lab.evaluation.picture_data import Pictures, draw
from understudy.lab.studies.documents.forests_page import ForestsChapter, render
from understudy.lab.studies.layout import TextTable


def pictures() -> Pictures:
    rng = np.random.default_rng(0)
    real, synthetic = (
        pa.table({"height": rng.normal(170, 9, 300), "rooms": rng.integers(1, 5, 300), "city": ["a", "b"] * 150})
        for _ in range(2)
    )
    return draw(Comparison.of(real, synthetic))


def page() -> str:
    grid = TextTable(
        "Wasserstein distance", ("feature", "printed: ARF", "arf"), (("height <m>", "0.1", "0.2"),), "A note."
    )
    drawn = {(0.5, "published-dp-arf"): pictures(), (0.0, "arf"): pictures()}
    chapter = ForestsChapter("insurance", "300 rows.", ("height", "rooms"), (grid,), drawn)
    return render([chapter], ["A remark & more."])


def test_the_page_holds_tables_notes_and_remarks() -> None:
    found = page()
    assert "Wasserstein distance" in found and "A note." in found and "300 rows." in found
    assert "height &lt;m&gt;" in found and "A remark &amp; more." in found
    assert "INTERNAL" in found


def test_each_method_has_its_numbers_and_a_cloud_and_no_category() -> None:
    found = page()
    galleries = found.split('<details class="more">')[1:]
    assert len(galleries) == 2
    assert "arf</summary>" in galleries[0]  # no ε is named where there is none
    assert "published-dp-arf, ε = 0.5</summary>" in galleries[1]
    for gallery in galleries:
        assert gallery.count("<figure") == 3
        assert gallery.index("of height") < gallery.index("of rooms")
        assert "of city" not in gallery


def test_the_same_input_gives_the_same_bytes_and_loads_nothing() -> None:
    assert page() == page()
    assert "http://" not in page().replace("http://www.w3.org", "")
    assert "src=" not in page()
