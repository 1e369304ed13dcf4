"""The public surface: what `import understudy` offers, how fast it is to reach, and that its examples run."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any, get_args

import pytest

import understudy as us
from understudy.methods.registry import AUTO, MethodName

DOCUMENTED = {
    "errors": [
        "BudgetExhausted",
        "CheckFailed",
        "InputError",
        "InternalError",
        "MethodError",
        "ReleaseError",
        "SchemaError",
        "SiteError",
        "TableError",
        "UnderstudyError",
    ],
    "facts": ["Amount", "Budget", "Certificate", "Domain", "Measurement", "Release", "Schema", "Spend", "METHODS"],
    "results": ["Answer", "Attacks", "Audit", "Check", "Evaluation", "Study"],
    "predictors": [
        "PrivateBoosting",
        "PrivateBoostingRegressor",
        "PrivateDecisionTree",
        "PrivateForest",
        "PrivateGreedyTree",
    ],
    "objects": ["Curator", "Ledger", "Table"],
    "functions": [
        "anonymity",
        "attack",
        "audit",
        "audit_mutants",
        "check",
        "compare",
        "draft_schema",
        "evaluate",
        "federate",
        "open",
        "plan",
        "query",
        "replay",
        "specimen",
        "synthesize",
        "verify",
    ],
    "version": ["__version__"],
}
HEAVY = (
    "duckdb",
    "pyarrow",
    "pandas",
    "polars",
    "sqlglot",
    "scipy",
    "sklearn",
    "torch",
    "jax",
    "rich",
    "typer",
    "psycopg",
)


def test_all_is_the_documented_surface() -> None:
    assert set(us.__all__) == {name for names in DOCUMENTED.values() for name in names}


def test_all_is_sorted_and_every_name_exists_once() -> None:
    constants = sorted(n for n in us.__all__ if n.isupper())
    classes = sorted(n for n in us.__all__ if n[0].isupper() and not n.isupper())
    rest = sorted(n for n in us.__all__ if not n[0].isupper())
    assert us.__all__ == [*constants, *classes, *rest]  # the order that ruff keeps
    assert len(set(us.__all__)) == len(us.__all__)
    assert [n for n in us.__all__ if not hasattr(us, n)] == []


def modules_after(statement: str) -> set[str]:
    code = f"{statement}\nimport sys\nprint('\\n'.join({{m.split('.')[0] for m in sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_import_is_light() -> None:
    assert modules_after("import understudy") & set(HEAVY) == set()


def test_the_same_check_sees_a_heavy_import() -> None:
    assert "pyarrow" in modules_after("import understudy, pyarrow")


PUBLIC = {name: getattr(us, name) for name in us.__all__ if callable(getattr(us, name))}


def functions_of(public: Any) -> Iterator[tuple[str, Any]]:
    """The function itself, or the public methods and properties that a class of ours defines."""
    if inspect.isfunction(public):
        yield public.__name__, public
        return
    for name, member in vars(public).items():
        function = getattr(member, "fget", None) or getattr(member, "__func__", member)
        if inspect.isfunction(function) and not name.startswith("_"):
            yield name, function


def unannotated(public: Any) -> list[str]:
    return [
        f"{name}({parameter.name})" if parameter else f"{name} returns"
        for name, function in functions_of(public)
        for parameter in _bare(function)
    ]


def _bare(function: Any) -> Iterator[inspect.Parameter | None]:
    signature = inspect.signature(function)
    for parameter in signature.parameters.values():
        if parameter.annotation is parameter.empty and parameter.name not in ("self", "cls"):
            yield parameter
    if signature.return_annotation is signature.empty:
        yield None


@pytest.mark.parametrize("name", PUBLIC)
def test_public_names_are_documented_and_typed(name: str) -> None:
    assert inspect.getdoc(PUBLIC[name]) and vars(PUBLIC[name]).get("__doc__", PUBLIC[name].__doc__)
    assert unannotated(PUBLIC[name]) == []


def test_the_same_check_sees_a_missing_annotation() -> None:
    def careless(a: int, b):  # type: ignore[no-untyped-def]
        return a + b

    assert unannotated(careless) == ["careless(b)", "careless returns"]


FOUND = [m.name for m in pkgutil.walk_packages(us.__path__, "understudy.")]
MODULES = ["understudy", *(name for name in FOUND if not name.endswith(".__main__"))]  # importing that one runs it
NEED_TORCH = {"understudy.inference.generators.torch_networks"}
IMPORTABLE = [name for name in MODULES if name not in NEED_TORCH or find_spec("torch")]


def failures(module: Any) -> int:
    return doctest.testmod(module, verbose=False, report=False).failed


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name: str) -> None:
    if name not in IMPORTABLE:
        pytest.skip("the extra gan is not installed")
    assert failures(importlib.import_module(name)) == 0


def test_examples_are_found() -> None:
    finder = doctest.DocTestFinder()
    examples = sum(len(t.examples) for n in IMPORTABLE for t in finder.find(importlib.import_module(n)))
    assert examples > 30


def test_the_same_check_sees_a_wrong_example(capsys: pytest.CaptureFixture[str]) -> None:
    module = type(sys)("wrong")
    module.__doc__ = ">>> 1 + 1\n3\n"
    assert failures(module) == 1
    assert "Expected" in capsys.readouterr().out


FUNCTIONS = [name for name in DOCUMENTED["functions"] if name != "draft_schema"]
"""One parameter, which its first sentence describes."""


def undocumented(function: Any) -> list[str]:
    """Parameters that `Args:` leaves out, and the sections that a docstring lacks."""
    text = inspect.getdoc(function) or ""
    lacking = [s for s in ("Args:", "Returns:", "Raises:") if f"\n{s}\n" not in text]
    return lacking + [p for p in inspect.signature(function).parameters if f"\n    {p}: " not in text]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_parameter_of_a_public_function_is_described(name: str) -> None:
    assert undocumented(getattr(us, name)) == []


def test_the_same_check_sees_what_is_left_out() -> None:
    def careless(a: int) -> int:
        """Says nothing."""
        return a

    assert undocumented(careless) == ["Args:", "Returns:", "Raises:", "a"]


def test_editors_are_told_the_methods_that_there_are() -> None:
    assert set(get_args(MethodName)) == {AUTO, *us.METHODS.own}
