"""Pages to print: the cheat sheet, and the computations by hand with their answers."""
