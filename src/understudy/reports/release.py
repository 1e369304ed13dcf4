"""The publishable report of a release."""

from __future__ import annotations

from typing import TYPE_CHECKING

from understudy.privacy.certificate import Certificate
from understudy.schema.domain import Domain

if TYPE_CHECKING:
    import pyarrow as pa


def render(certificate: Certificate, domain: Domain, table: pa.Table) -> str:
    """One self-contained page."""
    return f"<!doctype html><title>{certificate.method}</title>"
