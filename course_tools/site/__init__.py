"""The course as a site to read: every notebook with its saved outputs, the pages beside them, and a search.

Does: prepare the pages from the committed notebooks, and let Sphinx render them (MyST-NB, sphinx-book-theme); the result
asks no network for anything, and its text is readable without scripts. Does not: run a notebook. The packages in
`requirements.txt` beside this file are needed only here, so they're imported where they're used.
"""
