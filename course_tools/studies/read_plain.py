"""Give saved models the setting "texts": "plain": they then read every text in its plain form (see `training.plain_text`).

    python -m course_tools.studies.read_plain data/checkpoints/student data/checkpoints/imdb

For those that come with the course, whenever one has been made anew from texts that weren't plain. Does: change the file of
the vocabulary, and the checksums. Does not: train. What such a model scores may change with it: measure it again.
"""

import argparse
import json
from pathlib import Path

from course_utils.recipes.trained_models import MANIFEST, note_files
from course_utils.training.saved_models import read_plain_texts


def main(arguments: list[str] | None = None) -> int:
    """Change the folders of the command line; return the exit status, 2 (by the parser) for what isn't a model of words."""
    parser = argparse.ArgumentParser(prog="python -m course_tools.studies.read_plain", description=(
        "Let saved models read texts as people type them: curly apostrophes and quotes, dashes, accents."))
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER", help="what ReviewClassifier.save wrote, or a "
                        "translator's folder")
    for folder in parser.parse_args(arguments).folders:
        try:
            read_plain_texts(folder)
        except (OSError, ValueError) as error:
            parser.error(str(error))
        if (folder / MANIFEST).is_file():
            about = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
            note_files(folder, {name: value for name, value in about.items() if name != "files"})
        print(folder)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
