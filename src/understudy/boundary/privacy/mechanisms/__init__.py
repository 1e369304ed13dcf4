"""How answers are made private: exact noise, selections, thresholds, posterior draws, noisy gradients."""
