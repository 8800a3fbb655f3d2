"""The answers, one module a notebook: the course's, other right ones, and the wrong ones of known mistakes."""
