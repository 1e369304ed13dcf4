"""`dp-arf`: an adversarial forest whose leaves are counted with noise."""
