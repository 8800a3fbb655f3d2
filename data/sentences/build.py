"""Builds the corpus of short sentences: `python data/sentences/build.py` writes it, `--check` compares it with the files.

The words and the constructions are in bank/; data/sentences/sentence_grammar.py puts a sentence together, and
data/sentences/sentence_corpus.py decides which sentences are written, and says how.
"""

import sys
from pathlib import Path

from sentence_corpus import build, files

from course_utils.files.built_files import write_or_check

if __name__ == "__main__":
    sys.exit(write_or_check(lambda: files(build()), Path(__file__).resolve().parent, __doc__.splitlines()[0]))
