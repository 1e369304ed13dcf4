"""DataSynthesizer's independent mode as functions that `understudy audit --callable` takes; from the folder benchmarks:

    understudy audit --callable audits.theirs_datasynthesizer:domain_from_rows \
        --python ../.bench/datasynthesizer/bin/python --epsilon 1 --delta 0

The kind of each column is declared, and so is the number of rows that are generated. `declared` and `domain_from_rows`
name a fresh seed, which the auditor draws from the system; `seed_by_default` names none.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from .coded import FEW, of_fruit

KINDS = {"colour": "String", "weight": "Float", "size": "Integer", "ripe": "String"}
CATEGORICAL = {"colour": True, "weight": False, "size": True, "ripe": True}
VALUES = {"colour": ["blue", "green", "red", "violet"], "size": [0, 1, 2, 3], "ripe": ["no", "yes"]}
RANGES = {"weight": [0.0, 100.0]}


@of_fruit
def declared(frame: Any, epsilon: float, delta: float, seed: int) -> Any:
    """As it is meant to be used, with a seed that nobody knows."""
    return _release(frame, epsilon, {"seed": seed}, declares=True)


@of_fruit
def domain_from_rows(frame: Any, epsilon: float, delta: float, seed: int) -> Any:
    """Categories and ranges are left to it."""
    return _release(frame, epsilon, {"seed": seed}, declares=False)


@of_fruit
def seed_by_default(frame: Any, epsilon: float, delta: float, seed: int) -> Any:
    """Everything is declared, and no seed is named."""
    return _release(frame, epsilon, {}, declares=True)


def _release(frame: Any, epsilon: float, seeded: dict[str, int], *, declares: bool) -> Any:
    from DataSynthesizer.DataDescriber import DataDescriber  # type: ignore[import-not-found]
    from DataSynthesizer.DataGenerator import DataGenerator  # type: ignore[import-not-found]

    rows = frame.assign(ripe=["yes" if ripe else "no" for ripe in frame["ripe"]])
    with tempfile.TemporaryDirectory() as folder:
        table, values, description = (Path(folder) / name for name in ("table.csv", "values.json", "description.json"))
        rows.to_csv(table, index=False)
        values.write_text(json.dumps(VALUES))
        known = {"categorical_attribute_domain_file": str(values), "numerical_attribute_ranges": RANGES}
        describer = DataDescriber(histogram_bins=8)
        describer.describe_dataset_in_independent_attribute_mode(
            dataset_file=str(table),
            epsilon=epsilon,
            attribute_to_datatype=dict(KINDS),
            attribute_to_is_categorical=dict(CATEGORICAL),
            attribute_to_is_candidate_key=dict.fromkeys(KINDS, False),
            **(known if declares else {}),
            **seeded,
        )
        describer.save_dataset_description_to_file(str(description))
        generator = DataGenerator()
        generator.generate_dataset_in_independent_mode(FEW, str(description), **seeded)
    made = generator.synthetic_dataset
    return made.assign(ripe=[ripe == "yes" for ripe in made["ripe"]])
