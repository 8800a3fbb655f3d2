"""Where to begin: six questions, in two minutes, before the first notebook.

Does: ask, and say of each wrong answer with which notebook it makes one begin. Does not: save the answers, or teach what
they ask for.
"""

from course_utils.copies.start import Page
from course_utils.exercises.quizzes import Option, Question, question_as_html, question_as_text

BEGIN = {"00": "00", "02": "01", "03": "01"}              # by the notebook that teaches an answer, where to begin without it


def _question(taught: str, text: str, *options: tuple[str, str]) -> Question:
    """A question; the remark on the right option begins with Yes; the others say where to begin."""
    alone = "" if taught == BEGIN[taught] else f" Only this one missed? {taught} will do. More than one?"
    begin = f"{alone} Begin with {BEGIN[taught]}."
    return Question("", taught, text, tuple(
        Option(words, said.startswith("Yes"), said if said.startswith("Yes") else said + begin) for words, said in options))


QUESTIONS = (
    _question("00", "`x` has the shape (4, 3) and `W` the shape (3, 2). What shape is `x @ W`?",
              ("(4, 2)", "Yes: the inner 3 is summed over."),
              ("(3, 3)", "No: the outer sizes stay, the inner one is summed over. 00, section 2."),
              ("none, it's an error", "No: 3 meets 3, so the product exists. 00, section 2.")),
    _question("00", "`scores` has the shape (2, 5). What sums to one in `scores.softmax(dim=-1)`?",
              ("each of the five columns", "No: dim=-1 is the last dimension, the one with five numbers. 00, on softmax."),
              ("each of the two rows", "Yes: five probabilities a row."),
              ("all ten numbers together", "No: softmax works along one dimension. 00, on softmax.")),
    _question("00", "After `loss.backward()`, what does `W.grad` hold?",
              ("the value that W should have", "No: it's a slope; a step then uses it. 00, last sections."),
              ("how much W has changed", "No: nothing has changed yet. 00, last sections."),
              ("how the loss changes when each number of W changes a little", "Yes: one slope for each number of W.")),
    _question("02", "A word of the review isn't in the vocabulary. What does a word-level model see in its place?",
              ("nothing: the review gets shorter", "No: its place is kept, by `<unk>`. 02 shows what that costs."),
              ("the id of `<unk>`, like every other unknown word", "Yes, so *great* and *bad* can become the same."),
              ("a new id, at the end of the vocabulary", "No: there's no vector for an id that training never met. 02.")),
    _question("03", "Token ids of shape (8, 20) go through `nn.Embedding(1000, 16)`. What shape comes out?",
              ("(8, 20, 16)", "Yes: a row of 16 numbers in place of each id."),
              ("(8, 16)", "No: that's after the mean over the 20 tokens. 03."),
              ("(8, 20, 1000)", "No: that would be one-hot; the lookup gives 16 numbers a token. 03.")),
    _question("03", "A model takes the mean of a review's word vectors, then a linear layer. What can't it tell apart?",
              ("a long review and a short one by another writer", "It can: other words, so another mean. 03."),
              ("two reviews with the same words in another order", "Yes. That is why there is attention, with positions."),
              ("a review with 'dull' and one with 'moving'", "It can: the two words have different vectors. 03.")),
)


class SelfTest(Page):
    """The six questions, whose options open: each says whether it's right, and a wrong one where to begin."""

    def __init__(self):
        asked = list(enumerate(QUESTIONS, start=1))
        super().__init__(*("\n".join(said(*one) for one in asked) for said in (question_as_html, question_as_text)))
