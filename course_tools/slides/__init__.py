"""Slides from the notebooks: a deck for each of them, and one for each route of the page for instructors."""
