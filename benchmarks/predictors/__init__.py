"""Private forests against diffprivlib's: accuracy and time on public tables.

From the folder `benchmarks`: `python -m predictors`; see `python -m predictors --help`. Diffprivlib gets an environment
of its own under `.bench`, because it needs an older scikit-learn than ours.
"""
