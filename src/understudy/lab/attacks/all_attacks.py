"""Every attack on a table, in the order in which a report shows them."""

from __future__ import annotations

from understudy.lab.attacks import attribute_inference as inference
from understudy.lab.attacks import copies, linkability, membership, reconstruction
from understudy.lab.attacks import shadow_models as shadow
from understudy.lab.attacks import singling_out as singling
from understudy.lab.attacks.attack import Attack

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
