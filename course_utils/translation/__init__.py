"""Translating from English into French with the models of notebooks 16 and 17: the corpus, scores, and the command."""
