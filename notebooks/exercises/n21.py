"""Exercises, quiz and warm-up of notebook 21, prompting."""

import re

import torch
from torch import nn

from course_utils.exercises.definitions import Case
from course_utils.exercises.records import M, R, ask

from course_exercises.common import drawn, gap, items_of, listed, one_tensor, what, whole_id

# ---------------------------------------------------------------- 21.1 the whole answer

def answer_scores(log_p, question, answers):
    scores = []
    for answer in answers:
        table = log_p([*question, *answer[:-1]])[len(question) - 1 :]      # (answer token, vocab)
        scores.append(sum(table[i, token] for i, token in enumerate(answer)))
    return torch.stack(scores)


class SmallModel(nn.Module):
    """ids -> ln p of the token after each of them (len(ids), vocab); every token depends on all before it."""

    def __init__(self, vocab: int, d: int, generator: torch.Generator):
        super().__init__()
        self.words = nn.Parameter(torch.randn(vocab, d, generator=generator))
        self.mix = nn.Parameter(torch.randn(d, d, generator=generator) / d**0.5)
        self.out = nn.Parameter(1.5 * torch.randn(d, vocab, generator=generator) / d**0.5)

    def forward(self, ids):
        state, rows = torch.zeros_like(self.words[0]), []
        for i in ids:
            state = torch.tanh(state @ self.mix + self.words[int(i)])
            rows.append((state @ self.out).log_softmax(dim=-1))
        return torch.stack(rows) if rows else self.out.new_zeros(0, self.out.shape[1])


def answers_probes(generator: torch.Generator) -> list[tuple]:
    """(model, question, answers): answers of 1 to 4 tokens, two that begin alike, answers of one length, of one token."""
    def draw(vocab, length, sizes, alike=False):
        ids = [torch.randint(vocab, (size,), generator=generator).tolist() for size in (length, *sizes)]
        if alike:
            ids[2][0] = ids[1][0]
        return SmallModel(vocab, 6, generator), ids[0], ids[1:]

    return [draw(9, 4, [1, 3, 2]), draw(12, 2, [4, 2, 3], alike=True), draw(7, 5, [2, 2]), draw(8, 3, [1, 1, 1]),
            draw(10, 1, [3, 1])]


def observe_answers(function, model, question, answers):
    with torch.no_grad():
        output = function(lambda ids: model([whole_id(i) for i in items_of(ids, "a list of ids")]), list(question),
                          [list(answer) for answer in answers])
    return None if output is None else {"scores": one_tensor(output, "the scores")}


def _each(score):
    return lambda log_p, question, answers: torch.stack([score(log_p, question, answer) for answer in answers])


def _table(log_p, question, answer):
    return log_p([*question, *answer])


def _right(log_p, question, answer):
    return torch.stack([_table(log_p, question, answer)[len(question) - 1 + i, t] for i, t in enumerate(answer)])


def _late(log_p, question, answer):
    table = _table(log_p, question, answer)[len(question):]
    return sum(table[i, token] for i, token in enumerate(answer))


def _with_question(log_p, question, answer):
    row = [*question, *answer]
    table = log_p(row)
    return sum((table[i, row[i + 1]] for i in range(len(row) - 1)), table.new_zeros(()))


def _without_question(log_p, question, answer):
    table = log_p(answer)
    return sum((table[i, answer[i + 1]] for i in range(len(answer) - 1)), table.new_zeros(()))


def _scores_seen(case: Case) -> str:
    lengths = ", ".join(str(len(answer)) for answer in case.inputs[2])
    return (f"for answers of {lengths} tokens your scores are {listed(case.scores)}; expected "
            f"{listed(case.right['scores'])}.")


ANSWERS = ask(
    "21.1", answer_scores,
    probes=answers_probes,
    observe=observe_answers,
    signature="answer_scores(log_p: ids -> (len(ids), vocab), question: ids, answers: a list of ids each) -> scores "
    "(answer,), ln p of each whole answer",
    not_finite={"-inf": "The logarithm of 0. log_p gives logarithms already: add them up.",
                "NaN": "log_p gives logarithms already, which are negative: add them up, and take no logarithm again."},
    mistakes={
        "first-token-only": M(
            _each(lambda *g: _right(*g)[0]), _scores_seen,
            "That's the first token of each answer. Two answers that begin alike come out equal, and what follows is never "
            "asked. Add ln p of the other tokens."),
        "last-token-only": M(
            _each(lambda *g: _right(*g)[-1]), _scores_seen,
            "That's the last token of each answer alone. Add up all of them."),
        "mean-over-tokens": M(
            _each(lambda *g: _right(*g).mean()), _scores_seen,
            "You take the mean over an answer's tokens. That's sometimes done on purpose, so that long answers aren't put "
            "at a disadvantage, but it's no longer the probability of the answer: add up, and don't divide."),
        "one-late": M(
            _each(_late), _scores_seen,
            "Each token is scored where the model has read it. The row that predicts it is one earlier: the answer's first "
            "token is predicted from the question's last."),
        "question-counted": M(
            _each(_with_question), _scores_seen,
            "The question's own tokens are in the sum. They're given: begin with the answer's first token."),
        "question-forgotten": M(
            _each(_without_question), _scores_seen,
            "The model never reads the question. Give it question and answer in one row."),
        "answer-not-read": M(
            _each(lambda p, q, a: p(q)[-1, a].sum()), _scores_seen,
            "All tokens of an answer are predicted from the question's end. After the first one, the model must read the "
            "answer as far as it goes: that's what makes it a product of conditional probabilities."),
        "probabilities": M(
            _each(lambda *g: _right(*g).sum().exp()), _scores_seen,
            "Those are probabilities. Return their logarithms: products of many tokens get too small to be told from 0."),
        "probabilities-added": M(
            _each(lambda *g: _right(*g).exp().sum()), _scores_seen,
            "You add up probabilities. That all tokens come is a product of probabilities, so a sum of their logarithms."),
        "minus": M(_each(lambda *g: -_right(*g).sum()), _scores_seen,
                   "That's the loss, with a minus. The best answer should have the highest score."),
        "chosen": M(
            lambda p, q, answers: _each(lambda *g: _right(*g).sum())(p, q, answers).argmax(),
            lambda case: f"you return one number, {case.scores.flatten()[0]:.0f}.",
            "That's which answer is the best. Return the scores of all; what's done with them comes later."),
    },
    rules=(
        R(lambda case: case.scores.shape != case.right["scores"].shape,
          lambda case: f"your scores have the shape {tuple(case.scores.shape)}, expected "
          f"{tuple(case.right['scores'].shape)}.",
          "One number for each answer."),
        R(lambda case: (case.scores > 1e-6).any(), lambda case: f"a score is {case.scores.max():.3f}.",
          "ln of a probability is never above 0."),
        R(lambda case: gap(case, "scores") > 1e-4, _scores_seen,
          "Row i of log_p(ids) is about the token after ids[i]. Print which token you look up in which row."),
    ),
    hints=(
        "With a question of 4 tokens, the answer's first token is predicted by row 3 of log_p.",
        "log_p([*question, *answer[:-1]]) has all the rows that you need, the first in row len(question) - 1.",
        "table = log_p([*question, *answer[:-1]])[len(question) - 1:], then the sum of table[i, token] over the answer.",
    ),
)

# ---------------------------------------------------------------- 21.2 calibration by the prior

def calibrated(scores, empty):
    p = scores.softmax(dim=-1)                                             # (question, answer)
    prior = empty.softmax(dim=-1).mean(dim=0)                              # (answer)
    return p / prior / (p / prior).sum(dim=-1, keepdim=True)


def calibration_probes(generator: torch.Generator) -> list[tuple]:
    """Scores of 2 to 4 answers, with little probability for all of them; 1 to 3 texts without content."""
    def draw(questions, empties, answers):
        lean = 2 * torch.randn(answers, generator=generator) - 3
        mass = 2 * torch.randn(empties, 1, generator=generator)
        return (lean + torch.randn(questions, answers, generator=generator),
                lean + mass + torch.randn(empties, answers, generator=generator))

    return [draw(4, 3, 2), draw(3, 2, 4), draw(5, 1, 3), draw(2, 3, 3)]


def observe_calibration(function, scores, empty):
    output = function(scores.clone(), empty.clone())
    return None if output is None else {"probabilities": one_tensor(output, "the probabilities")}


def _divide(p, prior):
    return p / prior / (p / prior).sum(dim=-1, keepdim=True)


def _p(scores):
    return scores.softmax(dim=-1)


def _first_row(case: Case) -> str:
    if case.probabilities.shape != case.right["probabilities"].shape:
        return f"your result has the shape {tuple(case.probabilities.shape)}."
    i = (case.probabilities - case.right["probabilities"]).abs().sum(dim=-1).argmax()
    return f"question {i} gets {listed(case.probabilities[i])}, expected {listed(case.right['probabilities'][i])}."


CALIBRATION = ask(
    "21.2", calibrated,
    probes=calibration_probes,
    observe=observe_calibration,
    signature="calibrated(scores (question, answer), empty (text without content, answer)), both ln p -> probabilities "
    "(question, answer)",
    not_finite={"NaN": "A logarithm of something negative, or 0 divided by 0. Softmax turns scores into probabilities.",
                "inf": "Divide probabilities, not scores."},
    mistakes={
        "not-calibrated": M(lambda s, e: _p(s), _first_row, "Those are the probabilities without calibration; `empty` isn't "
                            "used."),
        "multiplied": M(lambda s, e: _divide(_p(s), 1 / _p(e).mean(dim=0)), _first_row,
                        "You multiply by the prior, so what was preferred already is preferred twice. Divide."),
        "subtracted": M(lambda s, e: _p(s) - _p(e).mean(dim=0), _first_row,
                        "You subtract the prior. Then rows sum to 0, and numbers get negative. Divide, and normalise."),
        "not-normalised": M(lambda s, e: _p(s) / _p(e).mean(dim=0), _first_row,
                            "After the division a row no longer sums to 1: divide by its sum."),
        "mass-counted": M(lambda s, e: _divide(_p(s), e.exp().mean(dim=0)), _first_row,
                          "The texts without content count differently: one on which the model gives the answers little "
                          "probability altogether hardly counts. Take a softmax over the answers first, then the mean."),
        "mean-of-scores": M(lambda s, e: _divide(_p(s), _p(e.mean(dim=0))), _first_row,
                            "You take the mean of the scores, and then a softmax. Here the prior is the mean of the "
                            "probabilities: softmax first.", convention=True),
        "first-only": M(lambda s, e: _divide(_p(s), _p(e)[0]), _first_row,
                        "Only the first text without content is used. Take the mean over all of them."),
        "over-questions": M(lambda s, e: _divide(s.softmax(dim=0), e.softmax(dim=0).mean(dim=0)), _first_row,
                            "Your softmax runs over the questions. The answers compete: the last dimension."),
        "scores-divided": M(lambda s, e: (s / e.mean(dim=0)).softmax(dim=-1), _first_row,
                            "You divide logarithms. Turn both into probabilities first, by a softmax."),
        "own-questions": M(lambda s, e: _divide(_p(s), _p(s).mean(dim=0)), _first_row,
                           "Your prior is the mean over the questions themselves. That's another kind of calibration, and "
                           "it needs many questions; here the prior comes from `empty`.", convention=True),
        "logarithms": M(lambda s, e: _divide(_p(s), _p(e).mean(dim=0)).log(), _first_row,
                        "Those are the logarithms; return the probabilities."),
    },
    rules=(
        R(lambda case: case.probabilities.shape != case.right["probabilities"].shape, _first_row,
          "One row for each question, one number for each answer."),
        R(lambda case: (case.probabilities < -1e-6).any(),
          lambda case: f"a number is {case.probabilities.min():.3f}.", "Probabilities aren't negative."),
        R(lambda case: (case.probabilities.sum(dim=-1) - 1).abs().max() > 1e-3,
          lambda case: f"a row sums to {case.probabilities.sum(dim=-1)[0]:.3f}.", "Each question's row sums to 1."),
        R(lambda case: gap(case, "probabilities") > 1e-4, _first_row,
          "Three steps: a softmax over the answers on both sides, the mean over the texts without content, a division."),
    ),
    hints=(
        "By hand, with two answers: p = 0.6 and 0.4, prior = 0.8 and 0.2. What is 0.6/0.8 beside 0.4/0.2?",
        "p = scores.softmax(dim=-1); prior = empty.softmax(dim=-1).mean(dim=0).",
        "q = p / prior, and then q / q.sum(dim=-1, keepdim=True).",
    ),
)

# ---------------------------------------------------------------- 21.3 which examples to put in

def nearest_examples(similarity, number, own):
    similarity = similarity.clone()
    for question, itself in enumerate(own):
        if itself >= 0:
            similarity[question, itself] = -float("inf")
    return similarity.argsort(dim=-1)[:, -number:]


def nearest_probes(generator: torch.Generator) -> list[tuple]:
    """(similarity, number, own): questions that are in the pool themselves, that aren't, and of both kinds."""
    def draw(questions, pool, number, own):
        similarity = torch.rand(questions, pool, generator=generator) * 2 - 1
        for question, itself in enumerate(own):
            if itself >= 0:
                similarity[question, itself] = 1.5
        return similarity, number, own

    return [draw(3, 7, 3, [2, 5, 0]), draw(4, 9, 4, [-1, -1, -1, -1]), draw(2, 6, 2, [-1, 4]), draw(3, 5, 1, [1, -1, 3]),
            draw(5, 8, 6, [0, 1, -1, 3, 7])]


def observe_nearest(function, similarity, number, own):
    output = function(similarity.clone(), number, list(own))
    if output is None:
        return None
    return {"ids": one_tensor(output, "the positions").double()}


def _ranked(itself=True, largest=True, last=True, dim=-1, extra=0, by_place=False):
    def answer(similarity, number, own):
        similarity = similarity.clone()
        for question, place in enumerate(own):
            if itself and place >= 0:
                similarity[question, place] = -9.0 if largest else 9.0
        ids = similarity.argsort(dim=dim, descending=not largest)[:, -number - extra :]
        if by_place:
            ids = ids.sort(dim=-1).values
        return ids if last else ids.flip(-1)
    return answer


def _ids_seen(case: Case) -> str:
    if case.ids.shape != case.right["ids"].shape:
        return f"your result has the shape {tuple(case.ids.shape)}, expected {tuple(case.right['ids'].shape)}."
    wrong = (case.ids != case.right["ids"]).any(dim=-1).double().argmax()
    return f"question {wrong} gets {listed(case.ids[wrong], '.0f')}, expected {listed(case.right['ids'][wrong], '.0f')}."


NEAREST = ask(
    "21.3", nearest_examples,
    probes=nearest_probes,
    observe=observe_nearest,
    signature="nearest_examples(similarity (question, pool), number, own: for each question its position in the pool, or "
    "-1) -> positions (question, number), the most similar last",
    mistakes={
        "itself": M(_ranked(itself=False), _ids_seen,
                    "A question that is in the pool is its own nearest example, with its label beside it. The model only "
                    "has to copy, and your score says nothing. Leave it out."),
        "nearest-first": M(_ranked(last=False), _ids_seen,
                           "The right ones, with the most similar first. Put it last, next to the question."),
        "itself-and-first": M(_ranked(itself=False, last=False), _ids_seen,
                              "A question that is in the pool is its own example. Leave it out; and the most similar one "
                              "comes last."),
        "farthest": M(_ranked(largest=False), _ids_seen, "Those are the least similar ones."),
        "by-position": M(_ranked(by_place=True), _ids_seen,
                         "The right ones, in the order of the pool. Put them in the order of their similarity."),
        "over-questions": M(lambda s, n, own: s.argsort(dim=0).T[:, :n], _ids_seen,
                            "You sort each example's questions. Sort each question's examples: the last dimension."),
        "one-too-many": M(_ranked(extra=1), _ids_seen, "That's one example too many."),
    },
    rules=(
        R(lambda case: case.ids.shape != case.right["ids"].shape, _ids_seen, "One row for each question, `number` in each."),
        R(lambda case: any(place in row for place, row in zip(case.inputs[2], case.ids.tolist()) if place >= 0),
          _ids_seen, "A question must never be its own example."),
        R(lambda case: (case.ids.sort(dim=-1).values != case.right["ids"].sort(dim=-1).values).any(), _ids_seen,
          "These aren't the most similar ones that are left."),
        R(lambda case: (case.ids != case.right["ids"]).any(), _ids_seen, "From the least to the most similar."),
    ),
    hints=(
        "Give a question's own position a similarity below all others, in a copy.",
        "argsort sorts from the smallest to the largest, so the ones that you want are at the end of each row.",
        "similarity.argsort(dim=-1)[:, -number:]",
    ),
)

# ---------------------------------------------------------------- 21.4 your prompt

def my_prompt(text, examples, words):
    shown = "".join(f"Review: {known}\nSentiment:{words[label]}\n\n" for known, label in examples)
    return f"{shown}Review: {text}\nSentiment:"


TEXTS = ["We stayed to the end.", "The dog is a fine actor", "Rain, rain and a lighthouse.", "My aunt left early!",
         "Two hours of fog", "He sings once, at the pier.", "A train, a letter, a goodbye.", "Not for my brother.",
         "Nobody wept", "The cook is the best of them.", "Her hat has more to say.", "Bring a cushion!",
         "It rained on Monday", "Five people, one secret.", "The ferry leaves at noon.", "A quarrel about soup",
         "Loud, and then quiet."]
LONG = ["The ship is built slowly, plank by plank, while the two brothers argue about their father's will, and when at last "
        "it is launched, nobody from the village has come to see it go.",
        "A widow opens a shop for clocks in a town where nobody is ever late, and over three winters, with few words and "
        "many cups of tea, she finds out why that is so."]


def prompt_probes(generator: torch.Generator) -> list[tuple]:
    """(text, examples, words): none, one, two, four, sixteen; kinds of words; a long sentence, and a long example."""
    def draw(number, words, labels):
        text, *shown = drawn(generator, TEXTS, number + 1)
        return text, list(zip(shown, labels, strict=True)), words

    return [draw(2, (" negative", " positive"), [1, 0]), draw(4, (" bad", " good"), [0, 0, 1, 0]),
            draw(0, (" negative", " positive"), []), draw(1, (" no", " yes"), [1]),
            draw(16, (" negative", " positive"), [0, 1, 1, 0] * 4), (LONG[0], [(TEXTS[0], 1)], (" bad", " good")),
            (TEXTS[1], [(LONG[1], 0)], (" bad", " good"))]


PARTS = {"once": "the sentence stands in the prompt exactly once",
         "as_given": "the sentence and the examples stand there letter by letter",
         "whole": "the sentence and the examples stand there in full",
         "all_shown": "with sixteen examples, all of them are there",
         "shown": "every example stands in the prompt once, before the sentence",
         "labelled": "every example is followed by its own word",
         "in_order": "the examples stand in the order in which they came",
         "apart": "after an example's word the line ends",
         "same_form": "between a sentence and its word stands the same for examples and for the question",
         "one_blank": "before an example's word is the one blank that it begins with",
         "open_end": "the prompt ends without a blank",
         "same_line": "the prompt doesn't end with a new line",
         "not_swapped": "no example is followed by the other label's word",
         "unanswered": "the answer isn't in the prompt",
         "read_once": "what comes before the sentence is the same for every sentence"}


LINE_ENDS = re.compile(r"[^\w\n]*(<\|\w+\|>)?[^\w\n]*\n")  # a full stop may follow the word, or the mark of a turn's end


def observe_prompt(function, text, examples, words):
    output, other = (function(asked, list(examples), tuple(words)) for asked in (text, "Zebras again."))
    if output is None:
        return None
    if not isinstance(output, str):
        raise TypeError(f"expected a text, got {what(output)}")
    return {name: torch.tensor(float(holds)) for name, holds in _features(output, str(other), text, examples, words).items()}


def _plain(text: str) -> str:
    """Its words alone, in small letters."""
    return " ".join(re.findall(r"\w+", text.lower()))


def _features(prompt: str, other: str, text: str, examples: list, words: tuple) -> dict[str, bool]:
    places = [prompt.find(shown) for shown, _ in examples]
    asked = prompt.rfind(text)
    found = dict.fromkeys(PARTS, True)
    given, plain = [text, *(shown for shown, _ in examples)], _plain(prompt)
    found["as_given"] = all(one in prompt or _plain(one) not in plain for one in given)
    found["whole"] = all(one in prompt or _plain(one) in plain or _plain(one[:30]) not in plain for one in given)
    found["all_shown"] = len({shown in prompt for shown, _ in examples}) < 2
    found["once"] = prompt.count(text) == 1
    found["shown"] = all(prompt.count(shown) == 1 and prompt.find(shown) < asked for shown, _ in examples)
    found["open_end"] = prompt == prompt.rstrip()
    found["same_line"] = not prompt.endswith("\n")
    found["unanswered"] = not any(prompt.rstrip().endswith(word) for word in words)
    found["read_once"] = prompt[:max(asked, 0)] == other[: max(other.rfind("Zebras again."), 0)]
    end = prompt[asked + len(text):] if asked >= 0 else ""
    if found["shown"]:
        found["in_order"] = places == sorted(places)
        after = [prompt[place + len(shown):] for place, (shown, _) in zip(places, examples, strict=True)]
        # the form may name both words itself, as 'Positive or negative?' does: where a word follows it, look behind it
        begin = [len(end) if end and part.startswith((end + words[0], end + words[1])) else 0 for part in after]
        rest, wrong = ([part.find(words[label ^ other], skip) for part, skip, (_, label)
                        in zip(after, begin, examples, strict=True)] for other in (0, 1))
        ahead = [min((part.find(other_text) for other_text, _ in [*examples, (text, 0)] if other_text in part),
                     default=len(part)) for part in after]
        found["labelled"] = all(0 <= r < a and not 0 <= w < r for r, w, a in zip(rest, wrong, ahead, strict=True))
        found["not_swapped"] = not any(0 <= w < a and not 0 <= r < w for r, w, a in zip(rest, wrong, ahead, strict=True))
        if found["labelled"]:
            found["apart"] = all(LINE_ENDS.match(part[r + len(words[label]):])
                                 for part, r, (_, label) in zip(after, rest, examples, strict=True))
            found["one_blank"] = prompt[-1:] == " " or not any(
                part[:r].endswith(" ") for part, r in zip(after, rest, strict=True))
            stripped = end.rstrip()
            found["same_form"] = all(part[:r].rstrip() == stripped for part, r in zip(after, rest, strict=True))
    return found


def _fails(part: str, why: str) -> R:
    return R(lambda case: case.got[part] < 0.5, lambda case: f"one thing doesn't hold: {PARTS[part]}.", why)


def _prompt(end="", swapped=False, labelled=True, first=False, between="\n\n", examples_too=True, answer=False, twice=False,
            other_form=False, backwards=False):
    def answered(text, examples, words):
        shown = ""
        for known, label in reversed(examples) if backwards else examples:
            word = words[1 - label if swapped else label] if labelled else ""
            shown += f"Review: {known}\n{'Label' if other_form else 'Sentiment'}:{end}{word}{between}"
        question = f"Review: {text}\nSentiment:{end}" + (words[1] if answer else "")
        if twice:
            question = f"Review: {text}\n{question}"
        if not examples_too:
            return question
        return question + "\n\n" + shown.rstrip() if first else shown + question
    return answered


def _on(sentence=lambda text: text, shown=lambda text: text, some=lambda examples: examples):
    """A good prompt, of a sentence, of examples' texts, or of a list that was changed before."""
    return lambda text, examples, words: _prompt()(
        sentence(text), [(shown(known), label) for known, label in some(examples)], words)


def _cut(text):
    return text[:60]


def _lacks(*parts: str):
    def seen(case: Case) -> str:
        part = next(part for part in parts if case.got[part] < 0.5)
        return f"one thing doesn't hold: {PARTS[part]}."
    return seen


PROMPT = ask(
    "21.4", my_prompt,
    probes=prompt_probes,
    observe=observe_prompt,
    signature="my_prompt(text, examples: a list of (text, label), words: the word of label 0 and of label 1) -> the prompt",
    mistakes={
        "trailing-blank": M(_prompt(end=" "), _lacks("open_end"),
                            "The words begin with a blank, since the tokenizer keeps it with the word. After a blank of "
                            "yours the model would have to write a second one, and the word's token hardly ever comes."),
        "two-blanks": M(lambda t, e, w: _prompt(end=" ")(t, e, w).rstrip(), _lacks("one_blank"),
                        "The words begin with a blank, and yours makes two. The question has none before its answer, so "
                        "the examples show another form than you ask in."),
        "trailing-line": M(lambda t, e, w: _prompt()(t, e, w) + "\n", _lacks("same_line", "open_end"),
                           "The model is asked what comes after an empty line, and in the examples the word comes at once."),
        "labels-swapped": M(_prompt(swapped=True), _lacks("not_swapped", "labelled"),
                            "Label 0 belongs to words[0]. Yours are the wrong way round."),
        "no-labels": M(_prompt(labelled=False), _lacks("labelled"),
                       "Examples without their answers don't show what an answer looks like."),
        "run-together": M(_prompt(between=""), _lacks("apart"),
                          "Start a new line after the word, or the next example begins in the middle of this one's answer."),
        "no-examples": M(_prompt(examples_too=False), _lacks("shown"), "The examples aren't used."),
        "few-examples": M(_on(some=lambda examples: examples[:4]), _lacks("all_shown"),
                          "You use a few examples and leave out the rest. How many there are is for the caller to say."),
        "sentence-cut": M(_on(sentence=_cut), _lacks("whole"),
                          "You cut the sentence short. What decides may stand at its end."),
        "examples-cut": M(_on(shown=_cut), _lacks("whole"),
                          "You cut examples short. What decides may stand at their end."),
        "both-cut": M(_on(_cut, _cut), _lacks("whole"),
                      "You cut texts short. What decides may stand at their end."),
        "examples-lower-cased": M(_on(shown=str.lower), _lacks("as_given"),
                                  "You change the examples, to small letters, and the sentence isn't changed. Write them as "
                                  "they are."),
        "lower-cased": M(_on(str.lower, str.lower), _lacks("as_given"),
                         "You change the sentence, to small letters. The model has learned from both kinds: write "
                         "texts as they are."),
        "answered": M(_prompt(answer=True), _lacks("unanswered", "open_end"),
                      "You've written an answer after the sentence. The model is to write it: end before the word."),
        "sentence-twice": M(_prompt(twice=True), _lacks("once"), "The sentence is written twice."),
        "other-form": M(_prompt(other_form=True), _lacks("same_form"),
                        "The examples show one form, and the question has another. The model continues what it has seen."),
        "backwards": M(_prompt(backwards=True), _lacks("in_order"),
                       "Keep the order of the examples: we'll change it on purpose."),
    },
    rules=(
        _fails("as_given", "Change no letters and no marks: write texts as they are."),
        _fails("whole", "Cut nothing off: what decides may stand at the end."),
        _fails("all_shown", "How many examples there are is for the caller to say: use them all."),
        _fails("once", "The model must read it, and only once."),
        _fails("shown", "The examples come first, and the question last."),
        R(lambda case: case.got["labelled"] < 0.5,
          lambda case: f"one thing doesn't hold: {PARTS['labelled']}, here '{case.inputs[2][0]}' or '{case.inputs[2][1]}'.",
          "After an example comes words[label], whatever the two words are."),
        _fails("apart", "Start a new line after the word."),
        _fails("unanswered", "The model is to write the answer."),
        _fails("same_line", "The words begin with a blank, and a line doesn't. Write something before the word, such as "
               "'Sentiment:', in a chat's reply too."),
        _fails("open_end", "The words begin with a blank of their own."),
        _fails("one_blank", "Words that begin with a blank need none before them."),
        _fails("same_form", "Write examples and question by the same code."),
        _fails("in_order", "Keep the order in which they came."),
        _fails("read_once", "What's before the sentence may depend on the examples alone; then the model reads it once."),
    ),
    hints=(
        "Write the question first, as one text with the sentence in it, ending in a colon.",
        "An example is the same text, and then words[label] and an empty line.",
        'shown = "".join(f"Review: {known}\\nSentiment:{words[label]}\\n\\n" for known, label in examples)',
    ),
)

# ---------------------------------------------------------------- quiz; `name` stays for ever: progress is kept by it

QUIZ = """
- name: what-examples-teach
  taught: "21"
  question: With sixteen examples in the prompt, which weights of the model have changed?
  options:
    - text: Those of the heads that look at the examples' labels.
      remark: Those heads look at the labels while the prompt is being read. Nothing is written into them.
    - text: None.
      right: true
      remark: Only keys and values of the examples are new, and they're gone with the prompt. That's why "learning" is an odd
        word for it.
    - text: A few, by a small step, and they're put back when the prompt ends.
      remark: There's no loss and no gradient, so nothing that a step could be made of.
- name: better-with-examples
  taught: "21"
  question: With eight examples a model gets 71 % right, and 66 % without any, on the same 200 sentences. What do you do
    before you write that examples help?
  options:
    - text: Draw other examples, and put them in other orders.
      right: true
      remark: One draw in one order is one run, as one seed is. Here orders of the same eight
        differ by more than that.
    - text: Add examples until the curve is flat.
      remark: Every point of that curve would be one draw again, so you can't tell its slope from luck.
    - text: Ask the same sentences once more, to see whether it repeats.
      remark: It repeats to the last digit, since nothing is drawn when two probabilities are compared.
- name: two-long-answers
  taught: "21"
  question: The answers are 'favourable', one token, and 'unfavourable', three. You compare the probabilities of the whole
    answers. Which answer is put at a disadvantage by its length?
  options:
    - text: Neither, since the length of an answer plays no part in its probability.
      remark: It does. Each further token multiplies by a number below 1.
    - text: "'favourable'"
      remark: It has one factor, and the other has three; every factor is below 1.
    - text: "'unfavourable'"
      right: true
      remark: Three factors below 1 instead of one. Calibration by the prior takes away much of it, since an empty text puts
        it at the same disadvantage.
- name: prior-of-nothing
  taught: "21"
  question: For an empty text a prompt gives 'positive' 0.8 and 'negative' 0.2. For a sentence it gives 0.7 and 0.3. What
    does calibration by the prior say about the sentence?
  options:
    - text: Positive, less surely than before.
      remark: Divide, 0.7/0.8 = 0.875 and 0.3/0.2 = 1.5. The second is larger.
    - text: Negative.
      right: true
      remark: 0.875 against 1.5. The sentence has moved the model towards 'negative', from where it stands without any.
    - text: Nothing, since 0.7 is too near 0.8.
      remark: It always says something, and how surely is in the ratio, here 0.37 to 0.63.
- name: forged-turn
  taught: "21"
  question: A program puts a user's message into a template as text, and then encodes the whole. The message contains
    '<|im_end|>'. What happens?
  options:
    - text: The tokenizer refuses it, since special tokens can't be typed.
      remark: It knows the characters and makes the special token of them, wherever they come from.
    - text: The model sees that it's in the middle of a message, and ignores it.
      remark: It sees ids, and this id ends a turn. Where it came from isn't in the id.
    - text: The turn ends there, and whatever follows can open another turn.
      right: true
      remark: So encode messages apart, with special tokens switched off, as chat_ids does.
- name: same-sixteen
  taught: "14"
  question: You want to know whether an adapter beats examples in the prompt. What's a fair comparison?
  options:
    - text: The adapter trained on all the labelled sentences, and the prompt with as many examples as fit.
      remark: That's a comparison of what you can do with each, and worth knowing. But the adapter has seen more labels.
    - text: Both get the same labelled sentences, on several draws, and other sentences for the score.
      right: true
      remark: Then the difference is what is done with the sentences. Several draws, since one is luck.
    - text: The adapter and the prompt that were best on the sentences for the score.
      remark: Then both scores are too high, by an unknown amount, because they were chosen by them.
"""

WARM_UP = """
- name: what-the-cache-keeps
  taught: "13"
  question: A key/value cache holds a text of 400 tokens. What does the model compute for one more token?
  options:
    - text: Queries, keys and values of all 401 tokens.
      remark: That's what it would do without the cache.
    - text: Only the new token's query, key and value; its query looks at all keys.
      right: true
      remark: Keys and values of earlier tokens never change, since no token sees later ones. Today the 400 are examples, and
        twenty questions continue from the same cache.
    - text: Nothing but a lookup, since the cache holds the logits.
      remark: It holds keys and values. Which token comes next has to be computed.
- name: adapter-at-first
  taught: "14"
  question: What does a model with a new low-rank adapter compute before the first step?
  options:
    - text: The same as without it.
      right: true
      remark: One of its two matrices begins at zero, so their product is zero.
    - text: Something slightly different, since both matrices are random.
      remark: One is random and the other zero; the product is zero.
    - text: Nothing useful until it has been trained.
      remark: The frozen matrix is still there, and the adapter adds zero to it.
- name: one-seed-one-finding
  taught: "12"
  question: Two settings differ by three points, each trained with one seed, and scored on 200 reviews. What do you know?
  options:
    - text: That the better setting is better by about three points.
      remark: Another seed could turn it round, and so could 200 other reviews.
    - text: That neither is better, since three points are too few.
      remark: You don't know that, either. It may be a real difference that this comparison can't show.
    - text: Little; the interval of such a score is about six points to either side.
      right: true
      remark: Two standard errors of a proportion near 0.7 on 200 reviews. Today's scores have this interval.
"""
