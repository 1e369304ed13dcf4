"""Every attack on a table, in the order in which a report shows them."""

from __future__ import annotations

from understudy.attacks import copies, inference, linkability, membership, reconstruction, shadow, singling
from understudy.attacks.attack import Attack

ATTACKS: tuple[Attack, ...] = (
    *membership.ATTACKS,
    *reconstruction.ATTACKS,
    *copies.ATTACKS,
    *inference.ATTACKS,
    *singling.ATTACKS,
    *linkability.ATTACKS,
)

KNOWN: tuple[Attack, ...] = (*ATTACKS, shadow.SHADOW)
"""With the one that is made only where a method is named."""
