"""How fast the translating Transformer trains and writes, on one thread: a result set.

Writes data/results/translation_speed.json. 'writing': 40 words for sources of 40 words, with the key/value cache and with
all words read again at every step: 64 sentences and one, greedily, and one with a beam of 5. 'training': a step (forward,
backward, AdamW) on the corpus's batches against the same model on `nn.Transformer`, both with sinusoidal positions, with its
dropout (also on attention weights) and as the course trains it. Ratios of processor times, measured in turn; their median
and middle half. The weights are random, and <eos> is switched off. Run it on a machine that does nothing else.

    python -m course_tools results translation_speed --seeds 0 --jobs 1
"""

import itertools
import math

import torch
from torch import nn

from course_tools.studies.runner import ResultSet, once
from course_tools.studies.timing import interleaved, machine
from course_tools.studies.timing import row as compared
from course_utils.encoder_decoder import Transformer, TransformerConfig, beam_search, smoothed_cross_entropy
from course_utils.results import fingerprint
from course_utils.training import seed_everything
from course_utils.training.pair_batches import BEGIN, END, PairBatch
from course_utils.translation import transformers as translation
from course_utils.translation.transformers import Recomputing

LENGTH, SENTENCES, TURNS, STEPS = 40, 64, 5, 20


def settings() -> str:
    """What the figures depend on, the machine aside."""
    return fingerprint(LENGTH, SENTENCES, TURNS, STEPS, 2, translation.MODEL, translation.BATCH_SIZE)


class NeverEnds(Transformer):
    """A `Transformer` that never gives <eos> a chance."""

    def logits(self, x):
        return super().logits(x).index_fill(-1, torch.tensor([END]), -math.inf)


def config() -> TransformerConfig:
    """The model of the set `translation`."""
    source_words, target_words = translation.word_lists()
    return TransformerConfig(target_words.vocab_size, source_words.vocab_size, **translation.MODEL)


@torch.no_grad()
def greedy(model, source_ids: torch.Tensor) -> list[list[int]]:
    """The most probable word, LENGTH times."""
    state = model.start(model.encode(source_ids, source_ids > 0))
    last, written = torch.full((len(source_ids),), BEGIN), []
    for _ in range(LENGTH):
        logits, state = model.step(last, state)
        last = logits.argmax(dim=-1)
        written.append(last)
    return torch.stack(written, dim=1).tolist()


def writing() -> dict:
    """With the cache against without it."""
    seed_everything(0)
    model = NeverEnds(config()).eval()
    sources = torch.randint(4, model.config.source_vocab_size, (SENTENCES, LENGTH))
    rows = []
    for what, chosen, beam in ((f"{SENTENCES} sentences", sources, 1), ("one sentence", sources[:1], 1),
                               ("one sentence, beam 5", sources[:1], 5)):
        def write(writer, chosen=chosen, beam=beam):
            if beam == 1:
                return greedy(writer, chosen)
            return [found[0].ids for found in beam_search(writer, chosen, chosen > 0, beam, max_len=LENGTH)]
        cached, again = (write(writer) for writer in (model, Recomputing(model)))
        same = sum(a == b for a, b in zip(cached, again))
        measured = interleaved({"ours": lambda: write(model), "other": lambda: write(Recomputing(model))}, TURNS)
        rows.append(compared("writing", f"{LENGTH} words, {what}, with the cache", "without it", measured, equal=same,
                             sentences=len(chosen)))
    return {"rows": rows}


class Library(nn.Module):
    """The same model on `nn.Transformer`: our embeddings, positions and output, their stacks."""

    def __init__(self, ours: Transformer):
        super().__init__()
        options = ours.config
        self.ours = ours
        self.stacks = nn.Transformer(
            options.d_model, options.num_heads, options.num_layers, options.num_layers, options.d_ff, options.dropout,
            activation=options.activation, norm_first=True, batch_first=True)
        self.ours.encoder = self.ours.decoder = None

    def forward(self, source_ids, source_mask, target_ids):
        """(batch, target, vocab)"""
        x = self.ours.embed(self.ours.source_embedding, source_ids)
        y = self.ours.embed(self.ours.target_embedding, target_ids)
        hidden = torch.ones(y.shape[1], y.shape[1], dtype=torch.bool).triu(1)
        return self.ours.logits(self.stacks(x, y, tgt_mask=hidden, src_key_padding_mask=~source_mask,
                                            memory_key_padding_mask=~source_mask, tgt_is_causal=True))


def training_steps(model: nn.Module, batches: list[PairBatch]):
    """A function that makes a step on each batch."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    model.train()

    def run():
        for batch in batches:
            logits = model(batch.source_ids, batch.source_mask, batch.target_ids[:, :-1])
            logits = getattr(logits, "logits", logits)
            optimizer.zero_grad()
            smoothed_cross_entropy(logits, batch.target_ids[:, 1:]).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
    return run


def training() -> dict:
    """A training step against one through `nn.Transformer`."""
    seed_everything(0)
    batches = list(itertools.islice(translation.training_data().batches(0), STEPS))
    options = vars(config()) | {"positions": "sinusoidal"}                # nn.Transformer has no place for rotary ones
    ours = Transformer(TransformerConfig(**options))
    equal = Transformer(TransformerConfig(**options | {"attention_dropout": options["dropout"]}))
    measured = interleaved({
        "course": training_steps(ours, batches), "equal dropout": training_steps(equal, batches),
        "library": training_steps(Library(Transformer(TransformerConfig(**options))), batches),
    }, TURNS)
    return {"rows": [
        compared("training", "training step, the same dropout", "nn.Transformer", measured, "equal dropout", "library"),
        compared("training", "training step, none on attention weights", "nn.Transformer", measured, "course", "library"),
    ]}


ROWS = {"writing": writing, "training": training}


def run(model: str, seed: int, state) -> dict:
    """Measure one of the two."""
    torch.set_num_threads(1)
    return {**ROWS[model](), "machine": machine(), "parameters": 0, "history": []}


def line(runs: list[dict]) -> str:
    """What the command prints: every ratio."""
    return "; ".join(f"{row['what']}: {row['ratio']:.2f}" for one in runs for row in one["rows"])


SET = ResultSet("translation_speed", dict.fromkeys(ROWS, {}), settings, run, seeds=once, line=line)
