"""`privbayes`: a Bayesian network chosen privately."""

from understudy.methods.privbayes.privbayes import METHOD

__all__ = ["METHOD"]
