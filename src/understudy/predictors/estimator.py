"""What scikit-learn expects of an estimator, without importing it before it is needed."""

from __future__ import annotations

import inspect
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.privacy.gates import FEWEST_ROWS
from understudy.errors import InputError


class UnusableInputError(InputError, ValueError):
    """An InputError that scikit-learn's tools know as a ValueError."""


# Not a subclass of `sklearn.base.BaseEstimator`: the classes must exist when `understudy` is imported, and importing
# `sklearn.base` takes 0.9 s on top of 0.65 s and loads 1,150 more modules, scipy and pandas among them. The methods
# below are the part of it that scikit-learn's own checks, cloning and searches call.
class ScikitEstimator:
    """Parameters are the arguments of `__init__`, kept as they are; what is learned ends in an underscore."""

    kind_of_estimator: ClassVar[Literal["classifier", "regressor"]] = "classifier"

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
        changed = []
        for name, default in _arguments(type(self)).items():
            value = getattr(self, name)
            # By type as well: True == 1, and comparing an array would give an array.
            if not (value is default or (type(value) is type(default) and value == default)):
                changed.append(f"{name}={value!r}")
        return f"{type(self).__name__}({', '.join(changed)})"

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, InputTags, RegressorTags, Tags, TargetTags

        classifies = self.kind_of_estimator == "classifier"
        return Tags(
            estimator_type=self.kind_of_estimator,
            target_tags=TargetTags(required=True),
            classifier_tags=ClassifierTags(poor_score=True) if classifies else None,
            regressor_tags=None if classifies else RegressorTags(poor_score=True),
            input_tags=InputTags(categorical=True, string=True, allow_nan=True),
            non_deterministic=True,
        )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "rounds_")

    def __sklearn_clone__(self) -> ScikitEstimator:
        return type(self)(**self.get_params())

    def _demand_fitted(self) -> None:
        from sklearn.exceptions import NotFittedError

        if not self.__sklearn_is_fitted__():
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet; call fit first")

    @property
    def _estimator_type(self) -> str:
        return self.kind_of_estimator


def _arguments(cls: type) -> dict[str, Any]:
    """Name and default of every argument."""
    # As scikit-learn finds them: whoever subclasses a predictor declares its parameters in `__init__`.
    signature = inspect.signature(cls.__init__)  # type: ignore[misc]
    return {p.name: p.default for p in list(signature.parameters.values())[1:]}


def check_names(estimator: Any, frame: Any, *, reset: bool) -> None:
    """Remembers the names and the number of features when fitting, and demands the same ones later."""
    from sklearn.utils.validation import _check_feature_names, _check_n_features

    _check_feature_names(estimator, frame, reset=reset)
    _check_n_features(estimator, frame, reset=reset)


def as_matrix(estimator: Any, array: Any, *, reset: bool) -> NDArray[Any]:
    """Rows given as an array or a list. Its shape and type are public; values are not looked at, and may be missing."""
    from sklearn.utils.validation import validate_data

    # `ensure_all_finite` is off: a complaint about NaN would tell of one row.
    fewest = FEWEST_ROWS if reset else 1
    array = _by_value(array)
    try:
        matrix: NDArray[Any] = validate_data(
            estimator, array, reset=reset, dtype=None, ensure_all_finite=False, ensure_min_samples=fewest
        )
    except ValueError as error:
        # Not chained: the traceback of the original would print the rows that it quotes.
        raise _without_rows(error) from None
    return matrix


def _by_value(data: Any) -> Any:
    """A list as an array of its values: numpy would give them one type, which the other rows decide."""
    if isinstance(data, list | tuple):
        return np.array(data, dtype=object)
    return data


def _without_rows(error: ValueError) -> ValueError:
    """The same complaint without the rows that scikit-learn quotes in it."""
    complaint, quoted, advice = str(error).partition("array=")
    if quoted:
        return UnusableInputError(f"{complaint.strip().rstrip(':')}. {advice[advice.find('Reshape') :]}", None)
    first, *rest = str(error).split("\n")
    if rest:
        return UnusableInputError(first, None)
    return error


def as_labels(labels: Any, rows: int) -> NDArray[Any]:
    """One class for each row."""
    from sklearn.utils.validation import check_consistent_length, column_or_1d

    if labels is None:
        raise UnusableInputError("fit requires y to be passed, but the target y is None; give it, or a target", labels)
    column: NDArray[Any] = column_or_1d(_by_value(labels), warn=True)
    check_consistent_length(np.empty(rows), column)
    return column
