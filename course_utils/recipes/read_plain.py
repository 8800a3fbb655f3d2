"""Give saved models the setting "texts": "plain": they then read every text in its plain form (see `training.plain_text`).

    python -m course_utils.recipes.read_plain data/checkpoints/student data/checkpoints/imdb

For those that come with the course, whenever one has been made anew from texts that weren't plain. Does: change that
setting. Does not: train. What such a model scores may change with it: measure it again.
"""

import argparse
from pathlib import Path

from course_utils.training.saved_models import read_plain_texts


def main(arguments: list[str] | None = None) -> int:
    """Change the models of the command line; return the exit status, 2 (by the parser) for what isn't a model of words."""
    parser = argparse.ArgumentParser(prog="python -m course_utils.recipes.read_plain", description=(
        "Let saved models read texts as people type them: curly apostrophes and quotes, dashes, accents."))
    parser.add_argument("names", nargs="+", type=Path, metavar="NAME", help="what ReviewClassifier.save or a translator "
                        "wrote")
    for name in parser.parse_args(arguments).names:
        try:
            read_plain_texts(name)
        except (OSError, ValueError) as error:
            parser.error(str(error))
        print(name)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
