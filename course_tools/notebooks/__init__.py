"""Making notebooks: export their cells to the package, begin a new one, try them on other processors and seeds."""
