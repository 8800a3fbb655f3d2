"""Learners' working copies of the notebooks, and where the notebooks are."""
