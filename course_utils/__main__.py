"""The learner's commands: `python -m course_utils` lists them, `python -m course_utils train --help` explains one.

Does: name the commands and where each is. Does not: run them; each is a function of the module that does the work, imported
only when it is called (see `course_utils.commands`).
"""

import signal

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)         # Ctrl-C while libraries are imported: no traceback of them

import sys  # noqa: E402

from course_utils.commands import Command, by_name, run_command  # noqa: E402


def copy() -> Command:
    """make any missing working copies, in notebooks/my_copies"""
    from course_utils.copies.commands import copy_command
    return copy_command


def fresh() -> Command:
    """make a new copy of one notebook and keep your old one"""
    from course_utils.copies.commands import fresh_command
    return fresh_command


def update() -> Command:
    """the same, and carry over your answers and predictions"""
    from course_utils.copies.commands import update_command
    return update_command


def run() -> Command:
    """execute notebooks without a browser; copies and figures go to outputs/"""
    from course_utils.copies.notebooks import run_command
    return run_command


def train() -> Command:
    """train the classifier on the course corpus, IMDb or a file of your own, and save it"""
    from course_utils.recipes import main
    return main


def complete() -> Command:
    """print how the word at a place in a file may go on, by the language model of notebook 13"""
    from course_utils.completion.command import main
    return main


def translate() -> Command:
    """translate English texts into French, by the Transformer of notebook 17"""
    from course_utils.translation.command import main
    return main


def chat() -> Command:
    """talk with a chat-tuned Llama that runs in the course's own class"""
    from course_utils.chat import main
    return main


def ask() -> Command:
    """say where in the course a question is answered, and answer it where there are weights"""
    from course_utils.asking import main
    return main


def quiz_cards() -> Command:
    """write the quizzes as cards that Anki can import"""
    from course_utils.exercises.quizzes import main
    return main


def imdb() -> Command:
    """train and score on the real IMDb reviews, and compare with TF-IDF"""
    from course_utils.recipes.imdb import main
    return main


def paths() -> Command:
    """print where the course's notebooks are"""
    from course_utils.copies.notebooks import paths_command
    return paths_command


GROUPS = {
    "copies of the notebooks": (copy, fresh, update, run, paths),
    "models": (train, imdb, complete, translate, chat, ask),
    "to learn by heart": (quiz_cards,),
}
COMMANDS = by_name(GROUPS)


def main(arguments: list[str]) -> int:
    """Run the command that the line names and return its exit status; return 2 if the line names no command."""
    return run_command("course_utils", GROUPS, arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
