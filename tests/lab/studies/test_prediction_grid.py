"""The study of every size, its page, the billionaire, and trees as pictures."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pytest

from helpers.orchard import ADD_REMOVE, TARGET, opened, people
from understudy.boundary.schema.domain import Domain
from understudy.boundary.tables.table import Table
from understudy.datasets import schema
from understudy.errors import InputError
from understudy.lab.studies.documents.prediction_grid import (
    ADULT_BINNED,
    EDUCATION,
    LARGEST,
    EncodedTable,
    PredictionData,
    grouped_education,
    prediction_grid,
    save,
    town,
)
from understudy.lab.studies.documents.prediction_page import (
    FOREST,
    GREEDY,
    PRIVATE_FOREST,
    PRIVATE_TREE,
    TREE,
    heat,
    render,
)
from understudy.predictors.classifiers import PrivateForest, PrivateGreedyTree
from understudy.predictors.tree_picture import tree_figure


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made-up votes that follow the party, but for one in ten."""
    place = tmp_path_factory.mktemp("tables")
    rng, names = np.random.default_rng(1), schema("votes").names
    party = rng.integers(0, 2, 300)
    columns = {names[0]: np.array(["democrat", "republican"])[party]}
    for name in names[1:]:
        columns[name] = np.array(["n", "y"])[np.where(rng.random(300) < 0.1, 1 - party, party)]
    pacsv.write_csv(pa.table(columns), place / "votes.csv")
    return place


def test_every_size_is_there_once(folder: Path, tmp_path: Path) -> None:
    said: list[str] = []
    grid = prediction_grid(
        folder,
        {"votes": schema("votes")},
        depths=(1, 2),
        trees=(1, 3),
        epsilons=(0.01, 10.0),
        repeats=2,
        progress=said.append,
    )
    sizes = [(o.method, o.depth, o.trees, o.epsilon) for o in grid.outcomes]
    wanted = {TREE: 2, FOREST: 4, PRIVATE_TREE: 4, GREEDY: 4, PRIVATE_FOREST: 8}
    assert {m: sum(s[0] == m for s in sizes) for m in wanted} == wanted and len(set(sizes)) == len(sizes) == len(said)
    assert all(len(o.accuracies) == 2 and 0 <= o.mean <= 1 for o in grid.outcomes)
    best = grid.best("votes", GREEDY)
    assert best.epsilon == 10.0 and best.mean > 0.8
    save(grid, tmp_path)
    page = (tmp_path / "prediction-grid.html").read_text()
    assert (
        page == render(grid) and page.count("<svg") == 2 * 3 + 2 * 2
    )  # mean and variance of three predictors, and of forests at each ε
    body = json.loads((tmp_path / "prediction-grid.json").read_text())
    assert len(body["outcomes"]) == len(grid.outcomes) and 0.5 <= body["baselines"]["votes"] < 0.6


def test_a_heat_map_holds_its_numbers(folder: Path) -> None:
    grid = prediction_grid(folder, {"votes": schema("votes")}, depths=(1,), trees=(1, 2), epsilons=(1.0,), repeats=2)
    outcomes = grid.of("votes", FOREST)
    drawn = heat(outcomes, "trees", "mean", "votes")
    ElementTree.fromstring(drawn.standalone())
    assert [row[2] for row in drawn.numbers.rows] == [f"{o.mean:.6f}" for o in outcomes]


def test_an_unknown_table_is_refused(folder: Path) -> None:
    with pytest.raises(InputError, match="must be one of"):
        prediction_grid(folder, {"insurance": schema("insurance")})


def test_encoded_rows_are_a_table() -> None:
    domain = Domain.of(ADD_REMOVE)
    codes = {c.name: np.zeros(5, dtype=np.int32) for c in domain}
    table = EncodedTable(ADD_REMOVE, codes)
    assert isinstance(table, Table) and table.count_rows() == 5
    assert table.count_by(domain, [("well",)])[0].tolist() == [5, 0]
    with pytest.raises(InputError):
        table.count_values("job")


def test_balancing_keeps_as_many_of_each_class() -> None:
    domain = Domain.of(ADD_REMOVE)
    classes = np.repeat([0, 1, 2], [7, 3, 5]).astype(np.int32)
    data = PredictionData("made", domain, TARGET, {TARGET: classes, "age": np.arange(15, dtype=np.int32)})
    even = data.balanced(np.random.default_rng(0))
    assert np.bincount(even.codes[TARGET]).tolist() == [3, 3, 3]
    assert data.baseline == 7 / 15 and all(p.rows in (5, 10) for p in data.split(3))


def test_adult_is_binned_by_public_facts() -> None:
    levels = sorted(v for values in EDUCATION.values() for v in values)
    assert levels == sorted(str(v) for v in schema("adult")["education"].labels)  # type: ignore[attr-defined]
    grouped = grouped_education(pa.table({"education": ["9th", "Prof-school", "Bachelors"]}))
    assert grouped.column("education_level").to_pylist() == ["HS_or_below", "Doctorate", "Bachelors"]
    assert Domain.of(ADULT_BINNED).shape(("age", "hours-per-week")) == (2, 3)


def test_a_billionaire_moves_the_mean_and_not_the_median() -> None:
    found = town(repeats=20)
    assert found.mean[1] > 300 * found.mean[0] and found.median[1] < 1.1 * found.median[0]
    assert found.noise_of_mean == pytest.approx(np.sqrt(2) * LARGEST / 0.5 / 100)
    spread = [np.std(means) for means in found.noisy_means]
    assert min(spread) > 1_000_000  # the noise drowns every income of the town
    off = [abs(np.median(m) - exact) for m, exact in zip(found.private_medians, found.median, strict=True)]
    assert max(off) < 10_000


def test_a_tree_as_a_picture(tmp_path: Path) -> None:
    tree = PrivateGreedyTree(200.0, rows=400, depth=2).fit(opened(people(400)), target=TARGET)
    drawn = tree_figure(tree)
    root = ElementTree.fromstring(drawn.standalone())
    words = "".join(root.itertext())
    assert "all rows" in words and "grade is" in words
    assert len(drawn.numbers.rows) == words.count("% of about")
    assert {row[1] for row in drawn.numbers.rows} <= {"a", "b", "c"}
    drawn.save(tmp_path / "tree.svg")
    assert (tmp_path / "tree.svg").read_text() == drawn.standalone()
    assert tree.export_text().count("% of about") == len(drawn.numbers.rows)


def test_a_large_tree_is_cut_short_and_says_so() -> None:
    forest = PrivateForest(5.0, rows=400, structure="random", trees=2, depth=7, leaves=4000)
    forest.fit(opened(people(400)), target=TARGET)
    assert "more branches" in tree_figure(forest, 1).svg
    with pytest.raises(InputError, match="must be from 0 to 1"):
        tree_figure(forest, 2)
