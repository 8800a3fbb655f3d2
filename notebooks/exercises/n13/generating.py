"""What exercises 13.3 to 13.5 ask and say: top-p, a step with the cache, how far back a model looks. Answers: `answers`."""

import torch

from course_utils.exercises.definitions import Case, Exercise, Mistake, Property

from course_exercises.common import EACH_MAXIMUM, gap
from course_exercises.n13 import probes

# ---------------------------------------------------------------- 13.3 top-p

def _is_kept(case: Case) -> torch.Tensor:
    return case.answer.nan_to_num() > 0


def _keeps(case: Case) -> str:
    """How many tokens are kept, and what they add up to in the distribution that was given."""
    probabilities, p = case.inputs
    kept = _is_kept(case)
    if not kept.any():
        return f"with p = {p:g} you keep no token at all."
    count = int(kept.sum())
    total = probabilities[kept].sum()
    right = int((case.expected > 0).sum())
    return (f"with p = {p:g} you keep {count} token{'s' * (count != 1)}, {total:.3f} of the probability. It should be "
            f"{right} token{'s' * (right != 1)}.")


def _sums(case: Case) -> str:
    return f"with p = {case.inputs[1]:g} your numbers sum to {case.answer.sum():.3f}."


def _wrong_token(case: Case) -> str:
    """A kept token that's less probable than one that was dropped, or only the first that is off."""
    probabilities, kept = case.inputs[0], _is_kept(case)
    if kept.any() and not kept.all():
        low, high = probabilities.masked_fill(~kept, 2).argmin(), probabilities.masked_fill(kept, -1).argmax()
        if probabilities[low] < probabilities[high]:
            return (f"you keep id {int(low)}, with probability {probabilities[low]:.3f}, and drop id {int(high)}, with "
                    f"{probabilities[high]:.3f}.")
    at = int((case.answer.nan_to_num() - case.expected).abs().argmax())
    return (f"id {at}, with probability {probabilities[at]:.3f}, gets {case.answer[at]:.3f}, expected "
            f"{case.expected[at]:.3f}.")


def _misplaced(case: Case) -> bool:
    """Whether as many tokens are kept as should be, but less probable ones."""
    kept = _is_kept(case)
    return int(kept.sum()) == int((case.expected > 0).sum()) and case.inputs[0][kept].sum() < (
        case.inputs[0][case.expected > 0].sum() - 1e-6)


def _ratio_off(case: Case) -> bool:
    """Whether kept tokens aren't in proportion to what they were."""
    kept = _is_kept(case)
    ratios = case.answer[kept] / case.inputs[0][kept]
    return bool(kept.any()) and (ratios.max() - ratios.min()).item() > 1e-3 * ratios.max().item()


def _never_reaches(case: Case) -> bool:
    """Whether rounding leaves the sum of all probabilities below p."""
    probabilities, p = case.inputs
    return bool(probabilities.sum() < p)


def _crossing(case: Case) -> bool:
    """Whether the tokens that are kept add up to less than p."""
    probabilities, p = case.inputs
    return probabilities[_is_kept(case)].sum().item() < p - 1e-4


NUCLEUS = Exercise(
    probes=probes.nucleus_probes, observe=probes.observe_nucleus,
    forbidden=("course_utils.language_model.sampling_probabilities",),
    signature="nucleus(probabilities (vocab,), p) -> probabilities (vocab,)",
    not_finite={
        "inf": "That's a division by 0: no token was kept, and the most probable one always stays, even if it alone has "
        "more than p.",
        "-inf": "-inf hides a token among logits. These are probabilities, so what is left out gets 0.",
        "NaN": "That's 0 / 0: no token was kept, and the most probable one always stays, even if it alone has more than p."},
    mistakes=(
        Mistake("cut-early", _keeps, "You cut one token early: the one that crosses p belongs to the nucleus. Where the "
                "first token alone has more than p, nothing is left at all."),
        Mistake("cut-early-one-stays", _keeps, "You cut one token early. That the first always stays is right, but so does "
                "the token with which the sum reaches p."),
        Mistake("cut-early-unless-exact", _keeps, "You cut one token early, except where the sum is exactly p. Look at what "
                "came before a token, not at the sum that includes it."),
        Mistake("cut-early-unless-exact-one-stays", _keeps, "The first token stays, as it should, and an exact sum is "
                "right. Otherwise you cut one token early: the token that crosses p belongs to the nucleus."),
        Mistake("one-too-many", _keeps, "You cut one token late. Once the sum has reached p, nothing more is added."),
        Mistake("one-too-many-if-exact", _keeps, "Here the sum is exactly p, and you go on until it's above. Many programs "
                "do. The question asks for p or more, so that's enough: look at what your comparison does when both sides "
                "are equal.", convention=True),
        Mistake("not-renormalised", _sums, "The right tokens are left. What you draw from must sum to one again."),
        Mistake("divided-by-p", _sums, "You divide by p. The tokens that are left add up to p or more: divide by their "
                "sum."),
        Mistake("softmax-at-the-end", _wrong_token, "The right tokens are left, but a softmax of probabilities makes them "
                "nearly equal. To sum to one again they only need to be divided by their sum."),
        Mistake("softmax-over-zeros", _keeps, "You set the others to 0, but then a softmax brings them back, since e⁰ is 1. "
                "What's left only needs to be divided by its sum."),
        Mistake("last-one-trimmed", _wrong_token, "You trim the token that crosses p, so that the sum is exactly p. It "
                "belongs to the nucleus with its whole probability."),
        Mistake("sorted-order", _wrong_token, "Your numbers are in sorted order, the largest first. Each must go back to "
                "the id it came from: the second result of sort() says which that is."),
        Mistake("order-applied-twice", _wrong_token, "You index with the order of the sort a second time, which doesn't "
                "undo it. To put numbers back, assign: kept[ids] = …, or use scatter."),
        Mistake("not-sorted", _wrong_token, "You add up in the order of the ids. The nucleus takes the most probable tokens "
                "first: sort before you add."),
        Mistake("least-probable-first", _wrong_token, "You start from the least probable token. Sort with "
                "descending=True."),
        Mistake("threshold", _keeps, "You compare each probability with p. p is a bound for their sum: in a flat "
                "distribution no token reaches it alone, and many are kept together."),
        Mistake("share-of-the-largest", _keeps, "You keep what has at least p times the largest probability. That rule "
                "exists and is called min-p. Top-p looks at the sum."),
        Mistake("share-of-the-tokens", _keeps, "You keep a fraction p of the tokens, however probable they are. That is a "
                "top-k. In top-p the number of tokens depends on how sure the model is."),
        Mistake("ties-higher-id", _wrong_token, "Of equally probable tokens you take the one with the higher id. That isn't "
                "worse, but the question asks for the lower one, so that everyone gets the same.", convention=True),
        Mistake("ties-all", _keeps, "You keep all tokens that are as probable as the last one of the nucleus. Some "
                "libraries do; the question asks for as few tokens as possible, and the lower id first.", convention=True),
    ),
    properties=(
        Property(lambda case: case.answer.min() < -1e-6, lambda case: f"one of your numbers is {case.answer.min():.3f}.",
                 "Probabilities aren't negative; what is outside the nucleus gets 0."),
        Property(_misplaced, _wrong_token, "You keep the right number of tokens, but not the most probable ones. If you "
                 "sorted: does each number go back to the id it came from?"),
        Property(lambda case: _crossing(case) and not _never_reaches(case), _keeps, "These don't reach p: you "
                 "cut too early. The token that crosses p is the last to stay."),
        Property(lambda case: _never_reaches(case) and not _is_kept(case).all(), _keeps, "The running sum never "
                 "reaches p here: rounding leaves it a little below 1. So a search for the first place where it does "
                 "finds none (argmax then gives 0). Look at what came before each token: less than p for all that stay."),
        Property(lambda case: (case.answer.sum() - 1).abs() > 1e-3, _sums, "Divide what is left by its own sum."),
        Property(lambda case: int(_is_kept(case).sum()) > int((case.expected > 0).sum()), _keeps, "That's more than "
                 "needed: take the most probable tokens, one at a time, and stop as soon as the sum reaches p."),
        Property(lambda case: not torch.equal(_is_kept(case), case.expected > 0), _wrong_token, "The nucleus has the most "
                 "probable tokens, each at its own id."),
        Property(_ratio_off, _wrong_token, "The right tokens are left, but no longer in proportion: all of them are divided "
                 "by the same sum."),
    ),
    hints=(
        "Sort first, and keep the ids. For each token, how much probability came before it? Print the two columns.",
        "ordered.cumsum(0) - ordered is what came before. A token stays as long as that is less than p; the first always "
        "does.",
        "kept = torch.zeros_like(probabilities); kept[ids] = ordered * (ordered.cumsum(0) - ordered < p); return "
        "kept / kept.sum()",
    ),
)

# ---------------------------------------------------------------- 13.4 a step with the cache

def _past(case: Case) -> int:
    return case.inputs[3].shape[-2]


def _context_off(case: Case) -> str:
    got, right = case.context, case.right["context"]
    at = tuple((got - right).abs().nan_to_num().eq((got - right).abs().nan_to_num().max()).nonzero()[0].tolist())
    place = ", ".join(str(i) for i in at)
    return f"after {_past(case)} cached tokens, context[{place}] is {got[at]:.3f}, expected {right[at]:.3f}."


def _new_key(named: dict) -> torch.Tensor:
    return named["keys"][0, 0, -1]


def _key_off(case: Case) -> str:
    got, right = _new_key(case.got)[0], _new_key(case.right)[0]
    return f"after {_past(case)} cached tokens, the new key begins with {got:.3f}, expected {right:.3f}."


def _position(case: Case) -> int | None:
    """The position to which the new key was rotated, if it's one near the right one."""
    key, rotate = case.inputs[1], case.inputs[5]
    for position in range(_past(case) + 20):
        if torch.allclose(rotate(key, position).double(), case.keys[..., -1:, :], atol=1e-4):
            return position
    return None


def _at_position(case: Case) -> str:
    position = _position(case)
    if position == 0:
        return f"{_key_off(case)} The key that you return isn't rotated."
    texts = " len(past_keys) is the number of texts." if position == len(case.inputs[3]) else ""
    return f"after {_past(case)} cached tokens, your new key is at position {position}.{texts}"


def _first_key_off(case: Case) -> str:
    at = int((case.keys - case.right["keys"]).abs().amax(dim=(0, 1, 3)).gt(1e-4).nonzero()[0])
    return (f"counted from 0, key {at} of your {case.keys.shape[-2]} begins with {case.keys[0, 0, at, 0]:.3f}, expected "
            f"{case.right['keys'][0, 0, at, 0]:.3f}.")


def _returned(case: Case) -> str:
    return (f"keys that you return: {case.keys.shape[-2]}, values: {case.got['values'].shape[-2]}, expected "
            f"{_past(case) + 1} of each.")


def _axis(case: Case) -> str:
    return f"torch.cat joins past and new along dimension {case.keys}, counted from 0, and stops: the other sizes differ."


def _gap(part: str):
    return lambda case: gap(case, part) > 1e-4


def _outside(case: Case) -> bool:
    """Whether the context lies outside what a mean of the values can be."""
    values = case.right["values"]
    low, high = values.amin(-2, keepdim=True), values.amax(-2, keepdim=True)
    return bool(((case.context < low - 1e-3) | (case.context > high + 1e-3)).any())


CACHE = Exercise(
    probes=probes.step_probes, observe=probes.observe_step,
    signature="cached_step(query (batch, heads, 1, d_head), key (batch, heads, 1, d_head), value (batch, heads, 1, d_head), "
    "past_keys (batch, heads, past, d_head), past_values (batch, heads, past, d_head), rotate) -> context (batch, heads, 1, "
    "d_head), keys (batch, heads, past + 1, d_head), values (batch, heads, past + 1, d_head)",
    not_finite={
        "inf": f"exp of a large score overflows: call softmax. {EACH_MAXIMUM} In keys and values nothing is infinite.",
        "-inf": "-inf belongs on scores, before a softmax, and here no mask is needed: nothing lies in the future.",
        "NaN": "A softmax over nothing but -inf gives that, or one over no keys: with an empty cache the new token still "
        f"sees itself. {EACH_MAXIMUM}"},
    mistakes=(
        Mistake("no-positions", _key_off, "This is a cache without positions: every new token is treated as if it were at "
                "position 0, because nothing is rotated, or with offset 0. How many tokens come before this one?"),
        Mistake("query-without-position", _context_off, "The keys are right. The query was left at position 0, so "
                "every distance is wrong. It belongs to the same token as the new key."),
        Mistake("key-without-position", _key_off, "The query is rotated to its position. The new key is still at position "
                "0, on top of the first token of the text."),
        Mistake("one-position-on", _key_off, "You rotate by one position too many. Positions count from 0, so after 5 "
                "tokens the new one is at position 5. As past_keys stay as they are, a gap of one opens."),
        Mistake("one-position-back", _key_off, "You rotate to the position of the last cached token, so two tokens share "
                "it. The new one comes after it."),
        Mistake("cached-keys-rotated-again", _first_key_off, "You rotate all keys, but those in the cache have been rotated "
                "already. Each key is rotated once, when it's new."),
        Mistake("values-rotated", lambda case: f"{_context_off(case)} Your keys are right.", "The values were rotated too. "
                "Only queries and keys are compared by position; values are what's passed on (notebook 06, section 6)."),
        Mistake("new-token-not-seen", _context_off, "The cache you return is right, but the query attended to the old one: "
                "a token must see itself too. Extend first, then attend."),
        Mistake("only-the-first-seen", _context_off, "The query sees the first key only. That is what a causal mask for 1 "
                "query does if it starts at the top left (is_causal=True does). Nothing here lies in the future: no mask is "
                "needed."),
        Mistake("only-itself-seen", _context_off, "The query sees only the new token. The cache was extended, but isn't "
                "attended to."),
        Mistake("new-token-in-front", _first_key_off, "The new token stands in front. Attention alone wouldn't notice, but "
                "the cache is in order of time: cut it down to its last 100 tokens, and you'd keep the oldest ones."),
        Mistake("past-returned", _returned, "The context is right, but the cache comes back as it was, so the next "
                "token won't see this one. Return the extended one."),
        Mistake("new-returned", _returned, "The context is right, but only the new key and value come back, so all "
                "earlier tokens are forgotten. Return past and new together."),
        Mistake("unrotated-key-returned", _key_off, "Your context is right, so the query met a rotated key. But the one "
                "that you return for the cache isn't rotated, and the next token will meet it at position 0."),
        Mistake("joined-along-the-batch", _axis, "That dimension counts the texts, so the new token would become another "
                "text. Tokens follow one another along the third dimension, dim=2 or -2."),
        Mistake("joined-along-the-heads", _axis, "That dimension counts the heads, so the new token would become another "
                "head. Tokens follow one another along the third dimension, dim=2 or -2."),
        Mistake("joined-along-the-width", _axis, "That dimension holds the numbers of one vector, so the key would get "
                "longer. Tokens follow one another along the third dimension, dim=2 or -2."),
        Mistake("swapped", _first_key_off, "Keys and values have changed places: return context, keys, values."),
        Mistake("no-scaling", _context_off, "The cache is right. The scores aren't divided by √d_head (notebook 04, "
                "section 6)."),
        Mistake("softmax-over-queries", _context_off, "Your softmax runs over the queries. There is only one, so every key "
                "gets weight 1. It must run over the keys, dim=-1."),
    ),
    properties=(
        Property(lambda case: gap(Case((), {"": case.keys[..., :-1, :]}, {"": case.right["keys"][..., :-1, :]})) > 1e-4,
                 _first_key_off, "The cached keys stay as they are, in their order, and the new one comes after them."),
        Property(lambda case: _position(case) not in (None, _past(case)), _at_position, "A new key's position is the "
                 "number of tokens before it, and those are counted along the third dimension, past_keys.shape[-2]."),
        Property(_gap("keys"), _key_off, "The cached keys are right. The new one must be rotated to its own position, which "
                 "is the number of tokens before it."),
        Property(_gap("values"), lambda case: f"your keys are right; your values differ by up to {gap(case, 'values'):.3f}.",
                 "The cached values come first, as they are, then the new one. Values aren't rotated."),
        Property(_outside, _context_off, "The cache is right. But the context isn't a mean of the values: are the weights a "
                 "softmax over all keys?"),
        Property(_gap("context"), _context_off, "The cache is right. Is the query rotated as the new key is, are the scores "
                 "divided by √d_head, and does the query see all keys, its own too?"),
    ),
    hints=(
        "Four steps: rotate what is new, extend the cache, attend, return. Print the shapes of keys and values after the "
        "second.",
        "rotate(x, offset) treats x as beginning at position `offset`. There are past_keys.shape[-2] tokens before this "
        "one.",
        "keys = torch.cat([past_keys, rotate(key, past_keys.shape[-2])], dim=-2); the query is rotated in the same way, and "
        "then sees all keys without a mask.",
    ),
)

# ---------------------------------------------------------------- 13.5 repair: how far back

MODELS = ("a 5-gram", "a model that looks at the last two tokens and at the seventh from the end", "a bigram model",
          "a model that is always sure of the same token", "a model that ignores the text",
          "a model that looks at the first token of the text only", "a model that looks further back than the text goes")


def _which(case: Case) -> str:
    """The model by what it is: each probe has its own length and logits."""
    logits_of, token_ids, _ = case.inputs
    found = MODELS[5] if logits_of.from_start else MODELS[3] if logits_of.bias.any() else {
        (): MODELS[4], (0,): MODELS[2], (0, 1, 2, 3): MODELS[0], (0, 1, 6): MODELS[1]}.get(logits_of.distances, MODELS[6])
    return f"a text of {token_ids.shape[1]} tokens and {found}"


def _says(case: Case) -> str:
    return f"for {_which(case)}, your answer is {case.answer.item():g}, expected {case.expected.item():g}."


REACH = Exercise(
    given="as-given", probes=probes.reach_probes, observe=probes.observe_reach,
    signature="how_far_back(logits_of, token_ids (1, seq_len), vocab_size) -> number of tokens",
    mistakes=(
        Mistake("as-given", _says, "That's one of two mistakes; both are still there."),
        Mistake("stops-early", _says, "The change is always a real one now. But you still stop at the first token that "
                "makes no difference, and there may be others behind it: attention can skip."),
        Mistake("set-to-zero", _says, "You go through the whole text now. But where a token is 0 already, setting it to 0 "
                "changes nothing. Every token must get an id that it didn't have."),
        Mistake("set-to-the-last-id", _says, "You go through the whole text now. But your replacement can be the id that "
                "the token has already (a fixed or a random one can), and then nothing changes. Every token must get an id "
                "that it didn't have."),
        Mistake("mirrored", _says, "vocab_size - 1 - id is another id, except in the middle: of 9 ids, 4 stays 4. Every "
                "token must get an id that it didn't have."),
        Mistake("left-out", _says, "You leave the token out instead of changing it. Then all the tokens before it move up, "
                "and where the one next to it is the same, nothing changes at all."),
        Mistake("distance", _says, "You count the steps between two tokens. The number of tokens is asked for: a model that "
                "sees only the last token looks 1 token back, not 0."),
        Mistake("nearest", _says, "You return the nearest token that makes a difference. The furthest is asked for, so go "
                "on after you've found one."),
        Mistake("counted", _says, "You count the tokens that make a difference. The question is how far away the furthest "
                "is, and there may be gaps."),
        Mistake("position", _says, "That is the position of a token from the beginning of the text. Count from the end."),
        Mistake("most-probable-only", _says, "You compare only the most probable token. It can stay the same while its "
                "probability changes: compare all logits of the last position."),
        Mistake("all-positions", _says, "That's the whole text, for every model that uses it at all. Either you compare the "
                "logits of all positions, and a changed token always changes its own; or one change is still there when "
                "the next is made."),
    ),
    properties=(
        Property(lambda case: not 0 <= case.answer <= case.inputs[1].shape[1], _says, "A number of tokens lies between 0 "
                 "and the length of the text."),
        Property(lambda case: case.expected == 0 and case.answer > 0, _says, "Its logits never change, whatever the text "
                 "says."),
        Property(lambda case: case.inputs[0].bias.any() and case.answer < case.expected, _says, "If you compare "
                 "probabilities: these change too little to be seen. Compare the logits. If you do: is every token tried?"),
        Property(lambda case: case.answer < case.expected, _says, "A token further back makes a difference too. Is each one "
                 "really changed, is every one tried, up to the beginning of the text, and does your comparison see every "
                 "difference, however small?"),
        Property(lambda case: case.answer > case.expected, _says, "A token so far back makes no difference to the logits of "
                 "the last position. Is only one token changed at a time?"),
    ),
    hints=(
        "The text 3, 0, 5: which of its tokens does the code really change? And what if only the first one matters?",
        "Remember the furthest token so far instead of returning. For the change, (id + 1) % vocab_size is always another "
        "id.",
        "Where the logits of the last position aren't equal any more, `furthest = back`; at the end, `return furthest`.",
    ),
)
