"""A notebook in a bare kernel, as `pip install . ipykernel nbclient` gives it: no widgets of any kind."""

from __future__ import annotations

import os
import textwrap
from pathlib import Path

import pytest

nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")
import nbformat  # noqa: E402 - comes with nbclient

CANARY = "canary-of-a-person"
BLOCKED = """
    import sys
    class Blocked:
        def find_spec(self, name, path=None, target=None):
            if name.partition(".")[0] in ("ipywidgets", "widgetsnbextension", "tqdm"):
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    sys.meta_path.insert(0, Blocked())
"""
"""For a kernel's `sitecustomize`: what this environment may have, and a bare one has not."""

CELLS = [
    "import pandas as pd, understudy as us",
    "import importlib.util, sys\nassert 'ipywidgets' not in sys.modules\n"
    "try:\n    import ipywidgets\n    raise SystemError('there are widgets')\nexcept ImportError:\n    pass",
    "frame = pd.read_csv('people.csv')\ndrafted = us.draft_schema(frame)\ndrafted.status",
    "us.draft_schema('people.csv').names",
    "opened = us.open('people.csv', us.Schema.load('people.toml'))\nopened",
    "of_frame = us.open(frame, us.Schema.load('people.toml'))\nof_frame",
    "release = us.synthesize(opened, epsilon=1.0, method='mst', target='smoker')\nrelease",
    "release.table",
    "us.synthesize(of_frame, epsilon=1.0, method='independent').table",
    "us.check(of_frame)",
    "us.query(opened, 'SELECT smoker, count(*) FROM people GROUP BY smoker', epsilon=1.0)",
    "release.count('age > 40')",
    "release.save('out')\nus.verify('out')",
]
FAILING = [
    "us.open(frame.drop(columns=['age']), us.Schema.load('people.toml'))",
    "us.draft_schema(frame.assign(age=[{'a': w} for w in frame['who']]).rename(columns={'pay': 'age'}))",
    "us.open('broken.csv', us.Schema.load('people.toml')).count_rows()",
    "us.draft_schema('broken.csv')",
    "us.synthesize(of_frame, epsilon=-1)",
]
SCHEMA = """
[columns.who]
type = "identifier"
[columns.age]
type = "integer"
min = 0
max = 99
[columns.pay]
type = "number"
min = 0
max = 100
[columns.smoker]
type = "boolean"
"""


WATCHDOG = 600
"""Seconds. It ends what hangs; on a busy machine a kernel may need minutes to start."""


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    desk = tmp_path_factory.mktemp("desk")
    rows = [f"{CANARY}-{i},{20 + i % 60},{i % 90}.5,{'true' if i % 3 else 'false'}" for i in range(200)]
    (desk / "people.csv").write_text("\n".join(["who,age,pay,smoker", *rows]) + "\n")
    (desk / "broken.csv").write_text("\n".join(["who,age,pay,smoker", *rows, f"{CANARY},1,2,3,4"]) + "\n")
    (desk / "people.toml").write_text(textwrap.dedent(SCHEMA))
    (desk / "site").mkdir()
    (desk / "site" / "sitecustomize.py").write_text(textwrap.dedent(BLOCKED))
    return desk


def executed(cells: list[str], desk: Path, *, failing: bool = False) -> list[list[dict[str, object]]]:
    """What each cell shows. A failing cell must fail, and the next one runs all the same."""
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in cells])
    path = os.pathsep.join(filter(None, [str(desk / "site"), os.environ.get("PYTHONPATH")]))
    client = nbclient.NotebookClient(
        book,
        timeout=WATCHDOG,
        startup_timeout=WATCHDOG,
        kernel_name="python3",
        allow_errors=failing,
        resources={"metadata": {"path": str(desk)}},
    )
    client.execute(env=os.environ | {"PYTHONPATH": path, "IPYTHONDIR": str(desk / "ipython")})
    return [cell["outputs"] for cell in book.cells]


def shown(outputs: list[dict[str, object]]) -> str:
    return "".join(str(o.get("data", "")) + str(o.get("text", "")) for o in outputs)


def test_a_notebook_opens_drafts_releases_and_shows(desk: Path):
    outputs = executed(CELLS, desk)
    drafted, named, release, table = (shown(outputs[i]) for i in (2, 3, 6, 7))
    assert "draft" in drafted and "smoker" in named
    assert "differential privacy" in release and "mst" in release and "<table>" in release
    assert "smoker" in table and "age" in table
    assert all(o["output_type"] != "error" for cell in outputs for o in cell)
    assert not any(CANARY in shown(cell) for cell in outputs)
    assert not (desk / ".tmp").exists()


@pytest.mark.slow
def test_errors_in_a_notebook_show_no_cell(desk: Path):
    outputs = executed([*CELLS[:1], CELLS[2], CELLS[5], *FAILING], desk, failing=True)
    for cell in outputs[3:]:
        (error,) = [o for o in cell if o["output_type"] == "error"]
        assert str(error["ename"]).endswith("Error")
    assert CANARY not in str(outputs)
