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
    repeated_counts,
    save,
    town,
)
from understudy.lab.studies.documents.prediction_page import (
    FOREST,
    GREEDY,
    PRIVATE_FOREST,
    PRIVATE_TREE,
    TREE,
    Id3Result,
    PredictionGrid,
    PredictionOutcome,
    heat,
    id3_rows,
    render,
    repeated,
    single_figures,
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
        page == render(grid) and page.count("<svg") == 2 * 3 + 2 * 2 + 1 + 7
    )  # mean and variance of three predictors, and of forests at each ε; ID3; the single figures
    assert (tmp_path / "prediction-grid.html").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "prediction-grid.json").stat().st_mode & 0o777 == 0o600
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


def test_a_count_that_is_asked_again_and_again(folder: Path) -> None:
    """The share's spread is that of Laplace noise: of 1,000 answers all but a few within a tenth, at a large ε."""
    data = PredictionData.read("votes", folder, schema("votes"))
    found = repeated_counts(data, epsilon=1.0)
    republicans = float(np.mean(data.codes["Class"] == 1))
    assert found.value == "republican" and found.exact == pytest.approx(republicans)
    shares = np.array(found.shares)
    assert len(shares) == 1_000 and len(np.unique(shares)) > 10
    # Of n rows the share moves by about b/n·√2 (b = 1 here, n = 300), so a tenth is more than twenty deviations.
    assert np.abs(shares - found.exact).max() < 0.1
    drowned = repeated_counts(data, epsilon=0.001)
    assert 0.0 <= min(drowned.shares) < 0.1 and 0.9 < max(drowned.shares) <= 1.0
    ElementTree.fromstring(repeated(found).standalone())


def made(**figures: float) -> PredictionGrid:
    outcomes = [
        PredictionOutcome("votes", method, depth, trees, epsilon, (0.1 * depth + 0.001 * trees,))
        for method, epsilon in ((TREE, None), (FOREST, None), (PRIVATE_FOREST, 0.01), (PRIVATE_FOREST, 1.0))
        for depth in (1, 3)
        for trees in ((1,) if method == TREE else (1, 100))
    ]
    id3 = (Id3Result("votes", (0.9, 0.7), {0.5: (0.6, 0.5)}),)
    return PredictionGrid(tuple(outcomes), {"votes": 0.6}, {"votes": 300}, 1, town(repeats=20), id3=id3)


def test_depth_and_trees_each_by_itself_are_means_over_the_other() -> None:
    drawn = {f.title: f for f in single_figures(made(), "votes")}
    assert list(drawn) == [
        f"votes: {TREE}, by depth",
        f"votes: {FOREST}, by depth",
        f"votes: {FOREST}, by trees",
        f"votes: {PRIVATE_FOREST}, by depth",
        f"votes: {PRIVATE_FOREST}, by trees",
        f"votes: {PRIVATE_FOREST}, ε = 0.01, by trees",
    ]
    # Depth 1, over 1 and 100 trees: (0.101 + 0.200) / 2; 100 trees, over depth 1 and 3: (0.2 + 0.4) / 2.
    by_depth, by_trees = drawn[f"votes: {FOREST}, by depth"], drawn[f"votes: {FOREST}, by trees"]
    assert ("forest", "1", "0.1505", "0.1505", "0.1505") in by_depth.numbers.rows
    assert ("forest", "100", "0.3", "0.3", "0.3") in by_trees.numbers.rows
    small = drawn[f"votes: {PRIVATE_FOREST}, ε = 0.01, by trees"]
    assert {row[0] for row in small.numbers.rows} == {"depth 1", "depth 3", "commonest class"}


def test_id3_stands_beside_what_was_printed() -> None:
    assert id3_rows(made()) == [("votes", "0.800", "0.600", "0.550", "0.40")]
    page = render(made())
    assert "ID3, plain and private" in page and "votes: private ID3" in page
