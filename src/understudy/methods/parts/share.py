"""How measurements share a budget."""

from __future__ import annotations

from collections.abc import Sequence


def error_weights(cells: Sequence[int], pure: bool) -> list[float]:
    """Shares that minimise the summed L1 error of histograms with these numbers of cells.

    A histogram's L1 error grows as cells × noise scale: minimising Σ cᵢ·ρᵢ^(−1/2) under Σ ρᵢ = ρ gives ρᵢ ∝ cᵢ^(2/3),
    and minimising Σ cᵢ/εᵢ under Σ εᵢ = ε gives εᵢ ∝ cᵢ^(1/2).
    """
    return [float(c) ** (1 / 2 if pure else 2 / 3) for c in cells]
