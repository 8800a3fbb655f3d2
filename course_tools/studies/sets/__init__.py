"""The result sets, one module for a file in data/results; to add one, write its module and name it here."""

from collections.abc import Iterable
from graphlib import TopologicalSorter

from course_tools.studies.runner import ResultSet
from course_tools.studies.sets import (
    ablations,
    bottleneck,
    code_baselines,
    code_completion,
    code_elsewhere,
    completion_speed,
    context,
    facts,
    fine_tuning,
    heads,
    hour,
    imdb_better,
    imdb_order,
    imdb_settings,
    induction,
    language_model,
    learning_curves,
    llama_changes,
    long_texts,
    luong_variants,
    multi30k,
    other_heads,
    partial_inputs,
    parts,
    pretrained,
    pretrained_vectors,
    prompting,
    reader,
    reader_maps,
    reader_more,
    reader_speed,
    reader_vectors,
    real_language_model,
    recurrent_attention,
    retrieval,
    scaling_laws,
    scoreboard,
    sentiment_axis,
    small_encoder,
    static_vectors,
    student,
    summaries_by_copying,
    t5,
    token_range,
    toy_parts,
    translation,
    translation_speed,
    tuning,
    which_data,
)

SETS: dict[str, ResultSet] = {
    module.SET.name: module.SET
    for module in (scoreboard, ablations, parts, toy_parts, facts, fine_tuning, heads, hour, token_range,
                   sentiment_axis, learning_curves, imdb_better, imdb_settings, imdb_order, language_model, code_baselines,
                   code_completion, code_elsewhere, completion_speed, llama_changes, context, induction, other_heads,
                   pretrained, pretrained_vectors, retrieval, small_encoder, static_vectors, which_data, student, reader,
                   reader_more, partial_inputs, reader_maps, reader_speed, reader_vectors, recurrent_attention,
                   bottleneck, luong_variants, translation, summaries_by_copying, translation_speed, multi30k, tuning, t5,
                   real_language_model, scaling_laws, prompting, long_texts)
}


def find_set(name: str) -> ResultSet:
    """The result set of this name. Raises ValueError that lists those there are."""
    if name not in SETS:
        raise ValueError(f"there is no set of runs called {name!r}; there are {', '.join(sorted(SETS))}")
    return SETS[name]


def in_order(names: Iterable[str]) -> list[str]:
    """The names of these sets, each after those whose runs it needs. Raises ValueError as `find_set` does."""
    sets = {name: find_set(name) for name in names}
    return [*TopologicalSorter({
        name: {need.made_by for need in one.depends_on if need.made_by in sets} - {name} for name, one in sets.items()
    }).static_order()]
