"""The options of a method: the fields of a frozen dataclass, each with its bounds and a sentence for the user.

    @dataclass(frozen=True)
    class MwemParams(Params):
        rounds: int | None = parameter(None, "how many pairs are measured", kind=int, low=1, high=1_000)

This is the one place that reads and checks them, whether they come from Python, from the command line, where all are
text, or from a certificate. What is checked is public: no option may depend on a row.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any, Self

from understudy.errors import MethodError
from understudy.parameters import suggestion

DECLARED = "parameter"
"""The key of a field's metadata."""
TRUE, FALSE = ("true", "yes", "1"), ("false", "no", "0")


@dataclass(frozen=True)
class Parameter:
    """What is known of one option but for its name."""

    help: str
    kind: type
    low: float | None = None
    high: float | None = None
    open_low: bool = False
    open_high: bool = False
    """Whether the bound itself is refused."""
    choices: tuple[str, ...] = ()
    optional: bool = False
    """Whether it may be left to the method, which None says."""

    @property
    def bound(self) -> str:
        """What a value must be, to follow "must be".

        >>> Parameter("", int, 1, 1000).bound, Parameter("", float, 0, 1, open_low=True, open_high=True).bound
        ('a whole number from 1 to 1,000', 'above 0 and below 1')
        """
        if self.choices:
            return f"one of {', '.join(self.choices)}"
        if self.kind is bool:
            return "true or false"
        limits = self._limits()
        if self.kind is int:
            return f"a whole number {limits}".rstrip()
        return limits or ("a number" if self.kind is float else "a text")

    def _limits(self) -> str:
        low, high = (f"{x:,}" if self.kind is int else f"{x or 0:g}" for x in (self.low, self.high))
        if None not in (self.low, self.high) and not (self.open_low or self.open_high):
            return f"from {low} to {high}"
        limits = []
        if self.low is not None:
            limits.append(f"above {low}" if self.open_low else f"at least {low}")
        if self.high is not None:
            limits.append(f"below {high}" if self.open_high else f"at most {high}")
        return " and ".join(limits)

    def read(self, value: object) -> Any:
        """The value in its own type; text is read, and what can't be meant is a ValueError."""
        if value is None and self.optional:
            return None
        if self.choices:
            return self._choice(value)
        if isinstance(value, str) and self.kind is not str:
            value = self._read_text(value.strip())
        if self.kind is float and isinstance(value, Real) and not isinstance(value, bool):
            value = float(value)
        # By its exact type: True is an int in Python, and no one who writes it means 1.
        if type(value) is not self.kind or (isinstance(value, int | float) and not self._is_within(value)):
            raise ValueError
        return value

    def _choice(self, value: object) -> str:
        """However it is capitalised."""
        for choice in self.choices:
            if choice.lower() == str(value).lower():
                return choice
        raise ValueError

    def _read_text(self, text: str) -> object:
        if self.kind is not bool:
            return self.kind(text.replace("_", ""))
        if text.lower() not in (*TRUE, *FALSE):
            raise ValueError
        return text.lower() in TRUE

    def _is_within(self, value: float) -> bool:
        above = self.low is None or value > self.low or (value == self.low and not self.open_low)
        below = self.high is None or value < self.high or (value == self.high and not self.open_high)
        return math.isfinite(value) and above and below

    def describe(self, name: str, default: object) -> dict[str, object]:
        """As `understudy methods --json` has it."""
        return {"name": name, "type": self.kind.__name__, "default": default, "must be": self.bound, "help": self.help}


def parameter(default: Any, help: str, *, kind: type | None = None, **limits: Any) -> Any:
    """A field of `Params`; its type is that of its default, or `kind` where that is None."""
    declared = Parameter(help, kind or type(default), optional=default is None, **limits)
    return dataclasses.field(default=default, metadata={DECLARED: declared})


@dataclass(frozen=True)
class Params:
    """The options of a method that has none, and the base of those of all others."""

    def __post_init__(self) -> None:
        for name, declared in self.declared().items():
            value = getattr(self, name)
            try:
                # Text becomes a number here, so that the fields are what a recipe can use; frozen, but for this once.
                object.__setattr__(self, name, declared.read(value))
            except (TypeError, ValueError, OverflowError):
                raise MethodError(f"{name} ({value!r}) must be {declared.bound}", value) from None
        self.check()

    def check(self) -> None:
        """Refuses options that exclude each other."""

    @classmethod
    def declared(cls) -> dict[str, Parameter]:
        return {f.name: f.metadata[DECLARED] for f in dataclasses.fields(cls)}

    @classmethod
    def of(cls, owner: str, given: Mapping[str, object]) -> Self:
        """From what a user gives, as text or as values; `owner` is the method, for messages."""
        known = cls.declared()
        for name in given:
            if not known:
                raise MethodError(f"method {owner} has no options; leave {name} ({given[name]!r}) out", name)
            if name not in known:
                raise MethodError(f"option {name!r} of method {owner} is not known; {suggestion(name, known)}", name)
        return cls(**given)

    def changed(self) -> dict[str, Any]:
        """What is not as it is by default: all that a certificate has to say."""
        return {f.name: v for f in dataclasses.fields(self) if (v := getattr(self, f.name)) != f.default}

    @classmethod
    def describe(cls) -> list[dict[str, object]]:
        """Each option for programs."""
        return [cls.declared()[f.name].describe(f.name, f.default) for f in dataclasses.fields(cls)]

    @classmethod
    def rows(cls) -> list[tuple[str, str, str, str]]:
        """Each option for people: its name, its default, what it must be, and what it is."""
        told = [(f.name, f.default, cls.declared()[f.name]) for f in dataclasses.fields(cls)]
        return [(name, "by the method" if usual is None else str(usual), of.bound, of.help) for name, usual, of in told]


def parse_options(texts: Iterable[str]) -> dict[str, str]:
    """Options as they are typed, each as in `distance=L2`.

    >>> parse_options(["distance=L2", "sections=2"])
    {'distance': 'L2', 'sections': '2'}
    """
    options: dict[str, str] = {}
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not name or not value:
            raise MethodError(f"option ({text!r}) must be a name and a value, as in distance=L2", text)
        if name in options:
            raise MethodError(f"option {name!r} is given twice; keep one of its values", text)
        options[name] = value
    return options
