"""Public schemas of well-known tables, and the demo release that Understudy made of one of them.

The tables themselves are not here: they are other people's. A schema holds public facts only, taken from code books.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from understudy.errors import InputError
from understudy.parameters import suggestion

if TYPE_CHECKING:
    from understudy.boundary.schema.schema import Schema

__all__ = ["demo", "names", "schema", "schema_path"]

DEMO_FILES = ("synthetic.csv", "certificate.json", "measurements.npz", "schema.toml", "report.html")


def names() -> tuple[str, ...]:
    """The tables whose schema is bundled, in alphabetical order.

    >>> "adult" in names()
    True
    """
    return tuple(sorted(path.stem for path in _folder("schemas").glob("*.toml")))


def schema(name: str) -> Schema:
    """The public schema of a well-known table.

    >>> schema("votes").names[0]
    'Class'
    """
    from understudy.boundary.schema.schema import Schema

    return Schema.load(schema_path(name))


def schema_path(name: str) -> Path:
    """The TOML file of a bundled schema, with comments, to be copied and edited.

    >>> schema_path("adult").name
    'adult.toml'
    """
    known = names()
    if name not in known:
        raise InputError(f"schema {name!r} is not bundled; {suggestion(name, known, 'choose one of')}", name)
    return _folder("schemas") / f"{name}.toml"


def demo() -> Path:
    """The folder of the bundled demo release: an Adult-like table with its certificate, measurements and report."""
    folder = _folder("demo")
    # Packagers leave data files out: better said here than found by `verify`, which would call the release changed.
    absent = [name for name in DEMO_FILES if not (folder / name).is_file()]
    if absent:
        raise InputError(
            f"the demo release is incomplete in this installation: it lacks {', '.join(absent)}; "
            "reinstall understudy, or make a release of your own with understudy.synthesize",
            absent,
        )
    return folder


def _folder(name: str) -> Path:
    return Path(str(files(__name__) / name))
