"""The architecture as tests: which package may import which, who may reach rows, and what nobody may call.

Every rule is a function from a module's syntax tree to complaints, so that each can be shown a source that breaks it.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import understudy

SOURCE = Path(understudy.__file__).parent
ORDER = (
    "errors",
    "files",
    "parameters",
    "card",
    "boundary.schema",
    "boundary.tables",
    "boundary.privacy",
    "pages",
    "progress",
    "bars",
    "inference",
    "methods",
    "releases",
    "queries",
    "predictors",
    "lab.jobs",
    "lab.evaluation",
    "lab.intake",
    "lab.specimens",
    "lab.attacks",
    "lab.studies",
    "lab.audits",
    "datasets",
    "cli",
)
"""docs/architecture.md: imports only point upwards in this list, or stay inside one room."""

STOREYS = ("boundary", "lab")
"""Folders that hold rooms, and no modules of their own."""
ROOMS_WITH_ROWS = ("boundary.tables", "boundary.privacy", "lab.specimens")
MOST_BOUNDARY_LINES = 18_340
"""All that a guarantee rests on, and that a reviewer has to read: growing it is a decision, to be made here."""

FOR_ANYBODY = {
    "table": ("Table", "is_table", "opened", "identity_of"),
    "sources": ("open", "open_frame"),
    "draft": ("draft_schema",),
    "frame": ("kind_of",),
    "sites.federated": ("federation_of",),
    "sites.flower": ("serve",),
}
"""What any room may import from boundary.tables: the type of a table, ways to put rows behind the boundary and to name
them, none to get one out. Everything else there can hand out rows, codes or exact counts."""
ROWS_OF_THE_STEWARD = ("lab.specimens", "lab.evaluation", "lab.intake", "lab.attacks", "lab.studies")
"""Rooms that look at rows on the steward's side (`tables.rows`). What they compute is internal; none of them takes part
in making a release."""
STATED: dict[str, tuple[str, ...]] = {
    # The user's own frame: rows to be completed, to be predicted for, or on their way behind the boundary.
    "understudy.releases.frames": ("frame.to_arrow",),
    "understudy.predictors.input_data": ("frame.to_arrow",),
    "understudy.lab.attacks.shadow_models": ("frame.to_arrow", "cache.CachedTable"),
    # Drawn dates, written by the engine that will read them back.
    "understudy.releases.synthetic_table": ("connection.written_moments",),
    # Rows that the user says are public: what is known before a release, and nothing that it protects.
    "understudy.releases.priors": ("rows.Rows",),
    # Codes that a study made itself, put behind the boundary.
    "understudy.lab.studies.documents.prediction_grid": ("cache.EncodedTable",),
    "understudy.lab.audits.checks.server": ("spark.session_at",),
    # The auditor's made-up tables, and the boundary broken on purpose.
    "understudy.lab.audits.checks.boundary": ("cache.CachedTable",),
    "understudy.lab.audits.harness": ("cache.CachedTable",),
    # Sites of made-up rows, listened to on the way.
    "understudy.lab.audits.checks.sites": (
        "sites.federated.FederatedTable",
        "sites.link.ANSWER",
        "sites.link.COUNT",
        "sites.link.LocalLink",
        "sites.messages.Message",
    ),
    "understudy.lab.audits.mutants.broken_boundary": (
        "cache.CachedTable",
        "frame.FrameTable",
        "sql.DUCKDB_FUNCTIONS",
    ),
}
"""The exceptions, name by name."""

ENGINES = "understudy.boundary.schema.late_imports"
"""Has the libraries that read rows, for the boundary alone."""
COUNTING = ("read_codes", "count_by", "count_cells", "count_tally", "count_values", "count_rows", "count_bundle")
COUNTING += ("has_rows", "check_readable", "uncached")
"""What a table, a cached one too, answers to the curator alone."""
INSIDE_OF_TABLES = ("_codes", "_rows", "_source", "_connection", "_table", "_fetch", "_batches")
"""Attributes behind which a table, a cache or a gate has its rows; another object's are nobody's business."""
STATED_ATTRIBUTES = {"understudy.lab.audits.checks.boundary": ("uncached", "_connection")}
"""The auditor asks the engine where it spills rows to."""
ROW_MODULES = ("duckdb", "pyarrow.csv", "pyarrow.parquet", "pyarrow.dataset", "pyarrow.feather", "psycopg", "pyspark")
FILE_WRITERS = ("pyarrow.csv", "pyarrow.parquet")
ROW_READERS = ("read_csv", "read_parquet", "read_table", "read_json", "read_excel", "read_sql", "read_database")
ROW_READERS += ("scan_csv", "scan_parquet", "open_csv", "open_dataset", "ParquetFile", "from_csv_auto")
FILE_MODULES = ("gzip", "bz2", "lzma", "io", "os", "codecs", "builtins", "tarfile")
OWN_FILES = ("boundary.schema", "predictors", "releases", "datasets", "lab.jobs", "lab.studies", "lab.audits", "pages")
"""Packages that read files of ours (schemas, releases, records of studies and audits, saved predictors), whole and as
bytes or text; never data."""
MAY_IMPORT_SPECIMENS = ("", "lab.specimens", "lab.attacks", "lab.evaluation", "lab.studies", "lab.audits", "cli")
"""The first is the package itself, which offers `understudy.specimen`."""
BROKEN_ON_PURPOSE = ("understudy.lab.audits.mutants.mutants", "understudy.lab.audits.mutants.broken_boundary")
"""Mistakes that the auditor must find; some of them count rows behind the curator's back."""
WRITES_SYNTHETIC_ROWS = ("understudy.releases.synthetic_table",)
"""May import what writes CSV and Parquet files; reading with it is refused as everywhere."""
LOADS_MADE_UP_ROWS = ("understudy.lab.audits.checks.server",)
"""The auditor's own rows, put on a server that somebody named for that."""
OPENS_DESCRIPTORS = ("understudy.files", "understudy.cli.streams", "understudy.releases.untrusted.reading")
"""May open what they write, for a lock on it; the null device in the place of a closed stream; and files of releases
and of predictors, which are no tables, without waiting."""
GENERATORS = ("Generator", "PCG64", "SeedSequence", "default_rng")
BANNED_MODULES = ("random", "pickle", "cPickle", "joblib", "marshal", "shelve", "dill", "cloudpickle")


def room_of(name: str) -> str:
    """The room of a dotted name: two words deep inside a storey, else one."""
    words = name.split(".")[1:]
    return ".".join(words[: 2 if words and words[0] in STOREYS else 1])


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
        return "" if self.name == "understudy.__main__" else room_of(self.name)

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
    if module.room in STOREYS:
        return [*module.imports()]
    if module.room not in ORDER:
        return [f"{module.room} has no place in the layout"]
    return [name for name in module.imports() if _points_right(module.room, name)]


def _points_right(room: str, imported: str) -> bool:
    parts = imported.split(".")
    if parts[0] != "understudy":
        return False
    target = room_of(imported)
    if target not in ORDER:
        return room != "cli"  # a name of the surface, which imports everything
    return ORDER.index(target) > ORDER.index(room)


def reaches_rows(module: Module) -> list[str]:
    if module.room in ROOMS_WITH_ROWS or module.name in (*BROKEN_ON_PURPOSE, *LOADS_MADE_UP_ROWS, ENGINES):
        return []
    banned = [m for m in ROW_MODULES if not (m in FILE_WRITERS and module.name in WRITES_SYNTHETIC_ROWS)]
    imported = [n for n in module.imports() if any(n == m or n.startswith(m + ".") for m in banned)]
    calls = [c for c in module.calls() if not (module.name in OPENS_DESCRIPTORS and dotted(c.func) == "os.open")]
    return imported + _counting(module) + [called(c) for c in calls if _reads_rows(c, module.room)]


def _counting(module: Module) -> list[str]:
    """Whatever names a question of a table or the inside of one: called, passed on, or looked up by its name."""
    found = []
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Attribute):
            inside = node.attr in INSIDE_OF_TABLES and dotted(node.value) not in ("self", "cls")
            found += [node.attr] if inside or node.attr in COUNTING else []
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            named = node.value in (*COUNTING, *INSIDE_OF_TABLES, *ROW_MODULES) or node.value.startswith(
                "understudy.boundary.tables"
            )
            found += [node.value] if named else []
    return [name for name in found if name not in STATED_ATTRIBUTES.get(module.name, ())]


def _reads_rows(call: ast.Call, room: str) -> bool:
    name = called(call)
    if name in ROW_READERS:
        return True
    if name in ("read_bytes", "read_text"):
        return room not in OWN_FILES
    return name == "open" and _is_file_open(call) and not _writes(call)


def imports_rows(module: Module) -> list[str]:
    """Above the boundary a module may import the names that are for anybody, and those that are stated for it."""
    tables = "understudy.boundary.tables"
    inside = [n for n in module.imports() if n == tables or n.startswith((f"{tables}.", ENGINES))]
    if module.room.startswith("boundary."):  # the curator counts, but looks at no row
        return [n for n in inside if n.startswith(f"{tables}.rows") and module.room != "boundary.tables"]
    allowed = {f"{place}.{name}" for place, names in FOR_ANYBODY.items() for name in names}
    allowed |= set(STATED.get(module.name, ()))
    if module.room in ROWS_OF_THE_STEWARD:
        allowed.add("rows.Rows")
    return [n for n in inside if n.removeprefix(tables).lstrip(".") not in allowed]


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


def uses_specimens(module: Module) -> list[str]:
    if module.room in MAY_IMPORT_SPECIMENS:
        return []
    return [n for n in module.imports() if n.startswith("understudy.lab.specimens")]


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
    for rule in (wrong_direction, reaches_rows, imports_rows, uses_specimens, banned, distinct_values)
}
MODULES = [Module.read(path) for path in sorted(SOURCE.rglob("*.py"))]


def boundary_lines() -> int:
    """What a guarantee rests on: not on drafts, which read rows for the steward alone, and claim nothing."""
    files = (path for path in (SOURCE / "boundary").rglob("*.py") if path.parent.name != "drafting")
    return sum(len(path.read_text().splitlines()) for path in files)


def test_the_boundary_is_no_larger_than_was_decided() -> None:
    assert boundary_lines() <= MOST_BOUNDARY_LINES


@pytest.mark.parametrize("rule", RULES)
def test_every_module_keeps_the_rule(rule: str) -> None:
    assert {m.name: found for m in MODULES if (found := RULES[rule](m))} == {}


def test_every_stated_exception_is_needed() -> None:
    used = {m.name: {n.removeprefix("understudy.boundary.tables.") for n in m.imports()} for m in MODULES}
    assert {m: set(names) - used.get(m, set()) for m, names in STATED.items()} == {m: set() for m in STATED}
    assert set(STATED_ATTRIBUTES) <= set(used)


def test_the_rules_see_the_whole_package() -> None:
    names = {m.name for m in MODULES}
    assert {
        "understudy",
        "understudy.boundary.privacy.curator",
        "understudy.cli.app",
        "understudy.boundary.tables.duck",
    } <= names
    assert {m.room for m in MODULES} - {"", *STOREYS} <= set(ORDER)
    assert "understudy.boundary.privacy.ledger.ledger.Ledger" in {n for m in MODULES for n in m.imports()}


BREAKERS: list[tuple[str, str, str]] = [
    ("wrong_direction", "understudy.boundary.schema.x", "from understudy.boundary.tables.table import Table"),
    ("wrong_direction", "understudy.boundary.privacy.x", "def f():\n    from understudy.inference.model import Model"),
    ("wrong_direction", "understudy.inference.x", "if TYPE_CHECKING:\n    import understudy.methods.parts.share"),
    ("wrong_direction", "understudy.pages.x", "from understudy.releases.release import Release"),
    ("wrong_direction", "understudy.inference.x", "from ..methods import registry"),
    ("wrong_direction", "understudy.inference.x", "from understudy import methods"),
    ("wrong_direction", "understudy.inference.x", "import understudy"),
    ("wrong_direction", "understudy.errors", "from understudy.files import write_atomically"),
    ("wrong_direction", "understudy.helpers.x", "import math"),
    ("reaches_rows", "understudy.methods.x", "def fit(table):\n    return table.count_by(domain, sets)"),
    ("reaches_rows", "understudy.methods.x", "n = curator._gate._table.count_rows()"),
    ("reaches_rows", "understudy.methods.x", "counts = table.count_bundle(domain, bundle)"),
    ("reaches_rows", "understudy.methods.x", "batches = table._codes(domain, columns)"),
    ("reaches_rows", "understudy.methods.x", "count = table.count_by\nwhole = map(count, domains)"),
    ("reaches_rows", "understudy.methods.x", "counts = getattr(table, 'count_cells')(domain, grids)"),
    ("reaches_rows", "understudy.queries.x", "rows = operator.attrgetter('_rows')(table)"),
    ("reaches_rows", "understudy.predictors.x", "frame = table._rows.to_pandas()"),
    ("reaches_rows", "understudy.queries.x", "table._connection.sql('SELECT * FROM frame')"),
    ("reaches_rows", "understudy.releases.x", "found = curator._gate._table"),
    ("reaches_rows", "understudy.lab.attacks.x", "rows = cached.uncached"),
    ("reaches_rows", "understudy.cli.x", "engine = importlib.import_module('duckdb')"),
    ("reaches_rows", "understudy.cli.x", "module = importlib.import_module('understudy.boundary.tables.rows')"),
    ("reaches_rows", "understudy.inference.x", "def f():\n    import duckdb"),
    ("reaches_rows", "understudy.pages.x", "import pyarrow.parquet as pq"),
    ("reaches_rows", "understudy.pages.x", "from pyarrow import csv"),
    ("reaches_rows", "understudy.lab.evaluation.x", "pd.read_csv(path)"),
    ("reaches_rows", "understudy.releases.synthetic_table", "import pyarrow.parquet as pq\npq.read_table(path)"),
    ("reaches_rows", "understudy.releases.synthetic_table", "import pyarrow.dataset"),
    ("reaches_rows", "understudy.cli.x", "pl.scan_parquet(path)"),
    ("reaches_rows", "understudy.cli.x", "rows = open(path).readlines()"),
    ("reaches_rows", "understudy.cli.x", "with path.open('rb') as file: pass"),
    ("reaches_rows", "understudy.cli.x", "with path.open('r+b') as file: pass"),
    ("reaches_rows", "understudy.cli.x", "import gzip\ngzip.open(path, 'rb')"),
    ("reaches_rows", "understudy.cli.x", "lines = list(path.open())"),
    ("reaches_rows", "understudy.cli.x", "path.open(mode)"),
    ("reaches_rows", "understudy.cli.x", "io.open(path)"),
    ("reaches_rows", "understudy.methods.x", "text = Path(name).read_text()"),
    ("imports_rows", "understudy.methods.x", "from understudy.boundary.tables.rows import Rows"),
    ("imports_rows", "understudy.queries.x", "def f():\n    import understudy.boundary.tables.rows"),
    ("imports_rows", "understudy.boundary.privacy.x", "def f():\n    import understudy.boundary.tables.rows"),
    ("imports_rows", "understudy.cli.x", "from understudy.boundary.tables import rows"),
    ("imports_rows", "understudy.methods.x", "from understudy.boundary.tables.counting import count_marginals"),
    ("imports_rows", "understudy.predictors.x", "from understudy.boundary.tables.frame import to_arrow"),
    ("imports_rows", "understudy.predictors.x", "from understudy.boundary.tables.table import read_codes"),
    ("imports_rows", "understudy.releases.x", "from understudy.boundary.tables.cache import CachedTable"),
    ("imports_rows", "understudy.queries.x", "from understudy.boundary.tables.duck import DuckTable"),
    ("imports_rows", "understudy.queries.x", "from understudy.boundary.tables.sources import path_relation"),
    ("imports_rows", "understudy.cli.x", "from understudy.boundary.tables.connection import connect"),
    ("imports_rows", "understudy.lab.evaluation.x", "from understudy.boundary.tables.sql import select_codes"),
    ("imports_rows", "understudy.releases.frames", "from understudy.boundary.tables.rows import Rows"),
    ("imports_rows", "understudy.inference.x", "import understudy.boundary.tables.postgres as p"),
    ("imports_rows", "understudy.inference.x", "from understudy.boundary import tables"),
    ("imports_rows", "understudy.queries.x", "from understudy.boundary.schema.late_imports import duckdb"),
    ("imports_rows", "understudy", "from understudy.boundary.tables.frame import FrameTable"),
    ("uses_specimens", "understudy.methods.x", "from understudy.lab.specimens.arf import published"),
    ("uses_specimens", "understudy.releases.x", "def f():\n    import understudy.lab.specimens"),
    ("banned", "understudy.inference.x", "import numpy as np\nnp.random.seed(1)"),
    ("banned", "understudy.inference.x", "x = np.random.normal"),
    ("banned", "understudy.inference.x", "from numpy.random import normal"),
    ("banned", "understudy.inference.x", "import random"),
    ("banned", "understudy.inference.x", "def f():\n    from pickle import loads"),
    ("banned", "understudy.inference.x", "import joblib"),
    ("banned", "understudy.inference.x", "eval('1')"),
    ("banned", "understudy.inference.x", "exec(code)"),
    ("banned", "understudy.releases.x", "np.load(file, allow_pickle=True)"),
    ("banned", "understudy.releases.x", "np.load(file, allow_pickle=flag)"),
    ("distinct_values", "understudy.methods.x", "values = frame['city'].unique()"),
    ("distinct_values", "understudy.inference.x", "n = frame.city.nunique()"),
]


@pytest.mark.parametrize(("rule", "name", "source"), BREAKERS)
def test_a_module_that_breaks_the_rule_is_found(rule: str, name: str, source: str) -> None:
    assert RULES[rule](Module(name, ast.parse(source))) != []


KEEPERS: list[tuple[str, str, str]] = [
    ("wrong_direction", "understudy.boundary.schema.x", "from understudy.files import write_atomically"),
    ("wrong_direction", "understudy.cli.x", "from understudy import __version__"),
    ("wrong_direction", "understudy.inference.x", "from understudy.inference.model import Model\nimport numpy as np"),
    ("wrong_direction", "understudy", "from understudy.cli import run"),
    ("reaches_rows", "understudy.boundary.tables.x", "import duckdb\nopen(path)"),
    ("reaches_rows", "understudy.boundary.privacy.x", "table.count_by(domain, sets)"),
    ("reaches_rows", "understudy.releases.x", "with path.open('wb') as file: pass\npath.read_bytes()"),
    ("reaches_rows", "understudy.cli.x", "ledger = Ledger.open(path)"),
    ("reaches_rows", "understudy.releases.synthetic_table", "import pyarrow.parquet as pq\npq.write_table(rows, sink)"),
    ("reaches_rows", "understudy.inference.x", "codes = compression.open(sampled, rng)"),
    ("reaches_rows", "understudy.lab.studies.x", "path.open('ab')"),
    ("imports_rows", "understudy.lab.evaluation.x", "from understudy.boundary.tables.rows import Rows"),
    ("imports_rows", "understudy.boundary.privacy.x", "from understudy.boundary.tables.cache import CachedTable"),
    ("imports_rows", "understudy.releases.x", "from understudy.boundary.tables.table import Table"),
    ("imports_rows", "understudy.releases.frames", "from understudy.boundary.tables.frame import to_arrow"),
    ("reaches_rows", "understudy.queries.x", "class NoRows:\n    def count_rows(self):\n        return self._rows"),
    ("uses_specimens", "understudy.lab.attacks.x", "from understudy.lab.specimens.arf import published"),
    ("banned", "understudy.inference.x", "rng = np.random.Generator(np.random.PCG64(1))"),
    ("banned", "understudy.releases.x", "np.load(file, allow_pickle=False)"),
    ("distinct_values", "understudy.inference.x", "np.unique(codes)"),
    ("distinct_values", "understudy.boundary.tables.x", "frame.unique()"),
]


@pytest.mark.parametrize(("rule", "name", "source"), KEEPERS)
def test_a_module_that_keeps_the_rule_is_left_alone(rule: str, name: str, source: str) -> None:
    assert RULES[rule](Module(name, ast.parse(source))) == []


def _say() -> int:
    """What `scripts/check` prints: each rule with whoever breaks it, and how large the boundary is."""
    broken = 0
    for name, rule in RULES.items():
        found = {m.name: complaints for m in MODULES if (complaints := rule(m))}
        broken += len(found)
        print(f"{name.replace('_', ' ')}: {'; '.join(f'{m} ({c[0]})' for m, c in found.items()) or 'nowhere'}")
    print(f"boundary: {boundary_lines():,} lines (at most {MOST_BOUNDARY_LINES:,})")
    return int(broken > 0 or boundary_lines() > MOST_BOUNDARY_LINES)


if __name__ == "__main__":
    sys.exit(_say())
