"""Every attack on a table, in the order in which a report shows them."""

from __future__ import annotations

from understudy.attacks import copies, inference, linkability, membership, reconstruction, singling
from understudy.attacks.attack import Attack

ATTACKS: tuple[Attack, ...] = (
    *membership.ATTACKS,
    *reconstruction.ATTACKS,
    *copies.ATTACKS,
    *inference.ATTACKS,
    *singling.ATTACKS,
    *linkability.ATTACKS,
)
