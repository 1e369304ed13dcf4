"""How hard an audit looks."""

from __future__ import annotations

from dataclasses import dataclass

from understudy.parameters import known_name


@dataclass(frozen=True)
class Setting:
    """Runs of each game, and the seconds that all games together may take.

    When time is up, fewer runs were made. That depends on the clock alone, so that what they prove stands.
    """

    name: str
    main: int
    """White-box runs of the worst pair."""
    white: int
    """White-box runs of every other pair."""
    black: int
    """Black-box runs of each pair."""
    seconds: float
    learners: int
    """Runs of each table of each pair in which every exchange is put to both tables."""


SETTINGS = {
    s.name: s
    for s in (
        Setting("quick", main=44_000, white=300, black=160, seconds=85.0, learners=1),
        Setting("full", main=60_000, white=6_000, black=4_000, seconds=3_600.0, learners=10),
    )
}


def setting_of(name: str) -> Setting:
    return SETTINGS[known_name("setting", name, SETTINGS)]
