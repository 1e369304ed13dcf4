"""`dp-arf`: an adversarial forest whose leaves are counted with noise."""

from understudy.methods.dp_arf.dp_arf import METHOD

__all__ = ["METHOD"]
