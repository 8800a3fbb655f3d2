"""Questions about the course, searched for in its notebooks and answered by a small chat model: a result set.

Writes data/results/retrieval.json, which notebook 22 shows. Of each question in data/questions/course.jsonl a search row
keeps the ten best sections, an answering row the reply; what's right is decided when the file is read, by the same file's
`sections` and `accepted`. The model is SmolLM2-135M-Instruct, in the folder that COURSE_MODELS names (here made of a 4-bit
file, written out in float32); MiniLM is looked for in the same way. Greedy, 24 tokens a reply; about 25 minutes of one core.

    COURSE_MODELS=folder python -m course_tools results retrieval --jobs 1
"""

import functools
import time
from collections.abc import Callable

from course_tools.studies.needs import Need
from course_tools.studies.runner import ResultSet, once
from course_utils.asking import course_index, course_passages, course_questions, judged
from course_utils.chat import Conversation
from course_utils.pretraining import load_bert
from course_utils.results import fingerprint
from course_utils.retrieval import Passage, combined, grounded_prompt, mean_vectors, sections_of, words_of
from course_utils.training.hugging_face import find_checkpoint, first_there

ITSELF = "22_retrieval"                                  # left out: it's written about these questions
NEW_TOKENS, FOUND, ORDERS = 24, 3, 5
FEWER = {"a wrong passage": 2, "five orders": 4}    # of these questions, every second, or fourth
ROOM = 4000                                              # words of passages in a prompt where orders are compared: all
SEARCHES = {"BM25": None, "MiniLM": "MiniLM"}
ANSWERS = ("no passage", "the right passage", "found passages", "a wrong passage", "five orders")
ROWS = [*ANSWERS, *SEARCHES]


@functools.cache
def pages() -> list[Passage]:
    return [one for one in course_passages() if one.notebook != ITSELF]


@functools.cache
def index():
    return course_index(pages())


def found(question: str, k: int) -> list[Passage]:
    """The best passages of the k best sections, by BM25."""
    return sections_of(index().scores(words_of(question)), pages(), k)


def right_passage(question: dict) -> Passage:
    """Of the sections that answer a question, the passage that BM25 likes best, of those with an answer if there are any."""
    scores = index().scores(words_of(question["question"]))
    places = [i for i, one in enumerate(pages()) if one.key in question["sections"]]
    answering = [i for i in places if has_answer(pages()[i], question)]
    return pages()[max(answering or places, key=lambda i: scores[i])]


def has_answer(passage: Passage, question: dict) -> bool:
    """Whether one of the strings that count as right stands in the passage, as it stands in the prompt."""
    return judged(*shown([passage]), question["accepted"]) == "right"


def wrong_passage(question: dict) -> Passage:
    """The passage that is found first for some other question."""
    questions = course_questions()
    other = questions[(question["id"] + 36) % len(questions)]
    return next(one for one in found(other["question"], 10) if one.key not in question["sections"])


def shown(passages: list[Passage]) -> list[str]:
    return [f"{one.place}: {one.text}" for one in passages]


@functools.cache
def chat_model():
    from course_utils.random_llama import SMOLLM2, load_chat

    return load_chat(str(find_checkpoint(first_there("smollm2", SMOLLM2))))


def reply(prompt: str) -> str:
    return "".join(Conversation(*chat_model(), max_new_tokens=NEW_TOKENS).reply(prompt))


def answers(texts_for: Callable[[dict], list[Passage]], questions: list[dict], room: int = 400) -> dict:
    """The replies to these questions, the places of the passages that were found, and in how many an answer stands."""
    begun, rows = time.process_time(), []
    for question in questions:
        passages = texts_for(question)
        said = reply(grounded_prompt(question["question"], shown(passages), room))
        rows.append({"id": question["id"], "reply": said, "places": [one.key for one in passages],
                     "with_answer": sum(has_answer(one, question) for one in passages)})
    return {"replies": rows, "cpu_seconds": round(time.process_time() - begun, 1)}


def in_order(question: dict, place: int) -> list[Passage]:
    """The right passage at this place among four that were found and aren't on the list."""
    others = [one for one in found(question["question"], 12) if one.key not in question["sections"]][: ORDERS - 1]
    return [*others[:place], right_passage(question), *others[place:]]


def run(row: str, seed: int, state) -> dict:
    questions = course_questions()
    answered = [one for one in questions if one["sections"]]
    facts = {"passages": len(pages()), "sections": len({one.key for one in pages()})}
    if row in SEARCHES:
        return {**facts, **searched(row, questions)}
    if row == "five orders":
        chosen = answered[:: FEWER[row]]
        return {**facts, "orders": [answers(functools.partial(in_order, place=place), chosen, ROOM)
                                    for place in range(ORDERS)]}
    ways = {"no passage": lambda question: [], "the right passage": lambda question: [right_passage(question)],
            "found passages": lambda question: found(question["question"], FOUND),
            "a wrong passage": lambda question: [wrong_passage(question)]}
    chosen = answered if row == "the right passage" else questions
    return {**facts, **answers(ways[row], chosen[:: FEWER.get(row, 1)])}


def searched(row: str, questions: list[dict]) -> dict:
    """Of each question, the ten best sections by this search; for vectors also together with BM25."""
    begun = time.process_time()
    by_words = [index().scores(words_of(one["question"])) for one in questions]
    ten = lambda scores: [one.key for one in sections_of(scores, pages(), 10)]  # noqa: E731
    if SEARCHES[row] is None:
        share = [round(index().share(words_of(one["question"])), 4) for one in questions]
        return {"found": [ten(scores) for scores in by_words], "share": share}
    encoder, tokenizer = load_bert(minilm())
    vectors = mean_vectors(encoder, tokenizer, shown(pages()))
    asked = mean_vectors(encoder, tokenizer, [one["question"] for one in questions])
    middle = vectors.mean(dim=0)
    by_vectors = [(vectors - middle) @ (one - middle) for one in asked]
    both = [combined(words, close) for words, close in zip(by_words, by_vectors)]
    return {"found": [ten(scores) for scores in by_vectors], "both": [ten(scores) for scores in both],
            "cpu_seconds": round(time.process_time() - begun, 1)}


def minilm() -> str:
    return str(find_checkpoint(first_there("minilm", "sentence-transformers/all-MiniLM-L6-v2")))


def settings() -> str:
    """What every run depends on, the notebooks' text apart: it changes with every release."""
    return fingerprint([one["question"] for one in course_questions()], NEW_TOKENS, FOUND, ORDERS)


def change(row: str) -> dict:
    """How many of the questions a row leaves out."""
    return {"every": FEWER[row]} if row in FEWER else {}


def line(runs: list[dict]) -> str:
    one = runs[0]["orders"][0] if "orders" in runs[0] else runs[0]
    return f"{len(one.get('replies', one.get('found', [])))} questions"


def look(row: str, seed: int) -> None:
    if row not in SEARCHES:
        chat_model()
    if row == "MiniLM":
        minilm()


SET = ResultSet("retrieval", ROWS, settings, run, (Need("SmolLM2-135M-Instruct or MiniLM", look),), seeds=once,
                change=change, line=line)
