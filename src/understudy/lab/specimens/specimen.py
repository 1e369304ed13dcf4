"""What a specimen or a non-private method makes: rows without any guarantee, which are never a release."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from understudy.errors import ReleaseError

if TYPE_CHECKING:
    import pyarrow as pa


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
