"""The course's commands: `python -m course_utils` lists them, `python -m course_utils train --help` explains one.

Does: find the command and hand it the rest of the line. Does not: anything else; each command is a function of the module
that does the work, imported only when it is called.
"""

import signal

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)         # Ctrl-C while libraries are imported: no traceback of them

import difflib  # noqa: E402
import sys  # noqa: E402
from collections.abc import Callable  # noqa: E402

from course_utils.files.text import print_on_any_console  # noqa: E402

Command = Callable[[list[str]], int]


def copy() -> Command:
    """make any missing working copies, in notebooks/my_copies"""
    from course_utils.tools.copies import copy_command
    return copy_command


def fresh() -> Command:
    """make a new copy of one notebook and keep your old one"""
    from course_utils.tools.copies import fresh_command
    return fresh_command


def update() -> Command:
    """the same, and carry over your answers and predictions"""
    from course_utils.tools.copies import update_command
    return update_command


def run() -> Command:
    """execute notebooks without a browser; copies and figures go to outputs/"""
    from course_utils.tools.notebooks import run_command
    return run_command


def train() -> Command:
    """train the classifier on the course corpus, IMDb or a file of your own, and save it"""
    from course_utils.experiments.recipes import main
    return main


def complete() -> Command:
    """print how the word at a place in a file may go on, by the language model of notebook 13"""
    from course_utils.completion.command import main
    return main


def translate() -> Command:
    """translate English texts into French, by the Transformer of notebook 17"""
    from course_utils.tools.translate import main
    return main


def one_file() -> Command:
    """write the whole classifier as one readable file, outputs/model.py"""
    from course_utils.tools.one_file import main
    return main


def cheat_sheet() -> Command:
    """write the cheat sheet, one page of shapes and formulas to print"""
    from course_utils.tools.cheat_sheet import main
    return main


def quiz_cards() -> Command:
    """write the quizzes as cards that Anki can import"""
    from course_utils.tools.quiz_cards import main
    return main


def site() -> Command:
    """write the whole course as a site to outputs/site, to read without installing anything"""
    from course_utils.tools.site.build import main
    return main


def results() -> Command:
    """compute whatever is missing from the result files, and print their tables"""
    from course_utils.experiments.command import main
    return main


def imdb() -> Command:
    """train and score on the real IMDb reviews, and compare with TF-IDF"""
    from course_utils.experiments.sets.imdb import main
    return main


def imdb_facts() -> Command:
    """count what notebooks 01 and 02 say about the IMDb reviews"""
    from course_utils.experiments.sets.imdb_facts import main
    return main


def explanations() -> Command:
    """score the ways to explain a prediction, for notebook 11"""
    from course_utils.experiments.sets.explanations import main
    return main


def speed() -> Command:
    """measure what the course says about speed and memory, as ratios"""
    from course_utils.experiments.sets.speed import main
    return main


def solutions() -> Command:
    """write every notebook with its exercises solved to outputs/solutions"""
    from course_utils.instructors.editions import solutions_command
    return solutions_command


def handout() -> Command:
    """write the course without its solutions to outputs/handout and outputs/handout.zip"""
    from course_utils.instructors.editions import handout_command
    return handout_command


def sheets() -> Command:
    """write the computations by hand as pages to print, with answers"""
    from course_utils.instructors.sheets import main
    return main


def slides() -> Command:
    """write slides from the notebooks, a deck for each and for each route, to outputs/slides"""
    from course_utils.instructors.slides.command import main
    return main


def grade() -> Command:
    """grade the exercises in handed-in notebooks, on fresh inputs"""
    from course_utils.instructors.grading.grade import main
    return main


def timetable() -> Command:
    """rewrite the timetable on the page for instructors"""
    from course_utils.instructors.timetable import main
    return main


def slide_pictures() -> Command:
    """draw the figures of the slides: executes the notebooks in the style for projectors"""
    from course_utils.instructors.slides.pictures import main
    return main


def export() -> Command:
    """copy the notebooks' exported cells into course_utils"""
    from course_utils.tools.export import main
    return main


def save() -> Command:
    """execute notebooks in place"""
    from course_utils.tools.notebooks import save_command
    return save_command


def exercise() -> Command:
    """add an exercise to a notebook, as an example to rewrite"""
    from course_utils.tools.scaffold import exercise_command
    return exercise_command


def notebook() -> Command:
    """add the next notebook, with exercises and a quiz"""
    from course_utils.tools.scaffold import notebook_command
    return notebook_command


def paths() -> Command:
    """print where the course's notebooks are"""
    from course_utils.tools.notebooks import paths_command
    return paths_command


def models() -> Command:
    """train any missing models in data/checkpoints"""
    from course_utils.experiments.trained_models import main
    return main


def gallery() -> Command:
    """draw the gallery's figures and write its page"""
    from course_utils.tools.gallery import main
    return main


def animations() -> Command:
    """draw the animations as SVG and GIF"""
    from course_utils.interactive.animations import main
    return main


def hosted_copies() -> Command:
    """write copies of the notebooks for Colab, which fetch the course"""
    from course_utils.tools.hosted_copies import main
    return main


def processors() -> Command:
    """run the notebooks' tests as if on other processors"""
    from course_utils.tools.processors import main
    return main


def seeds() -> Command:
    """try the notebooks' claims with other random seeds"""
    from course_utils.tools.seeds import main
    return main


GROUPS = {
    "for learners": (copy, fresh, update, run, train, complete, translate, one_file, cheat_sheet, quiz_cards, site),
    "results": (results, imdb, imdb_facts, explanations, speed),
    "for instructors": (slides, solutions, handout, sheets, grade, timetable),
    "for maintainers": (exercise, notebook, export, save, paths, models, gallery, slide_pictures, animations,
                        hosted_copies, processors, seeds),
}
COMMANDS = {load.__name__.replace("_", "-"): load for group in GROUPS.values() for load in group}


def overview() -> str:
    """All commands by group, one per line."""
    lines = ["python -m course_utils COMMAND …        COMMAND --help tells you more"]
    for group, loads in GROUPS.items():
        lines += ["", f"{group}:"]
        lines += [f"  {load.__name__.replace('_', '-'):<13} {load.__doc__}" for load in loads]
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    """Run the command that the line names and return its exit status; return 2 if the line names no command."""
    print_on_any_console()
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(overview())
        return 0 if arguments else 2
    name, *rest = arguments
    if name not in COMMANDS:
        near = difflib.get_close_matches(name, COMMANDS, n=1)
        print(f"there is no command {name!r}{f'; did you mean {near[0]}?' if near else ''}\n\n{overview()}", file=sys.stderr)
        return 2
    try:
        command = COMMANDS[name]()
    except ModuleNotFoundError as error:
        if not str(error.name).startswith("course_utils.instructors"):
            raise
        print(f"{name} is for instructors; this edition of the course doesn't include it", file=sys.stderr)
        return 2
    sys.argv[:] = [f"python -m course_utils {name}", *rest]                # what usage messages call the program
    signal.signal(signal.SIGINT, signal.default_int_handler)
    return command(rest)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
