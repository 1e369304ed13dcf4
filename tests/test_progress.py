"""Who is told how far a long computation is: a `Progress`, a plain function, or nobody."""

from __future__ import annotations

from understudy.progress import Advance, Progress, listening


def test_a_function_hears_parts_and_counts_but_not_the_epsilon_of_every_question() -> None:
    heard: list[str] = []
    told = listening(heard.append)
    told("games")
    told.advance(Advance("run", 5, 10))
    told.advance(Advance("question", 3, epsilon=0.5, budget=1.0))
    assert heard == ["games", "games: run 5 of 10"] and not told.detailed


def test_a_progress_is_handed_on_and_nobody_is_silent() -> None:
    own = Progress()
    assert listening(own) is own and own.detailed
    nobody = listening(None)
    nobody("measuring")
    nobody.advance(Advance("run", 1))
    assert not nobody.detailed


def test_the_share_is_that_of_the_steps_or_of_epsilon_or_unknown() -> None:
    assert Advance("step", 1, 4, epsilon=0.9, budget=1.0).share == 0.25
    assert Advance("question", 1, epsilon=0.5, budget=1.0).share == 0.5
    assert Advance("run", 7).share == 0.0
    assert Advance("question", 7, epsilon=0.9, budget=1.0, early=True).share == 0.0
