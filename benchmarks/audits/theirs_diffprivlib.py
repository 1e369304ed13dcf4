"""What diffprivlib releases, as functions that `understudy audit --callable` takes; from the folder benchmarks:

    understudy audit --callable audits.theirs_diffprivlib:linear_regression \
        --python ../.bench/diffprivlib/bin/python --epsilon 1 --delta 0

A model or a statistic is a few numbers. They are handed to the auditor as a table with the names of its columns, since
those are the columns that it looks at. The bounds are those that the auditor's tables declare in public.
"""

from __future__ import annotations

from typing import Any

from .coded import of_fruit

LOWER, UPPER = 0.0, 100.0
"""The declared bounds of weight."""


@of_fruit
def linear_regression(frame: Any, epsilon: float, delta: float, seed: int) -> Any:
    """Whether somebody is ripe, predicted by their weight, with all bounds given."""
    import pandas as pd
    from diffprivlib.models import LinearRegression  # type: ignore[import-not-found]

    model = LinearRegression(epsilon=epsilon, bounds_X=(LOWER, UPPER), bounds_y=(0, 1), fit_intercept=False)
    model.fit(frame[["weight"]].to_numpy(), frame["ripe"].to_numpy(dtype=float))
    return pd.DataFrame({"weight": model.coef_})


@of_fruit
def logistic_regression(frame: Any, epsilon: float, delta: float, seed: int) -> Any:
    """The classes of a model that predicts the colour, with the norm of the rows given."""
    import pandas as pd
    from diffprivlib.models import LogisticRegression

    model = LogisticRegression(epsilon=epsilon, data_norm=UPPER, max_iter=5)
    try:
        model.fit(frame[["weight"]].to_numpy(), frame["colour"].to_numpy(dtype=str))
    except ValueError:  # one class alone can't be learnt, and the refusal is seen by everybody
        return frame.iloc[:0]
    return pd.DataFrame({"colour": model.classes_})


@of_fruit
def naive_bayes(frame: Any, epsilon: float, delta: float, seed: int) -> Any:
    """The number of rows in each class, as a model with all bounds given shows it."""
    import pandas as pd
    from diffprivlib.models import GaussianNB

    model = GaussianNB(epsilon=epsilon, bounds=(LOWER, UPPER))
    model.fit(frame[["weight"]].to_numpy(), frame["ripe"].to_numpy())
    return pd.DataFrame({"weight": [model.class_count_.sum()]})


@of_fruit
def histogram_without_range(frame: Any, epsilon: float, delta: float, seed: int) -> Any:
    """Counts of weights in bins whose range isn't given, with the edges of the bins."""
    return _histogram(frame, epsilon, None)


@of_fruit
def histogram(frame: Any, epsilon: float, delta: float, seed: int) -> Any:
    """As it is meant to be used: the range is given."""
    return _histogram(frame, epsilon, (LOWER, UPPER))


def _histogram(frame: Any, epsilon: float, given: tuple[float, float] | None) -> Any:
    import pandas as pd
    from diffprivlib import tools

    counts, edges = tools.histogram(frame["weight"].to_numpy(), epsilon=epsilon, bins=8, range=given)
    return pd.DataFrame({"weight": edges, "size": [*counts, 0]})


@of_fruit
def mean(frame: Any, epsilon: float, delta: float, seed: int) -> Any:
    """As it is meant to be used: the bounds are given."""
    import pandas as pd
    from diffprivlib import tools

    found = tools.mean(frame["weight"].to_numpy(), epsilon=epsilon, bounds=(LOWER, UPPER))
    return pd.DataFrame({"weight": [found]})
