"""Results: how they are made (recipes, runner, sets), kept (results), set in tables, and the models that come of them."""
