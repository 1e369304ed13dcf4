"""What a release has to know of an audit that it carries; `understudy.audit` makes them."""

from __future__ import annotations

from typing import Any, Protocol


class AuditedClaim(Protocol):
    """The claim that was tried."""

    @property
    def epsilon(self) -> float: ...

    @property
    def delta(self) -> float: ...

    @property
    def neighbours(self) -> str: ...


class Audited(Protocol):
    """The result of an audit, as far as a certificate carries it."""

    @property
    def subject(self) -> str: ...

    @property
    def claim(self) -> AuditedClaim: ...

    @property
    def violated(self) -> bool: ...

    def for_certificate(self) -> dict[str, Any]: ...
