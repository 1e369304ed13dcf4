"""Turns a release into the codes of its columns, or a rival's codes into values:

`python -m flagship.convert encode|decode SCHEMA FROM TO [MISSING]`. Values of a code on a line are drawn uniformly in
its bin, as a user of codes would.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from marginals.coded import write_rows

import understudy as us
from understudy.inference.values import decode

from .tables import codes_of, read_codes


def main(how: str, schema_path: str, source: str, result: str, missing: str = "") -> None:
    schema = us.Schema.load(schema_path)
    seen = us.Schema(tuple(schema.modelled), missing_values=schema.missing_values)
    if how == "encode":
        write_rows(Path(result), codes_of(Path(source), seen))
        return
    found = decode(read_codes(Path(source)), us.Domain.of(seen), np.random.default_rng(0))
    values = {name: np.where(v.absent(), missing, v.data.astype(object)) for name, v in found.items()}
    write_rows(Path(result), values)


if __name__ == "__main__":
    main(*sys.argv[1:])
