"""The life of a child process: a setup, then tasks line by line on standard input, each answered by a line."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from functools import lru_cache
from typing import Any

from understudy.boundary.privacy.budget import Budget
from understudy.lab.audits.games.game import MeteredPlayer, Player, rounds
from understudy.lab.audits.pairs.pair import named
from understudy.lab.audits.subjects.all_subjects import is_opaque, rig_of, subject_of
from understudy.lab.audits.subjects.specimens import SpecimenPlayer


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever prints, prints elsewhere
    setup = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with, args=(setup["parent"],), daemon=True).start()
    player = lru_cache(maxsize=None)(lambda pair: _player(setup, pair))
    for line in sys.stdin:
        task = json.loads(line)
        runs = rounds(player(task["pair"]), task["view"], task["rounds"])
        print(json.dumps(runs), file=answers, flush=True)


def _player(setup: dict[str, Any], name: str) -> Player:
    budget, pair = Budget(setup["epsilon"], setup["delta"]), named(name, setup["neighbours"])
    if is_opaque(setup["subject"]):
        return SpecimenPlayer(setup["subject"], pair, budget)
    return MeteredPlayer(subject_of(setup["subject"], budget), rig_of(setup["mutant"]), pair, budget)


def _end_with(parent: int) -> None:
    """An audit that is killed can't end its children; so they look for it."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)
