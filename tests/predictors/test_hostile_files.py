"""The file of a predictor that anybody may have written, with a fresh digest: refused in one sentence, and soon."""

from __future__ import annotations

import copy
import json
import os
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import understudy as us
from understudy.predictors.storage import _digest, from_json, to_json

SCHEMA = us.Schema.loads('[columns.ill]\ntype = "boolean"\n[columns.age]\ntype = "integer"\nmin = 0\nmax = 99')
PEOPLE = pa.table({"ill": [True, False] * 50, "age": [80, 20] * 50})


@pytest.fixture(
    scope="module", params=[us.PrivateBoosting, us.PrivateForest, us.PrivateGreedyTree, us.PrivateDecisionTree]
)
def body(request: pytest.FixtureRequest) -> dict[str, Any]:
    fitted = request.param(epsilon=2.0).fit(us.open(PEOPLE, SCHEMA), target="ill")
    return json.loads(to_json(fitted))


def signed(body: dict[str, Any]) -> str:
    rest = {k: v for k, v in body.items() if k != "digest"}
    return json.dumps(rest | {"digest": _digest(rest)})


def test_a_sound_file_is_read(body: dict[str, Any]):
    assert to_json(from_json(signed(body))) == json.dumps(json.loads(signed(body)), ensure_ascii=False)


CHANGES: dict[str, dict[str, Any]] = {
    "kind": {"kind": "Popen"},
    "kind of another kind": {"kind": []},
    "format": {"format": "understudy-predictor/9"},
    "parameters": {"parameters": {"x": 1}},
    "many trees": {"parameters": {"structure": "random", "trees": 1000, "depth": 30, "leaves": 1 << 20}},
    "trees of another kind": {"parameters": {"trees": "many"}},
    "target": {"target": "nobody"},
    "number as a target": {"target": "age"},
    "seed": {"seed": -1},
    "large seed": {"seed": 2**63},
    "schema": {"schema": "x = 1"},
    "broken schema": {"schema": "[" * 5000},
    "made up": {
        "schema": '[columns.ill]\ntype = "boolean"\n[columns.x]\ntype = "identifier"\nmade_up = "{:2000000000d}"'
    },
    "rounds": {"rounds": []},
    "rounds of another kind": {"rounds": [7]},
    "features": {"features": None},
}


@pytest.mark.parametrize("case", CHANGES)
def test_a_value_that_no_predictor_has(case: str, body: dict[str, Any]):
    with pytest.raises(us.CheckFailed) as refused:
        from_json(signed(body | CHANGES[case]))
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("content", ["", "7", "[]", "[" * 100_000, '{"digest": ' + "9" * 5000 + "}", "\x00"])
def test_a_file_that_is_no_predictor(content: str):
    with pytest.raises(us.CheckFailed):
        from_json(content)


JUNK = (None, True, -1, 2**70, 1e308, "", "x", [], [[]], {}, {"a": 1}, [1, 2, 3], [["a", "b"]])


def places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inside = (
        list(value.items()) if isinstance(value, dict) else list(enumerate(value)) if isinstance(value, list) else []
    )
    return [at, *(place for key, each in inside[:40] for place in places(each, (*at, key)))]


def test_random_changes_are_refused_or_harmless(body: dict[str, Any]):
    chosen = random.Random(3)
    found = [place for place in places(body) if place]
    for _ in range(60):
        changed = copy.deepcopy(body)
        *way, last = chosen.choice(found)
        holder = changed
        for key in way:
            holder = holder[key]
        holder[last] = chosen.choice(JUNK)
        try:
            from_json(signed(changed))
        except us.CheckFailed as error:
            assert "\n" not in str(error)


def test_only_a_regular_file_is_read(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe.json")
    for path in (tmp_path / "pipe.json", Path("/dev/zero"), tmp_path, tmp_path / "nowhere"):
        with pytest.raises(us.ReleaseError, match="give a file that a predictor was saved to"):
            us.PrivateForest.load(path)
    with (tmp_path / "huge.json").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(us.CheckFailed, match="more than the limit"):
        us.PrivateForest.load(tmp_path / "huge.json")
