"""What the documentation lists is what the code has, and its links lead somewhere."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from understudy.boundary.privacy import curator

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([*DOCS.rglob("*.md"), *ROOT.glob("*.md"), ROOT / "benchmarks" / "README.md"])
LONGEST_RESULT = 300
MECHANISMS = sorted((DOCS / "mechanisms").glob("*.md"))
WAYS_IN = {"_ask", "_noisy", "_choose"}
"""What every ask goes through: `Curator._ask`, at once or by one of two others."""


def asks() -> set[str]:
    """The public methods of the curator through which answers come out."""
    tree = ast.parse(Path(curator.__file__).read_text())
    (found,) = (n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "Curator")
    return {
        method.name
        for method in found.body
        if isinstance(method, ast.FunctionDef) and not method.name.startswith("_")
        if WAYS_IN & {n.attr for n in ast.walk(method) if isinstance(n, ast.Attribute)}
    }


def test_the_page_on_the_curator_lists_every_ask_with_its_proof():
    page = (DOCS / "concepts" / "curator.md").read_text()
    listed = re.findall(r"^\| `(\w+)` \|.*\(\.\./mechanisms/|^\| `(\w+)` \|.*\| the same \|$", page, flags=re.MULTILINE)
    assert len(asks()) == 11
    assert sorted(a or b for a, b in listed) == sorted(asks())


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


def headings(page: Path) -> list[str]:
    return re.findall(r"^#+ (.+)$", page.read_text(), flags=re.MULTILINE)


def anchor(heading: str) -> str:
    """As GitHub makes them: small letters, blanks as hyphens, punctuation left out."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
