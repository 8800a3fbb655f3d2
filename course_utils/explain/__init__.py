"""Which words decided? Scores for the tokens of a text, and measures of whether to believe them.

Does: methods that score tokens (`attribution`: pooling weights, rollout, gradients, occlusion); agreement with marked
evidence, and faithfulness by taking tokens away (`faithfulness`); checks that shuffle, replace or re-randomise
(`perturbations`). Gradients come from the library captum. Does not: train, draw (see `course_utils.heatmaps`) or know
what the right words are.

    scored = score_texts(classifier, ["Nobody could call it dull."], "occlusion")[0]
    print(scored.tokens, scored.scores)                                    # one number for each token

Functions on batches take (model, token_ids, attention_mask) as the model does, and give padding the score 0.

Notebook 11 writes the shortest form of most of them; tests/test_explain_notebook.py holds the two equal.
"""

from course_utils.explain.attribution import (
    METHODS,
    Attribution,
    Counted,
    TokenScores,
    attention_times_gradient,
    count_words,
    gradient_times_input,
    integrated_gradients,
    integrated_gradients_with_gap,
    log_odds,
    occlusion,
    pooling_scores,
    rollout,
    rollout_scores,
    score_texts,
    token_logits,
)
from course_utils.explain.faithfulness import (
    REMOVALS,
    SHARES,
    Agreement,
    Interval,
    agreement,
    bootstrap_interval,
    comprehensiveness,
    evidence_flags,
    predicted_class,
    probability_of,
    remove,
    sufficiency,
    top_tokens,
)
from course_utils.explain.perturbations import (
    Adversarial,
    adversarial_weights,
    name_swaps,
    parts_from_output,
    permutation_effect,
    randomised,
    shuffled_words,
    swapped_words,
    unknown_words,
)

__all__ = ["Agreement", "evidence_flags", "agreement", "REMOVALS", "remove", "probability_of", "predicted_class",
           "occlusion", "SHARES", "top_tokens", "comprehensiveness", "sufficiency", "pooling_scores", "token_logits",
           "Interval", "bootstrap_interval", "rollout", "rollout_scores", "log_odds", "Attribution",
           "integrated_gradients_with_gap", "integrated_gradients", "gradient_times_input", "attention_times_gradient",
           "Counted", "count_words", "METHODS", "TokenScores", "score_texts", "permutation_effect", "Adversarial",
           "adversarial_weights", "parts_from_output", "randomised", "unknown_words", "shuffled_words", "swapped_words",
           "name_swaps"]
