"""17's Transformer on the course's translation corpus: its words, its training, and where the trained one is kept.

Does: the corpus in batches, `new_translator`, `train_translator`, `trained_translator`; the same model without a cache
(`Recomputing`), to compare with. Does not: score (see `translation.scores`), or define the model (notebook 17 does).
"""

import copy
import functools

import torch

from course_utils.data.translations import load_translations
from course_utils.encoder_decoder import SmoothedLoss, Transformer, TransformerConfig, Translator
from course_utils.files.paths import CHECKPOINTS, output_folder
from course_utils.training import FitResult, MeanLoss, fit, seed_everything
from course_utils.training.pair_batches import PairBatches, WordList, encode_pairs
from course_utils.training.saved_models import holds_model

BATCH_SIZE = 64
MODEL = {"d_model": 64, "num_heads": 4, "d_ff": 256, "num_layers": 2, "positions": "rotary"}
FIT = {"epochs": 12, "learning_rate": 3e-3, "weight_decay": 0.01, "warmup": 0.1}


@functools.cache
def translations():
    """The splits of the course's translation corpus."""
    return load_translations("translation")


@functools.cache
def word_lists() -> tuple[WordList, WordList]:
    """All words of the training split, English and French."""
    train = translations()["train"]
    return WordList.train(train["source_tokens"]), WordList.train(train["target_tokens"])


@functools.cache
def training_data() -> PairBatches:
    """The training split in batches."""
    return PairBatches(encode_pairs(translations()["train"], *word_lists()), BATCH_SIZE)


def new_translator(seed: int, **changes) -> Translator:
    """An untrained translator; `changes` replace numbers of MODEL."""
    seed_everything(seed)
    source_words, target_words = word_lists()
    config = TransformerConfig(target_words.vocab_size, source_words.vocab_size, **MODEL | changes)
    return Translator(Transformer(config).eval(), source_words, target_words)


def train_translator(seed: int, smoothing: float = 0.1, checkpoint=None) -> tuple[Translator, FitResult]:
    """Train with `fit` on the training split; of the epochs the one with the lowest cross-entropy on validation.

    The weights come back rounded to 16 bits, as they're kept.
    """
    translator = new_translator(seed)
    net = translator.model
    validation = PairBatches(encode_pairs(translations()["validation"], *word_lists()), 200)
    result = fit(net, training_data(), MeanLoss(validation, SmoothedLoss(0.0)), loss_of=SmoothedLoss(smoothing),
                 seed=seed, checkpoint=checkpoint, progress=False, **FIT)
    net.load_state_dict(copy.deepcopy(net).half().state_dict())
    return translator, result


def keep_translator(seed: int, translator: Translator) -> None:
    """Save a trained one in outputs/models, in 16 bits."""
    translator._replace(model=copy.deepcopy(translator.model).half()).save(folders(seed)[1])


def folders(seed: int):
    """Where a kept model can be: among those that come with the course (seed 0), and among those made here."""
    name = f"translation-seed-{seed}"
    return CHECKPOINTS / ("translation" if seed == 0 else name), output_folder() / "models" / name


def trained_translator(seed: int = 0) -> Translator:
    """The trained Transformer; it's trained and kept if there is none (four minutes)."""
    if not any(holds_model(folder) for folder in folders(seed)):
        keep_translator(seed, train_translator(seed)[0])
    return Translator.load(next(folder for folder in folders(seed) if holds_model(folder)))


def in_parts(translator: Translator, sources: list[list[str]], beam: int, size: int = 100) -> list[list[str]]:
    """`translator.tokens` for many sentences, those of similar length together."""
    order = sorted(range(len(sources)), key=lambda i: len(sources[i]))
    found = {}
    for start in range(0, len(order), size):
        rows = order[start : start + size]
        found |= zip(rows, translator.tokens([sources[i] for i in rows], beam))
    return [found[i] for i in range(len(sources))]


class Recomputing:
    """The same model without a cache: every step reads all words again."""

    def __init__(self, model: Transformer):
        self.model, self.encode = model, model.encode

    def start(self, memory):
        """Nothing but the memory, and no words yet."""
        return Written(memory, None)

    def step(self, last_ids, state):
        """As `Transformer.step`."""
        words = last_ids[:, None] if state.words is None else torch.cat([state.words, last_ids[:, None]], dim=1)
        return self.model.logits(self.model.decode(state.memory, words).x[:, -1]), Written(state.memory, words)


class Written:
    """The state of `Recomputing`: the memory and the words so far."""

    def __init__(self, memory, words):
        self.memory, self.words = memory, words

    def select(self, indices):
        """The rows that are chosen."""
        memory = self.memory._replace(x=self.memory.x[indices], mask=self.memory.mask[indices])
        return Written(memory, None if self.words is None else self.words[indices])
