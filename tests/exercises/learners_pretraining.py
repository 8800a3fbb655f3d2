"""Answers that learners may write to exercises 14.1 to 14.3, right ones and wrong ones."""

import re

import numpy as np
import torch
from learners_answers import right
from torch import nn
from torch.nn import functional as F

# ---------------------------------------------------------------- 14.1


def place_by_place(token_ids, chosen, fate, others, mask_id):
    """float(0.9 in float32) is below 0.9, so that a comparison of single numbers differs from one of tensors there."""
    inputs = token_ids.clone()
    for row, column in chosen.nonzero().tolist():
        number = fate[row, column].item()
        if number < 0.8:
            inputs[row, column] = mask_id
        elif number < 0.9:
            inputs[row, column] = others[row, column]
    return inputs


def as_lists(token_ids, chosen, fate, others, mask_id):
    rows = zip(token_ids.tolist(), chosen.tolist(), fate.tolist(), others.tolist())
    return [[(mask_id if f < 0.8 else other if f < 0.9 else token) if asked else token
             for token, asked, f, other in zip(*row)] for row in rows]


def selected_in_numpy(token_ids, chosen, fate, others, mask_id):
    ids, asked, fate, other = (part.numpy() for part in (token_ids, chosen, fate, others))
    return np.select([asked & (fate < 0.8), asked & (fate < 0.9)], [np.full_like(ids, mask_id), other], default=ids)


def by_bucket(token_ids, chosen, fate, others, mask_id):
    which = torch.bucketize(fate, torch.tensor([0.8, 0.9]), right=True)    # float64 fates are refused by PyTorch here
    table = torch.stack([torch.full_like(token_ids, mask_id), others, token_ids])
    return table.gather(0, torch.where(chosen, which, 2)[None])[0]


def row_by_row(token_ids, chosen, fate, others, mask_id):
    """A list of tensors, one for each text."""
    return [torch.where(asked, torch.where(f < 0.8, mask_id, torch.where(f < 0.9, other, ids)), ids)
            for ids, asked, f, other in zip(token_ids, chosen, fate, others)]


class WithACall:
    def __call__(self, token_ids, chosen, fate, others, mask_id):
        stays = ~chosen | (fate >= 0.9)
        return torch.where(stays, token_ids, torch.where(fate < 0.8, torch.tensor(mask_id), others))


def by_arithmetic(number=torch.Tensor.long):
    """Sums of products with 0 and 1, which are whole numbers or floats."""
    def answer(token_ids, chosen, fate, others, mask_id):
        hide, swap = number(chosen & (fate < 0.8)), number(chosen & (fate >= 0.8) & (fate < 0.9))
        return mask_id * hide + others * swap + token_ids * (1 - hide - swap)
    return answer


def hidden(hide=lambda fate: fate < 0.8, swap=lambda fate: (fate >= 0.8) & (fate < 0.9), fates=lambda fate: fate,
           mask=lambda mask_id: mask_id, others=lambda token_ids, others: others, after=lambda inputs, chosen: inputs):
    """Hiding with one of its parts changed."""
    def answer(token_ids, chosen, fate, other, mask_id):
        fate = fates(fate)
        inputs = token_ids.masked_fill(chosen & hide(fate), mask(mask_id))
        return after(torch.where(chosen & swap(fate), others(token_ids, other), inputs), chosen)
    return answer


def another_name(token_ids, chosen, fate, others, mask_id):
    inputs = token_ids
    inputs[chosen & (fate < 0.8)] = mask_id
    return inputs


def second_coin(token_ids, chosen, fate, others, mask_id):
    inputs = token_ids.masked_fill(chosen & (fate < 0.8), mask_id)
    return torch.where(chosen & (fate >= 0.8) & (torch.rand(fate.shape) < 0.5), others, inputs)


def by_rank(token_ids, chosen, fate, others, mask_id):
    """Exactly 80 % of the chosen tokens, in the order of their fates."""
    inputs, places = token_ids.clone().flatten(), chosen.flatten().nonzero()[:, 0]
    places = places[fate.flatten()[places].argsort()]
    low, high = round(0.8 * len(places)), round(0.9 * len(places))
    inputs[places[:low]] = mask_id
    inputs[places[low:high]] = others.flatten()[places[low:high]]
    return inputs.view_as(token_ids)


def others_in_order(token_ids, chosen, fate, others, mask_id):
    inputs = token_ids.masked_fill(chosen & (fate < 0.8), mask_id)
    return inputs.masked_scatter(chosen & (fate >= 0.8) & (fate < 0.9), others)


def swapped_everywhere(token_ids, chosen, fate, others, mask_id):
    inputs = token_ids.masked_fill(chosen & (fate < 0.8), mask_id)
    return torch.where((fate >= 0.8) & (fate < 0.9), others, inputs)


def without_parentheses(token_ids, chosen, fate, others, mask_id):
    return token_ids.masked_fill(chosen & fate < 0.8, mask_id)


def with_and(token_ids, chosen, fate, others, mask_id):
    inputs = token_ids.clone()
    inputs[chosen and fate < 0.8] = mask_id
    return inputs


def with_labels(token_ids, chosen, fate, others, mask_id):
    return right("14.1")(token_ids, chosen, fate, others, mask_id), token_ids.masked_fill(~chosen, -100)


def chained(token_ids, chosen, fate, others, mask_id):
    """Assigns to a part of a copy."""
    inputs = token_ids.clone()
    inputs[chosen][fate[chosen] < 0.8] = mask_id
    swapped = (fate[chosen] >= 0.8) & (fate[chosen] < 0.9)
    inputs[chosen][swapped] = others[chosen][swapped]
    return inputs


# ---------------------------------------------------------------- 14.2


def by_pattern(word, vocabulary):
    """A regular expression for one piece at a time, the longest alternatives first."""
    begin, go_on = (sorted((re.escape(piece.removeprefix("##")) for piece in vocabulary if piece.startswith("##") == later),
                           key=len, reverse=True) for later in (False, True))
    pieces, place = [], 0
    while place < len(word):
        found = re.compile("|".join(go_on if place else begin) or "(?!)").match(word, place)
        if not found:
            return ["[UNK]"]
        pieces.append("##" * (place > 0) + found[0])
        place = found.end()
    return pieces


def by_tree(word, vocabulary):
    """A tree of letters, walked down from the root for each piece."""
    root = {}
    for piece in vocabulary:
        node = root
        for letter in piece:
            node = node.setdefault(letter, {})
        node["end"] = piece
    pieces, rest = [], word
    while True:
        node, best = root, None
        for letter in rest:
            node = node.get(letter, {})
            best = node.get("end", best)
        if best is None:
            return ["[UNK]"]
        pieces.append(best)
        if best == rest:
            return pieces
        rest = "##" + rest[len(best):]


def one_after_the_other(word, vocabulary):
    def pieces(rest, mark=""):
        while rest:
            size = next((n for n in range(len(rest), 0, -1) if mark + rest[:n] in vocabulary), 0)
            if size == 0:
                raise KeyError(rest)
            yield mark + rest[:size]
            rest, mark = rest[size:], "##"

    try:
        return [*pieces(word)]
    except KeyError:
        return ["[UNK]"]


def cut(last=lambda size: size, first=lambda start: start + 1, looked_up=lambda start, part: "##" * (start > 0) + part,
        returned=lambda start, part: "##" * (start > 0) + part, step=lambda start, part: start + len(part)):
    """Cutting with one of its parts changed."""
    def answer(word, vocabulary):
        pieces, start = [], 0
        while start < len(word):
            ends = range(last(len(word)), first(start) - 1, -1)
            part = next((word[start:end] for end in ends if looked_up(start, word[start:end]) in vocabulary), None)
            if part is None:
                return ["[UNK]"]
            pieces.append(returned(start, part))
            start = step(start, part)
        return pieces
    return answer


def instead_of_unknown(other):
    """The right pieces, but something else where there are none."""
    def answer(word, vocabulary):
        pieces = right("14.2")(word, vocabulary)
        return other(word) if pieces == ["[UNK]"] else pieces
    return answer


def fewest(word, vocabulary):
    best = {0: []}
    for end in range(1, len(word) + 1):
        for start in range(end):
            piece = "##" * (start > 0) + word[start:end]
            if start in best and piece in vocabulary and len(best[start]) + 1 < len(best.get(end, word + "##")):
                best[end] = [*best[start], piece]
    return best.get(len(word), ["[UNK]"])


def longest_first(word, vocabulary):
    """The longest piece wherever it is in the word, then what is left of it and right of it."""
    def parts(start, end):
        for size in range(end - start, 0, -1):
            for i in range(start, end - size + 1):
                if "##" * (i > 0) + word[i:i + size] in vocabulary:
                    return [*parts(start, i), "##" * (i > 0) + word[i:i + size], *parts(i + size, end)]
        return ["[UNK]"] if start < end else []
    pieces = parts(0, len(word))
    return ["[UNK]"] if "[UNK]" in pieces else pieces


def either_kind(word, vocabulary):
    """A word's beginning may continue a word."""
    pieces, start = [], 0
    while start < len(word):
        ends = range(len(word), start, -1)
        end = next((end for end in ends if {word[start:end], "##" * (start > 0) + word[start:end]} & vocabulary), None)
        if end is None:
            return ["[UNK]"]
        pieces.append("##" * (start > 0) + word[start:end])
        start = end
    return pieces


def longest_of_any_kind(word, vocabulary):
    """The longest piece that the rest begins with, be it a beginning or a continuation."""
    pieces, start = [], 0
    while start < len(word):
        fitting = [piece for piece in vocabulary if word.startswith(piece.removeprefix("##"), start)]
        if not fitting:
            return ["[UNK]"]
        pieces.append(max(fitting, key=lambda piece: (len(piece), piece)))
        start += len(pieces[-1].removeprefix("##"))
    return pieces


def other_kind_where_none_fits(*starts):
    """The longest piece of the kind that belongs there; at these starts, where none fits, the longest of the other kind."""
    def answer(word, vocabulary):
        pieces, start = [], 0
        while start < len(word):
            kinds = ["##", ""] if start else ["", "##"]
            tried = kinds if "any" in starts or start in starts else kinds[:1]
            found = next(((sign, end) for sign in tried for end in range(len(word), start, -1)
                          if sign + word[start:end] in vocabulary), None)
            if found is None:
                return ["[UNK]"]
            pieces.append(found[0] + word[start : found[1]])
            start = found[1]
        return pieces
    return answer


def shortest_from_the_second(word, vocabulary):
    pieces, start = [], 0
    while start < len(word):
        ends = range(start + 1, len(word) + 1) if start else range(len(word), 0, -1)
        end = next((end for end in ends if "##" * (start > 0) + word[start:end] in vocabulary), None)
        if end is None:
            return ["[UNK]"]
        pieces, start = [*pieces, "##" * (start > 0) + word[start:end]], end
    return pieces


def rest_as_a_new_word(word, vocabulary):
    end = next((end for end in range(len(word), 0, -1) if word[:end] in vocabulary), 0)
    return [word[:end], *rest_as_a_new_word(word[end:], vocabulary)] if end else ["[UNK]"] if word else []


def at_most_two(word, vocabulary):
    pairs = [[word], *([word[:n], "##" + word[n:]] for n in range(len(word) - 1, 0, -1))]
    return next((pair for pair in pairs if set(pair) <= vocabulary), ["[UNK]"])


def shortened(how):
    """The word gets shorter by `how(rest, part)`."""
    def answer(word, vocabulary):
        pieces, rest = [], word
        while rest:
            ends = range(len(rest), 0, -1)
            part = next((rest[:end] for end in ends if "##" * (pieces != []) + rest[:end] in vocabulary), None)
            if part is None:
                return ["[UNK]"]
            pieces.append("##" * (pieces != []) + part)
            rest = how(rest, part)
        return pieces
    return answer


def of_at_most(begin, go_on):
    """Pieces of no more than so many letters, the first one and those after it."""
    def answer(word, vocabulary):
        pieces, start = [], 0
        while start < len(word):
            ends = range(min(len(word), start + (go_on if start else begin)), start, -1)
            end = next((end for end in ends if "##" * (start > 0) + word[start:end] in vocabulary), None)
            if end is None:
                return ["[UNK]"]
            pieces, start = [*pieces, "##" * (start > 0) + word[start:end]], end
        return pieces
    return answer


def strung_together(word, vocabulary):
    return [" ".join(right("14.2")(word, vocabulary))]


def with_an_empty_one(word, vocabulary):
    return [*right("14.2")(word, vocabulary), ""]


def as_a_set(word, vocabulary):
    return set(right("14.2")(word, vocabulary))


def letters_added(word, vocabulary):
    pieces = right("14.2")(word, vocabulary)
    return pieces if pieces == ["[UNK]"] else [*"".join(pieces)]


def used_up(word, vocabulary):
    pieces = right("14.2")(word, vocabulary)
    vocabulary.difference_update(pieces)
    return pieces


# ---------------------------------------------------------------- 14.3


def zero_if_nothing(loss, zero=lambda: 0):
    """`loss(logits, ids)` of the chosen positions, or `zero()` if there are none."""
    return lambda logits, token_ids, chosen: loss(logits[chosen], token_ids[chosen]) if chosen.any() else zero()


def over_whole_texts(loss):
    """`loss(logits, ids, chosen)` of whole texts, or 0 if nothing is chosen."""
    return lambda logits, token_ids, chosen: loss(logits, token_ids, chosen) if chosen.any() else logits.sum() * 0


def by_labels(logits, token_ids, chosen):
    loss = F.cross_entropy(logits.flatten(0, 1), token_ids.masked_fill(~chosen, -100).flatten())
    return loss if chosen.any() else torch.zeros(())


def by_one_hot(logits, token_ids, chosen):
    target = F.one_hot(token_ids, logits.shape[-1]).float()
    return -torch.einsum("bsv,bsv,bs->", logits.log_softmax(-1), target, chosen.float()) / max(1, int(chosen.sum()))


def without_nan(logits, token_ids, chosen):
    return F.cross_entropy(logits.transpose(1, 2), torch.where(chosen, token_ids, -100)).nan_to_num(0.0)


def in_float64(logits, token_ids, chosen):
    each = nn.CrossEntropyLoss(reduction="none")(logits.transpose(1, 2).double(), token_ids)
    return (each * chosen / chosen.sum().clamp(min=1)).sum().float()


def from_a_distribution(logits, token_ids, chosen):
    cost = -torch.distributions.Categorical(logits=logits).log_prob(token_ids)
    return torch.where(chosen, cost, 0).sum() / max(chosen.sum(), 1)


def picked(logits, token_ids, over=-1):
    return logits.log_softmax(over).gather(-1, token_ids[..., None])[..., 0]


def softmax_over(dim):
    return lambda logits, ids, chosen: -(picked(logits, ids, dim) * chosen).sum() / chosen.sum().clamp(min=1)


def log_with(small=0.0):
    """The logarithm of the softmax, with a small number added before it."""
    return zero_if_nothing(lambda logits, ids: -(logits.softmax(-1).gather(-1, ids[:, None]) + small).log().mean())


def one_position_at_a_time(logits, ids, chosen):
    cost, count = -(picked(logits, ids) * chosen).sum(dim=0), chosen.sum(dim=0)
    return (cost[count > 0] / count[count > 0]).mean()


def marked_in_place(logits, ids, chosen):
    ids[~chosen] = -100
    return F.cross_entropy(logits.flatten(0, 1), ids.flatten())
