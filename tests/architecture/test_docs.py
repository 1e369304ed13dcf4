"""What the documentation lists is what the code has, and its links lead somewhere."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path

import pytest

import understudy
from understudy.boundary.privacy.asks import ASKS, table_of_asks
from understudy.methods.registry import table_of_methods, table_of_options

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([*DOCS.rglob("*.md"), *ROOT.glob("*.md"), ROOT / "benchmarks" / "README.md"])
LONGEST_RESULT = 300
SOURCE = Path(understudy.__file__).parent
ROOMS = ("boundary", "inference", "methods", "releases", "queries", "predictors", "lab", "cli", "pages")
MECHANISMS = sorted((DOCS / "mechanisms").glob("*.md"))
PACKAGE = ROOT / "src" / "understudy"


def test_the_page_on_the_curator_lists_every_ask_with_its_proof():
    """The table is the one that the asks make (`scripts/write-asks`), and there is no ask beside those in it."""
    page = (DOCS / "concepts" / "curator.md").read_text()
    (table,) = re.findall(r"^\| ask \|.*?\n(?!\|)", page, flags=re.MULTILINE | re.DOTALL)
    assert table == table_of_asks()
    listed = re.findall(r"^\| `(\w+)` \|.*\(\.\./mechanisms/", page, flags=re.MULTILINE)
    assert len(ASKS) == len({ask.name for ask in ASKS}) == 12
    assert listed == [ask.__name__ for ask in ASKS]
    assert set(listed) == ask_classes()


def test_the_page_on_methods_lists_every_method_with_its_options():
    """The tables are those that the methods make (`scripts/write-methods`)."""
    page = (DOCS / "concepts" / "methods.md").read_text()
    assert f"\n\n{table_of_methods()}\n" in page
    assert f"\n\n{table_of_options()}\n" in page


def ask_classes() -> set[str]:
    """Every class of the modules in `asks/` that has a name in the record."""
    trees = [ast.parse(p.read_text()) for p in (PACKAGE / "boundary" / "privacy" / "asks").glob("*.py")]
    classes = [n for tree in trees for n in tree.body if isinstance(n, ast.ClassDef)]
    return {c.name for c in classes if any(isinstance(n, ast.Assign) and targets(n) == ["name"] for n in c.body)}


def targets(statement: ast.Assign) -> list[str]:
    return [t.id for t in statement.targets if isinstance(t, ast.Name)]


def test_the_curator_has_one_way_in_and_no_strategy_makes_asks_of_its_own():
    """One method alone calls its gate for an answer; and only the boundary and the auditor define asks."""
    tree = ast.parse((PACKAGE / "boundary" / "privacy" / "curator.py").read_text())
    (found,) = (n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "Curator")
    methods = [n for n in found.body if isinstance(n, ast.FunctionDef)]
    answering = {m.name for m in methods for n in ast.walk(m) if isinstance(n, ast.Attribute) and n.attr == "answer"}
    assert answering == {"ask"}
    defined = {path for path in PACKAGE.rglob("*.py") for c in classes_of(path) if asks_among(c)}
    allowed = (PACKAGE / "boundary" / "privacy" / "asks", PACKAGE / "lab" / "audits")
    assert [p for p in defined if not any(p.is_relative_to(folder) for folder in allowed)] == []
    assert any(p.is_relative_to(allowed[1]) for p in defined)  # the auditor's mutants, which the check finds


def test_what_a_record_asked_is_read_by_the_asks_alone():
    """Others are told its type (`kind_of`, `kind_of_spend`), so that no reader depends on a word that is written."""
    reading = re.compile(r"""["']ask["']\]|["']ask["']:|get\(["']ask["']|\.asked\.startswith|["'] in \w*spend\.asked""")
    outside = [p for p in PACKAGE.rglob("*.py") if not p.is_relative_to(PACKAGE / "boundary" / "privacy" / "asks")]
    assert [p for p in outside if reading.search(p.read_text())] == []
    assert reading.search((PACKAGE / "boundary" / "privacy" / "asks" / "__init__.py").read_text())


def classes_of(path: Path) -> list[ast.ClassDef]:
    return [n for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.ClassDef)]


def asks_among(found: ast.ClassDef) -> set[str]:
    """Of the bases of a class: `Ask`, `asks.Ask` and `Ask[Result]` alike."""
    bases = [b.value if isinstance(b, ast.Subscript) else b for b in found.bases]
    named = {b.attr if isinstance(b, ast.Attribute) else getattr(b, "id", "") for b in bases}
    return named & {"Ask", "NoisyCounts", *(ask.__name__ for ask in ASKS)}


@pytest.mark.parametrize("page", MECHANISMS, ids=lambda p: p.stem)
def test_a_proof_says_which_code_and_which_test_it_is_about(page: Path):
    text = page.read_text()
    paths = re.findall(r"`(tests/[\w/]+/\w+\.py)`", text)
    assert all((ROOT / p).exists() for p in paths), paths
    named = re.findall(r"`(?:tests/[\w/]+/)?(test_\w+\.py)`", text)
    assert all(any((ROOT / "tests").rglob(name)) for name in named), named
    if page.stem != "composition":  # which says what it is tested against, but in no one file
        assert named


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_to_files_and_headings_that_exist(page: Path):
    for link, heading in re.findall(r"\]\(([^)#\s:]+)(#[^)\s]+)?\)", page.read_text()):
        target = (page.parent / link).resolve()
        assert target.exists(), link
        assert not target.is_file() or target.stat().st_size, link
        if heading:
            assert heading[1:] in {anchor(h) for h in headings(target)}, link + heading


def test_every_result_that_is_kept_is_a_short_table_that_a_page_cites():
    kept = sorted((ROOT / "benchmarks" / "results").iterdir())
    cited = " ".join(page.read_text() for page in PAGES)
    for path in kept:
        assert path.suffix == ".md" and f"results/{path.name}" in cited, path.name
        assert path.read_text().count("\n") < LONGEST_RESULT, path.name


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_what_a_page_names_exists(page: Path):
    """Dotted names, modules, test files, and what the examples in Python import."""
    text = page.read_text()
    for name in re.findall(r"`(understudy(?:\.\w+)+)", text):
        assert found(name), name
    for example in re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL):
        for module, names in re.findall(r"(?m)^from (understudy[\w.]*) import ([\w, ]+)$", example):
            assert all(found(f"{module}.{name.strip()}") for name in names.split(",")), (module, names)
    for path in re.findall(rf"`((?:{'|'.join(ROOMS)})/[\w/]+)(?:\.py)?[`:]", text):
        assert (SOURCE / path).is_dir() or (SOURCE / f"{path}.py").is_file(), path
    for path in re.findall(r"`(tests/[\w/]+\.py)`", text):
        assert (ROOT / path).is_file(), path


def found(dotted: str) -> bool:
    """Whether it is a module, or an attribute of one."""
    first, *rest = dotted.split(".")
    thing, path = importlib.import_module(first), first
    for name in rest:
        path += f".{name}"
        # An attribute first: a folder of the same name would be imported as a module, and take its place for all tests.
        if not hasattr(thing, name):
            try:
                importlib.import_module(path)
            except ModuleNotFoundError:
                return False
        thing = getattr(thing, name)
    return True


def headings(page: Path) -> list[str]:
    return re.findall(r"^#+ (.+)$", page.read_text(), flags=re.MULTILINE)


def anchor(heading: str) -> str:
    """As GitHub makes them: small letters, blanks as hyphens, punctuation left out."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
