"""The marginal methods, ours against those of SmartNoise and dpmm: time, memory, total variation, prediction."""
