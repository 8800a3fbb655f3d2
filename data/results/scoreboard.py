"""Every model of the scoreboard on the course's own reviews, three seeds each: `make results`.

Writes data/results/scoreboard.json and, from the seeds with the best validation accuracy, the small models under
data/checkpoints that the notebooks look into. A second call makes only what is missing or out of date.

    python data/results/scoreboard.py [--seeds 0 1 2]
"""

import argparse
import dataclasses
import sys
import time

import torch
from tqdm import tqdm

from course_utils import baselines
from course_utils.classifier import ClassifierConfig, ReviewClassifier, SelfAttentionClassifier
from course_utils.data import load_reviews, pairs
from course_utils.embeddings import BagOfEmbeddings
from course_utils.recipes import RECIPES
from course_utils.results import FOLDER, add_run, environment, fingerprint, read_runs, scores, update_readme
from course_utils.tokenization import WordTokenizer
from course_utils.training import BatchOptions, encode_reviews, evaluate, fit, seed_everything

RECIPE = RECIPES["reviews"]
TEXT_MODELS = {
    "majority": baselines.majority,
    "naive Bayes": baselines.naive_bayes,
    "1–3-grams, logistic regression": baselines.ngram_regression,
}


def network(model: str, vocab_size: int) -> torch.nn.Module:
    """An untrained network of the scoreboard by its name."""
    config = ClassifierConfig(vocab_size=vocab_size, **RECIPE.model)
    start = {name: RECIPE.model[name] for name in ("embedding_std", "embedding_scale")}
    makers = {
        "bag of embeddings": lambda: BagOfEmbeddings(vocab_size),
        "LSTM, one way, mean": lambda: baselines.RecurrentClassifier(vocab_size, **start),
        "BiLSTM, max": lambda: baselines.RecurrentClassifier(vocab_size, bidirectional=True, pooling="max", **start),
        "attention without positions": lambda: SelfAttentionClassifier(dataclasses.replace(config, positions="none")),
        "attention, the full model": lambda: SelfAttentionClassifier(config),
    }
    return makers[model]()


NETWORKS = [
    "bag of embeddings", "LSTM, one way, mean", "BiLSTM, max", "attention without positions", "attention, the full model",
]
CHECKPOINTS = {"attention without positions": "reviews-without-positions", "attention, the full model": "reviews"}


def scored_split(dataset, predictions) -> dict:
    """Accuracy overall, by kind and, where the corpus marks them, on frames that no training review has."""
    result = scores(predictions, dataset["label"], kind=dataset["kind"])
    if "unseen_frame" in dataset.column_names:
        rows = [i for i, unseen in enumerate(dataset["unseen_frame"]) if unseen]
        if rows:
            result["unseen_frames"] = scores([predictions[i] for i in rows], [dataset["label"][i] for i in rows])
    return result


def run_text_model(model: str, data: dict, common: dict) -> None:
    """Fit and score a model that takes texts. It has no seed: one run."""
    begun = time.perf_counter()
    fitted = TEXT_MODELS[model]().fit(data["train"]["text"], data["train"]["label"])
    seconds = time.perf_counter() - begun
    last = fitted[-1]
    parameters = next((getattr(last, name).size for name in ("coef_", "feature_log_prob_") if hasattr(last, name)), 1)
    record(model, 0, seconds, int(parameters), common, {
        split: scored_split(data[split], fitted.predict(data[split]["text"]))
        for split in ("validation", "test", "handwritten")
    })


def run_network(model: str, seed: int, data: dict, tokenizer: WordTokenizer, common: dict) -> None:
    """Train and score one seed of a network; keep the checkpoint if it is the best so far."""
    seed_everything(seed)
    net = network(model, tokenizer.vocab_size)
    options = BatchOptions(**RECIPE.batches)
    encoded = {split: encode_reviews(data[split], tokenizer) for split in data}
    settings = dict(RECIPE.fit, learning_rate=1e-2, weight_decay=0.01) if model.startswith("bag") else RECIPE.fit
    result = fit(net, encoded["train"], encoded["validation"], options=options, seed=seed, progress=False, **settings)
    scored = {
        split: scored_split(data[split], evaluate(net, encoded[split], options).predictions)
        for split in ("validation", "test", "handwritten")
    }
    others = [run for run in current_runs(common) if run["model"] == model and run["seed"] != seed]
    earlier = [run["validation"]["accuracy"] for run in others]
    if model in CHECKPOINTS and scored["validation"]["accuracy"] > max(earlier, default=0):
        ReviewClassifier(net, tokenizer).save(FOLDER.parent / "checkpoints" / CHECKPOINTS[model])
    parameters = sum(p.numel() for p in net.parameters())
    common = {**common, "best_epoch": result.best_epoch, "twin_gap": twin_gap(net, data["test"], encoded["test"], options)}
    record(model, seed, result.seconds, parameters, common, scored)


def twin_gap(net, dataset, encoded, options) -> float:
    """The largest difference between the probabilities of two order twins: zero for a model blind to order."""
    probabilities = evaluate(net, encoded, options).probabilities
    twins = [(a, b) for a, b in pairs(dataset) if dataset[a]["kind"] == "order"]
    return max((probabilities[a] - probabilities[b]).abs().max().item() for a, b in twins)


def record(model: str, seed: int, seconds: float, parameters: int, common: dict, scored: dict) -> None:
    """Put one run into the result file."""
    order = [*TEXT_MODELS, *NETWORKS].index(model)
    add_run("scoreboard", {
        "model": model, "order": order, "seed": seed, "seconds": round(seconds, 1), "parameters": parameters,
        **common, **scored,
    })


def current_runs(common: dict) -> list[dict]:
    """The recorded runs that were made with these settings and these reviews."""
    return [run for run in read_runs("scoreboard") if run["settings"] == common["settings"]]


def main() -> int:
    """Run what is missing, print the table; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    chosen = parser.parse_args()
    data = {**load_reviews("reviews"), "handwritten": load_reviews("handwritten")["test"]}
    texts = [fingerprint(list(data[split]["text"]), list(data[split]["label"])) for split in data]
    common = {"settings": fingerprint(RECIPE, texts), **environment()}
    tokenizer = WordTokenizer.train(data["train"]["text"], RECIPE.max_size, RECIPE.min_freq)
    wanted = [(model, 0) for model in TEXT_MODELS] + [(model, seed) for model in NETWORKS for seed in chosen.seeds]
    done = {(run["model"], run["seed"]) for run in current_runs(common)}
    for model, seed in tqdm([run for run in wanted if run not in done], unit="model"):
        if model in TEXT_MODELS:
            run_text_model(model, data, common)
        else:
            run_network(model, seed, data, tokenizer, common)
    if read_runs("scoreboard"):
        update_readme()
    for run in read_runs("scoreboard"):
        by_kind = "  ".join(f"{kind} {value:.3f}" for kind, value in run["test"]["by_kind"].items())
        print(f"{run['model']:<32} seed {run['seed']}  {run['test']['accuracy']:.3f}  {by_kind}  {run['seconds']:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
