"""How far back a model looks: completing the generated programs when the answer was defined long before. A result set.

Writes data/results/context.json: accuracy by kind with 5 (or as few as a program needs, at most 40), 50, 500, 1,000 and
2,000 tokens between definition and question. Every model sees the same training programs, whose gaps end at 500, so the last
two distances are beyond training. An answer is right if it has the highest score of all tokens, or, as `among`, of the
program's candidates; `chance` is what guessing among the candidates gives.

    python -m course_tools results context [--only LSTM] [--seeds 0 1 2]
"""

import functools
from collections.abc import Iterator, Sequence

import numpy as np
from torch import Tensor

from course_tools.studies import program_models as programs
from course_tools.studies.kneser_ney import KneserNey
from course_tools.studies.recurrent_language_model import RecurrentLanguageModel
from course_tools.studies.runner import ResultSet, Trained
from course_utils.data.programs import KINDS, Program, make_programs
from course_utils.results import fingerprint
from course_utils.training import seed_everything

DISTANCES = {5: 500, 50: 500, 500: 250, 1000: 150, 2000: 150}  # the gap, and how many programs are scored
ROWS = {
    "attention": {},
    "LSTM": {"d_model": 64, "d_hidden": 64, "num_layers": 2},
    "LSTM, four times as many weights": {"d_model": 64, "d_hidden": 160, "num_layers": 2},
    "5-gram": {"order": 5},
    "attention, without help": {"local": False},               # its layer 0 doesn't begin by looking nearby
}
FEW = ("LSTM, four times as many weights", "5-gram", "attention, without help")   # three seeds are enough


@functools.cache
def settings() -> str:
    """What every run depends on: the programs, the training, what is scored."""
    scored = [fingerprint([program.text for program in test_programs(gap)]) for gap in (5, 50)]
    return fingerprint(scored, DISTANCES, programs.ProgramBatches(0).fingerprint, programs.MODEL,
                       programs.LEARNING_RATE, programs.WARMUP, programs.EMBEDDING_STD,
                       programs.program_tokenizer().vocabulary)


@functools.cache
def test_programs(gap: int) -> list[Program]:
    """The programs with this gap that every model is scored on."""
    return make_programs(DISTANCES[gap], gap=(gap, gap), seed=2_000_000 + gap)


def run(model: str, seed: int, state) -> dict | Trained:
    """Train one model on the programs of its seed, score it at every distance."""
    if model == "5-gram":
        counted = count_programs(seed)
        return {"parameters": sum(len(level.grams) for level in counted.levels), "history": [],
                **about(seed, functools.partial(counted_answers, counted))}
    if model in ("attention", "attention, without help"):
        net = programs.new_program_model(seed, local=ROWS[model].get("local", True))
    else:
        seed_everything(seed)
        net = RecurrentLanguageModel(programs.program_tokenizer().vocab_size, **ROWS[model])
        programs.start_embedding(net)
    trained = programs.train_on_programs(net, seed, checkpoint=state)
    return Trained(net, trained, about(seed, functools.partial(programs.answers_of, net)), chosen="")


def about(seed: int, answers) -> dict:
    """What a model saw, and what it answers at every distance."""
    return {"seen": seen_in_training(seed), "test": {str(gap): scored(test_programs(gap), answers) for gap in DISTANCES}}


def scored(test: Sequence[Program], answers) -> dict:
    """Accuracy on programs, overall and by kind, both ways of counting, chance, and the gaps there are."""
    said = answers(test)
    kinds = [program.kind for program in test]
    result = {"reviews": len(test), "gap": round(float(np.mean([program.gap for program in test])), 1),
              "reviews_by_kind": {kind: kinds.count(kind) for kind in KINDS}}
    chance = [1 / len(program.candidates) for program in test]
    for name, values in (("accuracy", said["right"]), ("among", said["among"]), ("chance", chance)):
        result[name] = round(float(np.mean(values)), 4)
        result[f"{name}_by_kind"] = {
            kind: round(float(np.mean([value for value, one in zip(values, kinds, strict=True) if one == kind])), 4)
            for kind in KINDS}
    return result


def training_batches(seed: int) -> Iterator[tuple[list[Program], Tensor]]:
    """The programs and the repeated tokens of every step of the training."""
    data = programs.ProgramBatches(seed)
    for epoch in range(1, data.ends[-1] + 1):
        for step in range(len(data)):
            yield data.programs(epoch, step), data.repeated(epoch, step)


def seen_in_training(seed: int) -> dict:
    """How many programs and tokens a model of this seed was trained on, and the largest gap among them."""
    seen = {"programs": 0, "program_tokens": 0, "largest_gap": 0, "practice_tokens": 0}
    for made, practice in training_batches(seed):
        seen["programs"] += len(made)
        seen["program_tokens"] += sum(len(programs.program_ids(program)) for program in made)
        seen["largest_gap"] = max([seen["largest_gap"], *(program.gap for program in made)])
        seen["practice_tokens"] += practice.numel()
    return seen


def count_programs(seed: int) -> KneserNey:
    """A 5-gram of the same programs and repeated tokens, up to the answers."""
    rows = [row for made, practice in training_batches(seed)
            for row in (*map(programs.program_ids, made), *practice.tolist())]
    return KneserNey(programs.program_tokenizer().vocab_size, order=ROWS["5-gram"]["order"]).fit(rows)


def counted_answers(counted: KneserNey, test: Sequence[Program]) -> dict[str, list[bool]]:
    """`answers_of` for a 5-gram."""
    ids = programs.program_tokenizer().ids
    said = {"right": [], "among": []}
    for program in test:
        *before, answer = programs.program_ids(program)
        probability = counted.next(before)
        candidates = [ids[candidate] for candidate in program.candidates]
        said["right"].append(int(probability.argmax()) == answer)
        said["among"].append(candidates[int(probability[candidates].argmax())] == answer)
    return said


def line(runs: list[dict]) -> str:
    """What the command prints: accuracy at each distance."""
    return "  ".join(f"{gap}: {100 * np.mean([run['test'][str(gap)]['accuracy'] for run in runs]):.0f}" for gap in DISTANCES)


SET = ResultSet("context", ROWS, settings, run, seeds=lambda row, asked: asked[:3] if row in FEW else asked, line=line)
