"""The README that lies beside a reader's weights: where they come from, how often they're right, under which licences."""

import textwrap

from course_tools.studies.runner import Trained, parameters_of
from course_tools.studies.student_texts import UNLABELLED
from course_utils.training import device_name, fastest_device

TESTED = {                                              # what the course calls each source of test texts
    "imdb": "IMDb's test reviews (5,000 of them)", "reviews": "the course's test reviews", "sentences": "its test sentences",
    "written": "test sentences written one by one (data/written)", "written_more": "those written later (data/written_more)",
    "handwritten": "the hand-written reviews", "ordinary": "the first 300 ordinary sentences",
    "ordinary_second": "the second 300", "ordinary_third": "the third 300",
}


def reader_note(row: str, seed: int, made: Trained, pieces: int) -> str:
    """What to write beside a student.

    Args:
        row: its row in the set `reader`, or in `reader_more` when `made` says from which weights it has "begun".
        seed: its seed.
        made: what its run made; "accuracy" for sources of test texts is among what is its own.
        pieces: how many word pieces it knows.
    """
    on, minutes = f"on {device_name(fastest_device())}", f"{max(1, made.result.seconds / 60):.0f} minutes"
    trained = f'the\nrow "{row}" of `python -m course_tools results reader`, seed {seed}, trained in {minutes} {on}'
    if "begun" in made.own:
        trained = (f"the\nreader of seed {seed} (`python -m course_tools results reader`), trained for {minutes} more "
                   f'{on}: the row\n"{row}" of `python -m course_tools results reader_more`')
    right = ", ".join(f"{name} {100 * made.own[source]['accuracy']:.1f}" for source, name in TESTED.items()
                      if source in made.own)
    right = textwrap.fill(f"Right in per cent, of texts that it has never seen: {right}.", 120, break_on_hyphens=False)
    return NOTE.format(parameters=parameters_of(made.network), pieces=pieces, trained=trained, right=right,
                       unlabelled=UNLABELLED, taught="" if row.startswith("labels alone") else TAUGHT,
                       more=MORE if "begun" in made.own else "")


TAUGHT = """\
- For each of these texts, the mean answer of three teachers. These are all-MiniLM-L6-v2
  (https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2), fine-tuned on labelled texts of the same kinds. Its base
  is MiniLM (Wang et al. 2020, https://arxiv.org/abs/2002.10957).
"""
MORE = """\
- Then again some of these with their labels alone, and, above all, the sentences and short reviews of data/written_more.
"""

NOTE = """\
# A reader of reviews and sentences

A `ReviewClassifier` of notebook 08 with {parameters:,} parameters and {pieces:,} word pieces, in 8 bits a weight: {trained}.
Notebook 15 tells how, and what it can't do. Where this folder is among the models that come with the course, its name is
enough:

    ReviewClassifier.load("reader").predict(["Nobody could call it dull."])
    CautiousClassifier.load("reader").predict(["Nobody could call it dull."])       # may say "don't know"

{right}
(One in ten of the test sentences of data/written has a near relative among those for training.) Earlier students had been
scored on the first two sets of ordinary sentences and on the hand-written reviews before. We wrote these tests and a part
of what it learned from, and another writer the third set, so expect less on sentences of your own. Its file also has a
temperature for its confidence, which `predict` applies, and the threshold below which it says "don't know": both fitted to
the first 300, so that one in ten of the answers to these is wrong. On others, expect more.

## What it was trained on

- IMDb's training reviews and {unlabelled:,} of its unlabelled ones (Maas et al. 2011,
  https://aclanthology.org/P11-1015), and sentences cut out of them. Nothing of their text is here but the list of
  frequent word pieces.
- The course's synthetic reviews and sentences, and its sentences written one by one (data/written).
{taught}{more}- Its layers and word pieces began as MiniLM's.

## Licences

MiniLM's weights come under the Apache License 2.0, a copy of which lies beside this file (`LICENSE-Apache-2.0.txt`).
These weights are changed: three of six layers, fewer word pieces, trained on, rounded. The course's own licence covers its
code and its texts. IMDb's reviews belong to those who wrote them; the data set is there for research.
"""
