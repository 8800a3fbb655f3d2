"""When induction heads appear: small models that learn to continue random tokens which repeat. A result set.

Writes data/results/induction.json. A sequence is a random run of 2 to 20 different tokens, repeated until there are 40. The
second time, every token can be found by looking back, and in no other way. Each run says, every 20 steps, how much weight
each head gives to the token after the previous occurrence (the prefix-matching score of Olsson et al. 2022) and to the token
before, on sequences of 2 · 20 tokens. Rows: two layers, the first of which starts with heads that look nearby (see
`small_language_models`); the same with one layer; two layers with the usual initialisation; one layer with as many heads and
nearly as many parameters as the two layers have; and the usual initialisation for nearly seven times as many steps, scored
every 100, with the accuracy by period at its end.

    python -m course_tools results induction --seeds 0 1 2 3 4
"""

import functools
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_tools.studies.program_models import can_be_found, start_local
from course_tools.studies.runner import ResultSet, Trained
from course_utils import files
from course_utils.data.programs import NAMES
from course_utils.language_model import LanguageModel, LanguageModelConfig
from course_utils.recipes.small_language_models import head_scores, keep_model, repeated_tokens
from course_utils.results import fingerprint
from course_utils.tokenization import WordTokenizer
from course_utils.training import fit, seed_everything

WORDS, LONGEST, LENGTH = 64, 20, 40
STEPS_EACH, BATCH_SIZE = 20, 32                         # an epoch of `fit`: so many steps, then the scores
MODEL = {"d_model": 64, "num_heads": 2, "d_ff": 128, "max_len": 256}
FIT = {"epochs": 30, "learning_rate": 3e-3, "weight_decay": 0.01, "warmup": 0.1}
EMBEDDING_STD = 0.1
ROWS = {
    "two layers": {"num_layers": 2, "local": True},
    "one layer": {"num_layers": 1, "local": True},
    "two layers, usual start": {"num_layers": 2, "local": False},
    "one layer, four heads": {"num_layers": 1, "local": True, "num_heads": 4, "d_ff": 387},
    "two layers, usual start, longer": {"num_layers": 2, "local": False, "steps_each": 100, "epochs": 40},
}
KEPT = "two layers"
LONGER = "two layers, usual start, longer"


@functools.cache
def word_tokenizer() -> WordTokenizer:
    """64 names, so that random tokens can be read."""
    return WordTokenizer(["<pad>", "<unk>", *sorted(NAMES)[:WORDS]])


@dataclass(frozen=True)
class RepeatedBatches:
    """New rows of repeated tokens for every step, as `TrainingData`."""

    seed: int
    steps_each: int = STEPS_EACH

    def __len__(self) -> int:
        return self.steps_each

    def batches(self, seed: int | None) -> Iterator[Tensor]:
        generator = torch.Generator().manual_seed(1_000_000 * (self.seed + 1) + (seed or 0))
        for _ in range(self.steps_each):
            periods = torch.randint(2, LONGEST + 1, (BATCH_SIZE,), generator=generator).tolist()
            yield repeated_tokens(periods, LENGTH, word_tokenizer().vocab_size, generator)

    @property
    def fingerprint(self) -> str:
        return files.fingerprint(self.seed, self.steps_each, BATCH_SIZE, LONGEST, LENGTH)


def repeated_loss(model: nn.Module, token_ids: Tensor) -> tuple[Tensor, int]:
    """The mean of -ln p, in nats, over the tokens that looking back finds, and how many these are."""
    found = can_be_found(token_ids)[:, 1:]
    return F.cross_entropy(model(token_ids[:, :-1]).logits[found], token_ids[:, 1:][found]), int(found.sum())


def scores(model: LanguageModel) -> dict[str, float]:
    """The loss, the accuracy and every head's scores, on 64 rows of 2 · 20 tokens: what `fit` calls after each epoch."""
    tokens = repeated_tokens([LONGEST] * 64, LENGTH, word_tokenizer().vocab_size, torch.Generator().manual_seed(0))
    result, found = model(tokens, need_weights=True), can_be_found(tokens)[:, 1:]
    logits, answers = result.logits[:, :-1][found], tokens[:, 1:][found]
    heads = {f"{name}_{layer}_{head}": weight
             for name, table in head_scores(result.attentions, LONGEST).items()
             for layer, row in enumerate(table.tolist()) for head, weight in enumerate(row)}
    return {"validation_loss": F.cross_entropy(logits, answers).item(),
            "accuracy": (logits.argmax(dim=1) == answers).float().mean().item(), **heads}


@functools.cache
def settings() -> str:
    """What every run depends on."""
    return fingerprint(WORDS, LONGEST, LENGTH, STEPS_EACH, BATCH_SIZE, MODEL, FIT, EMBEDDING_STD, 2)


def new_model(seed: int, num_layers: int, local: bool, **changes: int) -> LanguageModel:
    """An untrained model; `changes` replace numbers of MODEL."""
    seed_everything(seed)
    model = LanguageModel(LanguageModelConfig(word_tokenizer().vocab_size, num_layers=num_layers, **MODEL | changes))
    nn.init.normal_(model.embedding.weight, std=EMBEDDING_STD)
    if local:
        start_local(model, [2.5] * model.config.num_heads)
    return model


@torch.no_grad()
def by_period(model: LanguageModel) -> dict[str, float]:
    """The accuracy on 64 rows for each of some periods: rows that repeat soon are easier."""
    found = {}
    for period in (3, 5, 10, LONGEST):
        tokens = repeated_tokens([period] * 64, LENGTH, word_tokenizer().vocab_size, torch.Generator().manual_seed(0))
        asked = can_be_found(tokens)[:, 1:]
        right = model(tokens[:, :-1]).logits.argmax(dim=-1) == tokens[:, 1:]
        found[str(period)] = round(right[asked].float().mean().item(), 4)
    return found


def run(model: str, seed: int, state) -> Trained:
    """Train one model with `fit`, and say what its heads did on the way; those of the rows KEPT and LONGER are kept."""
    change = dict(ROWS[model])
    steps_each, epochs = change.pop("steps_each", STEPS_EACH), change.pop("epochs", FIT["epochs"])
    net = new_model(seed, **change)
    start = {"epoch": 0, **scores(net.eval())}
    result = fit(net, RepeatedBatches(seed, steps_each), scores, loss_of=repeated_loss, best="lowest validation_loss",
                 seed=seed, checkpoint=state, progress=False, **FIT | {"epochs": epochs})
    if model in (KEPT, LONGER):
        keep_model("induction" if model == KEPT else "induction-without-help", seed, net, word_tokenizer())
    own = {"by_period": by_period(net)} if model == LONGER else {}
    return Trained(net, result._replace(history=[start, *result.history]), {
        "steps_each": steps_each, "tokens": steps_each * epochs * BATCH_SIZE * LENGTH,
        "test": {"accuracy": round(scores(net)["accuracy"], 4), "reviews": 64 * (LONGEST - 1)}, **own,
    }, chosen="")


def make_induction_model(seed: int) -> None:
    """Train a model of the row KEPT, and keep it."""
    run(KEPT, seed, None)


def make_model_without_help(seed: int) -> None:
    """Train a model of the row LONGER, and keep it."""
    run(LONGER, seed, None)


SET = ResultSet("induction", ROWS, settings, run)
