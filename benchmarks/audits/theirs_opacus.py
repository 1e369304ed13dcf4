"""A model trained by Opacus, as a function that `understudy audit --callable` takes; from the folder benchmarks:

    understudy audit --callable audits.theirs_opacus:trained --python ../.bench/opacus/bin/python --epsilon 1

One number is trained for one epoch, as in the first example of Opacus: a loader of batches, `make_private`, a loop over
the loader. The noise is that of `make_private_with_epsilon`, kept from run to run since the search takes seconds.
Gradients are clipped to length 1, and rows differ from one another in the sign of theirs at most.
"""

from __future__ import annotations

import functools
from typing import Any

from .coded import of_fruit

BATCH = 20
HEAVY = 50.0


@of_fruit
def trained(frame: Any, epsilon: float, delta: float, seed: int) -> Any:
    """The trained number. Heavy rows pull it the other way."""
    import pandas as pd
    import torch
    from opacus import PrivacyEngine  # type: ignore[import-not-found]
    from torch.utils.data import DataLoader, TensorDataset

    signs = torch.tensor([[-1.0 if weight > HEAVY else 1.0] for weight in frame["weight"]])
    model = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.zeros_(model.weight)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    loader = DataLoader(TensorDataset(signs), batch_size=BATCH)
    model, optimizer, loader = PrivacyEngine(accountant="rdp").make_private(
        module=model,
        optimizer=optimizer,
        data_loader=loader,
        noise_multiplier=_noise(epsilon, delta, 1 / len(loader)),
        max_grad_norm=1.0,
    )
    for (batch,) in loader:
        optimizer.zero_grad()
        (-model(batch)).mean().backward()
        optimizer.step()
    return pd.DataFrame({"weight": [next(model.parameters()).detach().item()]})


@functools.lru_cache
def _noise(epsilon: float, delta: float, rate: float) -> float:
    from opacus.accountants.utils import get_noise_multiplier  # type: ignore[import-not-found]

    claimed = {"target_epsilon": epsilon, "target_delta": delta}
    return float(get_noise_multiplier(**claimed, sample_rate=rate, epochs=1, accountant="rdp"))
