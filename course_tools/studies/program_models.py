"""Small models that complete the generated programs: their tokens, batches, training and scores.

Does: turn programs into token ids of which the last is the answer, train a model to give that answer, score it by kind. The
sets `context` and `induction` and notebook 13b use it. Does not: make programs (see
`course_utils.data.programs`) or define models.

Tokens are those of notebook 02's `WordTokenizer`: words and single marks. With it every answer is one token, names and
numbers are never cut, and a gap counted in tokens is about the number of tokens that a model has to look across.
"""

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from random import Random
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_utils import files
from course_utils.data.programs import KINDS, Program, make_programs
from course_utils.language_model import LanguageModel, LanguageModelConfig
from course_utils.recipes.small_language_models import keep_model, padded, program_ids, program_tokenizer, repeated_tokens
from course_utils.training import learning_rate_at, seed_everything, train_epoch
from course_utils.training.state import TrainingState, load_checkpoint, save_checkpoint, weights_of

EPOCH, TOKENS = 100, 2048                               # steps in an epoch, tokens in a step
GAPS = ((5, 15), (15, 31), (31, 62), (62, 125), (125, 250), (250, 500))  # a batch has gaps from one of these ranges
MODEL = {"d_model": 64, "num_heads": 4, "d_ff": 128, "num_layers": 2, "max_len": 4096}
EMBEDDING_STD = 0.1
LEARNING_RATE, WARMUP = 5e-3, 0.05


class Phase(NamedTuple):
    """A part of the training: its epochs; the ranges of gaps, one for each batch; rows of repeated tokens in a batch."""

    epochs: int
    gaps: tuple[tuple[int, int], ...]
    practice: int


class Recipe(NamedTuple):
    """What a model is trained on: kinds of programs, phases; and how far the heads of layer 0 look at first
    (see `start_local`)."""

    kinds: tuple[str, ...]
    phases: tuple[Phase, ...]
    strengths: tuple[float, ...]


ALL_KINDS = Recipe(KINDS, (Phase(3, (), 24), Phase(14, GAPS[:2], 24), Phase(6, GAPS, 0)), (2.5, 2.5, 2.5, 2.5))
IMPORTS = Recipe(("alias",), (Phase(3, (), 24), Phase(9, GAPS[:2], 24)), (2.5, 2.5, 2.5, 2.5))   # of 13b: quick
ANSWER, PRACTICE = 1, 2                                 # why a token is asked for


@dataclass(frozen=True)
class ProgramBatches:
    """New programs for every step: batches (2, rows, longest), `EPOCH` an epoch.

    [0] holds token ids. [1] says what the model is asked for: ANSWER for the last token of a program, PRACTICE for the
    tokens that looking back finds in rows of repeated tokens, else 0. The programs of a batch have gaps from one range, so
    that their lengths are similar, and about `TOKENS` tokens. `seed` fixes everything.
    """

    seed: int
    recipe: Recipe = ALL_KINDS

    def __len__(self) -> int:
        return EPOCH

    def batches(self, epoch: int) -> Iterator[Tensor]:
        """The batches of an epoch, counted from 1."""
        for step in range(EPOCH):
            rows = [program_ids(program) for program in self.programs(epoch, step)]
            repeated = self.repeated(epoch, step)
            ids = padded([*rows, *repeated.tolist()])
            asked = torch.zeros_like(ids)
            asked[torch.arange(len(rows)), torch.tensor([len(row) - 1 for row in rows], dtype=torch.long)] = ANSWER
            if len(repeated):
                asked[len(rows) :, : repeated.shape[1]] = PRACTICE * can_be_found(repeated)
            yield torch.stack([ids, asked])

    def phase(self, epoch: int) -> Phase:
        """The phase that an epoch belongs to; epochs count from 1."""
        return next(phase for phase, end in zip(self.recipe.phases, self.ends, strict=True) if epoch <= end)

    def programs(self, epoch: int, step: int) -> list[Program]:
        """The programs of a step; none where the model only practises."""
        gaps, name = self.phase(epoch).gaps, f"{self.seed} {epoch} {step}"
        if not gaps:
            return []
        gap = Random(name).choice(gaps)
        number = max(len(KINDS), TOKENS // (gap[1] + 45))
        return make_programs(number, gap=gap, kinds=self.recipe.kinds, seed=f"training {name}")

    def repeated(self, epoch: int, step: int) -> Tensor:
        """Rows of 40 tokens from the whole vocabulary, which repeat after 2 to 20."""
        generator = torch.Generator().manual_seed(1_000_000 * self.seed + 1000 * epoch + step)
        periods = torch.randint(2, 21, (self.phase(epoch).practice,), generator=generator).tolist()
        return repeated_tokens(periods, 40, program_tokenizer().vocab_size, generator)

    @property
    def ends(self) -> list[int]:
        """The last epoch of each phase."""
        return list(accumulate(phase.epochs for phase in self.recipe.phases))

    @property
    def fingerprint(self) -> str:
        return files.fingerprint(self.seed, repr(self.recipe), EPOCH, TOKENS)


def answer_loss(model: nn.Module, batch: Tensor) -> tuple[Tensor, int]:
    """The mean of -ln p(answer), in nats, plus the same for what is practised; and the number of rows: a `loss_of`."""
    ids, asked = batch[0], batch[1, :, 1:]
    logits, answers = model(ids[:, :-1]).logits, ids[:, 1:]
    losses = [F.cross_entropy(logits[asked == why], answers[asked == why])
              for why in (ANSWER, PRACTICE) if (asked == why).any()]
    return torch.stack(losses).sum(), len(ids)


@dataclass(frozen=True)
class ProgramScores:
    """The loss and the accuracy of a model in evaluation mode on these programs, by kind."""

    programs: tuple[Program, ...]

    def __call__(self, model: nn.Module) -> dict[str, float]:
        scored = answers_of(model, self.programs)
        kinds = [program.kind for program in self.programs]
        right = Counter(kind for kind, right in zip(kinds, scored["right"], strict=True) if right)
        return {"validation_loss": sum(scored["nats"]) / len(self.programs),
                **{f"validation_{kind}": right[kind] / kinds.count(kind) for kind in sorted(set(kinds))}}


@torch.no_grad()
def answers_of(model: nn.Module, programs, tokens: int = 8192) -> dict[str, list]:
    """What a model in evaluation mode says to each program: {"right": [bool], "among": [bool], "nats": [float]}.

    `right`: the answer has the highest logit of all tokens; `among`: the highest of the program's candidates; `nats`:
    -ln p(answer). `tokens` bounds a batch.
    """
    rows = [program_ids(program) for program in programs]
    order, ids = sorted(range(len(rows)), key=lambda i: len(rows[i])), program_tokenizer().ids
    said = {"right": [False] * len(rows), "among": [False] * len(rows), "nats": [0.0] * len(rows)}
    while order:
        size = 1
        while size < len(order) and (size + 1) * len(rows[order[size]]) <= tokens:
            size += 1
        batch, order = order[:size], order[size:]
        token_ids = padded([rows[i] for i in batch])
        row_number, last = torch.arange(len(batch)), (token_ids != 0).sum(dim=1) - 1
        logits, answers = model(token_ids[:, :-1]).logits[row_number, last - 1], token_ids[row_number, last]
        nats = F.cross_entropy(logits, answers, reduction="none").tolist()
        for i, row, answer, loss in zip(batch, logits, answers.tolist(), nats, strict=True):
            candidates = [ids[candidate] for candidate in programs[i].candidates]
            said["right"][i] = int(row.argmax()) == answer
            said["among"][i] = candidates[int(row[candidates].argmax())] == answer
            said["nats"][i] = loss
    return said


def new_program_model(seed: int, recipe: Recipe = ALL_KINDS, local: bool = True) -> LanguageModel:
    """An untrained `LanguageModel` for programs, whose layer 0 looks at nearby tokens unless `local` is False."""
    seed_everything(seed)
    model = LanguageModel(LanguageModelConfig(program_tokenizer().vocab_size, **MODEL))
    start_embedding(model)
    if local:
        start_local(model, recipe.strengths)
    return model


def start_embedding(model: nn.Module) -> None:
    """Draw a new model's token vectors with standard deviation `EMBEDDING_STD`."""
    nn.init.normal_(model.embedding.weight, std=EMBEDDING_STD)


def train_on_programs(model: nn.Module, seed: int, recipe: Recipe = ALL_KINDS, checkpoint=None) -> TrainingState:
    """Train a model in place, phase by phase; return the state at the end: `history`, on other programs of these kinds,
    and `seconds`.

    As `course_utils.training.fit`, but the second beta of AdamW is 0.98, not 0.999, so that it forgets the large gradients
    of the beginning sooner; in trials the models learned much earlier with it. The weights at the end are kept. With
    `checkpoint` (a file name) the state is written after every epoch, and the same training goes on from there.
    """
    longest = max(gap[1] for phase in recipe.phases for gap in phase.gaps)
    validation = ProgramScores((*make_programs(100, gap=(5, 31), kinds=recipe.kinds, seed=-1),
                                *make_programs(50, gap=(5, longest), kinds=recipe.kinds, seed=-2)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE, weight_decay=0.01, betas=(0.9, 0.98), fused=True)
    data, state = ProgramBatches(seed, recipe), TrainingState(model, optimizer, "fp32", {})
    epochs = data.ends[-1]
    made_with = {"training": files.fingerprint(str(model), data.fingerprint, repr(validation), LEARNING_RATE, WARMUP)}
    if checkpoint:
        load_checkpoint(checkpoint, made_with, state)
    for epoch in range(len(state.history) + 1, epochs + 1):
        begun = time.perf_counter()
        rates = [learning_rate_at(step, epochs * EPOCH, LEARNING_RATE, WARMUP)
                 for step in range((epoch - 1) * EPOCH, epoch * EPOCH)]
        loss = train_epoch(model, optimizer, data.batches(epoch), answer_loss, rates, clip=1.0)
        state.history.append({"epoch": epoch, "train_loss": loss, **validation(model.eval())})
        state.best_weights, state.best_epoch = weights_of(model), epoch
        state.seconds += time.perf_counter() - begun
        if checkpoint:
            save_checkpoint(checkpoint, made_with, state)
    return state


def make_import_model(seed: int) -> None:
    """Train an attention model on imports under another name, and keep it."""
    model = new_program_model(seed, IMPORTS)
    train_on_programs(model, seed, IMPORTS)
    keep_model("imports", seed, model, program_tokenizer())


@torch.no_grad()
def start_local(model: LanguageModel, strengths: Sequence[float]) -> None:
    """Give layer 0 of a new model with rotary positions heads that look nearby, by the biases of queries and keys.

    For each head both are its strength in the first column of every rotary pair, else zero. The score of a key then gets an
    addition of strength² · Σ cos(distance · frequency) / √d_head, which is largest at distance 0 and falls off within a few
    tokens, more gently for a smaller strength. Training can change it like any other weight. Raises ValueError unless there
    is a strength for each head.

    A new model's rotary heads look at all earlier tokens about equally. An induction head needs another head that looks at
    the token before, and neither is of use without the other, so for a long time nothing is learned. Heads that look nearby
    from the start, as ALiBi's do by construction (Press et al. 2022), make that time short.
    """
    attention = model.decoder.blocks[0].attention
    if len(strengths) != attention.num_heads:
        raise ValueError(f"{len(strengths)} strengths for {attention.num_heads} heads; give one for each")
    for projection in (attention.query_projection, attention.key_projection):
        by_head = projection.bias.view(attention.num_heads, attention.d_head)
        by_head.zero_()
        by_head[:, 0::2] = torch.tensor(strengths)[:, None]


def can_be_found(token_ids: Tensor) -> Tensor:
    """Of `repeated_tokens`, which tokens stand after a repeated one, so that looking back finds them: (rows, length)."""
    again = (token_ids == token_ids[:, :1]).cumsum(dim=1) >= 2
    return again & again.roll(1, dims=1)                # not the first of them: nothing says that the row repeats now
