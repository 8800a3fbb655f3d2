"""Builds the corpus of short sentences: `python data/sentences/build.py` writes it, `--check` compares it with the files.

The words and the constructions are in bank/; course_utils/data/sentence_grammar.py puts a sentence together, and
course_utils/data/sentence_corpus.py decides which sentences are written, and says how.
"""

import sys
from pathlib import Path

from course_utils.data.built_files import write_or_check
from course_utils.data.sentence_corpus import build, files

if __name__ == "__main__":
    sys.exit(write_or_check(lambda: files(build()), Path(__file__).resolve().parent, __doc__.splitlines()[0]))
