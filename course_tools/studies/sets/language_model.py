"""The code language model of notebook 13, on three seeds: a result set.

Writes data/results/language_model.json: bits per byte on modules of the standard library that nobody trained on. It reads
the sources of the Python that runs, which must be the version of data/standard_library.json. Each run keeps its model in
outputs/models; the committed ones are copied to data/checkpoints, seed 0 as `code`.

"nanoGPT's recipe" is what that repository's config/train_shakespeare_char.py says for small models
(https://github.com/karpathy/nanoGPT): learned positions, erf GELU, GPT-2's initial numbers, decay on matrices alone, 100
steps of warm-up to a rate of 0.001, the second moment over about 100 steps; and no dropout, as its README has it for a
processor. Biases are kept, and the rate falls to zero instead of a tenth. Another row takes our rate instead. Both make a
seventh more steps than the first row, since theirs are quicker: see 'a training step' in the set `completion_speed`.

    python -m course_tools results language_model [--seeds 0 1 2]
"""

import functools
import re

from torch import nn

from course_tools.studies.code_data import VOCAB_SIZE, code_ids, code_settings, code_tokenizer, code_windows
from course_tools.studies.code_scores import bits_by_module, carried_nats, token_nats
from course_tools.studies.recurrent_language_model import RecurrentLanguageModel
from course_tools.studies.runner import ResultSet
from course_tools.studies.standard_library import load_standard_library
from course_utils.files.paths import output_folder
from course_utils.language_model import LanguageModel, LanguageModelConfig, next_token_loss
from course_utils.results import fingerprint
from course_utils.training import MeanLoss, fit, seed_everything
from course_utils.training.saved_models import write_model

LENGTH, BATCH_SIZE, STRIDE = 512, 8, 256
MODEL = {"d_model": 128, "num_heads": 4, "d_ff": 512, "num_layers": 4, "max_len": LENGTH}
FIT = {"epochs": 6, "learning_rate": 3e-3, "weight_decay": 0.1, "warmup": 0.05, "clip": 1.0, "precision": "bf16"}
ADDED = ("output_projection.weight", "contract.weight")  # what is added to the residual stream comes from these
NANOGPT = {"positions": "learned", "d_ff": 448, "recipe": "nanoGPT", "epochs": 7}
ROWS = {                                                # as many parameters as the first row has, to 0.2 %, and equal steps,
                                                        # but for those that take as many minutes as attention, in more steps
    "attention": {}, "LSTM": {"network": "LSTM", "d_hidden": 371, "num_layers": 1},
    "GPT-2's learned positions, GELU by tanh": {"positions": "learned", "activation": "gelu_tanh", "d_ff": 448},
    "LSTM, as many minutes": {"network": "LSTM", "d_hidden": 371, "num_layers": 1, "epochs": 10},
    "nanoGPT's recipe, as many minutes": {**NANOGPT, "learning_rate": 1e-3, "warmup": 100 / 3640},
    "nanoGPT's recipe at our rate, as many minutes": NANOGPT,
}


@functools.cache
def settings() -> str:
    """What every run depends on: modules, tokenizer, model and training."""
    return fingerprint(code_settings(), LENGTH, BATCH_SIZE, STRIDE, MODEL, FIT)


def run(model: str, seed: int, state) -> dict:
    """Train one model, keep it, and score it on validation and test."""
    seed_everything(seed)
    net = network(model)
    validation = MeanLoss(code_windows("validation", LENGTH, BATCH_SIZE), next_token_loss)
    result = fit(net, code_windows("train", LENGTH, BATCH_SIZE), validation, loss_of=next_token_loss, checkpoint=state,
                 seed=seed, progress=False, groups=nanogpt_groups if "recipe" in ROWS[model] else None,
                 **fit_options(model))
    if isinstance(net, LanguageModel):
        folder = re.sub(r"[^A-Za-z0-9]+", "-", model)   # "attention", "nanoGPT-s-recipe-as-many-minutes"
        write_model(output_folder() / "models" / f"{folder}-seed-{seed}", net, code_tokenizer(), {}, LanguageModel)
    steps = len(code_windows("train", LENGTH, BATCH_SIZE))
    return {
        "parameters": sum(p.numel() for p in net.parameters()), "seconds": round(result.seconds, 1),
        "best_epoch": result.best_epoch, "history": result.history, "steps": steps * fit_options(model)["epochs"],
        "tokens": steps * fit_options(model)["epochs"] * LENGTH * BATCH_SIZE,
        **{split: scores(net, split) for split in ("validation", "test")},
    }


def fit_options(model: str) -> dict:
    """How a row is trained."""
    return FIT | {name: value for name, value in ROWS[model].items() if name in FIT}


def network(model: str) -> nn.Module:
    """The untrained network of a row."""
    change = {name: value for name, value in ROWS[model].items() if name not in FIT}
    if change.pop("network", "") == "LSTM":
        return RecurrentLanguageModel(VOCAB_SIZE, d_model=MODEL["d_model"], **change)
    recipe = change.pop("recipe", "")
    net = LanguageModel(LanguageModelConfig(VOCAB_SIZE, **MODEL | change))
    return begin_as_gpt2(net) if recipe else net


def begin_as_gpt2(net: LanguageModel) -> LanguageModel:
    """GPT-2's initial numbers: normal with a spread of 0.02, less in what is added to the residual stream; biases zero."""
    for name, parameter in net.named_parameters():
        if name.endswith("bias"):
            nn.init.zeros_(parameter)
        elif parameter.dim() > 1:
            added = name.endswith(ADDED)
            nn.init.normal_(parameter, std=0.02 / (2 * net.config.num_layers) ** 0.5 if added else 0.02)
    return net


def nanogpt_groups(net: nn.Module) -> list[dict]:
    """Parameters for `fit`: decay for the matrices alone, and a second moment that forgets ten times as fast."""
    matrices = [parameter for parameter in net.parameters() if parameter.dim() > 1]
    others = [parameter for parameter in net.parameters() if parameter.dim() <= 1]
    return [{"params": matrices, "betas": (0.9, 0.99)}, {"params": others, "betas": (0.9, 0.99), "weight_decay": 0.0}]


def scores(net: nn.Module, split: str) -> dict:
    """Bits per byte of a split's modules."""
    texts = {module.path: module.text for module in load_standard_library(split)}
    if isinstance(net, RecurrentLanguageModel):         # it needs no window: its state goes through the whole module
        nats = {path: float(carried_nats(net, ids).double().sum()) for path, ids in code_ids(split).items()}
    else:
        nats = {path: float(token_nats(net, ids, LENGTH, STRIDE).double().sum()) for path, ids in code_ids(split).items()}
    return bits_by_module(nats, texts)


def line(runs: list[dict]) -> str:
    """Bits per byte on the held-out modules, seed by seed."""
    return "test " + "  ".join(f"{run['test']['overall']:.3f}" for run in runs) + " bits per byte"


SET = ResultSet("language_model", ROWS, settings, run, line=line)
