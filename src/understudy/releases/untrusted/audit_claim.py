"""The audit on a certificate. It can't be made again from a release, so it stays the publisher's word; but a block that
speaks of something else than the certificate, or contradicts itself, is refused.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from understudy.errors import CheckFailed

if TYPE_CHECKING:
    from understudy.releases.certificate import Certificate

PASSED, VIOLATION, NOT_MADE = "passed", "violation", "not made"
CLAIMED = "claimed by the publisher, not recomputed here"


def check_audit(certificate: Certificate) -> None:
    """Refuses an audit of another method, budget or version, and a verdict that its own figures contradict."""
    audit = certificate.audit
    if audit is None:
        return
    claim = audit["claim"]
    said = {
        "method": (audit["subject"], certificate.method),
        "epsilon": (claim["epsilon"], certificate.epsilon),
        "delta": (claim["delta"], certificate.delta),
        "neighbours": (claim["neighbours"], certificate.neighbours),
        "version": (audit["versions"].get("understudy"), certificate.versions.get("understudy")),
    }
    for name, (found, wanted) in said.items():
        if found != wanted:
            raise CheckFailed(f"the audit on the certificate is of {name} {found}, and the release of {wanted}", audit)
    # Either changes what the method does, and an audit knows nothing of it.
    changed = next((name for name in ("options", "prior") if name in certificate.parameters), None)
    if changed is not None:
        raise CheckFailed(
            f"the audit on the certificate is of the method without {changed}, which this release has", audit
        )
    _check_verdict(audit)


def _check_verdict(audit: dict[str, Any]) -> None:
    # A method with a violation makes no release.
    outcomes = [said.partition(": ")[0] for said in audit["steps"].values()]
    passed = PASSED in outcomes and not set(outcomes) - {PASSED, NOT_MADE}
    # μ and ρ are claimed where costs are counted by them.
    claimed = {key: value for key, value in audit["claim"].items() if key in ("epsilon", "mu", "rho") and value}
    refuted = any(b["refutes"] or any(b[key] > most for key, most in claimed.items()) for b in audit["bounds"])
    power, level = audit["power"], audit["level"]
    likely = 0 < level < 1 and (power is None or 0 <= power <= 1)
    if not passed or refuted or not likely or audit["verdict"] != _verdict(power):
        raise CheckFailed("the verdict of the audit on the certificate is not what its own figures say", audit)


def _verdict(power: float | None) -> str:
    """As an audit words it; the power in two digits, never rounded up."""
    known = "unknown" if power is None else f"{math.floor(100 * power) / 100:.2f}"
    return f"no violation found (power {known} against halved noise)"
