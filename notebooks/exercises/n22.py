"""Exercises, quiz and warm-up of notebook 22, retrieval."""

import torch

from course_utils.exercises.definitions import Case
from course_utils.exercises.records import M, R, ask

from course_exercises.common import what

# ---------------------------------------------------------------- 22.1 BM25's weight

def weight(count, length, mean, k1, b):
    long = 1 - b + b * (length / mean)
    return count * (k1 + 1) / (count + k1 * long)


def weight_probes(generator: torch.Generator) -> list[tuple]:
    """(count (n,), length (n,), mean, k1, b): several documents; one; another k1 and b; a word that isn't there."""
    def draw(n, k1, b):
        count = torch.randint(1, 9, (n,), generator=generator).float()
        length = count + torch.randint(1, 40, (n,), generator=generator).float()
        return count, length, 11.0 + 2 * torch.rand(1, generator=generator).item(), k1, b

    zero = draw(4, 1.6, 0.6)
    zero[0][1] = 0
    return [draw(5, 1.2, 0.75), draw(3, 2.0, 0.4), draw(1, 0.9, 0.3), zero]



def _first(case: Case) -> str:
    place = (case.answer - case.expected).abs().nan_to_num(0.0).argmax()
    return (f"{case.inputs[0][place]:.0f} occurrences in {case.inputs[1][place]:.0f} words weigh "
            f"{case.answer[place]:.3f}, expected {case.expected[place]:.3f}.")


WEIGHT = ask(
    "22.1", weight,
    probes=weight_probes,
    signature="weight(count (n,), length (n,), mean, k1, b) -> (n,): what the occurrences of a word are worth",
    mistakes={
        "no-saturation": M(
            lambda count, length, mean, k1, b: count * (k1 + 1) / (1 + k1 * (1 - b + b * length / mean)), _first,
            "Twice as often counts twice as much, without an end. The count must stand below the line as well."),
        "length-left-out": M(
            lambda count, length, mean, k1, b: count * (k1 + 1) / (count + k1), _first,
            "The length makes no difference. With b above 0 a long document must get less for the same count."),
        "length-upside-down": M(
            {"length / mean": "mean / length"}, _first,
            "Long documents are rewarded: it's their length divided by the mean, not the other way round."),
        "length-in-full": M(
            {"1 - b + b * (length / mean)": "length / mean"}, _first,
            "The length counts in full, whatever b is. At b = 0 it shouldn't count at all: 1 - b + b * length / mean."),
        "one-minus-b-forgotten": M(
            {"1 - b + b * (length / mean)": "b * length / mean"}, _first,
            "1 - b is missing. A document of mean length must get the factor 1, whatever b is."),
        "b-and-its-rest-exchanged": M(
            {"1 - b + b * (length / mean)": "b + (1 - b) * length / mean"}, _first,
            "b and 1 - b have changed places: b is the part that the length has."),
        "length-not-divided": M(
            {"length / mean": "length"}, _first,
            "The length isn't divided by the mean length, so every document is a very long one."),
        "k1-plus-one-forgotten": M(
            {"count * (k1 + 1)": "count * 1"}, _first,
            "The factor k1 + 1 above the line is missing. With it, one occurrence in a document of mean length weighs 1."),
        "k1-below-forgotten": M(
            {"k1 * long": "long"}, _first,
            "k1 is missing below the line. It says how many occurrences it takes to come near the limit."),
        "parentheses-below-forgotten": M(
            {"count * (k1 + 1) / (count + k1 * long)": "count * (k1 + 1) / count + k1 * long"}, _first,
            "Without its parentheses only the count is below the line: a / b + c is (a / b) + c."),
        "parentheses-above-forgotten": M(
            {"count * (k1 + 1) / (count + k1 * long)": "count * k1 + 1 / (count + k1 * long)"}, _first,
            "count * k1 + 1 multiplies first. The count goes with all of k1 + 1, which wants parentheses."),
        "count-times-length": M(
            {"count + k1 * long": "(count + k1) * long"}, _first,
            "Only k1 is multiplied by the length, not the count."),
        "long-without-parentheses": M(
            {"k1 * long": "k1 * 1 - b + b * length / mean"}, _first,
            "k1 multiplies all of 1 - b + b * length / mean, which wants parentheses."),
        "settings-written-in": M(
            lambda count, length, mean, k1, b: count * 2.2 / (count + 1.2 * (0.25 + 0.75 * length / mean)), _first,
            "You've written 1.2 and 0.75 into it. k1 and b are given."),
        "count-itself": M(
            lambda count, length, mean, k1, b: count + 0 * length, _first,
            "That's the count. Nothing levels off yet, and the length makes no difference."),
        "mean-of-these": M(
            {"length / mean": "length / length.mean()"}, _first,
            "mean is given. You take the mean of these lengths, which needn't be all of them."),
    },
    rules=(
        R(lambda case: (case.answer < 0).any(), _first, "No weight is negative."),
        R(lambda case: (case.answer - case.expected).abs().max() > 1e-4, _first,
          "count · (k1 + 1) / (count + k1 · (1 − b + b · length / mean))."),
    ),
    hints=(
        "A document of mean length has the factor 1 - b + b = 1: what's left is count * (k1 + 1) / (count + k1).",
        "long = 1 - b + b * length / mean",
        "return count * (k1 + 1) / (count + k1 * long)",
    ),
)

# ---------------------------------------------------------------- 22.2 recall at k

def recall_at(ranked, right, k):
    hits = [not wanted.isdisjoint(found[:k]) for found, wanted in zip(ranked, right)]
    return sum(hits) / len(hits)


def _hits(hit, denominator=lambda ranked, right, k: len(right)):
    return lambda ranked, right, k: sum(hit(f, w, k) for f, w in zip(ranked, right)) / denominator(ranked, right, k)


def recall_probes(generator: torch.Generator) -> list[tuple]:
    """(ranked, right, k): rankings of six sections; one or more answer; some are found late, some never."""
    def draw(n, k):
        ranked, right = [], []
        for row in range(n):
            names = [f"{row}-{i}" for i in torch.randperm(6, generator=generator).tolist()]
            ranked.append(names)
            right.append({names[i] for i in torch.randperm(6, generator=generator)[: 1 + row % 2].tolist()})
        right[0], right[1], right[2], right[3] = ({ranked[0][0], ranked[0][1]}, {ranked[1][k]},
                                                  {ranked[2][0], ranked[2][5]}, {"nowhere"})
        right[4], right[5] = {ranked[4][k - 1]}, {ranked[5][0], "nowhere", ranked[5][k]}
        return ranked, right, k

    return [draw(9, 3), draw(7, 2), draw(11, 4)]


def _fraction(case: Case) -> str:
    return (f"with {len(case.inputs[0])} questions and k = {case.inputs[2]} your recall is {case.answer.item():.3f}, "
            f"expected {case.expected.item():.3f}.")


RECALL = ask(
    "22.2", recall_at,
    probes=recall_probes,
    signature="recall_at(ranked: a list of lists of names, best first; right: a list of sets of names; k) -> the fraction "
    "of questions with at least one right name among the first k",
    mistakes={
        "one-too-many": M({"found[:k]": "found[: k + 1]"}, _fraction, "You look at k + 1 names: found[:k] has k."),
        "one-too-few": M({"found[:k]": "found[: k - 1]"}, _fraction, "You look at k - 1 names: found[:k] has k."),
        "all-of-them": M(_hits(lambda f, w, k: w <= set(f[:k])), _fraction,
                         "You ask for all right sections among the first k. One is enough to answer."),
        "the-whole-ranking": M({"found[:k]": "found"}, _fraction,
                               "You look through the whole ranking, so k makes no difference."),
        "first-only": M({"found[:k]": "found[:1]"}, _fraction, "You look at the first name only; that's recall at 1."),
        "the-kth-only": M({"found[:k]": "found[k - 1 : k]"}, _fraction,
                          "You look at the k-th name only. All of the first k count."),
        "precision": M(_hits(lambda f, w, k: len(w & set(f[:k])) / k), _fraction,
                       "You count right names among the k: that's precision. Each question is found or it isn't."),
        "share-of-the-right": M(_hits(lambda f, w, k: len(w & set(f[:k])) / len(w)), _fraction,
                                "You take the share of a question's right sections. Here one is enough: a question is "
                                "found or it isn't."),
        "not-divided": M(_hits(lambda f, w, k: bool(w & set(f[:k])), lambda ranked, right, k: 1), _fraction,
                         "That's a number of questions. Divide it by how many there are."),
        "reciprocal-rank": M(_hits(lambda f, w, k: next((1 / (i + 1) for i, n in enumerate(f[:k]) if n in w), 0)), _fraction,
                             "You weight a hit by its rank, which is another measure (mean reciprocal rank)."),
    },
    rules=(R(lambda case: not 0 <= case.answer.item() <= 1, _fraction, "A fraction is between 0 and 1."),
           R(lambda case: abs((case.answer - case.expected).item()) > 1e-4, _fraction,
             "Count the questions for which one of the first k names is in the set, and divide by all.")),
    hints=("For one question: is any of found[:k] in wanted?",
           "not wanted.isdisjoint(found[:k]) is True where the two have a name in common.",
           "hits = [not wanted.isdisjoint(found[:k]) for found, wanted in zip(ranked, right)]"),
)

# ---------------------------------------------------------------- 22.3 the prompt

def prompt(question, texts, room):
    kept, used = [], 0
    for text in texts:
        if used + len(text.split()) > room:
            break
        kept.append(text)
        used += len(text.split())
    return "\n\n".join([*kept, question])


def _prompt(room="before", skip=False, last=True, reverse=False, cut=False, everything=False, no_question=False,
            twice=False, with_question=False):
    def answer(question, texts, room_, kept=None):
        kept, used = [], len(question.split()) if with_question else 0
        for text in texts:
            n = len(text.split())
            if cut and used + n > room_:
                kept.append(" ".join(text.split()[: room_ - used]))
                break
            over = {"after": used > room_, "letters": len(text) + used > room_, "reached": used + n >= room_,
                    "before": used + n > room_}[room]
            if over and not everything:
                if skip:
                    continue
                break
            kept.append(text)
            used += len(text) if room == "letters" else n
        kept = kept[::-1] if reverse else kept
        asked = [] if no_question else [question]
        return "\n\n".join([*kept, *asked] if last else [*asked, *kept] + (asked if twice else []))
    return lambda question, texts, room: answer(question, texts, room)


def prompt_probes(generator: torch.Generator) -> list[tuple]:
    """(question, texts, room): all texts fit; a long one in the middle; one that just fits; nothing fits; small room."""
    def draw(lengths, room, number):
        texts = [" ".join(f"w{number}{i}x{j}" for j in range(n)) for i, n in enumerate(lengths)]
        return f"Question number {number}, about the course?", texts, room

    drawn = torch.randint(3, 7, (3,), generator=generator).tolist()
    return [draw([*drawn], sum(drawn) + 200, 1), draw([4, 5, 30, 3, 6], 20, 2), draw([6, 4, drawn[0], 5], 10 + drawn[0], 3),
            draw([9, 3], 5, 4), draw([3, 3], 8, 5)]


def observe_prompt(function, question, texts, room):
    """Where each text and the question begin: their order in the prompt (parts,), -1 for what isn't there; and the words."""
    said = function(question, list(texts), room)
    if said is None:
        return None
    if not isinstance(said, str):
        raise TypeError(f"expected the prompt as one text, got {what(said)}")
    places = [said.find(part) for part in [*texts, question]]
    there = sorted(place for place in places if place >= 0)
    order = [there.index(place) if place >= 0 else -1 for place in places]
    words = sum(said.count(word) for text in texts for word in text.split())
    ends = [place + len(text) for place, text in zip(places, texts) if place >= 0]
    return {"order": torch.tensor([float(place) for place in order]), "words": torch.tensor(float(words)),
            "glued": torch.tensor(float(sum(said[end:end + 1].isalnum() for end in ends))),
            "asked": torch.tensor(float(said.count(question)))}


def _kept(case: Case) -> str:
    lengths = ", ".join(str(len(text.split())) for text in case.inputs[1])
    kept = int((case.order[:-1] >= 0).sum())
    return (f"texts of {lengths} words and room for {case.inputs[2]}: yours has {kept} whole ones, {case.words:.0f} words, "
            f"expected {int((case.right['order'][:-1] >= 0).sum())} and {case.right['words']:.0f}.")


PROMPT = ask(
    "22.3", prompt,
    probes=prompt_probes,
    observe=observe_prompt,
    signature="prompt(question, texts: a list, best first; room: a number of words) -> one text: whole texts as far as they "
    "fit, in their order, and then the question",
    mistakes={
        "question-first": M(_prompt(last=False), "your prompt begins with the question.",
                            "It's to come last, right before the model's turn, where a long page can't push it away."),
        "question-twice": M(_prompt(last=False, twice=True), "the question is in it twice.", "Once is enough, at the end."),
        "question-forgotten": M(_prompt(no_question=True), "there's no question in your prompt.", "It comes last."),
        "worst-first": M(_prompt(reverse=True), "your texts are in reverse order.", "Keep the best one first."),
        "one-too-many": M(_prompt(room="after"), _kept,
                          "You ask for room after a text has gone in. Ask before: used + its words > room?"),
        "no-limit": M(_prompt(everything=True), _kept, "The room makes no difference. Stop before a text that doesn't fit."),
        "cut-in-the-middle": M(_prompt(cut=True), _kept, "Half a text may say the opposite of the whole. Take whole ones."),
        "letters-counted": M(_prompt(room="letters"), _kept, "You count letters. The room is in words: len(text.split())."),
        "just-fits-refused": M(_prompt(room="reached"), _kept, "A text that just fits may go in: > and not >=."),
        "question-counted": M(_prompt(with_question=True), _kept,
                              "The room is for the texts alone. You take the question's words off it."),
        "gaps-filled": M(_prompt(skip=True), _kept,
                         "You go on after a text that doesn't fit, and put in a worse one that does. Stop at the first."),
    },
    rules=(R(lambda case: case.glued > 0, "your texts stick together, the last word of one to what follows.",
             'Put something between them, such as "\\n\\n".join(…).'),
           R(lambda case: case.asked != 1, "the question is in it {asked:.0f} times.", "Put it in once, at the end."),
           R(lambda case: case.words != case.right["words"], _kept, "Whole texts, best first, until one doesn't fit."),
           R(lambda case: not torch.equal(case.order, case.right["order"]), "the parts are in another order.",
             "The texts as they come, then the question.")),
    hints=("Go through the texts, best first, and keep a count of the words used so far.",
           "if used + len(text.split()) > room: break",
           'return "\\n\\n".join([*kept, question])'),
)

# ---------------------------------------------------------------- quiz; `name` stays for ever: progress is kept by it

QUIZ = """
- name: word-not-there
  taught: "22"
  question: You search the course for 'gripping', and no page has that word. What does BM25 give?
  options:
    - text: The pages with words that mean much the same, since rare words weigh most.
      remark: It knows no meanings. A word that a page doesn't have adds nothing to its score.
    - text: A score of zero for every page.
      right: true
      remark: Only words that both have count. An encoder's vectors can still put 'breakfast' near a pot of tea.
    - text: An error, because the word isn't in the index.
      remark: A word in no page has a rarity, too, a high one; it's multiplied by no occurrence.
- name: ten-times
  taught: "22"
  question: One page has 'mask' ten times, another of the same length once. How much more does BM25 give the first for it?
  options:
    - text: About twice as much.
      right: true
      remark: With k1 = 1.2 the weight of ten is 22 / 11.2, just under 2, and of one it's 1. There's a limit of 2.2.
    - text: Ten times as much, as a count would.
      remark: The count stands above and below the line, so the weight levels off.
    - text: The same, because a word counts once.
      remark: With k1 = 0 it would. With 1.2 the second and third occurrence still help.
- name: in-the-prompt-and-wrong
  taught: "22"
  question: The passage in the prompt is about something else. What does a small chat model do with the question?
  options:
    - text: It says that it doesn't know, as the prompt tells it to.
      remark: Now and then. In our counts it refused far less often than it should have.
    - text: It notices that the page is about something else, and leaves it out.
      remark: "Nothing in it checks that: the page is only more text before its first token."
    - text: It mostly writes a sentence all the same, from the page or from nowhere, and it's mostly wrong.
      right: true
      remark: In our counts 34 of 42. That's why an answer needs its place beside it, so that somebody can look.
- name: what-recall-leaves-out
  taught: "22"
  question: Recall at 10 is 75 %. What do you know about the answers of a system that puts one passage into the prompt?
  options:
    - text: At most that the right section is among ten; what's first is said by recall at 1.
      right: true
      remark: Ten passages don't all fit, and the model answers from what it's given.
    - text: Three answers of four are right.
      remark: Recall counts found sections. Being first, being read and being understood come after.
    - text: One answer of four is invented.
      remark: It may refuse, or be right by what it learned in training. Only counting answers tells.
- name: chosen-on-them
  taught: "09"
  question: You try twenty settings of k1 and b on the hundred questions, and report the best recall on them. What's wrong?
  options:
    - text: Nothing, since BM25 has no weights that are trained.
      remark: The two settings have been fitted to these questions all the same.
    - text: The interval gets too wide.
      remark: The interval stays as wide; the number in its middle is too high.
    - text: It's too high; choose on other questions, and score once on these.
      right: true
      remark: It's why the settings here come from a separate set of questions.
"""

WARM_UP = """
- name: cosine-of-two
  taught: "03"
  question: Two vectors of length 1 have a dot product of 1. What do you know?
  options:
    - text: They're the same vector.
      right: true
      remark: The dot product of two vectors of length 1 is the cosine of their angle. Section 4 ranks texts by it.
    - text: They're at a right angle.
      remark: Then it would be 0.
    - text: They have the same words in them.
      remark: A vector doesn't say which words it came from.
- name: tf-idf-rare
  taught: "09"
  question: Why does TF-IDF give a rare word more weight than a common one?
  options:
    - text: Rare words are longer, and carry more letters.
      remark: Letters play no part in it.
    - text: It makes up for a vocabulary that is too small.
      remark: It changes weights, not which words there are.
    - text: A word that's in few documents says more about those it is in.
      right: true
      remark: BM25 in section 2 weighs words by the same thought.
- name: best-next-token
  taught: "13"
  question: What does a language model's most probable next token tell you about the world?
  options:
    - text: What's true, if it was trained on enough text.
      remark: It was trained to continue text. What's often written isn't always true.
    - text: How such a text usually goes on.
      right: true
      remark: That's all it was trained for. So today it's given the page to continue from, and says which.
    - text: What the majority of people think.
      remark: Nobody was asked. It has read texts, some of them many times.
"""

GUESSES = """
- name: 22-four
  guesses:
    - from: 0.9
      to: 1.2
      remark: That's what one is worth. The next three still count, each less than the one before.
    - from: 2.1
      to: 2.3
      remark: 2.2 is k1 + 1, the limit. Four occurrences are on the way there.
    - from: 3.9
      to: 4.1
      remark: "Without saturation it would be 4, as in TF-IDF. Here it's 4 · 2.2 / (4 + 1.2)."
- name: 22-recall
  guesses:
    - from: 80
      to: 100
      remark: "As many as that would be found if people asked in the pages' own words. They often ask in others."
    - from: 0
      to: 30
      remark: A question seldom has none of its page's words, and one rare word in common is often enough.
"""
