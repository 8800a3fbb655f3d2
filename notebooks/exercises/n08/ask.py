"""Exercises of notebook 08, the classifier. The answers stand beside it, in `answers`."""

import torch

from course_utils.exercises.definitions import Case, Exercise, Mistake, Property

from course_exercises.common import EACH_MAXIMUM, gap, largest_weight, listed, spread, worst_row
from course_exercises.n08 import probes
from course_exercises.n08.honest_score import SHARE

# ---------------------------------------------------------------- 8.1 several queries

def _on_padding(case: Case) -> torch.Tensor:
    """The largest weight on a position that is not real."""
    forbidden = ~case.inputs[2][:, None, :].expand(case.weights.shape)
    return case.weights[forbidden].abs().max()


def _sums(case: Case) -> torch.Tensor:
    """The sum of each query's weights, in the reviews that have a token."""
    return case.weights.sum(dim=-1)[case.inputs[2].any(dim=1)]


def _empty(case: Case) -> torch.Tensor:
    return ~case.inputs[2].any(dim=1)


def _weight_off(case: Case) -> str:
    got, right = case.weights, case.right["weights"]
    place = (got - right).abs().flatten().argmax().item()
    review, rest = divmod(place, got.shape[1] * got.shape[2])
    query, word = divmod(rest, got.shape[2])
    return (f"the weight of query {query} on word {word} of review {review} is {got[review, query, word]:.3f}, "
            f"expected {right[review, query, word]:.3f}.")


def _leak(case: Case) -> str:
    return f"a padding position gets a weight of {_on_padding(case):.3f}."


def _own_pooled(case: Case) -> torch.Tensor:
    return (case.weights @ case.inputs[1].double()).flatten(1)


def _shape(case: Case, name: str) -> str:
    return f"your {name} result has the shape {tuple(case.got[name].shape)}"


def _unfit(case: Case) -> str:
    count = {name: int((~torch.isfinite(value)).sum()) for name, value in case.got.items()}
    return f"{count['pooled']} numbers of the pooled vectors and {count['weights']} weights are NaN."


def _off(name: str):
    return lambda case: bool((case.got[name] - case.right[name]).abs().max() > 1e-3)


def _gradient(name: str):
    def seen(case: Case) -> str:
        got, right = case.got[name].abs().max(), case.right[name].abs().max()
        return f"outputs and weights are right, but the largest number of the {name} is {got:.3f}, expected {right:.3f}."
    return seen


def _query_sums(case: Case) -> str:
    return f"the weights of one query sum to {spread(_sums(case))} in reviews that have tokens."


QUERIES = Exercise(
    probes=probes.query_probes, observe=probes.observe_pooling,
    forbidden=("course_utils.attention.scaled_dot_product_attention",
               "course_utils.classifier.AttentionPooling", "torch.nn.functional.scaled_dot_product_attention",
               "torch.nn.functional.multi_head_attention_forward"),
    signature="pool_with_queries(queries (num_queries, d_model), x (batch, seq_len, d_model), attention_mask (batch, "
    "seq_len), True = real) -> pooled (batch, num_queries * d_model), weights (batch, num_queries, seq_len)",
    not_finite={
        "inf": "exp of a large score overflows. Fill with a large negative number, call softmax, and set the weights of the "
        "padding to 0 after it.",
        "-inf": "-inf belongs on scores, before a softmax. A weight is never below 0, and a mean of x needs weights.",
        "NaN": "A softmax over nothing but -inf gives that, and so does exp of a large score, which overflows, or a sum of "
        "0 to divide by. Fill with a large negative number, call softmax, and set the weights of the padding to 0 after "
        "it."},
    mistakes=(
        Mistake("nan", _unfit, "A review without a token has a row of -inf, and its softmax is 0 divided by 0. All other "
                "reviews are right. Fill with the lowest finite number, and look at what that row holds then."),
        Mistake("uniform", _leak, "It is the review without a token: with one low number everywhere, softmax sees equal "
                "scores. All other reviews are right. Set the weights of the padding to zero afterwards as well."),
        Mistake("ignored", _leak, "The mask has no effect. If you call masked_fill, keep what it returns."),
        Mistake("mask-after-softmax", lambda case: f"the weights of a review sum to {spread(_sums(case))}.",
                "The mask comes after the softmax, when padding has taken its share. It belongs on the scores, before."),
        Mistake("filled-with-zero", _leak, "The padding's score is 0, and e⁰ = 1 is as much as an indifferent word has "
                "(section 1). Its score must be far below all others."),
        Mistake("zero-then-removed", lambda case: f"the weights of a review sum to {spread(_sums(case))}.",
                "The padding's score is set to 0, takes its share of the softmax (e⁰ = 1), and is removed afterwards. Put "
                "-inf or a number like -1e9 in place of the 0."),
        Mistake("inverted", lambda case: f"{_leak(case)} Real words get "
                f"{case.weights[case.inputs[2][:, None].expand(case.weights.shape)].max():.3f} at most.",
                "The mask is the wrong way round: True means real, so fill where it is False."),
        Mistake("no-scaling", largest_weight, "The scores are not divided by √d_model."),
        Mistake("divided-by-d", largest_weight, "The scores are divided by d_model itself; it is its root."),
        Mistake("scaled-by-length", largest_weight, "You take the root of the number of words. But it is the width of the "
                "vectors that makes scores large (notebook 04, section 4)."),
        Mistake("softmax-over-queries", lambda case: f"the weights of one query sum to {spread(_sums(case))} over the "
                f"words, and those of one word to {spread(case.weights.sum(dim=1))} over the queries.",
                "The softmax runs over the queries. Each query divides a total of 1 among the words: the last dimension."),
        Mistake("averaged", lambda case: f"{_shape(case, 'pooled')}: the queries' vectors are averaged.",
                "What each query found is mixed, and the output layer cannot separate it again. Put them side by side."),
        Mistake("summed", lambda case: f"{_shape(case, 'pooled')}: the queries' vectors are added.",
                "What each query found is mixed, and the output layer cannot separate it again. Put them side by side."),
        Mistake("not-joined", lambda case: f"{_shape(case, 'pooled')}, expected {tuple(case.right['pooled'].shape)}.",
                "All numbers are right. The output layer wants one vector for each review: join the last two dimensions."),
        Mistake("interleaved", lambda case: f"the second number of your first pooled vector is {case.pooled[0, 1]:.3f}, "
                f"expected {case.right['pooled'][0, 1]:.3f}.", "The numbers are right but in a different order: first "
                "column of all queries, second column of all queries, … Each query's vector should stay in one piece."),
        Mistake("plain-means", largest_weight, "Each query gives all words the same weight. Where do the scores come in?"),
        Mistake("detached", _gradient("gradient for the queries"), "The weights are cut off from the queries, by detach(), "
                ".data, no_grad() or numpy. The queries would never be trained."),
        Mistake("swapped", lambda case: f"you return the shapes {tuple(case.pooled.shape)} and {tuple(case.weights.shape)}.",
                "The two are the wrong way round: return pooled, weights."),
    ),
    properties=(
        Property(lambda case: (case.weights < -1e-6).any(), lambda case: f"{int((case.weights < 0).sum())} of your weights "
                 "are negative.", "Weights come out of a softmax and are positive."),
        Property(lambda case: _on_padding(case) > 1e-5, _leak, "Positions where the mask is False get no weight, in every "
                 "review, the empty one included."),
        Property(lambda case: len(_sums(case)) and _sums(case).min() < 1e-5, _query_sums, "Nothing is left for the real "
                 "words where their scores are very low, or far below those of the padding. softmax copes with both, if the "
                 "padding's scores are masked before it."),
        Property(lambda case: (_sums(case) - 1).abs().max() > 1e-3, _query_sums, "They sum to one over the real words. "
                 "Print weights.sum(dim=-1) after each step: right after a softmax over the last dimension it is one, and "
                 "taking padding away must not change it."),
        Property(lambda case: _empty(case).any() and case.pooled[_empty(case)].abs().max() > 1e-5, lambda case:
                 f"the review without a token is pooled to numbers up to {case.pooled[_empty(case)].abs().max():.3f}.",
                 "There is nothing in it: zeros."),
        Property(_off("weights"), _weight_off, "Rows sum to one and padding gets nothing, but the weights do not come from "
                 "query · word / √d_model, each query's own."),
        Property(lambda case: (_own_pooled(case) - case.pooled).abs().max() > 1e-3, lambda case:
                 "the weights are right. Your pooled vectors are not the means of x with these weights, query after query: "
                 f"they differ by up to {(_own_pooled(case) - case.pooled).abs().max():.3f}.", "pooled = weights @ x, and "
                 "then only the shape changes."),
        Property(_off("gradient for the queries"), _gradient("gradient for the queries"), "Something on the way from the "
                 "queries to the result is cut off (detach, .data, no_grad, numpy) or computed twice."),
        Property(_off("gradient for x"), _gradient("gradient for x"), "The words enter twice, in the scores and in the "
                 "means; one of the two ways is cut off."),
    ),
    hints=(
        "Name the shapes first: scores and weights are (batch, num_queries, seq_len). Which product gives that?",
        "queries @ x.transpose(1, 2) has the right shape by broadcasting; the mask needs a dimension in the middle, as in "
        "section 1.",
        "-inf makes NaN of a review without tokens. Fill with torch.finfo(scores.dtype).min, take the softmax, and set the "
        "weights of the padding to 0.",
        "weights @ x is (batch, num_queries, d_model). flatten(start_dim=1) puts the queries side by side.",
    ),
)

# ---------------------------------------------------------------- 8.2 the forward pass

def _logits(case: Case) -> str:
    """The logits of the review that is furthest off."""
    i = worst_row(case, "logits")
    return (f"the logits of review {i}, counted from 0, are {listed(case.logits[i])}, expected "
            f"{listed(case.right['logits'][i])}.")


def _moved(case: Case) -> float:
    """How far the logits move when only the padding's ids change."""
    return (case.logits - case.got["logits with other padding"]).abs().max().item()


def _padding_moves(case: Case) -> str:
    return f"other ids at the padding move your logits by up to {_moved(case):.3f}."


def _no_gradient(case: Case) -> str:
    got, right = (named["gradient for the word vectors"].abs().max() for named in (case.got, case.right))
    return f"the logits are right, but the largest gradient of a word vector is {got:.3f}, expected {right:.3f}."


FORWARD = Exercise(
    probes=probes.forward_probes, observe=probes.observe_forward,
    signature="forward(parts, token_ids (batch, seq_len), attention_mask (batch, seq_len), True = real) -> "
    "logits (batch, num_classes)",
    mistakes=(
        Mistake("no-scale", _logits, "Word vectors are used as they are stored. Before anything else they are multiplied by "
                "`parts.scale`."),
        Mistake("scale-after-positions", _logits, "The positions were multiplied as well. The scale belongs to the word "
                "vectors alone, so it comes before the positions are added."),
        Mistake("no-positions-added", _logits, "Models whose positions are added to the word vectors don't get them. "
                "Rotary ones add nothing, so you wouldn't see it with them."),
        Mistake("no-bias", _logits, "It happens with ALiBi, whose positions are a bias on the scores: ask "
                "`parts.positions.bias` for it, and hand it to the encoder."),
        Mistake("no-rotation", _logits, "It happens with rotary positions, which turn queries and keys inside the "
                "attention: hand `parts.positions.rotate` to the encoder."),
        Mistake("encoder-without-mask", _padding_moves, "Inside the encoder real words attend to padding. It needs the mask "
                "too, in the form (batch, 1, 1, seq_len) that `padding_mask` gives."),
        Mistake("encoder-mask-inverted", _logits, "In the encoder the mask is the wrong way round, so words attend to the "
                "padding alone. True means that a position may be attended to."),
        Mistake("no-encoder", _logits, "The words never meet: the vectors go from the positions to the pooling, past the "
                "encoder."),
        Mistake("pooling-counts-padding", _padding_moves, "The encoder is right, but the pooling treats padding as words. "
                "It wants the mask as its second argument."),
        Mistake("mean", _logits, "This is the mean of the real words. The learned query of `parts.pooling` is never asked."),
        Mistake("plain-mean", _padding_moves, "This is the mean of all positions, padding included. `parts.pooling` weighs "
                "the words by its query and leaves the padding out."),
        Mistake("first-word", _logits, "Only the first position reaches the output layer. BERT does that with a token made "
                "for it; here `parts.pooling` collects from all words."),
        Mistake("last-position", _logits, "Only the last position reaches the output layer. In a padded review that isn't "
                "even a word. `parts.pooling` collects from all of them."),
        Mistake("probabilities", lambda case: f"your first row is {listed(case.logits[0])}, and it sums to one.",
                "These are probabilities. `cross_entropy` does the softmax itself and wants the logits (Common mistakes)."),
        Mistake("detached", _no_gradient, "Something cuts the result off from the parameters: detach(), .data, no_grad() or "
                "numpy. Such a model could never be trained."),
    ),
    properties=(
        Property(lambda case: (case.logits.sum(dim=-1) - 1).abs().max() < 1e-4, lambda case: f"your first row is "
                 f"{listed(case.logits[0])}, and every row sums to one.", "That looks like a softmax at the end. Return "
                 "what the output layer gives."),
        Property(lambda case: _moved(case) > 1e-4, _padding_moves, "Padding must not matter. Two parts need the mask: the "
                 "encoder and the pooling, each in its own shape."),
        Property(lambda case: (case.logits - case.right["logits"]).abs().max() > 1e-3, _logits, "Padding doesn't matter, as "
                 "it should. Compare with the diagram, arrow by arrow: what goes into each part, and in which order?"),
        Property(lambda case: gap(case, "gradient for the word vectors") > 1e-3, _no_gradient,
                 "Some way from the word vectors to the logits is cut off, by detach(), .data, "
                 "no_grad() or numpy."),
    ),
    hints=(
        "Follow the diagram from the left: look up, scale, add positions, encode, pool, output. What shape is x after each?",
        "Five lines do it. The encoder takes four things: x, padding_mask(attention_mask), the bias, and the rotation.",
        "x = parts.positions.add(parts.embedding(token_ids) * parts.scale). Then parts.encoder(...).x",
        "pooled, _ = parts.pooling(x, attention_mask), and the logits are parts.output(pooled).",
    ),
)

# ---------------------------------------------------------------- 8.3 repair: a loss that stays high

def _loss_seen(case: Case) -> str:
    return f"your loss is {case.loss.item():.4f}, expected {case.right['loss'].item():.4f}."


def _gradient_off(case: Case) -> str:
    """The place where the gradient for the logits is furthest from the right one."""
    got, right = case.got["gradient for the logits"], case.right["gradient for the logits"]
    review, label = divmod(int((got - right).abs().argmax()), got.shape[1])
    return (f"both results are right, but the gradient for the logit of class {label} in review {review} is "
            f"{got[review, label]:.3f}, expected {right[review, label]:.3f}.")


def _row_sums(case: Case) -> str:
    sums = case.probabilities.sum(dim=-1)
    return f"a row of your probabilities sums to {sums[(sums - 1).abs().argmax()]:.3f}."


def _largest_probability(case: Case) -> str:
    return (f"the loss is right; your largest probability is {case.probabilities.max():.3f}, expected "
            f"{case.right['probabilities'].max():.3f}.")


def _loss_right(case: Case) -> str:
    return f"the loss is right, but {_row_sums(case)}"


LOSS = Exercise(
    given="softmax-first", probes=probes.loss_probes, observe=probes.observe_loss,
    signature="loss_and_probabilities(logits (batch, num_classes), labels (batch)) -> mean loss, probabilities (batch, "
    "num_classes)",
    not_finite={
        "inf": "A very small probability is rounded to 0, and its logarithm is -inf, or exp of a large logit overflows. "
        "Start from the logits: log_softmax or cross_entropy never forms that 0.",
        "-inf": "A very small probability is rounded to 0, and its logarithm is -inf; the loss is minus the logarithm. "
        "Start from the logits: log_softmax or cross_entropy never forms that 0. " + EACH_MAXIMUM,
        "NaN": "exp of a large logit overflows, and infinity divided by infinity is NaN. softmax, log_softmax and "
        "cross_entropy subtract the largest logit of each row first."},
    mistakes=(
        Mistake("softmax-first", _loss_seen, "cross_entropy takes logits and does its own softmax. It gets probabilities "
                "here: numbers from 0 to 1, too close together for it ever to be sure."),
        Mistake("no-probabilities", _loss_right, "You return the logits as they are. Probabilities are their softmax; only "
                "cross_entropy must not get them."),
        Mistake("logarithms-returned", _loss_right, "You return the logarithms of the probabilities; take exp, or softmax "
                "in place of log_softmax."),
        Mistake("softmax-over-reviews", _loss_right, "The softmax runs over the reviews of the batch. The "
                "probabilities of each "
                "review's classes sum to one: dim=-1."),
        Mistake("nll-of-probabilities", _loss_seen, "nll_loss takes logarithms of probabilities. Given probabilities, it "
                "returns minus the mean probability of the right label, which is no logarithm at all."),
        Mistake("nll-of-logits", _loss_seen, "nll_loss takes logarithms of probabilities, and gets logits here. "
                "cross_entropy is the one that takes logits."),
        Mistake("summed", _loss_seen, "That is the sum over the batch. A mean is asked for; with a sum, the step would grow "
                "with the batch."),
        Mistake("cut", lambda case: "both results are right, but the largest number of the gradient for the logits is "
                f"{case.got['gradient for the logits'].abs().max():.3f}.", "The loss is cut off from the model, by item(), "
                "detach() or no_grad(). Return it as cross_entropy gave it; call item() where it is printed."),
        Mistake("softmax-twice-returned", _largest_probability, "The probabilities went through softmax twice."),
        Mistake("sigmoid", _loss_right, "A sigmoid looks at each class by itself. The classes exclude each other: softmax."),
        Mistake("swapped", lambda case: f"your first result has the shape {tuple(case.loss.shape)}.",
                "The two are the wrong way round: the loss first, then the probabilities."),
    ),
    properties=(
        Property(lambda case: case.right["loss"] < 20 and (case.loss - case.right["loss"]).abs() > 1e-3, _loss_seen,
                 "It should be minus the logarithm of the right label's probability, averaged over the reviews (notebook "
                 "03, section 5)."),
        Property(lambda case: case.loss < 0.9 * case.right["loss"], _loss_seen, "Other losses are right; this one is for a "
                 "review where the model is sure of the wrong class. A small number added before the logarithm, or a clamp, "
                 "puts an upper limit on the loss. Take it from the logits: cross_entropy, or log_softmax and nll_loss."),
        Property(lambda case: (case.loss - case.right["loss"]).abs() > 1e-3, _loss_seen, "The other losses are right. Here "
                 "the model is sure of the wrong class: take the loss from the logits."),
        Property(lambda case: (case.probabilities.sum(dim=-1) - 1).abs().max() > 1e-3, _loss_right,
                 "Each review's probabilities sum to one."),
        Property(lambda case: (case.probabilities - case.right["probabilities"]).abs().max() > 1e-3, _largest_probability,
                 "They are the softmax of the logits."),
        Property(_off("gradient for the logits"), _gradient_off, "Part of the way from the logits to the loss is cut off "
                 "(detach, .data, no_grad, item) or counted twice."),
    ),
    hints=(
        "Between which two numbers lies everything that cross_entropy gets here? What is its loss at best?",
        "Look up what F.cross_entropy expects as its first argument.",
        "cross_entropy does the softmax itself: give it the logits.",
    ),
)

# ---------------------------------------------------------------- 8.4 sure and wrong

def _value(case: Case) -> str:
    return f"{case.answer.item():.4g}:"


SURE = Exercise(
    kind="number", tolerance=4e-3,
    signature="a number: the mean cross-entropy over the 100 reviews, with the natural logarithm",
    mistakes=(
        Mistake("swapped", lambda case: f"{_value(case)} you have 45 right and 55 wrong.", "It's the other way round: 55 "
                "reviews have the right class at 0.9."),
        Mistake("only-wrong-ones", lambda case: f"{_value(case)} that is what the wrong reviews contribute.",
                "The right ones cost little, but not nothing: minus ln 0.9 each."),
        Mistake("only-right-ones", lambda case: f"{_value(case)} that is what the right reviews contribute.",
                "The other 45 pay too, and much more: what probability did their true class get?"),
        Mistake("not-weighted", lambda case: f"{_value(case)} that is halfway between a right and a wrong review.",
                "There are 55 of one and 45 of the other."),
        Mistake("mean-first", lambda case: f"{_value(case)} you averaged the probabilities and then took the logarithm.",
                "The loss is the mean of the logarithms. That is what makes a confident mistake so expensive: it is "
                "not averaged "
                "out first."),
        Mistake("accuracy-as-probability", lambda case: f"{_value(case)} that is minus ln 0.55.",
                "0.55 is how often it is right. The loss asks what probability it gave to the true class: 0.9 or 0.1."),
        Mistake("sure-of-the-right-one", lambda case: f"{_value(case)} that is one review that it gets right.",
                "The 45 that it gets wrong cost more. Take the mean over all 100."),
        Mistake("one-wrong-review", lambda case: f"{_value(case)} that is one review that it gets wrong.",
                "Take the mean over all 100."),
        Mistake("base-two", lambda case: f"{_value(case)} that is in bits, with the logarithm to base 2.",
                "cross_entropy uses the natural logarithm: guessing costs 0.693, not 1."),
        Mistake("base-ten", lambda case: f"{_value(case)} that is with the logarithm to base 10.",
                "cross_entropy uses the natural logarithm, ln: guessing costs 0.693, not 0.301."),
        Mistake("not-divided", lambda case: f"{_value(case)} that is the sum over 100 reviews.", "Divide by 100."),
        Mistake("minus", lambda case: f"{_value(case)} the sign is missing.", "Logarithms of numbers below one are "
                "negative; the loss is minus that."),
        Mistake("coin", lambda case: f"{_value(case)} that is ln 2, the loss of guessing.", "Guessing gives each "
                "class 0.5. This "
                "model gives 0.9 to one of them, even when it is wrong."),
    ),
    properties=(
        Property(lambda case: case.answer < 0, lambda case: f"{_value(case)} it is below zero.",
                 "A loss of this kind never is: minus the logarithm of a number below one."),
        Property(lambda case: case.answer > 2.31, lambda case: f"{_value(case)} that is more than a single wrong review "
                 "costs, minus ln 0.1.", "A mean cannot exceed its largest part."),
        Property(lambda case: case.answer < 0.105, lambda case: f"{_value(case)} that is less than a single right review "
                 "costs, minus ln 0.9.", "A mean cannot be below its smallest part."),
        Property(lambda case: abs(case.answer - case.expected) < 0.03, lambda case: f"{_value(case)} that is close.",
                 "Keep three decimals on the way, and round at the end."),
    ),
    hints=(
        "There are two kinds of review: in one the true class has the probability 0.9, in the other 0.1.",
        "minus ln 0.9 is 0.105, and minus ln 0.1 is 2.303.",
        "0.55 times the first and 0.45 times the second.",
    ),
)


EXERCISES = (QUERIES, FORWARD, LOSS, SURE, SHARE)
