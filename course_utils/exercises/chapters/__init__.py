"""The exercises, one module a notebook: what is asked, which inputs are tried, which mistakes are known."""
