"""How well `understudy plan` predicts error, time and memory, and the fit of its coefficients."""
