"""How the numbers in data/results were measured."""
