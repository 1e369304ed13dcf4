"""The tests have the tree of the package, and share by helper modules: a test can move without its neighbours."""

from __future__ import annotations

import re
from pathlib import Path

import understudy

SOURCE = Path(understudy.__file__).parent
TESTS = Path(__file__).parents[1]
OF_THEIR_OWN = ("architecture", "benchmarks", "child", "helpers", "notebooks", "tutorials")
"""Folders of tests that are about no one room of the package."""


def test_every_folder_of_tests_is_one_of_the_package():
    folders = {p.parent.relative_to(TESTS) for p in TESTS.rglob("test_*.py")} - {Path()}
    elsewhere = {f.as_posix() for f in folders if f.parts[0] not in OF_THEIR_OWN and not (SOURCE / f).is_dir()}
    modules = {f for f in elsewhere if (SOURCE / f"{f}.py").is_file()}
    assert not elsewhere - modules


def test_no_test_module_imports_another():
    importing = {p.name for p in TESTS.rglob("*.py") if re.search(r"(?m)^\s*(from|import) test_\w+", p.read_text())}
    assert not importing


def test_the_path_is_changed_in_one_place_only():
    """By pytest, for the folder of tests/conftest.py. Children and the folder of benchmarks have paths of their own."""
    known = {"sitecustomize.py", "test_rivals.py", "test_test_tree.py"}
    changing = {p.name for p in TESTS.rglob("*.py") if re.search(r"sys\.path\.(insert|append)", p.read_text())}
    assert changing <= known


def test_no_two_test_modules_share_a_name():
    """pytest would collect one of them and call the other an error."""
    names = sorted(p.name for p in TESTS.rglob("test_*.py"))
    assert len(names) == len(set(names)), [n for n in set(names) if names.count(n) > 1]
