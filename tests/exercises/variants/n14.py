"""Other right answers to the exercises of notebook 14, which a check must accept."""

VARIANTS = {
    "14.1": {"by hand": lambda x: x - sum(x.tolist()) / len(x),
            "in float64": lambda x: x.double() - x.double().mean(),
            "a list": lambda x: (x - x.mean()).tolist()},
    "14.2": {"by hand": lambda x: x - sum(x.tolist()) / len(x),
            "in float64": lambda x: x.double() - x.double().mean(),
            "a list": lambda x: (x - x.mean()).tolist()},
    "14.3": {"by hand": lambda x: x - sum(x.tolist()) / len(x),
            "in float64": lambda x: x.double() - x.double().mean(),
            "a list": lambda x: (x - x.mean()).tolist()},
}
