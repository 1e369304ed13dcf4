"""The architecture as tests: which package may import which, who may reach rows, and what nobody may call.

Every rule is a function from a module's syntax tree to complaints, so that each can be shown a source that breaks it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import understudy

SOURCE = Path(understudy.__file__).parent
ORDER = (
    "errors",
    "files",
    "schema",
    "tables",
    "privacy",
    "models",
    "synthesizers",
    "specimens",
    "predictors",
    "evaluation",
    "attacks",
    "reports",
    "releases",
    "queries",
    "studies",
    "audits",
    "datasets",
    "cli",
)
"""DESIGN.md §2: imports only point to the left, or stay inside one package."""

ROOMS_WITH_ROWS = ("tables", "privacy", "specimens")
COUNTING = (
    "read_codes",
    "count_by",
    "count_cells",
    "count_tally",
    "count_values",
    "count_rows",
    "has_rows",
    "check_readable",
)
ROW_MODULES = ("duckdb", "pyarrow.csv", "pyarrow.parquet", "pyarrow.dataset", "pyarrow.feather", "psycopg", "pyspark")
ROW_READERS = ("read_csv", "read_parquet", "read_table", "read_json", "read_excel", "read_sql", "read_database")
ROW_READERS += ("scan_csv", "scan_parquet", "open_csv", "open_dataset", "ParquetFile", "from_csv_auto")
FILE_MODULES = ("gzip", "bz2", "lzma", "io", "os", "codecs", "builtins", "tarfile")
OWN_FILES = ("schema", "predictors", "releases", "datasets", "studies", "audits", "reports")
"""Packages that read files of ours (schemas, releases, records of studies and audits, saved predictors), whole and as
bytes or text; never data."""
MAY_READ_ROWS = ("tables", "specimens", "evaluation", "attacks", "studies")
"""What they compute is internal; none of them takes part in making a release."""
MAY_IMPORT_SPECIMENS = ("", "specimens", "attacks", "evaluation", "studies", "audits", "cli")
"""The first is the package itself, which offers `understudy.specimen`."""
BROKEN_ON_PURPOSE = ("understudy.audits.mutants", "understudy.audits.broken_boundary")
"""Mistakes that the auditor must find; some of them count rows behind the curator's back."""
LOADS_MADE_UP_ROWS = ("understudy.audits.server",)
"""The auditor's own rows, put on a server that somebody named for that."""
GENERATORS = ("Generator", "PCG64", "SeedSequence", "default_rng")
BANNED_MODULES = ("random", "pickle", "cPickle", "joblib", "marshal", "shelve", "dill", "cloudpickle")


@dataclass(frozen=True)
class Module:
    """A source file as the rules see it: its dotted name and its syntax tree."""

    name: str
    tree: ast.Module

    @classmethod
    def read(cls, path: Path) -> Module:
        parts = ("understudy", *path.relative_to(SOURCE).with_suffix("").parts)
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        return cls(name, ast.parse(path.read_text(), str(path)))

    @property
    def room(self) -> str:
        """The package of the layout that it belongs to; empty for `understudy` itself and `python -m understudy`."""
        room = [*self.name.split("."), ""][1]
        return "" if room == "__main__" else room

    def imports(self) -> Iterator[str]:
        """Dotted names of everything imported, anywhere: at the top, in a function, for type checking only."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                yield from self._from(node)

    def _from(self, node: ast.ImportFrom) -> Iterator[str]:
        base = node.module or ""
        if node.level:
            base = ".".join([*self.name.split(".")[: -node.level], *([base] if base else [])])
        yield from (f"{base}.{alias.name}" for alias in node.names)

    def calls(self) -> Iterator[ast.Call]:
        return (node for node in ast.walk(self.tree) if isinstance(node, ast.Call))


Rule = Callable[[Module], list[str]]


def dotted(node: ast.AST) -> str:
    """`np.random.seed` for the expression of that name; empty for anything that is not a plain chain of names."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        base = dotted(node.value)
        return f"{base}.{node.attr}" if base else ""
    return ""


def called(call: ast.Call) -> str:
    """The last name of what is called: `count_by` in `self._table.count_by(…)`."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else dotted(call.func)


def wrong_direction(module: Module) -> list[str]:
    if not module.room:
        return []  # the surface may import everything
    if module.room not in ORDER:
        return [f"{module.room} has no place in the layout"]
    return [name for name in module.imports() if _points_right(module.room, name)]


def _points_right(room: str, imported: str) -> bool:
    parts = imported.split(".")
    if parts[0] != "understudy":
        return False
    target = parts[1] if len(parts) > 1 else ""
    if target not in ORDER:
        return room != "cli"  # a name of the surface, which imports everything
    return ORDER.index(target) > ORDER.index(room)


def reaches_rows(module: Module) -> list[str]:
    if module.room in ROOMS_WITH_ROWS or module.name in (*BROKEN_ON_PURPOSE, *LOADS_MADE_UP_ROWS):
        return []
    imported = [n for n in module.imports() if any(n == m or n.startswith(m + ".") for m in ROW_MODULES)]
    return imported + [called(c) for c in module.calls() if _reads_rows(c, module.room)]


def _reads_rows(call: ast.Call, room: str) -> bool:
    name = called(call)
    if name in COUNTING or name in ROW_READERS:
        return True
    if name in ("read_bytes", "read_text"):
        return room not in OWN_FILES
    return name == "open" and _is_file_open(call) and not _writes(call)


def _is_file_open(call: ast.Call) -> bool:
    """`open(…)`, `gzip.open(…)`, or `path.open(…)` with nothing or a mode first; `x.open(codes, rng)` is no file."""
    if not isinstance(call.func, ast.Attribute) or dotted(call.func.value) in FILE_MODULES:
        return True
    if dotted(call.func.value) in ("Ledger", "us", "understudy"):
        return False
    first = call.args[0] if call.args else None
    return first is None or isinstance(first, ast.Constant) or dotted(first).endswith("mode")


def _writes(call: ast.Call) -> bool:
    arguments = [*call.args, *(k.value for k in call.keywords if k.arg == "mode")]
    modes = [a.value for a in arguments if isinstance(a, ast.Constant) and isinstance(a.value, str)]
    return any(set(m) <= set("wxab+t") and "+" not in m and set(m) & set("wxa") for m in modes)


def reads_for_evaluation(module: Module) -> list[str]:
    if module.room in MAY_READ_ROWS:
        return []
    return [n for n in module.imports() if n.startswith("understudy.tables.reading")]


def uses_specimens(module: Module) -> list[str]:
    if module.room in MAY_IMPORT_SPECIMENS:
        return []
    return [n for n in module.imports() if n.startswith("understudy.specimens")]


def banned(module: Module) -> list[str]:
    imported = [n for n in module.imports() if n.split(".")[0] in BANNED_MODULES]
    return imported + [called(c) or "call" for c in module.calls() if _is_banned(c)] + global_randomness(module)


def _is_banned(call: ast.Call) -> bool:
    if dotted(call.func) in ("eval", "exec", "__import__"):
        return True
    return any(k.arg == "allow_pickle" and not _is_false(k.value) for k in call.keywords)


def _is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is False


def global_randomness(module: Module) -> list[str]:
    """`np.random.x` for any x but the generators, under any import of numpy's random module."""
    used = [dotted(n) for n in ast.walk(module.tree) if isinstance(n, ast.Attribute)]
    names = [u for u in used if u.startswith(("np.random.", "numpy.random."))] + [
        n for n in module.imports() if n.startswith("numpy.random")
    ]
    return [n for n in names if n.split("random.")[-1].split(".")[0] not in GENERATORS]


def distinct_values(module: Module) -> list[str]:
    """`.unique()` of a frame tells which values there are. Numpy's function of an array of codes is another matter."""
    if module.room in ROOMS_WITH_ROWS:
        return []
    return [
        dotted(c.func) or "unique"
        for c in module.calls()
        if isinstance(c.func, ast.Attribute) and c.func.attr in ("unique", "nunique") and dotted(c.func.value) != "np"
    ]


RULES: dict[str, Rule] = {
    rule.__name__: rule
    for rule in (wrong_direction, reaches_rows, reads_for_evaluation, uses_specimens, banned, distinct_values)
}
MODULES = [Module.read(path) for path in sorted(SOURCE.rglob("*.py"))]


@pytest.mark.parametrize("rule", RULES)
def test_every_module_keeps_the_rule(rule: str) -> None:
    assert {m.name: found for m in MODULES if (found := RULES[rule](m))} == {}


def test_the_rules_see_the_whole_package() -> None:
    names = {m.name for m in MODULES}
    assert {"understudy", "understudy.privacy.curator", "understudy.cli.app", "understudy.tables.duck"} <= names
    assert {m.room for m in MODULES} - {""} <= set(ORDER)
    assert "understudy.privacy.ledger.Ledger" in {n for m in MODULES for n in m.imports()}


BREAKERS: list[tuple[str, str, str]] = [
    ("wrong_direction", "understudy.schema.x", "from understudy.tables.table import Table"),
    ("wrong_direction", "understudy.privacy.x", "def f():\n    from understudy.models.model import Model"),
    ("wrong_direction", "understudy.models.x", "if TYPE_CHECKING:\n    import understudy.synthesizers.share"),
    ("wrong_direction", "understudy.reports.x", "from understudy.releases.release import Release"),
    ("wrong_direction", "understudy.models.x", "from ..synthesizers import registry"),
    ("wrong_direction", "understudy.models.x", "from understudy import synthesizers"),
    ("wrong_direction", "understudy.models.x", "import understudy"),
    ("wrong_direction", "understudy.errors", "from understudy.files import write_atomically"),
    ("wrong_direction", "understudy.helpers.x", "import math"),
    ("reaches_rows", "understudy.synthesizers.x", "def fit(table):\n    return table.count_by(domain, sets)"),
    ("reaches_rows", "understudy.synthesizers.x", "n = curator._gate._table.count_rows()"),
    ("reaches_rows", "understudy.models.x", "def f():\n    import duckdb"),
    ("reaches_rows", "understudy.reports.x", "import pyarrow.parquet as pq"),
    ("reaches_rows", "understudy.reports.x", "from pyarrow import csv"),
    ("reaches_rows", "understudy.evaluation.x", "pd.read_csv(path)"),
    ("reaches_rows", "understudy.cli.x", "pl.scan_parquet(path)"),
    ("reaches_rows", "understudy.cli.x", "rows = open(path).readlines()"),
    ("reaches_rows", "understudy.cli.x", "with path.open('rb') as file: pass"),
    ("reaches_rows", "understudy.cli.x", "with path.open('r+b') as file: pass"),
    ("reaches_rows", "understudy.cli.x", "import gzip\ngzip.open(path, 'rb')"),
    ("reaches_rows", "understudy.cli.x", "lines = list(path.open())"),
    ("reaches_rows", "understudy.cli.x", "path.open(mode)"),
    ("reaches_rows", "understudy.cli.x", "io.open(path)"),
    ("reaches_rows", "understudy.synthesizers.x", "text = Path(name).read_text()"),
    ("reads_for_evaluation", "understudy.synthesizers.x", "from understudy.tables.reading import Rows"),
    ("reads_for_evaluation", "understudy.privacy.x", "def f():\n    import understudy.tables.reading"),
    ("reads_for_evaluation", "understudy.cli.x", "from understudy.tables import reading"),
    ("uses_specimens", "understudy.synthesizers.x", "from understudy.specimens.arf import published"),
    ("uses_specimens", "understudy.releases.x", "def f():\n    import understudy.specimens"),
    ("banned", "understudy.models.x", "import numpy as np\nnp.random.seed(1)"),
    ("banned", "understudy.models.x", "x = np.random.normal"),
    ("banned", "understudy.models.x", "from numpy.random import normal"),
    ("banned", "understudy.models.x", "import random"),
    ("banned", "understudy.models.x", "def f():\n    from pickle import loads"),
    ("banned", "understudy.models.x", "import joblib"),
    ("banned", "understudy.models.x", "eval('1')"),
    ("banned", "understudy.models.x", "exec(code)"),
    ("banned", "understudy.releases.x", "np.load(file, allow_pickle=True)"),
    ("banned", "understudy.releases.x", "np.load(file, allow_pickle=flag)"),
    ("distinct_values", "understudy.synthesizers.x", "values = frame['city'].unique()"),
    ("distinct_values", "understudy.models.x", "n = frame.city.nunique()"),
]


@pytest.mark.parametrize(("rule", "name", "source"), BREAKERS)
def test_a_module_that_breaks_the_rule_is_found(rule: str, name: str, source: str) -> None:
    assert RULES[rule](Module(name, ast.parse(source))) != []


KEEPERS: list[tuple[str, str, str]] = [
    ("wrong_direction", "understudy.schema.x", "from understudy.files import write_atomically"),
    ("wrong_direction", "understudy.cli.x", "from understudy import __version__"),
    ("wrong_direction", "understudy.models.x", "from understudy.models.model import Model\nimport numpy as np"),
    ("wrong_direction", "understudy", "from understudy.cli import run"),
    ("reaches_rows", "understudy.tables.x", "import duckdb\nopen(path)"),
    ("reaches_rows", "understudy.privacy.x", "table.count_by(domain, sets)"),
    ("reaches_rows", "understudy.releases.x", "with path.open('wb') as file: pass\npath.read_bytes()"),
    ("reaches_rows", "understudy.cli.x", "ledger = Ledger.open(path)"),
    ("reaches_rows", "understudy.models.x", "codes = compression.open(sampled, rng)"),
    ("reaches_rows", "understudy.studies.x", "path.open('ab')"),
    ("reads_for_evaluation", "understudy.evaluation.x", "from understudy.tables.reading import Rows"),
    ("uses_specimens", "understudy.attacks.x", "from understudy.specimens.arf import published"),
    ("banned", "understudy.models.x", "rng = np.random.Generator(np.random.PCG64(1))"),
    ("banned", "understudy.releases.x", "np.load(file, allow_pickle=False)"),
    ("distinct_values", "understudy.models.x", "np.unique(codes)"),
    ("distinct_values", "understudy.tables.x", "frame.unique()"),
]


@pytest.mark.parametrize(("rule", "name", "source"), KEEPERS)
def test_a_module_that_keeps_the_rule_is_left_alone(rule: str, name: str, source: str) -> None:
    assert RULES[rule](Module(name, ast.parse(source))) == []
