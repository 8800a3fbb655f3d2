"""How often the language model of notebook 13 has the right name first: a result set.

Writes data/results/code_completion.json, on the same names in the same held-out modules as code_baselines.json: the model by
itself, and together with the words of the file. Also bits per byte through shorter and shorter windows. (`code_elsewhere`
does this for code that isn't the library's.) It reads the committed models in data/checkpoints, and the sources of the
Python that runs, which must be the version of data/standard_library.json.

    python -m course_tools results code_completion [--seeds 0 1 2] --jobs 1
"""

import functools

import safetensors.torch

from course_tools.studies.code_data import code_ids, code_settings, code_texts
from course_tools.studies.code_names import (
    PLACES,
    SHORTEST,
    Drawn,
    combined,
    draw_names,
    rank_difference,
    ranks_of,
    summarised,
)
from course_tools.studies.code_scores import bits_by_module, bits_interval, token_nats
from course_tools.studies.file_words import words_in_file
from course_tools.studies.runner import ResultSet
from course_tools.studies.sets import code_baselines, language_model
from course_tools.studies.standard_library import library_fingerprint
from course_utils.completion import CodeCompleter
from course_utils.files import sha256
from course_utils.files.paths import CHECKPOINTS
from course_utils.results import fingerprint
from course_utils.training.saved_models import holds_model

PARTS = ("the language model", "the model and the words of the file")
LISTED = 10                                             # words of each list that are combined
WINDOWS = (8, 32, 128, 512)                             # tokens that the model sees: at most so many, at least half


def folder_of(seed: int):
    """The name of the committed model of a seed; the first has the name that `python -m course_utils complete` looks for."""
    return CHECKPOINTS / ("code" if seed == 0 else f"code-seed-{seed}")


def weights_of(name) -> str:
    """The SHA-256 of a model's weights, as a file without a header's words would have them."""
    return sha256(safetensors.torch.save(CodeCompleter.load(name).model.state_dict()))


@functools.cache
def settings() -> str:
    """What every run depends on: modules, names, how the models were trained."""
    return fingerprint(code_settings(), PLACES, SHORTEST, list(code_baselines.TYPED), language_model.settings(), LISTED,
                       WINDOWS)


def run(model: str, seed: int, state) -> dict:
    """Score one model; the names are the same for every seed."""
    completer = CodeCompleter.load(folder_of(seed))
    return {"library": library_fingerprint(), "weights": weights_of(folder_of(seed)),
            "parameters": sum(p.numel() for p in completer.model.parameters()), "seconds": 0,
            "test": {"names": names(completer, "test"),
                     "windows": {str(length): bits(completer, "test", length)["overall"] for length in WINDOWS}}}


def names(completer: CodeCompleter, split: str) -> dict:
    """Of the model, and of both together: how often the right name comes first, after one character typed and after two."""
    texts = code_texts(split)
    places = draw_names(texts, seed=0)

    @functools.lru_cache(maxsize=8)
    def model_words(text: str) -> tuple[str, ...]:
        return tuple(found.text for found in completer.complete(text, number=LISTED))

    def file_words(text: str) -> list[str]:
        return words_in_file(text)[:LISTED]

    methods = dict(zip(PARTS, (model_words, combined(model_words, file_words))))
    ranks: dict = {part: {typed: [] for typed in code_baselines.TYPED} for part in PARTS}
    for place in places:                                # all at one place, so that the model reads what is before it once
        for typed in code_baselines.TYPED:
            for part, complete in methods.items():
                ranks[part][typed] += ranks_of(complete, texts, [place], typed)
    alone = {typed: ranks_of(file_words, texts, places, typed) for typed in code_baselines.TYPED}
    return {part: {str(typed): summarised(found, places) | {"ahead": ahead(found, alone[typed], places)}
                   for typed, found in by_typed.items()} for part, by_typed in ranks.items()}


def ahead(ranks: list[int], alone: list[int], places: list[Drawn]) -> dict:
    """How much more often than by the words of the file alone the right name is first, or among five: [gain, low, high]."""
    return {f"top {top}": [round(number, 4) for number in rank_difference(ranks, alone, places, top)] for top in (1, 5)}


def bits(completer: CodeCompleter, split: str, length: int) -> dict:
    """Bits per byte of a split's modules through windows of `length` tokens, with an interval over modules."""
    texts = code_texts(split)
    nats = {path: float(token_nats(completer.model, ids, length, length // 2).double().sum())
            for path, ids in code_ids(split).items()}
    scored = bits_by_module(nats, texts)
    return {**scored, "interval": bits_interval(scored, texts)}


def line(runs: list[dict]) -> str:
    """How often the right name comes first."""
    return names_line(runs[0]["test"]["names"])


def names_line(found: dict) -> str:
    """What `names` returned, in short."""
    return "  ".join(f"{part}, {typed} typed: {100 * found[part][str(typed)]['all']['top 1'][0]:.1f} % first"
                     for part in PARTS for typed in code_baselines.TYPED)


SET = ResultSet(
    "code_completion", {"attention": {}}, settings, run,
    seeds=lambda row, asked: [seed for seed in asked if holds_model(folder_of(seed))], line=line,
)
