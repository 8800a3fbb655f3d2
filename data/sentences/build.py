"""Builds the corpus of short sentences: `python data/sentences/build.py` writes it, `--check` compares it with the files.

The words and the constructions are in bank/; course_utils/data/sentence_grammar.py puts a sentence together, and
course_utils/data/sentence_corpus.py decides which sentences are written, and says how.
"""

import sys

from course_utils.data.sentence_corpus import main

if __name__ == "__main__":
    sys.exit(main())
