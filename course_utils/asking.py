"""`python -m course_utils ask "…"`: where in the course's notebooks a question is answered; with weights, an answer.

Does: find passages by BM25 over the originals of the notebooks, print where they stand, let a chat model answer from them
where this machine has one, and say when nothing good was found, or which words no page has: then no model is asked. Does
not: read learners' copies or the exercises' answers, or download anything.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import re
import textwrap

from course_utils.copies.notebooks import extras
from course_utils.files.paths import DATA, NOTEBOOKS
from course_utils.files.text import print_on_any_console
from course_utils.retrieval import BM25, Passage, cut, grounded_prompt, sections_of, words_of

__all__ = ["ENOUGH", "found_for", "course_index", "course_passages", "course_questions",
           "index_words", "judged", "on_no_page"]

ENOUGH = 0.2                                            # of the best score that a question's words could reach
REFUSED = re.compile(r"\b(don't|do not|doesn't|does not|can't|cannot|isn't|is not|not) (know|say|mention|contain|provide|"
                     r"answer|possible to|mentioned|provided|clear|sure)|no (information|mention)|\bunknown\b")

KNOWS_NOT = r"(i'm sorry, )?(but )?i('m not| am not)? ?(don't|do not|can't|cannot|sure)"


def course_passages() -> list[Passage]:
    """The passages of START, the numbered notebooks and the extras, in order; a file that can't be read is left out."""
    files = [NOTEBOOKS / "START.ipynb", *sorted(NOTEBOOKS.glob("[0-9][0-9]*.ipynb")), *extras()]
    passages = []
    for file in files:
        try:
            cells = json.loads(file.read_text(encoding="utf-8"))["cells"]
        except (OSError, ValueError, KeyError):
            continue
        passages += cut(file.stem, cells)
    return passages


def index_words(passage: Passage) -> list[str]:
    """What a passage is found by: its words, those of its notebook's title twice, of its section's three times."""
    return words_of(f"{passage.text} {(passage.title + ' ') * 2} {(passage.section + ' ') * 3}")


def course_index(passages: list[Passage], k1: float = 1.2, b: float = 0.75) -> BM25:
    """BM25 over these passages."""
    return BM25([index_words(passage) for passage in passages], k1, b)


@functools.cache
def course_questions(name: str = "course") -> list[dict]:
    """The questions in data/questions: 'course' to score on, 'for_settings' to choose by; each with its sections."""
    lines = (DATA / "questions" / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def judged(reply: str, accepted: list[str]) -> str:
    """'right' where the reply has one of the accepted words or beginnings of words; else 'refused' or 'wrong'.

    Where nothing is accepted, since no page answers, a refusal is what's right, and it's called 'refused'.
    """
    said = reply.lower().replace("’", "'")
    if any(re.search(rf"(?<!\w){re.escape(one.lower())}", said) for one in accepted) and not re.match(KNOWS_NOT, said):
        return "right"
    return "refused" if not said.strip() or REFUSED.search(said) else "wrong"


def found_for(question: str, k: int, passages: list[Passage] | None = None,
              index: BM25 | None = None) -> tuple[list[Passage], float]:
    """The best passages of the `k` best sections, and the best score as a fraction of what the words could reach."""
    passages = course_passages() if passages is None else passages
    index, words = index or course_index(passages), words_of(question)
    return sections_of(index.scores(words), passages, k), index.share(words)


def on_no_page(question: str, index: BM25) -> list[str]:
    """The question's words, as they're written, that none of the passages has."""
    written, known = dict.fromkeys(re.findall(r"[^\W_]+", question)), {rough(word) for word in index.within}
    return [word for word in written if any(rough(one) not in known for one in words_of(word))]


def rough(word: str) -> str:
    """A word of the index without a last 'e' or doubled letter, so that 'getting' is taken for 'get', 'waves' for 'wave'."""
    return re.sub(r"([^aeiou])\1$", r"\1", word.removesuffix("e"))


def chat_model_here() -> tuple | None:
    """SmolLM2 and its tokenizer where this machine has them; None, without a word, where it hasn't."""
    from course_utils.random_llama import SMOLLM2
    from course_utils.training.hugging_face import ModelNotAvailable, find_checkpoint, first_there

    before = os.environ.get("HF_HUB_OFFLINE")
    os.environ["HF_HUB_OFFLINE"] = "1"                  # nothing is fetched for a question
    try:
        from course_utils.chat import load_chat
        return load_chat(str(find_checkpoint(first_there("smollm2", SMOLLM2))))
    except (ModelNotAvailable, OSError, ValueError):
        return None
    finally:
        os.environ.pop("HF_HUB_OFFLINE") if before is None else os.environ.__setitem__("HF_HUB_OFFLINE", before)


def plain(text: str) -> str:
    """A passage's markdown for a terminal: one line, links as their words."""
    return " ".join(re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", text).replace("**", "").split())


def main(arguments: list[str] | None = None) -> int:
    """Read the command line, search, answer, print; return the exit status: 1 where nothing good was found."""
    parser = argparse.ArgumentParser(
        description="Say where in the course a question is answered; with SmolLM2's weights on this machine, answer it too.")
    parser.add_argument("question", nargs="+", metavar="QUESTION", help='in quotes, such as "What is a causal mask?"')
    parser.add_argument("--places", type=int, default=3, metavar="K", help="how many sections to name (default: 3)")
    parser.add_argument("--no-model", action="store_true", help="search only, even where there are weights")
    chosen = parser.parse_args(arguments)
    question = " ".join(chosen.question).strip()
    if not words_of(question):
        parser.error('there is no word in it to search for; ask in words, such as "What is a causal mask?"')
    if not 1 <= chosen.places <= 20:
        parser.error(f"--places is {chosen.places}; expected 1 to 20")
    print_on_any_console()
    passages = course_passages()
    if not passages:
        parser.error(f"there are no notebooks in {NOTEBOOKS}; run it from the course's own folder")
    index = course_index(passages)
    found, share = found_for(question, chosen.places, passages, index)
    unknown = ", ".join(f"'{word}'" for word in on_no_page(question, index))
    if share < ENOUGH:
        print("I found nothing good about that in the course.", f"No page has {unknown}." if unknown else "")
        if share:
            print("Closest, and perhaps beside the point:")
            for one in found:
                print(f"  {one.place}  (notebooks/{file_of(one)})")
        print("Ask in other words, or look into notebooks/notation_and_glossary.md.")
        return 1
    if unknown:
        print(f"No page of the course has {unknown}, so this may be beside the point:")
    for number, one in enumerate(found, start=1):
        print(f"{number}. {one.place}  (notebooks/{file_of(one)})")
        print(textwrap.fill(textwrap.shorten(plain(one.text), 400, placeholder=" …"), 100, initial_indent="   ",
                            subsequent_indent="   "))
    if chosen.no_model or unknown or (loaded := chat_model_here()) is None:    # on a page beside the point it would invent
        return 0
    from course_utils.chat import Conversation

    print(f"\nA small language model, reading {found[0].place}. It may be wrong; the section is what counts:\n   ", end="")
    try:
        for piece in Conversation(*loaded, max_new_tokens=60).reply(grounded_prompt(question, [found[0].text])):
            print(piece, end="", flush=True)
    except KeyboardInterrupt:
        pass
    except ValueError as error:
        print(f"no answer: {error}", end="")
    print()
    return 0


def file_of(passage: Passage) -> str:
    """Where its notebook is, below notebooks."""
    beside = (NOTEBOOKS / f"{passage.notebook}.ipynb").is_file()
    return f"{'' if beside else 'extras/'}{passage.notebook}.ipynb"
