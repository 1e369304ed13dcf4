"""How well `understudy plan` foretells error, time and memory, and the fit of its coefficients."""
