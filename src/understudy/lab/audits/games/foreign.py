"""Rounds of the game for a function of somebody else's, in their Python: this file is run alone, and imports only that.

Standard input: a setup, then tasks, a line of JSON each. Standard output: for each task, the coins and the rows.
"""

import importlib
import json
import os
import secrets
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever prints, prints elsewhere
    setup = json.loads(sys.stdin.readline())
    # Python puts the folder of this file first, and the user's module is where the command was run.
    sys.path.insert(0, str(Path.cwd()))
    module, _, name = setup["function"].partition(":")
    function = getattr(importlib.import_module(module), name)
    for line in sys.stdin:
        task = json.loads(line)
        tables = setup["pairs"][task["pair"]]
        rounds = [play(function, tables, setup) for _ in range(task["rounds"])]
        print(json.dumps(rounds, default=str), file=answers, flush=True)


def play(function: Callable[..., Any], tables: Any, setup: dict[str, Any]) -> tuple[int, Any]:
    """One round: a coin, and what the function makes of the table that it chose."""
    import pandas as pd

    coin = secrets.randbits(1)
    frame = pd.DataFrame(tables[coin])
    shown = function(frame, epsilon=setup["epsilon"], delta=setup["delta"], seed=secrets.randbelow(2**31))
    if hasattr(shown, "to_pydict"):  # Arrow; all else is taken for pandas
        return coin, shown.to_pydict()
    return coin, shown.to_dict("list")


if __name__ == "__main__":
    main()
