"""Methods that say which words decided, scored on five seeds of the classifier: `python -m course_tools explanations`.

Writes data/results/explanations.json. For each seed it has one run for every method (agreement with the evidence,
faithfulness), one for each depth (0, 1 and 2 layers), and the checks of notebook 11: 'weights' (shuffled, adversarial,
uniform), 'randomisation' and 'failures'. A second call computes only what is missing or out of date.

    python -m course_tools explanations [--seeds 0 1 2 3 4]
"""

import argparse
import time
from importlib.metadata import version

import numpy as np
import torch
from scipy.stats import spearmanr

from course_utils import explain
from course_utils.classifier import ReviewClassifier
from course_utils.data import by_kind, load_reviews
from course_utils.files.bars import bar
from course_utils.recipes import RECIPES
from course_utils.recipes.trained_models import trained_model
from course_utils.results import add_run, environment, fingerprint, read_runs, scores
from course_utils.tokenization import truncate
from course_utils.training import BatchOptions, EncodedReviews, batches, encode_reviews, evaluate

NAME = "explanations"
EACH, PART = 100, 25                                    # so many of each kind, the first ones of the test split; notebook 11
STEPS, SHUFFLES, TOLERANCE = 64, 100, 0.05              # scores PART of each again, and compares
TOLERANCES = (TOLERANCE, 0.01)                          # of Jain and Wallace's code for two classes: counted, searched for
ERASED_BY = ("pooling weights", "attention × gradient", "random")
CHECKS = [TOLERANCES, ERASED_BY, "all methods' comprehensiveness over a broken model", "adjusted for kind and length"]
OPTIONS = BatchOptions(batch_size=64, multiple_of=1)
SIGNED = ["occlusion", "integrated gradients", "gradient × input", "attention × gradient"]
METHODS = ["pooling weights", "rollout", *[f"{name}{sign}" for name in SIGNED for sign in ("", ", absolute")],
           "lexicon", "rarity", "random"]
DEPTHS = {"no layer": {"num_layers": 0}, "one layer": {"num_layers": 1}, "two layers": {}}
DIFFERENCES = [  # (measure, method, minus method): of the same reviews, so the interval is one of differences
    ("average_precision", "rollout", "pooling weights"), ("average_precision", "rollout", "occlusion, absolute"),
    ("average_precision", "rollout", "lexicon"), ("average_precision", "pooling weights", "random"),
    ("average_precision", "occlusion, absolute", "pooling weights"),
    ("average_precision", "integrated gradients, absolute", "gradient × input, absolute"),
    ("comprehensiveness", "occlusion", "rollout"), ("comprehensiveness", "integrated gradients", "rollout"),
    ("comprehensiveness", "rollout", "pooling weights"), ("comprehensiveness", "occlusion", "random"),
    ("comprehensiveness", "pooling weights", "random"),
]


def chosen(dataset, each: int) -> list[int]:
    """The rows of the first `each` reviews of every kind, in the order of the split."""
    return sorted(row for rows in by_kind(dataset).values() for row in rows[:each])


class Scored:
    """The chosen test reviews, encoded, with what every method needs; what's too long for the model is cut, as it cuts."""

    def __init__(self, classifier: ReviewClassifier, reviews, counted: explain.Counted):
        self.model, self.counted = classifier.model, counted
        options = OPTIONS._replace(max_len=classifier.model.config.max_len)
        self.tokens = [truncate(classifier.tokenizer.tokenize(text), options.max_len, options.truncation)
                       for text in reviews["text"]]
        self.evidence = [explain.evidence_flags(t, spans) for t, spans in zip(self.tokens, reviews["evidence"])]
        self.batches = list(batches(encode_reviews(reviews, classifier.tokenizer), options))
        self.targets = [explain.predicted_class(self.model, b.token_ids, b.attention_mask) for b in self.batches]

    def by_name(self, method: str, seed: int) -> tuple[list[torch.Tensor], float | None]:
        """Scores of all batches by the name of a method; for integrated gradients the mean gap as well."""
        name, _, absolute = method.partition(", ")
        generator, found, gaps = torch.Generator().manual_seed(seed), [], []
        for batch, target in zip(self.batches, self.targets):
            inputs = (self.model, batch.token_ids, batch.attention_mask, target)
            if name == "random":
                result = torch.rand(batch.token_ids.shape, generator=generator)
            elif name in ("rarity", "lexicon"):
                result = torch.zeros(batch.token_ids.shape)
                for row, i in enumerate(batch.indices):
                    result[row, : len(self.tokens[i])] = torch.tensor(self.counted.scores(self.tokens[i], name))
            elif name == "integrated gradients":
                result, gap = explain.integrated_gradients_with_gap(*inputs, steps=STEPS)
                gaps += gap.abs().tolist()
            else:
                result = explain.METHODS[name](*inputs)
            found.append(result.abs() if absolute else result)
        return found, float(np.mean(gaps)) if gaps else None

    def agreement(self, found: list[torch.Tensor]) -> dict[str, np.ndarray]:
        """The three measures of agreement with the evidence, one number a review."""
        table = np.zeros((len(self.tokens), 3))
        for batch, result in zip(self.batches, found):
            for row, i in enumerate(batch.indices):
                table[i] = explain.agreement(result[row, : len(self.tokens[i])], self.evidence[i])
        return dict(zip(explain.Agreement._fields, table.T))

    def faithfulness(self, found: list[torch.Tensor]) -> dict[str, np.ndarray]:
        """Comprehensiveness and sufficiency, tokens deleted and tokens replaced by `<unk>`, one number a review."""
        measures = {"comprehensiveness": explain.comprehensiveness, "sufficiency": explain.sufficiency}
        table = {f"{name}{end}": np.zeros(len(self.tokens)) for name in measures for end in ("", "_unk")}
        for batch, target, result in zip(self.batches, self.targets, found):
            inputs = (self.model, batch.token_ids, batch.attention_mask, result, target)
            for name, measure in measures.items():
                table[name][batch.indices] = measure(*inputs)
                table[f"{name}_unk"][batch.indices] = measure(*inputs, how="unk")
        return table


def rounded(interval: tuple[float, ...]) -> list[float]:
    """Mean, low, high, with four decimals."""
    return [round(float(value), 4) for value in interval]


def run_methods(seed: int, reviews, data: dict, counted, common: dict) -> None:
    """Score every method on one seed, and the differences between some of them."""
    classifier = trained_model(seed=seed)
    scored, kinds = Scored(classifier, reviews, counted), np.array(reviews["kind"])
    part, tables = chosen(reviews, PART), {}
    common = {**common, **about(classifier, data)}
    for method in bar(METHODS, desc=f"seed {seed}", unit="method"):
        begun = time.perf_counter()
        found, gap = scored.by_name(method, seed)
        seconds = time.perf_counter() - begun
        tables[method] = table = {**scored.agreement(found), **scored.faithfulness(found)}
        run = {
            "scores": {name: rounded(explain.bootstrap_interval(values)) for name, values in table.items()},
            "average_precision_by_kind": {
                kind: rounded(explain.bootstrap_interval(table["average_precision"][kinds == kind]))
                for kind in sorted(set(kinds))
            },
            "part": {name: round(float(values[part].mean()), 4) for name, values in table.items()},
        }
        if gap is not None:
            run["convergence_gap"] = round(gap, 5)
        add_run(NAME, {"model": method, "order": METHODS.index(method), "seed": seed, "seconds": round(seconds, 1),
                       **common, **run})
    differences = [
        {"measure": measure, "of": one, "minus": other,
         "difference": rounded(explain.bootstrap_interval(tables[one][measure] - tables[other][measure]))}
        for measure, one, other in DIFFERENCES
    ]
    add_run(NAME, {"model": "differences", "order": 50, "seed": seed, "seconds": 0.0, **common, "differences": differences})


def run_depth(depth: str, seed: int, reviews, data: dict, counted, common: dict) -> None:
    """Accuracy and the pooling weights' agreement with the evidence, at one depth."""
    begun = time.perf_counter()
    classifier = trained_model(seed=seed, **DEPTHS[depth])
    scored, kinds = Scored(classifier, reviews, counted), np.array(reviews["kind"])
    result = {}
    for method in ("pooling weights", "rollout", "random"):
        values = scored.agreement(scored.by_name(method, seed)[0])["average_precision"]
        result[method] = rounded(explain.bootstrap_interval(values))
        result[f"{method} by kind"] = {kind: round(float(values[kinds == kind].mean()), 4) for kind in sorted(set(kinds))}
    add_run(NAME, {
        "model": depth, "order": 60 + list(DEPTHS).index(depth), "seed": seed, **common, **about(classifier, data),
        "seconds": round(time.perf_counter() - begun, 1), "average_precision": result,
    })


def until_flip(scored: Scored, found: list[torch.Tensor]) -> tuple[np.ndarray, np.ndarray]:
    """Erase pooling weights from the highest score down, the rest in proportion, until the prediction flips.

    For each review the number of tokens that had been erased (0: it never flips), and their proportion of all (1: never).
    Serrano and Smith 2019, section 5.
    """
    tokens, proportion = np.zeros(len(scored.tokens)), np.ones(len(scored.tokens))
    for batch, result in zip(scored.batches, found):
        inputs = (scored.model, batch.token_ids, batch.attention_mask)
        with torch.no_grad():
            share = explain.pooling_scores(*inputs) * explain.token_logits(*inputs).diff(dim=-1).squeeze(-1)
        for row, i in enumerate(batch.indices):
            n = len(scored.tokens[i])
            order = result[row, :n].argsort(descending=True, stable=True)
            left = share[row, :n].sum() - share[row, order].cumsum(dim=0)[: n - 1]     # its sign is the verdict
            flipped = ((left > 0) != (share[row, :n].sum() > 0)).nonzero()
            if len(flipped):
                tokens[i] = flipped[0].item() + 1
                proportion[i] = tokens[i] / n
    return tokens, proportion


def run_weights(seed: int, reviews, data: dict, counted, common: dict) -> None:
    """Pooling weights shuffled, made as different as possible, and left out: retrained, or set equal afterwards."""
    begun = time.perf_counter()
    classifier, uniform = trained_model(seed=seed), trained_model(seed=seed, pooling="mean")
    scored = Scored(classifier, reviews, counted)
    moved, shifted, odds, adversarial = *(np.zeros(len(reviews)) for _ in range(3)), {}
    for batch in scored.batches:
        inputs = (scored.model, batch.token_ids, batch.attention_mask)
        moved[batch.indices] = explain.permutation_effect(*inputs, shuffles=SHUFFLES)
        shifted[batch.indices] = explain.permutation_effect(*inputs, shuffles=SHUFFLES, scale="log-odds")
        with torch.no_grad():
            odds[batch.indices] = scored.model(*inputs[1:]).logits.double().diff(dim=-1).squeeze(-1).abs()
        for tolerance in TOLERANCES:
            other = explain.adversarial_weights(*inputs, tolerance=tolerance)
            divergence, words = adversarial.setdefault(tolerance, (np.zeros(len(reviews)), np.zeros(len(reviews))))
            divergence[batch.indices], words[batch.indices] = other.divergence, (other.weights > 0).sum(dim=-1)
    erased = {method: until_flip(scored, scored.by_name(method, seed)[0]) for method in ERASED_BY}
    encoded = encode_reviews(data["test"], classifier.tokenizer)
    with torch.no_grad():
        scored.model.pooling.query.zero_()                                 # equal weights in the trained model
    add_run(NAME, {
        "model": "weights", "order": 70, "seed": seed, **common, **about(trained_model(seed=seed), data),
        "permutation": {"median": round(float(np.median(moved)), 4), "below_0.05": round(float((moved < 0.05).mean()), 4),
                        "log_odds": round(float(np.median(shifted)), 4),
                        "proportion_of_log_odds": round(float(np.median(shifted / odds)), 4)},
        "saturation": {"above_0.95": round(float((odds > np.log(0.95 / 0.05)).mean()), 4),
                       "log_odds": round(float(np.median(odds)), 4)},
        "adversarial": {str(tolerance): {"divergence": rounded(explain.bootstrap_interval(divergence)),
                                         "one_word": round(float((words == 1).mean()), 4)}
                        for tolerance, (divergence, words) in adversarial.items()},
        "erased": {method: {"first_flips": round(float((tokens == 1).mean()), 4),
                            "never": round(float((tokens == 0).mean()), 4),
                            "proportion": rounded(explain.bootstrap_interval(proportion))}
                   for method, (tokens, proportion) in erased.items()},
        "uniform_retrained": scores(evaluate(uniform.model, encoded, OPTIONS).predictions, encoded.labels,
                                    kind=data["test"]["kind"]),
        "uniform_afterwards": round(evaluate(scored.model, encoded, OPTIONS).accuracy, 4),
        "seconds": round(time.perf_counter() - begun, 1),
    })


def run_randomisation(seed: int, reviews, data: dict, counted, common: dict) -> None:
    """New random numbers from the output downwards: how alike the scores stay, and how well they agree with the evidence."""
    begun = time.perf_counter()
    classifier = trained_model(seed=seed)
    part = reviews.select(chosen(reviews, PART))
    labels, steps, before = torch.tensor(part["label"]), [], {}
    methods = ["pooling weights", "rollout", "gradient × input, absolute", "integrated gradients, absolute",
               "occlusion, absolute"]
    for depth in range(len(explain.parts_from_output(classifier.model)) + 1):
        copy = ReviewClassifier(explain.randomised(classifier.model, depth, seed=100 + seed), classifier.tokenizer)
        scored = Scored(copy, part, counted)
        right = sum((target == labels[batch.indices]).sum().item() for target, batch in zip(scored.targets, scored.batches))
        step = {"parts": depth, "accuracy": round(right / len(part), 4)}
        for method in methods:
            found, _ = scored.by_name(method, seed)
            needed = np.concatenate([explain.comprehensiveness(scored.model, b.token_ids, b.attention_mask, result, target)
                                     for b, target, result in zip(scored.batches, scored.targets, found)])
            rows = [row[: len(scored.tokens[i])].numpy() for batch, result in zip(scored.batches, found)
                    for i, row in zip(batch.indices, result)]
            alike = [spearmanr(a, b).statistic for a, b in zip(before.setdefault(method, rows), rows)]
            step[method] = {"rank_correlation": round(float(np.mean(alike)), 4),
                            "comprehensiveness": round(float(needed.mean()), 4),
                            "average_precision": round(float(scored.agreement(found)["average_precision"].mean()), 4)}
        steps.append(step)
    add_run(NAME, {"model": "randomisation", "order": 71, "seed": seed, **common, **about(classifier, data),
                   "parts": explain.parts_from_output(classifier.model), "steps": steps,
                   "seconds": round(time.perf_counter() - begun, 1)})


def right_minus_wrong(values: np.ndarray, right: np.ndarray, kinds: np.ndarray, lengths: np.ndarray) -> dict:
    """The difference of the means where the model is right and where it is wrong, plain and adjusted, with intervals.

    Adjusted: the coefficient of `right` in a least-squares fit that also has the kinds and the length.
    """
    columns = np.column_stack([right, *(kinds == kind for kind in sorted(set(kinds))), lengths]).astype(float)
    fits = {"difference": columns[:, :1], "adjusted": columns}
    drawn = np.random.default_rng(0).integers(len(values), size=(2000, len(values)))
    result = {}
    for name, table in fits.items():
        table = table if name == "adjusted" else np.column_stack([table, np.ones(len(values))])
        again = [np.linalg.lstsq(table[rows], values[rows], rcond=None)[0][0] for rows in drawn]
        bounds = np.quantile(again, (0.025, 0.975))
        result[name] = rounded((np.linalg.lstsq(table, values, rcond=None)[0][0], *bounds))
    return result


def run_failures(seed: int, reviews, data: dict, counted, common: dict) -> None:
    """Accuracy by length, unknown and shuffled words; names swapped; agreement where the model is right and wrong."""
    begun = time.perf_counter()
    classifier, test = trained_model(seed=seed), data["test"]
    tokenizer, kinds = classifier.tokenizer, np.array(test["kind"])
    encoded = encode_reviews(test, tokenizer)
    evidence = [explain.evidence_flags(tokenizer.tokenize(text), spans)
                for text, spans in zip(test["text"], test["evidence"])]

    def score(ids) -> dict:
        result = scores(evaluate(classifier.model, EncodedReviews(ids, encoded.labels), OPTIONS).predictions, encoded.labels,
                        kind=list(kinds))
        return {name: result[name] for name in ("accuracy", "by_kind")}

    plain = evaluate(classifier.model, encoded, OPTIONS)
    right = (plain.predictions == torch.tensor(encoded.labels)).numpy()
    lengths = np.array([len(ids) for ids in encoded.ids])
    quarter = np.digitize(lengths, np.quantile(lengths, (0.25, 0.5, 0.75)))
    swapped = explain.swapped_words(encoded.ids, tokenizer, explain.name_swaps())
    changed = np.array([old != new for old, new in zip(encoded.ids, swapped)])
    odds = [evaluate(classifier.model, EncodedReviews(ids, encoded.labels), OPTIONS).probabilities.double().log().diff(dim=1)
            .squeeze(1).numpy() for ids in (encoded.ids, swapped)]
    scored, whether = Scored(classifier, reviews, counted), {}
    mine = (torch.tensor(reviews["label"]) == torch.cat(scored.targets)[np.argsort(
        [i for batch in scored.batches for i in batch.indices])]).numpy()
    for method in ("pooling weights", "rollout", "occlusion, absolute"):
        values = scored.agreement(scored.by_name(method, seed)[0])["average_precision"]
        whether[method] = {"right": round(float(values[mine].mean()), 4), "wrong": round(float(values[~mine].mean()), 4),
                           **right_minus_wrong(values, mine, np.array(reviews["kind"]),
                                               np.array([len(tokens) for tokens in scored.tokens]))}
    hand = data["handwritten"]
    add_run(NAME, {
        "model": "failures", "order": 72, "seed": seed, **common, **about(classifier, data),
        "by_length": [round(float(right[quarter == k].mean()), 4) for k in range(4)],
        "distant_by_length": [round(float(right[(quarter == k) & (kinds == "distant")].mean()), 4) for k in range(4)],
        "unknown": {str(share): score(explain.unknown_words(encoded.ids, share)) for share in (0.0, 0.1, 0.2, 0.4)},
        "unknown_beside_evidence": {str(share): score(explain.unknown_words(encoded.ids, share, evidence))
                                    for share in (0.2, 0.4)},
        "shuffled": {str(k): score(explain.shuffled_words(encoded.ids, k)) for k in (0, 2, 4, 8, 16, 1000)},
        "handwritten": scores(evaluate(classifier.model, encode_reviews(hand, tokenizer), OPTIONS).predictions,
                              hand["label"], kind=hand["kind"]),
        "names": {"reviews": int(changed.sum()),
                  "median_move": round(float(np.median(np.abs(odds[0] - odds[1])[changed])), 4),
                  "median_odds": round(float(np.median(np.abs(odds[0])[changed])), 4),
                  "flips": int(((odds[0] > 0) != (odds[1] > 0)).sum())},
        "right_and_wrong": {"wrong_reviews": int((~mine).sum()), **whether},
        "seconds": round(time.perf_counter() - begun, 1),
    })


def about(classifier: ReviewClassifier, data: dict) -> dict:
    """The model behind a run: its accuracy on the whole test split and its number of parameters."""
    encoded = encode_reviews(data["test"], classifier.tokenizer)
    predictions = evaluate(classifier.model, encoded, OPTIONS).predictions
    return {"test": scores(predictions, encoded.labels, kind=data["test"]["kind"]),
            "parameters": sum(p.numel() for p in classifier.model.parameters())}


def main(arguments: list[str] | None = None) -> int:
    """Run what is missing, print the table; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    seeds = parser.parse_args(arguments).seeds
    data = {**load_reviews("reviews"), "handwritten": load_reviews("handwritten")["test"]}
    reviews = data["test"].select(chosen(data["test"], EACH))
    counted = explain.count_words(data["train"]["text"], data["train"]["label"], trained_model().tokenizer)
    texts = [fingerprint(list(data[split]["text"]), list(data[split]["label"])) for split in data]
    protocol = [EACH, PART, STEPS, SHUFFLES, TOLERANCE, explain.SHARES, METHODS, DIFFERENCES]
    common = {"settings": fingerprint(RECIPES["reviews"], texts, protocol), "scored_reviews": len(reviews), **environment(),
              "captum": version("captum"), "scikit-learn": version("scikit-learn")}
    checked = {"checks": fingerprint(CHECKS)}            # the checks can change while the methods' scores stay
    done = {(run["model"], run["seed"]) for run in read_runs(NAME) if run["settings"] == common["settings"]
            and run.get("checks", checked["checks"] if run["order"] < 70 else None) == checked["checks"]}
    checks = {"weights": run_weights, "randomisation": run_randomisation, "failures": run_failures}
    for seed in seeds:
        if any((name, seed) not in done for name in [*METHODS, "differences"]):
            run_methods(seed, reviews, data, counted, common)
        for depth in DEPTHS:
            if (depth, seed) not in done:
                run_depth(depth, seed, reviews, data, counted, common)
        for name, check in checks.items():
            if (name, seed) not in done:
                check(seed, reviews, data, counted, {**common, **checked})
    for run in read_runs(NAME):
        if "scores" in run:
            means = "  ".join(f"{name} {mean:.3f}" for name, (mean, _, _) in run["scores"].items())
            print(f"{run['model']:<32} seed {run['seed']}  {means}")
    return 0
