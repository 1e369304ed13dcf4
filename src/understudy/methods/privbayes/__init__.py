"""`privbayes`: a Bayesian network chosen privately."""
