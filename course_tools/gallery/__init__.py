"""The gallery of figures."""
