"""What exercises 14.4 to 14.6 ask and say: half a block, pooling with the mask, an adapter's start. Answers: `answers`."""

import torch

from course_utils.exercises.definitions import Case, Exercise, Mistake, Property

from course_exercises.common import gap, spread
from course_exercises.n14 import probes

# ---------------------------------------------------------------- 14.4 half a block

def _vector(case: Case) -> str:
    got, right = (part.reshape(-1, part.shape[-1]) for part in (case.answer, case.expected))
    row, at = divmod(int((got - right).abs().argmax()), got.shape[-1])
    whose = "your first vector" if row == 0 else f"vector {row}, counted from 0,"
    return f"number {at} of {whose} is {got[row, at]:.4f}, expected {right[row, at]:.4f}."


def _spread(case: Case) -> str:
    """How the vector that is furthest off is spread, once gain and shift are taken off."""
    gain, shift = case.inputs[5:7]
    rows = [(part.reshape(-1, part.shape[-1]) - shift) / gain for part in (case.answer, case.expected)]
    i = int((rows[0] - rows[1]).abs().amax(dim=1).argmax())
    got, right = (row[i] for row in rows)
    return (f"with gain and shift taken off again, vector {i}, counted from 0, has the mean {got.mean():.3f} and the "
            f"standard deviation {got.std(correction=0):.3f}, expected {right.mean().abs():.3f} and "
            f"{right.std(correction=0):.3f}.")


def _not_normed(case: Case) -> bool:
    gain, shift = case.inputs[5:7]
    normed = (case.answer - shift) / gain
    return case.inputs[7] < 1e-3 and bool((normed.mean(-1).abs() > 1e-2).any())


HALF = Exercise(
    given="pre-norm", probes=probes.half_probes, observe=probes.observe_half,
    signature="second_half(x (…, d_model), expand (d_ff, d_model), expand_bias (d_ff), contract (d_model, d_ff), "
    "contract_bias (d_model), gain (d_model), shift (d_model), eps) -> (…, d_model)",
    mistakes=(
        Mistake("pre-norm", _spread, "The norm comes before the feed-forward layer, as in GPT-2 and in notebook 08. BERT "
                "is older: where does its block normalise?"),
        Mistake("norm-twice", _vector, "The norm at the end is right, but there's another before the feed-forward layer. A "
                "post-norm block has one in each half."),
        Mistake("final-norm-twice", _vector, "The sum is normalised twice. layer_norm has `gain` and `shift` in it already, "
                "so a second time multiplies and adds them again."),
        Mistake("norm-inside-the-sum", _spread, "You normalise what the layer made and add x afterwards. Post-norm means "
                "after the sum."),
        Mistake("no-norm", _spread, "There's no norm any more. It has moved, but it isn't gone."),
        Mistake("no-residual", _vector, "x is no longer added. Without the residual, deep stacks can't be trained, and "
                "these weights were trained with it."),
        Mistake("residual-after-the-norm", _spread, "The sum is normalised, and then x is added once more."),
        Mistake("residual-of-the-normed", _vector, "Both the layer and the residual take the normalised x. In a post-norm "
                "block they take x itself."),
        Mistake("norm-of-x-only", _spread, "Only x is normalised, and what the layer made is added to that. Normalise the "
                "sum."),
        Mistake("gelu-by-tanh", _vector, "The norm is where it should be, but that's the tanh approximation of GELU, as in "
                "GPT-2. The numbers differ in the third decimal, which nobody sees until they compare. Hugging Face's BERT, "
                "our judge, has F.gelu as it is."),
        Mistake("relu", _vector, "The nonlinearity is another one: you have ReLU. BERT's feed-forward layer uses GELU."),
        Mistake("no-activation", _vector, "There's nothing in between the two linear layers, so together they're one."),
        Mistake("eps-of-the-course", _vector, "The norm has an eps of its own, 1e-5. Pass on the one that you're given: "
                "with small vectors it matters."),
        Mistake("eps-of-the-paper", _vector, "The norm has an eps of its own, 1e-12, or none. BERT's is 1e-12, but your "
                "function is given one, which can be another."),
        Mistake("gain-and-shift-exchanged", _vector, "`gain` and `shift` have changed places: the normalised vector is "
                "multiplied by gain, and shift is added."),
        Mistake("shift-before-gain", _vector, "`shift` is added before `gain` is multiplied, so it's multiplied, too. The "
                "other order: normalised · gain + shift."),
        Mistake("gain-and-shift-left-out", _vector, "The vector is normalised and then returned as it is. Multiply it by "
                "`gain` and add `shift`."),
        Mistake("gain-left-out", _vector, "The vector is normalised and `shift` is added, but it isn't multiplied by `gain` "
                "before that."),
        Mistake("shift-left-out", _vector, "The vector is normalised and multiplied by `gain`, but `shift` isn't added."),
        Mistake("mean-left-in", _spread, "You divide by the root of the mean square and don't take the mean off first. "
                "That's RMS norm, which later models use. BERT's layer norm does both."),
        Mistake("one-more-than-gain", _vector, "You multiply by 1 + gain, as some other models do. BERT multiplies by "
                "`gain` itself."),
        Mistake("first-bias-left-out", _vector, "`expand_bias` isn't added before the GELU."),
        Mistake("second-bias-left-out", _vector, "`contract_bias` isn't added. The norm doesn't take it out again, since "
                "it's another number for each feature."),
        Mistake("gelu-by-sigmoid", _vector, "The norm is where it should be, but that's another GELU, x·sigmoid(1.702 x). "
                "BERT's is F.gelu as it is."),
        Mistake("silu", _vector, "The nonlinearity is SiLU, x·sigmoid(x). BERT's feed-forward layer uses GELU."),
        Mistake("gelu-twice", _vector, "There's a GELU after the second linear layer, too. Only one is in between the two."),
        Mistake("norm-over-the-text", _spread, "Mean and variance are taken over all positions of a text. Layer norm takes "
                "each vector for itself: the last dimension."),
        Mistake("variance-by-one-less", _vector, "Your variance is divided by d_model - 1. Layer norm divides by d_model."),
        Mistake("eps-outside-the-root", _vector, "You add eps to the standard deviation. It belongs inside the root, to the "
                "variance."),
    ),
    properties=(
        Property(_not_normed, _spread, "What leaves a post-norm block has just been normalised, so the mean should be 0 and "
                 "the standard deviation 1. Is each vector normalised for itself, over the last dimension, and does nothing "
                 "come after that but `gain` and `shift`?"),
        Property(lambda case: gap(case) > 1e-4, _vector, "In this order: expand, GELU, contract, add x, normalise; with the "
                 "eps that you're given."),
    ),
    hints=(
        "Which of the two sums is it: x + f(norm(x)), or norm(x + f(x))? Notebook 07 has both.",
        "Nothing else in the code is wrong. The feed-forward layer gets x itself.",
        "return layer_norm(x + F.linear(inner, contract, contract_bias), gain, shift, eps)",
    ),
)

# ---------------------------------------------------------------- 14.5 pooling with the mask

def _logit(case: Case) -> str:
    """The logit that is furthest off."""
    row, label = divmod(int((case.answer - case.expected).abs().argmax()), case.answer.shape[1])
    length, seq_len = int(case.inputs[2][row].sum()), case.inputs[2].shape[1]
    return (f"text {row}, with {length} of {seq_len} tokens real, gets the logit {case.answer[row, label]:.3f} for class "
            f"{label}, expected {case.expected[row, label]:.3f}.")


def _sums(case: Case) -> str:
    return f"your rows sum to {spread(case.answer.sum(dim=-1))}. {_logit(case)}"


def _in_front(case: Case) -> str:
    row = int((case.answer - case.expected).abs().amax(dim=-1).argmax())
    mask = ", ".join(str(bool(real)) for real in case.inputs[2][row])
    return f"text {row} has the mask [{mask}]. {_logit(case)[0].upper()}{_logit(case)[1:]}"


POOL = Exercise(
    probes=probes.pooling_probes,
    forbidden=("course_utils.embeddings.masked_mean", "course_utils.pretraining.BertClassifier"),
    signature="pooled_logits(encoder, token_ids (batch, seq_len), attention_mask (batch, seq_len), weight (classes, "
    "d_model), bias (classes)) -> logits (batch, classes)",
    not_finite={
        "inf": "You divide by 0: each text has at least one real token, where the mask is True.",
        "-inf": "If you fill padding with -inf, its mean is -inf: that's for scores in front of a softmax. In a sum, "
        "padding must be 0.",
        "NaN": "You divide 0 by 0, and each text has at least one real token, where the mask is True. Or padding is filled "
        "with -inf, which is for scores in front of a softmax: -inf times 0 is NaN. In a sum, padding must be 0."},
    mistakes=(
        Mistake("no-mask-for-the-encoder", _logit, "You average the right vectors, but the encoder read padding like words, "
                "so in a text with padding all of them are wrong. Give it the mask, too."),
        Mistake("no-mask-at-all", _logit, "The mask isn't used at all: the encoder reads padding like words, and then it's "
                "averaged like words. Both need the mask."),
        Mistake("padding-for-the-encoder", _logit, "You give the encoder the inverted mask, so it reads the padding and "
                "leaves out the words. In this course, True means a real token."),
        Mistake("no-mask", _logit, "Padding is averaged like words. A review would get another answer in a batch with "
                "longer ones than alone."),
        Mistake("mask-from-the-ids", _logit, "You take the mask from the ids. Which id is padding differs between "
                "vocabularies, and 0 may be a word: `attention_mask` says which tokens are real."),
        Mistake("the-encoder's-mask-from-the-ids", _logit, "The encoder's mask comes from the ids. Which id is padding "
                "differs between vocabularies, and 0 may be a word: `attention_mask` says which tokens are real."),
        Mistake("divided-by-all", _logit, "Padding is left out of the sum, but you divide by seq_len. The vector of a short "
                "text then shrinks with the padding."),
        Mistake("summed", _logit, "That's the sum of the real tokens. A longer text would get larger logits just for its "
                "length: divide."),
        Mistake("first-token", _logit, "You take the first token's vector. That's what BERT's pooler does; here the mean is "
                "asked for.", convention=True),
        Mistake("last-token", _logit, "You take the last real token's vector. A decoder is used like that, since only its "
                "last position has read everything. Here the mean is asked for.", convention=True),
        Mistake("largest", _logit, "You take the largest value of each feature. That's max pooling; the mean is asked for.",
                convention=True),
        Mistake("padding-alone", _logit, "You average the padding and leave the words out. True in the mask means a real "
                "token."),
        Mistake("whole-batch", _logit, "All texts get the same vector: you average over the whole batch. x[attention_mask] "
                "forgets which text a token is from."),
        Mistake("no-bias", _logit, "`bias` is missing from the logits."),
        Mistake("softmax-over-the-batch", _logit, "That's a softmax, and over the texts at that. The loss wants logits and "
                "takes the softmax over the classes itself."),
        Mistake("first-vectors", _in_front, "You take the first n vectors of a text, n being its number of real tokens. "
                "Padding can stand in front, so let the mask say which."),
        Mistake("one-divisor-for-all", _logit, "You divide by the number of real tokens in the whole batch. Each text has "
                "its own: .sum(dim=1)."),
        Mistake("one-more-in-the-divisor", _logit, "You divide by one more than there are real tokens. Each text has at "
                "least one, so 0 / 0 can't happen."),
        Mistake("without-the-first", _logit, "The first token's vector is left out. [CLS] counts as a real token: the mask "
                "is True there."),
        Mistake("tanh-of-the-mean", _logit, "There's a tanh, as in BERT's pooler. Here the mean goes straight into the "
                "linear layer."),
        Mistake("unit-length", _logit, "The mean is scaled to length 1, as it is for comparing sentences. Here it goes "
                "straight into the linear layer."),
        Mistake("probabilities", _sums, "Those are probabilities. The loss wants logits and takes the softmax itself."),
        Mistake("logits-averaged-with-padding", _logit, "You take the logits of every position first. A masked position "
                "then still adds the bias: mean first, or mask the logits."),
    ),
    properties=(
        Property(lambda case: case.inputs[2].all() and gap(case) > 1e-4, _logit, "There's no padding here: a mean over the "
                 "positions, times `weight` transposed, plus `bias`, and nothing else."),
        Property(lambda case: case.inputs[2][:, 0].all() and gap(case) > 1e-4, _logit, "Without padding your "
                 "numbers are right. Give the encoder the mask, sum the vectors where it's True, and divide by how many "
                 "there are in that text."),
        Property(lambda case: gap(case) > 1e-4, _in_front, "With padding behind the words your numbers are right. Here it's "
                 "in front: let the mask say which tokens count, not where they are."),
    ),
    hints=(
        "The mask is needed twice: x = encoder(token_ids, attention_mask) is the first time. What must not be in the mean?",
        "Multiply x by attention_mask[..., None], which is (batch, seq_len, 1), and padding becomes 0. Then divide by what?",
        "real = attention_mask[..., None].to(x.dtype); mean = (x * real).sum(dim=1) / real.sum(dim=1)",
    ),
)

# ---------------------------------------------------------------- 14.6 how an adapter starts

def _changed(case: Case) -> str:
    weight, rank = case.inputs
    count = f"{case.got['changed']:.0f} of the {weight.numel()}"
    return f"with rank {rank}, {count} numbers of up · down aren't 0, expected none."


def _learned(case: Case) -> str:
    rank, expected = int(case.learned), int(case.right["learned"])
    becomes = {probes.OVERFLOWED: "its numbers are infinite", probes.TOO_SMALL: "its numbers are still below 1e-14"}
    return (f"with rank {case.inputs[1]}, up · down is 0 at first, as it should be; after some training "
            f"{becomes.get(rank, f'it has rank {rank}, expected {expected}')}.")


def _shapes(case: Case) -> str:
    def written(named):
        return " and ".join(f"{name} ({', '.join(f'{n:.0f}' for n in named[name + chr(39) + 's shape'].tolist())})"
                            for name in ("down", "up"))
    return (f"for a weight {tuple(case.inputs[0].shape)} and rank {case.inputs[1]} you return {written(case.got)}; "
            f"expected {written(case.right)}.")


def _other_shapes(case: Case) -> bool:
    return any(not torch.equal(case.got[name], case.right[name]) for name in ("down's shape", "up's shape"))


ADAPTER = Exercise(
    probes=probes.adapter_probes, observe=probes.observe_adapter,
    forbidden=("course_utils.pretraining.LowRankAdapter",),
    signature="new_adapter(weight (d_out, d_in), rank) -> down (rank, d_in), up (d_out, rank)",
    mistakes=(
        Mistake("both-random", _changed, "The two matrices change the layer before anything is learned: training would "
                "begin with a spoilt model. One of the two must start at 0."),
        Mistake("both-zero", _learned, "Nothing can be learned: the gradient of each matrix is a product with the other, "
                "and both stay 0 for ever."),
        Mistake("ones", _changed, "Ones change the layer, and equal rows get equal gradients. One matrix should be 0 and "
                "the other random."),
        Mistake("all-rows-equal", _learned, "Where rows of down and columns of up start equal, they stay equal, and a row "
                "of zeros that meets a column of zeros gets no gradient. So the adapter would learn as if its rank were 1. "
                "Fill the whole of one matrix with random numbers."),
        Mistake("turned", _shapes, "Both are transposed. down maps d_in numbers to rank numbers, and nn.Linear keeps its "
                "matrices as (out, in)."),
        Mistake("up-first", _shapes, "The two have changed places: return down first, and then up."),
        Mistake("sizes-exchanged", _shapes, "d_in and d_out have changed places: `weight` is (d_out, d_in)."),
    ),
    properties=(
        Property(_other_shapes, _shapes, "down is (rank, d_in) and up (d_out, rank), so that up @ down has "
                 "the shape of the weight."),
        Property(lambda case: case.changed != 0, _changed, "The layer must compute at first what it did before: up @ down "
                 "is all zeros."),
        Property(lambda case: case.learned < case.right["learned"], _learned, "So the adapter would learn less than its "
                 "rank allows. Fill the whole of one matrix with random numbers that are neither too small nor too large."),
    ),
    hints=(
        "For up @ down to be 0, what's the simplest choice for one of them? May the other be 0, too?",
        "d_out, d_in = weight.shape. The random one may be divided by √d_in, so that it doesn't blow up its input.",
        "return torch.randn(rank, d_in) / d_in**0.5, torch.zeros(d_out, rank)",
    ),
)
