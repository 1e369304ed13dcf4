"""A specimen, or a method without privacy, and what it makes: rows without any guarantee, never a release."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from understudy.boundary.schema.schema import Schema
from understudy.errors import ReleaseError
from understudy.methods.params import Params

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class SpecimenKind:
    """A method without a guarantee as a user meets it; each module of this package declares one as `SPECIMEN`."""

    name: str
    good_for: str
    limits: str
    make: Callable[[Any, Schema | None, float, dict[str, Any]], Specimen]
    """From rows, their schema, the ε that is named, and `n`, `seed` and the options by name to synthetic rows."""
    params: type[Params] = Params
    claims: bool = True
    """Whether it claims an ε, which the auditor can refute."""


@dataclass(frozen=True)
class Specimen:
    """Synthetic rows with the method and the parameters that made them."""

    method: str
    arrow: pa.Table
    parameters: Mapping[str, Any] = field(default_factory=dict)

    guarantee: ClassVar[None] = None

    @property
    def table(self) -> pa.Table:
        """The rows; the table's metadata say that there is no guarantee."""
        return self.arrow.replace_schema_metadata({"understudy": json.dumps(self.certificate)})

    @property
    def certificate(self) -> dict[str, Any]:
        """What a certificate would say: there is no guarantee, whatever ε the parameters name."""
        return {"method": self.method, "parameters": dict(self.parameters), "guarantee": None}

    def save(self, *anything: object, **more: object) -> NoReturn:
        """Refuses: only what has a guarantee is a release."""
        raise ReleaseError(
            f"method {self.method} has no privacy guarantee, so its rows can't be saved as a release; "
            "use understudy.synthesize with a private method",
            self.method,
        )
