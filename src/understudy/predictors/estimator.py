"""The manners of a scikit-learn estimator, without importing it until it is needed: the package stays light."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.privacy.curator import FEWEST_ROWS
from understudy.errors import InputError


class UnusableInputError(InputError, ValueError):
    """An InputError that scikit-learn's tools know as a ValueError."""


class ScikitEstimator:
    """Parameters are the arguments of `__init__`, kept as they are; what is learned ends in an underscore."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The arguments that this estimator was made with."""
        return {name: getattr(self, name) for name in _arguments(type(self))}

    def set_params(self, **parameters: Any) -> ScikitEstimator:
        """Changes arguments; they are checked when it is fitted."""
        known = _arguments(type(self))
        for name, value in parameters.items():
            if name not in known:
                raise UnusableInputError(f"parameter {name!r} must be one of {', '.join(known)}", name)
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        changed = [
            f"{n}={getattr(self, n)!r}" for n, given in _arguments(type(self)).items() if _differs(self, n, given)
        ]
        return f"{type(self).__name__}({', '.join(changed)})"

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, InputTags, Tags, TargetTags

        return Tags(
            estimator_type="classifier",
            target_tags=TargetTags(required=True),
            classifier_tags=ClassifierTags(poor_score=True),
            input_tags=InputTags(categorical=True, string=True, allow_nan=True),
            non_deterministic=True,
        )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "classes_")

    def __sklearn_clone__(self) -> ScikitEstimator:
        return type(self)(**self.get_params())

    def _demand_fitted(self) -> None:
        from sklearn.exceptions import NotFittedError

        if not self.__sklearn_is_fitted__():
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet; call fit first")

    @property
    def _estimator_type(self) -> str:
        return "classifier"


def _arguments(cls: type) -> dict[str, Any]:
    """Name and default of every argument."""
    signature = inspect.signature(cls.__init__)  # type: ignore[misc]
    return {p.name: p.default for p in list(signature.parameters.values())[1:]}


def _differs(estimator: ScikitEstimator, name: str, default: Any) -> bool:
    value = getattr(estimator, name)
    return not (value is default or (type(value) is type(default) and value == default))


def check_names(estimator: Any, frame: Any, *, reset: bool) -> None:
    """Remembers the names and the number of features when fitting, and demands the same ones later."""
    from sklearn.utils.validation import _check_feature_names, _check_n_features

    _check_feature_names(estimator, frame, reset=reset)
    _check_n_features(estimator, frame, reset=reset)


def as_matrix(estimator: Any, array: Any, *, reset: bool) -> NDArray[Any]:
    """Rows given as an array or a list. Its shape and type are public; values are not looked at, and may be missing."""
    from sklearn.utils.validation import validate_data

    fewest = FEWEST_ROWS if reset else 1
    array = np.array(array, dtype=object) if isinstance(array, list | tuple) else array  # value by value
    try:
        matrix: NDArray[Any] = validate_data(
            estimator, array, reset=reset, dtype=None, ensure_all_finite=False, ensure_min_samples=fewest
        )
    except ValueError as error:
        raise _without_rows(error) from None
    return matrix


def _without_rows(error: ValueError) -> ValueError:
    """The same complaint without the rows that scikit-learn quotes in it."""
    said, quoted, advice = str(error).partition("array=")
    if not quoted:
        first, *rest = str(error).split("\n")
        return UnusableInputError(first, None) if rest else error
    return UnusableInputError(f"{said.strip().rstrip(':')}. {advice[advice.find('Reshape') :]}", None)


def as_labels(labels: Any, rows: int) -> NDArray[Any]:
    """One class for each row."""
    from sklearn.utils.validation import check_consistent_length, column_or_1d

    if labels is None:
        raise UnusableInputError("fit requires y to be passed, but the target y is None; give it, or a target", labels)
    labels = np.array(labels, dtype=object) if isinstance(labels, list | tuple) else labels  # value by value
    column: NDArray[Any] = column_or_1d(labels, warn=True)
    check_consistent_length(np.empty(rows), column)
    return column
